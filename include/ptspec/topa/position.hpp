// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/topa/entry.hpp>

/// Where the next byte of trace goes: the address math of both output schemes.
namespace ptspec {

namespace single_range {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The mask of a single range: its size in bytes less one. The seven lowest bits are always ones.
///
/// Source: OUT-020.
[[nodiscard]] constexpr auto mask_of(ia32_rtit_output_mask_ptrs pointers) noexcept -> uint64_t {
    return (pointers.raw & low_bits(32)) | ia32_rtit_output_mask_ptrs::forced_1_mask();
}

/// The physical address at which the next byte of trace is stored.
///
/// Source: SDM vol. 3, "Single Range Output"; OUT-021.
[[nodiscard]] constexpr auto trace_store_phys_addr(ia32_rtit_output_base base,
                                                   ia32_rtit_output_mask_ptrs pointers) noexcept
    -> uint64_t {
    uint64_t const mask = mask_of(pointers);
    return (base.raw & ~mask) + (pointers.get<ia32_rtit_output_mask_ptrs::OutputOffset>() & mask);
}

/// The pointers after `bytes` more bytes: the offset wraps at the region's end.
///
/// Source: OUT-021, OUT-028.
[[nodiscard]] constexpr auto advanced(ia32_rtit_output_mask_ptrs pointers, uint64_t bytes) noexcept
    -> ia32_rtit_output_mask_ptrs {
    using field = ia32_rtit_output_mask_ptrs::OutputOffset;
    return pointers.with(field{wrapped{(pointers.get<field>() + bytes) & mask_of(pointers)}});
}

/// The rule that a single range breaks when tracing is enabled.
///
/// Errors: OUT-022 mask not contiguous; OUT-023 base not aligned to the size; OUT-024 offset
///         outside.
/// Source: OUT-022..024.
[[nodiscard]] constexpr auto broken_rule(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> rule {
    uint64_t const mask = mask_of(pointers);
    return (mask & (mask + 1)) != 0                                          ? rule::OUT_022
           : (base.raw & mask) != 0                                          ? rule::OUT_023
           : pointers.get<ia32_rtit_output_mask_ptrs::OutputOffset>() > mask ? rule::OUT_024
                                                                             : rule::none;
}

}  // namespace single_range

namespace topa {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The last index that an entry can have: tables have at most 2^25 entries.
inline constexpr uint32_t last_index = 0x1FF'FFFF;

/// A place in a chain of tables, as the two output MSRs hold it.
///
/// Units:  `table` is a physical address; `index` counts entries of 8 bytes; `offset` counts bytes
///         from the begin of the entry's region.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-046, OUT-050, OUT-053.
struct position {
    uint64_t table = 0;
    uint32_t index = 0;
    uint32_t offset = 0;

    friend constexpr auto operator==(position const&, position const&) -> bool = default;
};

/// The position that the two MSRs hold.
[[nodiscard]] constexpr auto position_in(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> position {
    using pointer = ia32_rtit_output_mask_ptrs;
    return {base.get<ia32_rtit_output_base::BasePhysAddr>(),
            static_cast<uint32_t>(pointers.get<pointer::MaskOrTableOffset>()),
            static_cast<uint32_t>(pointers.get<pointer::OutputOffset>())};
}

/// IA32_RTIT_OUTPUT_MASK_PTRS for a position.
[[nodiscard]] constexpr auto mask_ptrs_of(position where) noexcept -> ia32_rtit_output_mask_ptrs {
    using pointer = ia32_rtit_output_mask_ptrs;
    return pointer{pointer::forced_1_mask()}.with(pointer::MaskOrTableOffset{wrapped{where.index}},
                                                  pointer::OutputOffset{wrapped{where.offset}});
}

/// The physical address of the current entry, the manual's table pointer.
///
/// Source: OUT-050.
[[nodiscard]] constexpr auto table_pointer(position where) noexcept -> uint64_t {
    return where.table + uint64_t{where.index} * sizeof(entry);
}

/// The physical address at which the next byte of trace is stored. `current` is the entry at
/// `where`.
///
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-051.
[[nodiscard]] constexpr auto trace_store_phys_addr(position where, entry current) noexcept
    -> uint64_t {
    return current.get<entry::Base>() + where.offset;
}

/// How many bytes fit into the current region before it is full; 0 when the offset lies outside.
///
/// Source: OUT-052, OUT-064.
[[nodiscard]] constexpr auto bytes_left(position where, entry current) noexcept -> uint64_t {
    uint64_t const size = bytes_in(current.get<entry::Size>());
    return where.offset < size ? size - where.offset : 0;
}

/// The position behind a region that is full: the next entry, and behind the last possible one the
/// first of the same table.
///
/// Source: OUT-053, OUT-055.
[[nodiscard]] constexpr auto behind(position full) noexcept -> position {
    return {full.table, (full.index + 1) & last_index, 0};
}

/// The position to which an END entry leads.
///
/// Source: OUT-054.
[[nodiscard]] constexpr auto through(entry end) noexcept -> position {
    return {end_entry{end.raw}.get<end_entry::NextTable>(), 0, 0};
}

}  // namespace topa

}  // namespace ptspec
