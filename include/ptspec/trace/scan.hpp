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
    if (is_cyc(*at)) {
        one = {static_cast<uint8_t>(look_at_cyc(load_le64(at), 0).packet.length),
               packet::kind::cyc};
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
        this->last_ip_ = 0;
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

/// Counts in four lanes in turns, until one of them has no row or needs more care. Where a packet
/// begins is known only some ten steps of the processor after where the one before did: it has the
/// time to do all four.
template <class Packets>
constexpr void scan_lanes(lane<Packets> (&lanes)[4], bool strict, counts_by_first (&counts)[4],
                          tally& sum) noexcept {
    uint8_t const* one = lanes[0].here();
    uint8_t const* two = lanes[1].here();
    uint8_t const* three = lanes[2].here();
    uint8_t const* four = lanes[3].here();
    bool go_on = true;
    while (go_on && lanes[0].has_a_row() && lanes[1].has_a_row() && lanes[2].has_a_row() &&
           lanes[3].has_a_row()) {
        for (unsigned i = 0; i < lane<Packets>::in_a_row; ++i) {
            count_one<Packets>(one, counts[0], strict, sum);
            count_one<Packets>(two, counts[1], strict, sum);
            count_one<Packets>(three, counts[2], strict, sum);
            count_one<Packets>(four, counts[3], strict, sum);
        }
        bool const a = lanes[0].go_to(one);
        bool const b = lanes[1].go_to(two);
        bool const c = lanes[2].go_to(three);
        bool const d = lanes[3].go_to(four);
        go_on = a && b && c && d;
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
    detail::counts_by_first counts[4] = {};
    detail::lane<Packets> lanes[4] = {};
    split<Packets> const pieces{trace, trace.size() / piece_bytes + 4, how};
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
        detail::scan_lanes(lanes, how.strict, counts, sum);
    }
    for (auto& lane : lanes) { sum = lane.scan(sum); }
    for (auto const& lane : counts) {
        for (unsigned first = 0; first < 256; ++first) {
            auto const one = detail::outlines_of<Packets>::by[0].of[first];
            if (one.length != 0) { sum.add(one.which, one.length, lane.of[first]); }
        }
    }
    return sum;
}

}  // namespace ptspec::trace
