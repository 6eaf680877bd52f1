// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/packet/psb.hpp>

/// Finds PSBs, the places where decoding can start.
///
/// In a run of more than eight pairs 02 82 the PSB is the last 16 bytes: the payload of the packet
/// before a PSB can extend the run to the left; only another PSB can extend it to the right.
///
/// Source: SDM vol. 3, "Packet Stream Boundary (PSB) Packet"; PKT-250, PKT-251.
namespace ptspec::trace {

inline constexpr unsigned psb_bytes = packet::psb::max_bytes;

/// Searches a stream that arrives in chunks. Its state is the run of the pattern at the end of the
/// last chunk.
class psb_search {
public:
    /// Continues in the next chunk. Returns true when it finds a PSB, which ends before byte
    /// `end()` of this chunk; -1 when it ends one byte before the chunk. Use a new object to search
    /// for the PSB after it.
    [[nodiscard]] constexpr auto feed(byte_view chunk) noexcept -> bool {
        size_t at = 0;
        while (at < chunk.size()) {
            if (run_ == 0) { at = likely_begin(chunk, at); }
            if (chunk[at] == (run_ % 2 == 0 ? first_byte : second_byte)) {
                ++run_;
                ++at;
            } else if (is_psb()) {
                return found_before(at);
            } else {
                // The byte that broke a run can begin the next one.
                at += run_ == 0 ? 1 : 0;
                run_ = 0;
            }
        }
        end_ = static_cast<int64_t>(at);
        return false;
    }

    /// Ends the stream. Returns true when the run at its end is a PSB, which ends before byte
    /// `end()` of the last chunk.
    [[nodiscard]] constexpr auto finish() noexcept -> bool {
        return is_psb() && found_before(static_cast<size_t>(end_));
    }

    [[nodiscard]] constexpr auto end() const noexcept -> int64_t { return end_; }

private:
    /// Eight bytes of the pattern, in its two phases: 02H first and 82H first.
    static constexpr uint64_t phase_02 = packet::psb::High::fixed_value;
    static constexpr uint64_t phase_82 = phase_02 >> 8 | phase_02 << 56;
    static constexpr uint8_t first_byte = phase_02 & 0xFF;
    static constexpr uint8_t second_byte = phase_82 & 0xFF;

    [[nodiscard]] constexpr auto is_psb() const noexcept -> bool {
        return run_ / 2 >= psb_bytes / 2;
    }

    constexpr auto found_before(size_t at) noexcept -> bool {
        end_ = static_cast<int64_t>(at) - static_cast<int64_t>(run_ % 2);
        return true;
    }

    /// True when two bytes may be part of the pattern. One comparison covers both phases. Of all
    /// other pairs, one in 256 passes, but no pair of equal bytes.
    static constexpr auto may_be_pattern(uint8_t const* two) noexcept -> bool {
        constexpr unsigned pair_82 = phase_82 & 0xFFFF;
        constexpr unsigned pair_02 = phase_02 & 0xFFFF;
        unsigned const here = two[0] | unsigned{two[1]} << 8;
        return ((here - pair_82) & 0xFFFF & ~(pair_02 - pair_82)) == 0;
    }

    /// True when eight bytes may be part of a PSB, given the eight bytes before and after them.
    static constexpr auto may_be_psb(uint8_t const* eight) noexcept -> bool {
        uint64_t const here = load_le64(eight);
        if (here != phase_02 && here != phase_82) { return false; }
        uint64_t const before = load_le64(eight - 8) ^ here;
        uint64_t const after = load_le64(eight + 8) ^ here;
        if (before == 0 || after == 0) { return true; }
        return (63 - highest_bit(before)) / 8 + 8 + lowest_bit(after) / 8 >= psb_bytes;
    }

    /// Where the bytewise search must start at the latest, so that it misses no PSB that begins at
    /// `begin` or later and no run that reaches the end. Tests one pair of bytes every 15 bytes: if
    /// the pair lies in a PSB, so do the eight bytes that begin with it or the eight that end with
    /// it.
    static constexpr auto likely_begin(byte_view chunk, size_t begin) noexcept -> size_t {
        constexpr size_t step = psb_bytes - 1;
        uint8_t const* const data = chunk.data();
        size_t at = begin + step - 1;
        auto const is_not = [&](size_t i) { return !may_be_pattern(data + at + i * step); };
        for (;; at += step) {
            while (at + size_t{8} * psb_bytes <= chunk.size() && is_not(0) && is_not(1) &&
                   is_not(2) && is_not(3) && is_not(4) && is_not(5) && is_not(6) && is_not(7)) {
                at += 8 * step;
            }
            while (at + psb_bytes <= chunk.size() && is_not(0)) { at += step; }
            if (at + psb_bytes > chunk.size() || may_be_psb(data + at) ||
                may_be_psb(data + at - 6)) {
                return at - (step - 1);
            }
        }
    }

    uint64_t run_ = 0;  // bytes of the pattern directly before the search position
    int64_t end_ = 0;
};

/// The offset that means "no PSB found".
inline constexpr size_t npos = ~size_t{0};

/// The first PSB that begins at `from` or later, or `npos`.
[[nodiscard]] constexpr auto find_psb(byte_view in, size_t from = 0) noexcept -> size_t {
    psb_search search;
    return search.feed(in.from(from)) || search.finish()
               ? from + static_cast<size_t>(search.end()) - psb_bytes
               : npos;
}

/// The last PSB that begins before `before`, or `npos`.
[[nodiscard]] constexpr auto find_psb_before(byte_view in, size_t before) noexcept -> size_t {
    constexpr size_t block = 4096;
    while (before != 0) {
        size_t const begin = before > block ? before - block : 0;
        // Enough bytes to see whether the run of a PSB that begins before `before` continues.
        auto const near_bytes = in.first(before + psb_bytes + 1);
        size_t found = npos;
        for (size_t at = find_psb(near_bytes, begin); at < before;
             at = find_psb(near_bytes, at + psb_bytes)) {
            found = at;
        }
        if (found != npos) { return found; }
        before = begin;
    }
    return npos;
}

}  // namespace ptspec::trace
