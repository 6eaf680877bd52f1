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

namespace detail {

template <class Found>
constexpr void find_broken_rules(uint64_t base, uint64_t mask, uint64_t offset,
                                 Found&& found) noexcept {
    if ((mask & (mask + 1)) != 0) { found(rule::OUT_022); }
    if ((base & mask) != 0) { found(rule::OUT_023); }
    if (offset > mask) { found(rule::OUT_024); }
}

}  // namespace detail

/// Calls `found` with every rule that a single range breaks when tracing is enabled, in the order of
/// their numbers.
///
/// Errors: OUT-022 mask not contiguous; OUT-023 base not aligned to the size; OUT-024 offset
///         outside.
/// Source: OUT-022..024.
template <class Found>
constexpr void find_broken_rules(ia32_rtit_output_base base, ia32_rtit_output_mask_ptrs pointers,
                                 Found&& found) noexcept {
    detail::find_broken_rules(base.raw, mask_of(pointers),
                              pointers.get<ia32_rtit_output_mask_ptrs::OutputOffset>(), found);
}

/// The first rule, by number, that a single range breaks when tracing is enabled.
///
/// Source: OUT-022..024.
[[nodiscard]] constexpr auto broken_rule(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> rule {
    first_rule first;
    find_broken_rules(base, pointers, first);
    return first.found;
}

/// A request for an output region.
struct region {
    uint64_t base = 0;    ///< physical address, a multiple of the size
    uint64_t bytes = 0;   ///< its size: 128 bytes to 4 GB, a power of two
    uint64_t offset = 0;  ///< where in it the next byte of trace goes
};

/// The two output MSRs for a region, or what forbids them.
struct built {
    rule why = rule::none;
    ia32_rtit_output_base base{};
    ia32_rtit_output_mask_ptrs pointers{};

    constexpr explicit operator bool() const noexcept { return why == rule::none; }
};

/// Calls `found` with every rule that a request breaks.
///
/// Errors: OUT-020 fewer than 128 bytes or more than 4 GB; OUT-022 not a power of two; OUT-023 base
///         not aligned to the size; OUT-024 offset outside; REG-070 base beyond MAXPHYADDR.
/// Source: OUT-020, OUT-022..024, OUT-141, REG-070.
template <class Found>
constexpr void find_broken_rules(region wanted, max_phys_addr width, Found&& found) noexcept {
    if (wanted.bytes < 128 || wanted.bytes > uint64_t{1} << 32) { found(rule::OUT_020); }
    if (wanted.bytes != 0) {
        detail::find_broken_rules(wanted.base, wanted.bytes - 1, wanted.offset, found);
    }
    if (!width.reaches(wanted.base)) { found(rule::REG_070); }
}

/// The output MSRs for a region.
///
/// Errors: the first rule that the request breaks; the MSRs are then those of a cold reset.
/// Source: OUT-020, OUT-022..024, REG-070.
[[nodiscard]] constexpr auto build(region wanted, max_phys_addr width = {}) noexcept -> built {
    using pointer = ia32_rtit_output_mask_ptrs;
    constexpr pointer cold{pointer::forced_1_mask()};
    first_rule first;
    find_broken_rules(wanted, width, first);
    if (first.found != rule::none) { return {first.found, {}, cold}; }
    return {.base = {wanted.base},
            .pointers = cold.with(pointer::MaskOrTableOffset{wrapped{wanted.bytes / 128 - 1}},
                                  pointer::OutputOffset{wrapped{wanted.offset}})};
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
