// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/split.hpp>

/// Counting the packets of a whole trace, in several places at once.
namespace ptspec::trace {

namespace detail {

/// How many packets began with each byte.
struct counts_by_first {
    uint64_t of[256] = {};
};

/// Counts a packet whose first byte does not tell all of it. Returns its length, or 0 where it needs
/// more care.
template <class Packets>
[[gnu::noinline]]  // so that it is not in the way of the others
constexpr auto
count_seldom(uint8_t const* at, bool strict, tally& sum) noexcept -> unsigned {
    auto one = outline_at<Packets>(at, strict);
    if (one.which == packet::kind::cyc) {
        one.length = static_cast<uint8_t>(length_of_cyc(load_le64(at)));
    }
    if (one.length != 0) { sum.add(one.which, one.length); }
    return one.length;
}

/// One of the places at which a trace is read. It reads a piece at a time.
template <class Packets>
class lane : public reader<no_hook, Packets> {
public:
    /// Packets that are counted between two looks at where the bytes end.
    static constexpr unsigned in_a_row = 64;

    constexpr lane() noexcept = default;
    constexpr explicit lane(byte_view piece, options how) noexcept
        : reader<no_hook, Packets>{piece, how} {}

    /// Counts what needs care, at least one packet. False when the piece is read to its end.
    constexpr auto reads_up_to_a_row(tally& sum) noexcept -> bool {
        do {
            auto const got = this->next();
            if (!got) { return false; }
            sum.add(got);
        } while (!has_a_row());
        return true;
    }
    /// There is a row of packets that can be read at a glance.
    [[nodiscard]] constexpr auto has_a_row() const noexcept -> bool {
        return this->bytes_.at() + size_t{in_a_row} * looked_at < this->calm_until_;
    }
    [[nodiscard]] constexpr auto here() const noexcept -> uint8_t const* {
        return this->bytes_.piece().data() + this->bytes_.at();
    }
    /// Goes on to where a row ended. False where that was too early: a packet needs care.
    constexpr auto go_to(uint8_t const* place) noexcept -> bool {
        bool const all = static_cast<size_t>(place - here()) >= in_a_row;
        this->bytes_.go_to(static_cast<size_t>(place - this->bytes_.piece().data()));
        return all;
    }
};

/// Counts one packet. Where it needs more care the place stays as it is.
template <class Packets>
[[gnu::always_inline]]  // so that the place stays in a register
constexpr void
count_one(uint8_t const*& at, counts_by_first& counts, bool strict, tally& sum) noexcept {
    unsigned const first = *at;
    unsigned length = outlines_of<Packets>::by[0].of[first].length;
    counts.of[first] += 1;
    if (length == 0) [[unlikely]] { length = count_seldom<Packets>(at, strict, sum); }
    at += length;
}

/// Where a packet begins is known only some ten steps of the processor after where the one before
/// did: it has the time to read in so many places.
inline constexpr size_t lane_count = 8;
/// Lanes share tables, which take room on the stack. Few enough do that none waits for another.
inline constexpr size_t table_count = 4;

/// Counts in all lanes in turns, until one of them has no row or needs more care.
template <class Packets, size_t... I>
constexpr void scan_lanes(lane<Packets> (&lanes)[lane_count], bool strict,
                          counts_by_first (&counts)[table_count], tally& sum,
                          index_list<I...>) noexcept {
    uint8_t const* at[lane_count] = {lanes[I].here()...};
    bool go_on = true;
    while (go_on && (lanes[I].has_a_row() && ...)) {
        for (unsigned i = 0; i < lane<Packets>::in_a_row; ++i) {
            (count_one<Packets>(at[I], counts[I % table_count], strict, sum), ...);
        }
        ((go_on = lanes[I].go_to(at[I]) && go_on), ...);
    }
}

}  // namespace detail

/// Counts what a whole trace holds: the same as `reader{trace, how}.scan()`, but faster where there
/// are PSBs to begin at.
///
/// Source: PKT-250..256.
template <class Packets = packet::all>
[[nodiscard]] constexpr auto scan(byte_view trace, options how = {}) -> tally {
    constexpr size_t piece_bytes = size_t{1} << 19;
    tally sum;
    detail::counts_by_first counts[detail::table_count] = {};
    detail::lane<Packets> lanes[detail::lane_count] = {};
    split<Packets> const pieces{trace, trace.size() / piece_bytes + detail::lane_count, how};
    auto next = pieces.begin();
    bool goes_on = true;
    while (goes_on) {
        for (auto& lane : lanes) {
            if (lane.reads_up_to_a_row(sum)) { continue; }
            goes_on = !(next == pieces.end());
            if (!goes_on) { break; }
            lane = detail::lane<Packets>{*next, how};
            ++next;
        }
        detail::scan_lanes(lanes, how.strict, counts, sum, make_index_list<detail::lane_count>{});
    }
    for (auto& lane : lanes) { sum = lane.scan(sum); }
    for (auto const& table : counts) {
        for (unsigned first = 0; first < 256; ++first) {
            auto const one = detail::outlines_of<Packets>::by[0].of[first];
            if (one.length != 0) { sum.add(one.which, one.length, table.of[first]); }
        }
    }
    return sum;
}

}  // namespace ptspec::trace
