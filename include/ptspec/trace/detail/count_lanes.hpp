// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/count_loop.hpp>
#include <ptspec/trace/psb_search.hpp>
#include <ptspec/base/attribute.hpp>

/// Counts packets in several segments of a trace at once.
///
/// Counting one segment is latency-bound: each packet start becomes known about ten cycles after
/// the previous one. Interleaved lanes use these cycles to count other segments. Every segment
/// begins at a PSB, where the decoder has no state. A search can mistake the payload of other
/// packets for a PSB. A PSB is real if the count of the preceding segment ends exactly there;
/// otherwise all counts of the attempt are discarded.
namespace ptspec::trace::detail {

/// The number of lanes.
inline constexpr size_t lane_count = 8;
/// The minimum size of a segment in bytes. A lane counts one segment after another.
inline constexpr size_t min_segment_bytes = size_t{1} << 11;
/// Bytes counted speculatively in one attempt: doubled after success, quartered after failure.
inline constexpr size_t min_attempt_bytes = 2 * lane_count * min_segment_bytes;
inline constexpr size_t max_attempt_bytes = size_t{1} << 23;
/// The maximum number of bytes in the search for the end of a segment. It keeps the counts of an
/// attempt within 32 bits.
inline constexpr size_t max_search_bytes = size_t{1} << 28;
/// The number of packets that a lane counts by their first byte alone after each fully checked
/// packet. If the first byte does not give the length, the lane stops at that packet until the next
/// full check.
inline constexpr size_t packets_per_check = 5;
/// The number of count tables, which are on the stack. Lanes share them. Each has few enough lanes
/// that an increment does not wait for the store of another lane.
inline constexpr size_t table_count = 4;

/// Finds the segments of a trace. A segment ends where a PSB begins; the next one begins there.
struct segment_finder {
    byte_view bytes;
    size_t place;  ///< where the next segment begins
    size_t until;  ///< about where the last segment ends

    /// Moves to the end of the next segment. Returns false, and does not move, when it finds no
    /// PSB.
    constexpr auto next() noexcept -> bool {
        // Segments get shorter towards the end, so that the lanes finish at about the same time.
        size_t const share = place < until ? (until - place) / (2 * lane_count) : 0;
        size_t const from = place + (share < min_segment_bytes ? min_segment_bytes : share);
        size_t const found = find_psb(bytes.from(from).first(max_search_bytes));
        if (found == npos) { return false; }
        place = from + found;
        return true;
    }
};

/// The bytes of a segment that its lane has not counted yet.
struct lane {
    uint8_t const* at;
    uint8_t const* end;

    [[nodiscard]] constexpr auto room() const noexcept -> ptrdiff_t { return end - at; }
};

/// The speculative counts of all lanes.
template <class Packets>
struct lane_sums {
    uint32_t by_first[table_count][256] = {};                ///< packets by their first byte
    uint32_t by_second[opcode_info_table::rows - 256] = {};  ///< those that need the second byte
    packet_counts others{};                                  ///< those that need more bytes
    bool all_valid = true;
    bool strict;

    /// Counts a packet whose first byte does not give its length. Returns the position after it, or
    /// `at` when the packet is invalid.
    constexpr auto add_other(uint8_t const* at) noexcept -> uint8_t const* {
        opcode_info_table const& all = opcode_infos<Packets>;
        size_t const first = *at;
        if (all.kind[first] == packet::kind::cyc) {
            unsigned const length = length_of_cyc(load_le64(at));
            if (length == 0) { return add_decoded(at); }
            others.add(packet::kind::cyc, length);
            return at + length;
        }
        size_t const row = row_of(all.next[first], at[1]);
        size_t const length = all.length[row];
        bool const is_known = all.next[first] != next_lookup::first_byte && length != 0 &&
                              all.next[row] == next_lookup::first_byte;
        if (!is_known) { return add_decoded(at); }
        by_second[row - 256] += 1;
        return at + length;
    }
    /// Counts the packet at `at`. Returns where the next one begins.
    ///
    /// noinline: inlined, a summary takes 5 % more instructions (g++ 12, clang 19).
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto add_decoded(uint8_t const* at) noexcept -> uint8_t const* {
        opcode_info const one = opcode_info_at<Packets>(at, strict);
        if (one.length != 0) { others.add(one.kind, one.length); }
        all_valid = all_valid && one.length != 0;
        return at + one.length;
    }
    /// Counts one packet if its first byte gives its length. Otherwise the position stays, and
    /// `add_to` ignores the count of that byte.
    constexpr void add_known(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        at = hide_from_optimizer(at + lengths[first]);
        by_first[table][first] += 1;
    }
    /// Counts one packet. The position stays when the packet is invalid.
    constexpr void add_one(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        size_t const length = lengths[first];
        by_first[table][first] += 1;
        if (length == 0) [[unlikely]] {
            at = add_other(at);
        } else {
            at += length;
        }
    }
    constexpr void add_to(packet_counts& sum) const noexcept {
        sum += others;
        auto const add = [&](size_t row, uint64_t count) {
            auto const one = opcode_infos<Packets>.at(row);
            if (one.length != 0) { sum.add(one.kind, one.length, count); }
        };
        for (size_t first = 0; first < 256; ++first) {
            uint64_t count = 0;
            for (auto const& table : by_first) { count += table[first]; }
            add(first, count);
        }
        for (size_t row = 256; row < opcode_info_table::rows; ++row) {
            add(row, by_second[row - 256]);
        }
    }
};

/// Where the first segment of each lane begins, and where the last of these segments ends.
struct first_segments {
    size_t begins[lane_count + 1] = {};
};

/// Finds the first segment of each lane. Returns false when there are too few.
constexpr auto find_first(segment_finder& segments, first_segments& found) noexcept -> bool {
    if (segments.until - segments.place < lane_count * min_segment_bytes) { return false; }
    found.begins[0] = segments.place;
    for (size_t i = 1; i <= lane_count; ++i) {
        if (!segments.next()) { return false; }
        found.begins[i] = segments.place;
    }
    return true;
}

/// Counts the first segments and those after them. Returns false, and leaves `sum` unchanged, when
/// a segment holds an invalid packet or one that needs `packet::decode`, or does not end at its
/// PSB.
template <class Packets, size_t... Lane, size_t... K>
constexpr auto run_lanes(first_segments const& first, segment_finder& segments, bool strict,
                         packet_counts& sum, index_list<Lane...> /*lanes*/,
                         index_list<K...> /*known*/) noexcept -> bool {
    constexpr auto round_bytes = static_cast<ptrdiff_t>((1 + sizeof...(K)) * lookahead_bytes);
    lane_sums<Packets> counts{.strict = strict};
    // Hides which table this is: the compiler would compute its address again in each round.
    uint8_t const* const lengths = hide_from_optimizer(&opcode_infos<Packets>.length[0]);
    uint8_t const* const data = segments.bytes.data();
    auto const finish = [&](lane one) {
        while (counts.all_valid && one.room() >= round_bytes) {
            counts.add_one(one.at, lengths, 0);
            (counts.add_known(one.at, lengths, K % table_count), ...);
        }
        while (counts.all_valid && one.room() > 0) { counts.add_one(one.at, lengths, 0); }
        counts.all_valid = counts.all_valid && one.room() == 0;
    };
    bool has_more = true;
    // Completes the segment of a lane that is near its end and returns the next one, or an empty
    // one.
    auto const next_segment = [&](lane one) -> lane {
        if (one.room() >= round_bytes) { return one; }
        finish(one);
        uint8_t const* const begin = data + segments.place;
        has_more = has_more && segments.place < segments.until && segments.next();
        return has_more ? lane{begin, data + segments.place} : lane{begin, begin};
    };
    // Fold expressions instead of loops over the lanes: they keep the positions in registers.
    lane lanes[] = {{data + first.begins[Lane], data + first.begins[Lane + 1]}...};
    while (counts.all_valid && has_more) {
        ptrdiff_t min_room = lanes[0].room();
        ((min_room = lanes[Lane].room() < min_room ? lanes[Lane].room() : min_room), ...);
        for (ptrdiff_t rounds = min_room / round_bytes; rounds > 0; --rounds) {
            (counts.add_one(lanes[Lane].at, lengths, Lane % table_count), ...);
            ((static_cast<void>(K),
              (counts.add_known(lanes[Lane].at, lengths, Lane % table_count), ...)),
             ...);
        }
        if (min_room < round_bytes) { ((lanes[Lane] = next_segment(lanes[Lane])), ...); }
    }
    (finish(lanes[Lane]), ...);
    if (counts.all_valid) { counts.add_to(sum); }
    return counts.all_valid;
}

/// How well counting in lanes worked so far.
struct speculation {
    size_t retry_from = 0;  ///< the position from which to try again
    size_t attempt_bytes = max_attempt_bytes;
};

/// Counts packets of `bytes` from `place` on in lanes, until lanes cannot count more. No block may
/// be open at `place`. Returns the position after the counted packets.
template <class Packets>
constexpr auto count_lanes(byte_view bytes, size_t place, bool strict, packet_counts& sum,
                           speculation& lanes) noexcept -> size_t {
    while (true) {
        size_t const left = bytes.size() - place;
        size_t const tried = left < lanes.attempt_bytes ? left : lanes.attempt_bytes;
        segment_finder segments{bytes, place, place + tried};
        first_segments first;
        if (!find_first(segments, first)) {
            lanes.retry_from = bytes.size();
            return place;
        }
        if (run_lanes<Packets>(first, segments, strict, sum, make_index_list<lane_count>{},
                               make_index_list<packets_per_check>{})) {
            place = segments.place;
            if (lanes.attempt_bytes < max_attempt_bytes) { lanes.attempt_bytes *= 2; }
        } else if (tried > min_attempt_bytes) {
            lanes.attempt_bytes = tried / 4 < min_attempt_bytes ? min_attempt_bytes : tried / 4;
        } else {
            lanes.retry_from = segments.place;
            return place;
        }
    }
}

}  // namespace ptspec::trace::detail

#undef PTSPEC_ATTRIBUTE
