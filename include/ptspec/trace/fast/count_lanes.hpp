// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/fast/count_loop.hpp>
#include <ptspec/trace/psb_search.hpp>

/// How packets are counted in several places of a trace at once.
///
/// Where a packet begins is known only some ten steps of the processor after where the one before
/// did. It has the time to count in other places meanwhile: behind a PSB nothing is known of what
/// came before. That a PSB is one, and not part of something else, shows when the place before it
/// is counted up to there; if it does not, nothing of all this was counted.
namespace ptspec::trace::detail {

/// In so many places.
inline constexpr size_t lane_count = 8;
/// Each counts one part of the trace after the other. Shorter ones are not worth it.
inline constexpr size_t least_part_bytes = size_t{1} << 11;
/// About so many bytes are counted before it is known whether that was right: as many as at last went
/// well, and more each time. Where it went wrong a quarter is tried.
inline constexpr size_t least_at_once = 2 * lane_count * least_part_bytes;
inline constexpr size_t most_at_once = size_t{1} << 23;
/// Where no PSB comes for so long there are no more parts: all of them together are counted in 32
/// bits.
inline constexpr size_t longest_search = size_t{1} << 28;
/// Behind a packet that is looked at so many are taken for such of which the first byte tells all. If
/// one is not, its lane stays there up to the next look.
inline constexpr size_t known_in_a_row = 5;
/// Lanes share tables, which take room on the stack. Few enough do that none waits for another.
inline constexpr size_t table_count = 4;

/// Finds the parts of a trace: each ends where a PSB begins, and the next part with it.
struct part_finder {
    byte_view bytes;
    size_t place;  ///< where the next part begins
    size_t until;  ///< about where the last part ends

    /// Goes to the end of the next part. False, and it stays, where no PSB comes.
    constexpr auto next() noexcept -> bool {
        // The less is left the shorter, so that in the end no lane has much to do alone.
        size_t const share = place < until ? (until - place) / (2 * lane_count) : 0;
        size_t const from = place + (share < least_part_bytes ? least_part_bytes : share);
        size_t const found = find_psb(bytes.from(from).first(longest_search));
        if (found == nowhere) { return false; }
        place = from + found;
        return true;
    }
};

/// What a lane is to count yet of its part.
struct lane {
    uint8_t const* at;
    uint8_t const* end;

    [[nodiscard]] constexpr auto room() const noexcept -> ptrdiff_t { return end - at; }
};

/// What was counted in lanes, until it is known to be right.
template <class Packets>
struct lane_sums {
    uint32_t by_first[table_count][256] = {};                ///< packets by their first byte
    uint32_t by_second[opcode_info_table::rows - 256] = {};  ///< those that the second byte tells
    packet_counts others{};                                  ///< those that neither tells
    bool is_valid_packet = true;
    bool strict;

    /// Counts what the first byte does not tell. Returns what is behind it, or the same place.
    [[gnu::noinline]]  // so that it is not in the way of the others
    constexpr auto
    add_other(uint8_t const* at) noexcept -> uint8_t const* {
        opcode_info_table const& all = opcode_infos<Packets>;
        size_t const first = *at;
        if (all.which[first] == packet::kind::cyc) {
            unsigned const length = length_of_cyc(load_le64(at));
            if (length == 0) { return add_decoded(at); }
            others.add(packet::kind::cyc, length);
            return at + length;
        }
        size_t const row = row_of(all.next[first], at[1]);
        size_t const length = all.length[row];
        bool const is_known = all.next[first] != next_lookup::nowhere && length != 0 &&
                              all.next[row] == next_lookup::nowhere;
        if (!is_known) { return add_decoded(at); }
        by_second[row - 256] += 1;
        return at + length;
    }
    [[gnu::noinline]]  // as above
    constexpr auto
    add_decoded(uint8_t const* at) noexcept -> uint8_t const* {
        opcode_info const one = opcode_info_at<Packets>(at, strict);
        if (one.length != 0) { others.add(one.which, one.length); }
        is_valid_packet = is_valid_packet && one.length != 0;
        return at + one.length;
    }
    /// Counts one packet if its first byte tells its length; else the place stays, and what is counted
    /// under that byte is left out of the sum.
    [[gnu::always_inline]]  // so that the place stays in a register
    constexpr void
    add_known(uint8_t const*& at, uint8_t const* lengths, size_t table) noexcept {
        size_t const first = *at;
        at = hide_from_optimizer(at + lengths[first]);
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
    constexpr void add_to(packet_counts& sum) const noexcept {
        sum += others;
        auto const add = [&](size_t row, uint64_t count) {
            auto const one = opcode_infos<Packets>.at(row);
            if (one.length != 0) { sum.add(one.which, one.length, count); }
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

/// Where the first parts of all lanes begin, and the last of them ends.
struct first_parts {
    size_t begins[lane_count + 1] = {};
};

/// Finds the first parts of all lanes. False where there are too few.
constexpr auto find_first(part_finder& parts, first_parts& found) noexcept -> bool {
    if (parts.until - parts.place < lane_count * least_part_bytes) { return false; }
    found.begins[0] = parts.place;
    for (size_t i = 1; i <= lane_count; ++i) {
        if (!parts.next()) { return false; }
        found.begins[i] = parts.place;
    }
    return true;
}

/// Counts what is in the first parts and in those behind them. False, and nothing is counted, where
/// it cannot be done at a glance.
template <class Packets, size_t... I, size_t... K>
constexpr auto run_lanes(first_parts const& first, part_finder& parts, bool strict,
                         packet_counts& sum, index_list<I...> /*lanes*/,
                         index_list<K...> /*behind one*/) noexcept -> bool {
    constexpr auto round_bytes = static_cast<ptrdiff_t>((1 + sizeof...(K)) * lookahead_bytes);
    lane_sums<Packets> counts{.strict = strict};
    // The compiler is not to know the table: it would ask for its address anew each time.
    uint8_t const* const lengths = hide_from_optimizer(&opcode_infos<Packets>.length[0]);
    uint8_t const* const data = parts.bytes.data();
    auto const finish = [&](lane one) {
        while (counts.is_valid_packet && one.room() >= round_bytes) {
            counts.add_one(one.at, lengths, 0);
            (counts.add_known(one.at, lengths, K % table_count), ...);
        }
        while (counts.is_valid_packet && one.room() > 0) { counts.add_one(one.at, lengths, 0); }
        counts.is_valid_packet = counts.is_valid_packet && one.room() == 0;
    };
    bool is_more = true;
    // The next part of a lane that is at the end of one; where there is none, nothing.
    auto const go_on = [&](lane one) -> lane {
        if (one.room() >= round_bytes) { return one; }
        finish(one);
        uint8_t const* const begin = data + parts.place;
        is_more = is_more && parts.place < parts.until && parts.next();
        return is_more ? lane{begin, data + parts.place} : lane{begin, begin};
    };
    // Not by loops over the lanes: then their places would be in memory.
    lane lanes[] = {{data + first.begins[I], data + first.begins[I + 1]}...};
    while (counts.is_valid_packet && is_more) {
        ptrdiff_t least = lanes[0].room();
        ((least = lanes[I].room() < least ? lanes[I].room() : least), ...);
        for (ptrdiff_t rounds = least / round_bytes; rounds > 0; --rounds) {
            (counts.add_one(lanes[I].at, lengths, I % table_count), ...);
            ((static_cast<void>(K), (counts.add_known(lanes[I].at, lengths, I % table_count), ...)),
             ...);
        }
        if (least < round_bytes) { ((lanes[I] = go_on(lanes[I])), ...); }
    }
    (finish(lanes[I]), ...);
    if (counts.is_valid_packet) { counts.add_to(sum); }
    return counts.is_valid_packet;
}

/// What scanning in lanes was like up to here.
struct lanes_outlook {
    size_t again = 0;  ///< where it can be tried again
    size_t at_once = most_at_once;
};

/// Counts the packets of `bytes` from `place` on, where no block is open, as far as that can be done
/// in lanes. Returns the place behind them.
template <class Packets>
constexpr auto count_lanes(byte_view bytes, size_t place, bool strict, packet_counts& sum,
                           lanes_outlook& outlook) noexcept -> size_t {
    while (true) {
        size_t const left = bytes.size() - place;
        size_t const tried = left < outlook.at_once ? left : outlook.at_once;
        part_finder parts{bytes, place, place + tried};
        first_parts first;
        if (!find_first(parts, first)) {
            outlook.again = bytes.size();
            return place;
        }
        if (run_lanes<Packets>(first, parts, strict, sum, make_index_list<lane_count>{},
                               make_index_list<known_in_a_row>{})) {
            place = parts.place;
            if (outlook.at_once < most_at_once) { outlook.at_once *= 2; }
        } else if (tried > least_at_once) {
            outlook.at_once = tried / 4 < least_at_once ? least_at_once : tried / 4;
        } else {
            outlook.again = parts.place;
            return place;
        }
    }
}

}  // namespace ptspec::trace::detail
