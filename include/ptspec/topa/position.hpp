// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/entry.hpp>

/// Functions of a position in a chain of ToPA tables: where the next byte of trace is stored, and
/// the position after it.
namespace ptspec::topa {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The last index that an entry can have: tables have at most 2^25 entries.
///
/// Source: OUT-046.
inline constexpr uint32_t last_index = address_math::max_entries - 1;

/// The position that the two MSRs hold.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto position_in(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> position {
    return {base.get<ia32_rtit_output_base::BasePhysAddr>(),
            static_cast<uint32_t>(address_math::index_in(pointers.raw)),
            static_cast<uint32_t>(address_math::offset_in(pointers.raw))};
}

/// IA32_RTIT_OUTPUT_BASE for a position. Address bits 6:0 are dropped.
[[nodiscard]] constexpr auto base_of(position where) noexcept -> ia32_rtit_output_base {
    return ia32_rtit_output_base{}.with(
        ia32_rtit_output_base::BasePhysAddr{wrapped{where.table.value}});
}

/// IA32_RTIT_OUTPUT_MASK_PTRS for a position.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto mask_ptrs_of(position where) noexcept -> ia32_rtit_output_mask_ptrs {
    return {address_math::pointers_of(uint64_t{where.index}, uint64_t{where.offset})};
}

/// The physical address of the current entry, the manual's table pointer.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto table_pointer(position where) noexcept -> phys_addr {
    return address_math::table_pointer(where.table.value, uint64_t{where.index});
}

/// The physical address at which the next byte of trace is stored. `active` is the entry at
/// `where`.
///
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-051.
[[nodiscard]] constexpr auto trace_store_phys_addr(position where, entry active) noexcept
    -> phys_addr {
    return active.get<entry::Base>() + where.offset;
}

/// The number of bytes until the current region is full; 0 when the offset is outside the region.
///
/// Source: OUT-052, OUT-064.
[[nodiscard]] constexpr auto bytes_left(position where, entry active) noexcept -> uint64_t {
    uint64_t const size = bytes_in(active.get<entry::Size>());
    return where.offset < size ? size - where.offset : 0;
}

/// The position after a full region: the next entry, or, after the last possible entry, the first
/// entry of the same table.
///
/// Source: OUT-053, OUT-055.
[[nodiscard]] constexpr auto next_entry(position full) noexcept -> position {
    return {full.table, static_cast<uint32_t>(address_math::next_index(uint64_t{full.index})), 0};
}

/// The position that an END entry links to: entry 0 of the next table.
///
/// Source: OUT-054.
[[nodiscard]] constexpr auto follow_end(entry end) noexcept -> position {
    return {end_entry{end.raw}.get<end_entry::NextTable>(), 0, 0};
}

/// The position after `bytes` more bytes, at most `bytes_left`, in a region without STOP. When they
/// fill the region it is the next entry, which may be an END entry.
///
/// Source: OUT-051..053, OUT-055.
[[nodiscard]] constexpr auto advanced(position where, entry active, uint64_t bytes) noexcept
    -> position {
    uint64_t const size = underlying(active.get<entry::Size>());
    uint64_t const offset = where.offset;
    uint64_t const index = address_math::index_after(uint64_t{where.index}, offset, bytes, size);
    return {where.table, static_cast<uint32_t>(index),
            static_cast<uint32_t>(
                address_math::offset_after(offset, bytes, address_math::region_bytes(size) - 1))};
}

}  // namespace ptspec::topa
