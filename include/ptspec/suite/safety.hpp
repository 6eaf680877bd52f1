// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/suite/target.hpp>
#include <ptspec/topa/entry.hpp>

/// Whether output stays in the given pages, whatever a wrong target makes of the values.
namespace ptspec::suite {

namespace detail {

using namespace ptspec::detail;

/// The most bytes that a snippet makes a trace unit store. A target that does not wrap writes them
/// after the offset.
inline constexpr uint64_t max_trace_bytes = 4096;

/// The words of the given pages, read as tables.
struct table_walk {
    given_memory memory{};

    /// Entries that `max_trace_bytes` can reach: the current one may be almost full, and no region
    /// is smaller than a page.
    static constexpr unsigned max_entries = 2 + max_trace_bytes / 4096;

    /// True if output stays inside from an entry on. A misaligned base may be used as it is or
    /// aligned down, reserved bits may be ignored or not, and END, INT and STOP, too.
    [[nodiscard]] constexpr auto stays_inside(uint64_t at, uint64_t offset,
                                              unsigned entries = max_entries) const noexcept
        -> bool {
        if (entries == 0) { return true; }
        if (!memory.has(at, 8)) { return false; }
        topa::entry const word{load_le64(memory.bytes + (at - memory.base.value))};
        uint64_t const base = word.get<topa::entry::Base>();
        if (word.get<topa::entry::END>()) {
            if (!region_stays_inside(base, 4096, offset) || !stays_inside(base, 0, entries - 1)) {
                return false;
            }
        } else {
            uint64_t const size = bytes_in(word.get<topa::entry::Size>());
            if (!region_stays_inside(base, size, offset) ||
                !region_stays_inside(base & ~(size - 1), size, offset)) {
                return false;
            }
        }
        // What follows the last entry of a page is reached only if its END is ignored.
        bool const is_last = (at & 0xFF8) == 0xFF8;
        return is_last ? word.get<topa::entry::END>() : stays_inside(at + 8, 0, entries - 1);
    }

private:
    [[nodiscard]] constexpr auto region_stays_inside(uint64_t base, uint64_t size,
                                                     uint64_t offset) const noexcept -> bool {
        return memory.has(base, offset < size ? size : offset + max_trace_bytes);
    }
};

/// The mask with all bits below its highest one.
constexpr auto filled(uint64_t mask) noexcept -> uint64_t {
    for (unsigned shift = 1; shift < 32; shift *= 2) { mask |= mask >> shift; }
    return mask;
}

}  // namespace detail

/// True if output stays in the given pages after TraceEn becomes 1 with these values of the output
/// MSRs: read as a single range and as a ToPA, with each value as it is, without its reserved bits,
/// and aligned down.
[[nodiscard]] constexpr auto output_stays_inside(given_memory const& memory,
                                                 reg::ia32_rtit_output_base base,
                                                 reg::ia32_rtit_output_mask_ptrs pointers) noexcept
    -> bool {
    using ptrs = reg::ia32_rtit_output_mask_ptrs;
    uint64_t const raw_mask = (pointers.raw | ptrs::forced_1_mask()) & low_bits(32);
    uint64_t const mask = detail::filled(raw_mask);
    uint64_t const offset = pointers.raw >> 32;
    uint64_t const end = (offset <= mask ? mask : offset + detail::max_trace_bytes) + 1;
    uint64_t const starts[] = {base.raw, base.raw & ~uint64_t{127}, base.raw & ~raw_mask,
                               base.raw & ~mask};
    for (uint64_t const start : starts) {
        if (!memory.has(start, end)) { return false; }
    }
    uint64_t const index = raw_mask >> 7;
    uint64_t const tables[] = {base.raw & ~uint64_t{127}, base.raw & ~uint64_t{4095}};
    for (uint64_t const table : tables) {
        if (!detail::table_walk{memory}.stays_inside(table + 8 * index, offset)) { return false; }
    }
    return true;
}

}  // namespace ptspec::suite
