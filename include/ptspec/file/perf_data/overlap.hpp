// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/list.hpp>
#include <ptspec/trace/psb_search.hpp>

/// Snapshots of one ring overlap: finds where the new bytes of a snapshot begin.
namespace ptspec::file::perf_data {

/// Where the new bytes of a snapshot begin, and whether they continue the snapshot before it.
struct new_bytes {
    size_t begin = 0;
    /// True if no byte is missing before the new bytes. If there are no new bytes: true if the
    /// snapshot before this one has all bytes of this one.
    bool continues = false;
    /// The number of bytes to drop from the end of the snapshot before this one: PADs that perf
    /// adds, or the beginning of a PSB+ that is complete in this snapshot.
    size_t dropped = 0;
};

namespace detail {

/// perf adds up to 7 PADs to the end of a piece.
inline constexpr size_t max_padding = 7;

/// True for bytes that can be the PADs at the end of a piece.
constexpr auto is_padding(byte_view tail) noexcept -> bool {
    if (tail.size() > max_padding) { return false; }
    for (uint8_t const byte : tail) {
        if (byte != 0) { return false; }
    }
    return true;
}
/// The bytes without the zeros at their end that can be PADs of perf.
constexpr auto without_padding(byte_view all) noexcept -> byte_view {
    size_t zeros = 0;
    while (zeros < max_padding && zeros < all.size() && all[all.size() - 1 - zeros] == 0) {
        ++zeros;
    }
    return all.first(all.size() - zeros);
}

/// The first TSC packet of a PSB+.
struct psb_tsc {
    bool found = false;
    uint64_t tsc = 0;
};
constexpr auto tsc_of_psb(byte_view in, size_t psb) noexcept -> psb_tsc {
    for (size_t at = psb + trace::psb_bytes;;) {
        auto const one = packet::decode(in.from(at));
        if (!one) { return {}; }
        auto const kind = one.packet.kind();
        at += one.length();
        if (kind == packet::kind::tsc) {
            return {true, one.packet.as<packet::tsc>().get<packet::tsc::TSC>()};
        }
        if (kind == packet::kind::psb || kind == packet::kind::psbend) { return {}; }
    }
}

/// Two PSBs count as the same one if this many bytes around them are equal, too: all of a TSC
/// packet but its highest byte.
inline constexpr size_t enough_bytes = 7;

/// Where the first PSB of a snapshot begins; `npos` also if the snapshot is too short to compare.
constexpr auto find_usable_psb(byte_view in) noexcept -> size_t {
    bool const is_enough = without_padding(in).size() >= trace::psb_bytes + enough_bytes;
    return is_enough ? trace::find_psb(in) : trace::npos;
}

/// The maximum number of comparison steps for each byte. Without this limit, bytes that consist of
/// equal PSBs would take quadratic time.
inline constexpr uint64_t steps_per_byte = 64;

/// Compares two snapshots at possible places, in at most `work_left` steps.
class snapshot_pair {
public:
    constexpr snapshot_pair(byte_view previous, byte_view next, size_t first_psb,
                            uint64_t& work_left) noexcept
        : previous_{previous}, next_{next}, first_psb_{first_psb}, work_left_{work_left} {}

    /// Compares the snapshots under the assumption that the PSB at `previous_psb` of the first is
    /// the PSB at `next_psb` of the second. True if all bytes that both then have are equal. The
    /// first snapshot has `psb_size` bytes of this PSB.
    ///
    /// If the first snapshot ends in a PSB+ before its TSC, nothing tells this PSB+ from another.
    /// The match is then doubtful: it is noted, and the result is false.
    [[nodiscard]] constexpr auto agree_at(size_t previous_psb, size_t next_psb,
                                          size_t psb_size) noexcept -> bool {
        size_t same = 0;
        while (previous_psb + same < previous_.size() && next_psb + same < next_.size() &&
               previous_[previous_psb + same] == next_[next_psb + same] && take_step()) {
            ++same;
        }
        auto const rest = previous_.from(previous_psb + same);
        bool const has_end = is_padding(rest);
        // A second snapshot that ends before the first one, or with its PADs, has nothing new.
        bool const has_new = !is_padding(next_.from(next_psb + same));
        if (!has_end && has_new) { return false; }
        size_t back = 0;
        while (back < previous_psb && back < next_psb &&
               previous_[previous_psb - 1 - back] == next_[next_psb - 1 - back] && take_step()) {
            ++back;
        }
        if (same < psb_size || (back < previous_psb && back < next_psb)) { return false; }
        if (!has_new) {
            where = {next_.size(), true, 0};
        } else if (same - psb_size + back >= enough_bytes) {
            where = {next_psb + same, true, rest.size()};
        } else {
            // Up to this many bytes of a PSB can also be the end of another packet.
            constexpr size_t max_of_others = 3;
            if (!has_doubtful && psb_size > max_of_others) {
                where = {first_psb_, false, previous_.size() - previous_psb};
                has_doubtful = true;
            }
            return false;
        }
        return true;
    }

    new_bytes where{};
    bool has_doubtful = false;  ///< `where` is a doubtful place

private:
    constexpr auto take_step() noexcept -> bool {
        if (work_left_ == 0) { return false; }
        --work_left_;
        return true;
    }

    byte_view previous_;
    byte_view next_;
    size_t first_psb_;  ///< of `next`
    uint64_t& work_left_;
};

/// Finds the place of a PSB that both snapshots have. Of several places it takes the one with the
/// fewest new bytes.
constexpr auto find_common_psb(snapshot_pair& both, byte_view previous, byte_view next,
                               size_t first_psb) noexcept -> bool {
    using trace::psb_bytes;
    size_t const first_old = trace::find_psb(previous);
    for (size_t psb = first_old; psb != trace::npos;
         psb = trace::find_psb(previous, psb + psb_bytes)) {
        if (both.agree_at(psb, first_psb, psb_bytes)) { return true; }
    }
    if (first_old == trace::npos) { return false; }
    // `next` may begin before `previous`.
    for (size_t psb = trace::find_psb(next, first_psb + psb_bytes); psb != trace::npos;
         psb = trace::find_psb(next, psb + psb_bytes)) {
        if (both.agree_at(first_old, psb, psb_bytes)) { return true; }
    }
    return false;
}

/// The same for a PSB that is cut by the end of `previous`.
constexpr auto find_cut_psb(snapshot_pair& both, byte_view previous, size_t first_psb) noexcept
    -> bool {
    auto const unpadded = without_padding(previous);
    for (size_t cut = trace::psb_bytes - 1; cut != 0; --cut) {
        if (cut <= unpadded.size() && both.agree_at(unpadded.size() - cut, first_psb, cut)) {
            return true;
        }
    }
    return false;
}

/// If `next` has the last PSB of `previous`, but other bytes after it, one of the snapshots is
/// damaged: returns the PSB after it in `next`. Otherwise returns `first_psb`.
constexpr auto find_later_psb(byte_view previous, byte_view next, size_t first_psb) noexcept
    -> size_t {
    // The last PSB+ may be cut: its TSC may be missing, or PADs may replace the end of its TSC.
    auto const unpadded = without_padding(previous);
    psb_tsc last;
    size_t before = previous.size();
    for (unsigned tries = 0; tries < 2 && !last.found; ++tries) {
        size_t const psb = trace::find_psb_before(previous, before);
        if (psb == trace::npos) { break; }
        last = tsc_of_psb(unpadded, psb);
        before = psb;
    }
    if (!last.found) { return first_psb; }
    for (size_t psb = first_psb; psb != trace::npos;) {
        auto const one = tsc_of_psb(next, psb);
        psb = trace::find_psb(next, psb + trace::psb_bytes);
        if (one.found && one.tsc == last.tsc) { return psb == trace::npos ? next.size() : psb; }
    }
    return first_psb;
}

/// The function below, in at most `work_left` steps. If these are too few, nothing is compared.
constexpr auto find_new_bytes(byte_view previous, byte_view next, uint64_t& work_left) noexcept
    -> new_bytes {
    size_t const first_psb = find_usable_psb(next);
    if (first_psb == trace::npos) { return {next.size(), false, 0}; }
    uint64_t const search = uint64_t{previous.size()} + next.size();
    if (search > work_left) { return {first_psb, false, 0}; }
    work_left -= search;
    snapshot_pair both{previous, next, first_psb, work_left};
    if (find_common_psb(both, previous, next, first_psb) ||
        find_cut_psb(both, previous, first_psb) || both.has_doubtful) {
        return both.where;
    }
    return {find_later_psb(previous, next, first_psb), false, 0};
}

}  // namespace detail

/// Finds the bytes of a snapshot that an earlier snapshot of the same trace does not have. They
/// begin at a PSB, or continue the bytes of `previous`.
///
/// Two snapshots overlap if all their common bytes are equal and contain a PSB. TSC values are not
/// compared by order, because the TSC of a guest may be lower than the TSC before it. If `next` has
/// no PSB, or 22 bytes or less, it has no new bytes. The time is proportional to the two sizes.
///
/// Source: drivers.md, 3.4.
[[nodiscard]] constexpr auto find_new_bytes(byte_view previous, byte_view next) noexcept
    -> new_bytes {
    uint64_t work = detail::steps_per_byte * (uint64_t{previous.size()} + next.size());
    return detail::find_new_bytes(previous, next, work);
}

}  // namespace ptspec::file::perf_data
