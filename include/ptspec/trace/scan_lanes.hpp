// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/scan_loop.hpp>
#include <ptspec/trace/sync.hpp>

/// How packets are counted in several places of a trace at once.
///
/// Where a packet begins is known only some ten steps of the processor after where the one before
/// did. It has the time to count in other places meanwhile: behind a PSB nothing is known of what
/// came before. That a PSB is one, and not part of something else, shows when the place before it
/// is counted up to there; if it does not, nothing of all this was counted.
namespace ptspec::trace::detail {

/// In so many places.
inline constexpr size_t lane_count = 8;
/// They are about so far from each other: less is not worth it, and more does not gain anything.
inline constexpr size_t least_lane_bytes = size_t{1} << 12;
inline constexpr size_t most_lane_bytes = size_t{1} << 20;
/// Where no PSB comes for so long there are no more lanes: all of them together are counted in 32
/// bits.
inline constexpr size_t longest_search = size_t{1} << 28;
/// Packets that are counted between two looks at where a lane ends.
inline constexpr unsigned in_a_row = 64;
/// Lanes share tables, which take room on the stack. Few enough do that none waits for another.
inline constexpr size_t table_count = 4;

/// Where the lanes begin: each ends where the next one begins.
struct lane_begins {
    size_t of[lane_count + 1] = {};
};

/// The begins of lanes from `place` on. The last is `nowhere` where there are no more lanes.
constexpr auto find_lanes(byte_view bytes, size_t place) noexcept -> lane_begins {
    size_t const each = (bytes.size() - place) / (lane_count + 1);
    lane_begins begins;
    begins.of[0] = place;
    for (size_t i = 1; i <= lane_count; ++i) {
        size_t const before = begins.of[i - 1];
        begins.of[i] = nowhere;
        if (each < least_lane_bytes || before == nowhere) { continue; }
        size_t const wanted = place + i * (each < most_lane_bytes ? each : most_lane_bytes);
        size_t const from = wanted > before ? wanted : before + 1;
        size_t const found = find_psb(bytes.from(from).first(longest_search));
        if (found != nowhere) { begins.of[i] = from + found; }
    }
    return begins;
}

/// What was counted in lanes, until it is known to be right.
template <class Packets>
struct lane_counts {
    uint32_t by_first[table_count][256] = {};  ///< packets by their first byte
    tally others{};                            ///< those of which that does not tell all
    bool is_right = true;

    /// Counts what the first byte does not tell. Returns its length, or 0.
    [[gnu::noinline]]  // so that it is not in the way of the others
    constexpr auto
    add_other(uint8_t const* at, bool strict) noexcept -> unsigned {
        outline const one = outline_with_cyc_at<Packets>(at, strict);
        if (one.length != 0) { others.add(one.which, one.length); }
        is_right = is_right && one.length != 0;
        return one.length;
    }
    /// Counts one packet. Where it needs more care the place stays as it is.
    [[gnu::always_inline]]  // so that the place stays in a register
    constexpr void
    add_one(uint8_t const*& at, size_t table, bool strict) noexcept {
        unsigned const first = *at;
        unsigned length = outlines<Packets>.length[first];
        by_first[table][first] += 1;
        if (length == 0) [[unlikely]] { length = add_other(at, strict); }
        at += length;
    }
    constexpr void add_to(tally& sum) const noexcept {
        sum += others;
        for (auto const& table : by_first) {
            for (unsigned first = 0; first < 256; ++first) {
                auto const one = outlines<Packets>.at(first);
                if (one.length != 0) { sum.add(one.which, one.length, table[first]); }
            }
        }
    }
};

/// Counts what is in all lanes. False, and nothing is counted, where it cannot be done at a glance.
template <class Packets, size_t... I>
constexpr auto count_lanes(byte_view bytes, lane_begins const& begins, bool strict, tally& sum,
                           index_list<I...> /*lanes*/) noexcept -> bool {
    constexpr auto row_bytes = static_cast<ptrdiff_t>(in_a_row * looked_at);
    lane_counts<Packets> counts;
    uint8_t const* at[lane_count] = {(bytes.data() + begins.of[I])...};
    uint8_t const* const ends[lane_count] = {(bytes.data() + begins.of[I + 1])...};
    while (counts.is_right && ((ends[I] - at[I] >= row_bytes) && ...)) {
        for (unsigned i = 0; i < in_a_row; ++i) {
            (counts.add_one(at[I], I % table_count, strict), ...);
        }
    }
    for (size_t i = 0; i < lane_count; ++i) {
        while (counts.is_right && at[i] < ends[i]) { counts.add_one(at[i], 0, strict); }
        counts.is_right = counts.is_right && at[i] == ends[i];
    }
    if (counts.is_right) { counts.add_to(sum); }
    return counts.is_right;
}

/// Up to where packets were counted in lanes, and from where on that can be tried again.
struct lanes_end {
    size_t place;
    size_t again;
};

/// Counts the packets of `bytes` from `place` on, where no block is open, as far as that can be done
/// in lanes.
template <class Packets>
constexpr auto scan_lanes(byte_view bytes, size_t place, bool strict, tally& sum) noexcept
    -> lanes_end {
    while (true) {
        lane_begins const begins = find_lanes(bytes, place);
        size_t const end = begins.of[lane_count];
        if (end == nowhere) { return {place, bytes.size()}; }
        if (!count_lanes<Packets>(bytes, begins, strict, sum, make_index_list<lane_count>{})) {
            return {place, end};
        }
        place = end;
    }
}

}  // namespace ptspec::trace::detail
