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
inline constexpr size_t least_lane_bytes = size_t{1} << 11;
inline constexpr size_t most_lane_bytes = size_t{1} << 20;
/// Where no PSB comes for so long there are no more lanes: all of them together are counted in 32
/// bits.
inline constexpr size_t longest_search = size_t{1} << 28;
/// Behind a packet that is looked at so many are taken for such of which the first byte tells all. If
/// one is not, its lane stays there up to the next look.
inline constexpr size_t known_in_a_row = 5;
/// How often that is done between two looks at where a lane ends.
inline constexpr ptrdiff_t rounds_in_a_row = 20;
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
    uint32_t by_first[table_count][256] = {};            ///< packets by their first byte
    uint32_t by_second[outline_table::rows - 256] = {};  ///< those that the second byte tells
    tally others{};                                      ///< those that neither tells
    bool is_right = true;
    bool strict = true;

    /// Counts what the first byte does not tell. Returns what is behind it, or the same place.
    [[gnu::noinline]]  // so that it is not in the way of the others
    constexpr auto
    add_other(uint8_t const* at) noexcept -> uint8_t const* {
        outline_table const& all = outlines<Packets>;
        size_t const first = *at;
        if (all.which[first] == packet::kind::cyc) {
            unsigned const length = length_of_cyc(load_le64(at));
            if (length == 0) { return add_with_care(at); }
            others.add(packet::kind::cyc, length);
            return at + length;
        }
        size_t const row = row_of(all.next[first], at[1]);
        size_t const length = all.length[row];
        bool const is_known = all.next[first] != look_on::nowhere && length != 0 &&
                              all.next[row] == look_on::nowhere;
        if (!is_known) { return add_with_care(at); }
        by_second[row - 256] += 1;
        return at + length;
    }
    [[gnu::noinline]]  // as above
    constexpr auto
    add_with_care(uint8_t const* at) noexcept -> uint8_t const* {
        outline const one = outline_at<Packets>(at, strict);
        if (one.length != 0) { others.add(one.which, one.length); }
        is_right = is_right && one.length != 0;
        return at + one.length;
    }
    /// Counts one packet if its first byte tells its length; else the place stays, and what is counted
    /// under that byte is left out of the sum.
    [[gnu::always_inline]]  // so that the place stays in a register
    constexpr void
    add_known(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        at = as_if_new(at + lengths[first]);
        by_first[table][first] += 1;
    }
    /// Counts one packet. Where it needs more care the place stays as it is.
    [[gnu::always_inline]]  // so that the place stays in a register
    constexpr void
    add_one(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        size_t const length = lengths[first];
        by_first[table][first] += 1;
        if (length == 0) [[unlikely]] {
            at = add_other(at);
        } else {
            at += length;
        }
    }
    constexpr void add_to(tally& sum) const noexcept {
        sum += others;
        for (size_t row = 0; row < outline_table::rows; ++row) {
            uint64_t count = row < 256 ? 0 : by_second[row - 256];
            for (auto const& table : by_first) { count += row < 256 ? table[row] : 0; }
            auto const one = outlines<Packets>.at(row);
            if (one.length != 0) { sum.add(one.which, one.length, count); }
        }
    }
};

/// Counts what is in all lanes. False, and nothing is counted, where it cannot be done at a glance.
template <class Packets, size_t... I, size_t... K>
constexpr auto count_lanes(byte_view bytes, lane_begins const& begins, bool strict, tally& sum,
                           index_list<I...> /*lanes*/, index_list<K...> /*behind one*/) noexcept
    -> bool {
    constexpr size_t in_a_round = 1 + sizeof...(K);
    constexpr auto round_bytes = static_cast<ptrdiff_t>(in_a_round * looked_at);
    lane_counts<Packets> counts{.strict = strict};
    // The compiler is not to know the table: it would ask for its address anew each time.
    uint8_t const* const lengths = as_if_new(&outlines<Packets>.length[0]);
    uint8_t const* at[lane_count] = {(bytes.data() + begins.of[I])...};
    uint8_t const* const ends[lane_count] = {(bytes.data() + begins.of[I + 1])...};
    while (counts.is_right && ((ends[I] - at[I] >= rounds_in_a_row * round_bytes) && ...)) {
        for (ptrdiff_t i = 0; i < rounds_in_a_row; ++i) {
            (counts.add_one(at[I], lengths, I % table_count), ...);
            ((static_cast<void>(K), (counts.add_known(at[I], lengths, I % table_count), ...)), ...);
        }
    }
    // Not by a loop over the lanes: then their places would be in memory.
    auto const end = [&](uint8_t const* from, uint8_t const* last) {
        while (counts.is_right && last - from >= round_bytes) {
            counts.add_one(from, lengths, 0);
            (counts.add_known(from, lengths, K % table_count), ...);
        }
        while (counts.is_right && from < last) { counts.add_one(from, lengths, 0); }
        counts.is_right = counts.is_right && from == last;
    };
    (end(at[I], ends[I]), ...);
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
        if (!count_lanes<Packets>(bytes, begins, strict, sum, make_index_list<lane_count>{},
                                  make_index_list<known_in_a_row>{})) {
            return {place, end};
        }
        place = end;
    }
}

}  // namespace ptspec::trace::detail
