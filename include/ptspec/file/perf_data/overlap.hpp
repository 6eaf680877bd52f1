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
    bool continues = false;
    size_t padding = 0;  ///< bytes at the end of the snapshot before it that are PADs of perf
};

namespace detail {

/// perf adds up to 7 PADs to the end of a piece.
inline constexpr size_t most_padding = 7;

/// The first TSC packet of a PSB+.
struct psb_tsc {
    bool found = false;
    uint64_t tsc = 0;
    size_t end = 0;  ///< where the packet ends
};
constexpr auto tsc_of_psb(byte_view in, size_t psb) noexcept -> psb_tsc {
    for (size_t at = psb + trace::psb_bytes;;) {
        auto const one = packet::decode(in.from(at));
        if (!one) { return {}; }
        auto const kind = one.packet.kind();
        at += one.length();
        if (kind == packet::kind::tsc) {
            return {true, one.packet.as<packet::tsc>().get<packet::tsc::TSC>(), at};
        }
        if (kind == packet::kind::psb || kind == packet::kind::psbend) { return {}; }
    }
}

/// True if TSC packets say that `one` is before `other`. They have 56 bits, so the counter may wrap
/// between the two.
constexpr auto is_before(uint64_t one, uint64_t other) noexcept -> bool {
    constexpr uint64_t half = uint64_t{1} << 55;
    uint64_t const distance = (other - one) & (2 * half - 1);
    return distance != 0 && distance < half;
}

/// Compares the end of a snapshot with bytes of the next one. The work of all comparisons is
/// bounded, so that bytes made of equal PSBs do not take quadratic time.
class tail_search {
public:
    constexpr tail_search(byte_view previous, byte_view next) noexcept
        : previous_{previous},
          next_{next},
          work_left_{64 * (uint64_t{previous.size()} + next.size())} {}

    /// True if the bytes of `previous` from `tail` on, without PADs at their end, are in `next` at
    /// `at`. Then `where` is the rest of `next`.
    [[nodiscard]] constexpr auto continues_at(size_t tail, size_t at) noexcept -> bool {
        auto const old = previous_.from(tail);
        auto const now = next_.from(at);
        size_t same = 0;
        while (same < old.size() && same < now.size() && same < work_left_ &&
               old[same] == now[same]) {
            ++same;
        }
        work_left_ -= same;
        if (old.size() - same > most_padding) { return false; }
        for (uint8_t const byte : old.from(same)) {
            if (byte != 0) { return false; }
        }
        where = {at + same, true, old.size() - same};
        return true;
    }

    new_bytes where{};

private:
    byte_view previous_;
    byte_view next_;
    uint64_t work_left_;
};

/// The search by time. `found` is false if it cannot be done.
struct search_result {
    bool found = false;
    new_bytes where{};
};
constexpr auto find_by_tsc(byte_view previous, byte_view next, size_t first_psb) noexcept
    -> search_result {
    // The last PSB+ of a snapshot may be cut, so its TSC may be missing, or continued by PADs.
    size_t zeros = 0;
    while (zeros < most_padding && zeros < previous.size() &&
           previous[previous.size() - 1 - zeros] == 0) {
        ++zeros;
    }
    auto const unpadded = previous.first(previous.size() - zeros);
    psb_tsc last;
    size_t before = previous.size();
    for (unsigned tries = 0; tries < 2 && !last.found; ++tries) {
        size_t const psb = trace::find_psb_before(previous, before);
        if (psb == trace::npos) { return {}; }
        last = tsc_of_psb(unpadded, psb);
        before = psb;
    }
    if (!last.found) { return {}; }
    tail_search search{previous, next};
    bool has_tsc = false;
    for (size_t psb = first_psb; psb != trace::npos;
         psb = trace::find_psb(next, psb + trace::psb_bytes)) {
        auto const one = tsc_of_psb(next, psb);
        if (!one.found) { continue; }
        has_tsc = true;
        if (one.tsc == last.tsc && search.continues_at(last.end, one.end)) {
            return {true, search.where};
        }
        if (is_before(last.tsc, one.tsc)) { return {true, {psb, false, 0}}; }
    }
    return {has_tsc, {next.size(), false, 0}};
}

/// The search by content: an end of `previous` that begins with a PSB is where `next` begins.
constexpr auto find_by_content(byte_view previous, byte_view next, size_t first_psb) noexcept
    -> new_bytes {
    tail_search search{previous, next};
    for (size_t psb = trace::find_psb(previous); psb != trace::npos;
         psb = trace::find_psb(previous, psb + trace::psb_bytes)) {
        if (search.continues_at(psb, first_psb)) { return search.where; }
    }
    return {first_psb, false, 0};
}

}  // namespace detail

/// Finds the bytes of a snapshot that the snapshot before it does not have. They begin at a PSB, or
/// continue the bytes of `previous`.
///
/// Compares the TSCs in PSB+ if both have them, else the bytes. Without a PSB in `next`, nothing of
/// it is new. The work is in proportion to the two sizes.
///
/// Source: drivers.md, 3.4.
[[nodiscard]] constexpr auto find_new_bytes(byte_view previous, byte_view next) noexcept
    -> new_bytes {
    size_t const first_psb = trace::find_psb(next);
    if (first_psb == trace::npos) { return {next.size(), false, 0}; }
    auto const by_tsc = detail::find_by_tsc(previous, next, first_psb);
    return by_tsc.found ? by_tsc.where : detail::find_by_content(previous, next, first_psb);
}

}  // namespace ptspec::file::perf_data
