// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/rule.hpp>
#include <ptspec/topa/address_math.hpp>

/// The single-range output scheme.
namespace ptspec::single_range {

using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;

/// The mask of a single range: its size in bytes minus one. The low seven bits are always ones.
///
/// Source: OUT-020.
[[nodiscard]] constexpr auto mask_of(ia32_rtit_output_mask_ptrs pointers) noexcept -> uint64_t {
    return address_math::mask_in(pointers.raw);
}

/// The physical address at which the next byte of trace is stored.
///
/// Source: SDM vol. 3, "Single Range Output"; OUT-021, OUT-027.
[[nodiscard]] constexpr auto trace_store_phys_addr(ia32_rtit_output_base base,
                                                   ia32_rtit_output_mask_ptrs pointers) noexcept
    -> phys_addr {
    return address_math::store_address(base.raw, mask_of(pointers),
                                       address_math::offset_in(pointers.raw));
}

/// The number of bytes until the offset wraps; 0 when the offset is outside the range.
///
/// Source: OUT-021, OUT-024.
[[nodiscard]] constexpr auto bytes_left(ia32_rtit_output_mask_ptrs pointers) noexcept -> uint64_t {
    uint64_t const mask = mask_of(pointers);
    uint64_t const offset = address_math::offset_in(pointers.raw);
    return offset <= mask ? mask + 1 - offset : 0;
}

/// The pointers after `bytes` more bytes: the offset wraps at the end of the range.
///
/// Source: OUT-021, OUT-028.
[[nodiscard]] constexpr auto advanced(ia32_rtit_output_mask_ptrs pointers, uint64_t bytes) noexcept
    -> ia32_rtit_output_mask_ptrs {
    uint64_t const offset = address_math::offset_in(pointers.raw);
    return pointers.with(ia32_rtit_output_mask_ptrs::OutputOffset{
        wrapped{address_math::offset_after(offset, bytes, mask_of(pointers))}});
}

namespace detail {

template <class Found>
constexpr void find_broken_rules(phys_addr base, uint64_t mask, uint64_t offset,
                                 Found&& found) noexcept {
    if (address_math::non_contiguous_bits(mask) != 0) { found(rule::OUT_022); }
    if ((base.value & mask) != 0) { found(rule::OUT_023); }
    if (offset > mask) { found(rule::OUT_024); }
}

}  // namespace detail

/// Calls `found` with every rule that a single range breaks when tracing is enabled, in the order
/// of their numbers.
///
/// Errors: OUT-022 mask not contiguous; OUT-023 base not aligned to the size; OUT-024 offset
///         outside.
/// Source: OUT-022..024, OUT-029.
template <callable<rule> Found>
constexpr void find_broken_rules(ia32_rtit_output_base base, ia32_rtit_output_mask_ptrs pointers,
                                 Found&& found) noexcept {
    detail::find_broken_rules(base.raw, mask_of(pointers), address_math::offset_in(pointers.raw),
                              found);
}

/// The first rule, by number, that a single range breaks when tracing is enabled.
///
/// Source: OUT-022..024.
[[nodiscard]] constexpr auto broken_rule(ia32_rtit_output_base base,
                                         ia32_rtit_output_mask_ptrs pointers) noexcept -> rule {
    first_rule first;
    find_broken_rules(base, pointers, first);
    return first.broken;
}

/// A request for an output region.
struct region {
    phys_addr base{};     ///< a multiple of the size
    uint64_t bytes = 0;   ///< its size: 128 bytes to 4 GB, a power of two
    uint64_t offset = 0;  ///< the offset of the next byte of trace
};

/// The two output MSRs for a region, or the first broken rule.
struct built {
    rule broken = rule::none;
    ia32_rtit_output_base base{};
    ia32_rtit_output_mask_ptrs pointers{};

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

/// Calls `found` with every rule that a request breaks.
///
/// Errors: OUT-020 fewer than 128 bytes or more than 4 GB; OUT-022 not a power of two; OUT-023 base
///         not aligned to the size; OUT-024 offset outside; REG-070 base beyond MAXPHYADDR.
/// Source: OUT-020, OUT-022..024, OUT-141, REG-070.
template <callable<rule> Found>
constexpr void find_broken_rules(region wanted, max_phys_addr width, Found&& found) noexcept {
    if (wanted.bytes < 128 || wanted.bytes > uint64_t{1} << 32) { found(rule::OUT_020); }
    if (wanted.bytes != 0) {
        detail::find_broken_rules(wanted.base, wanted.bytes - 1, wanted.offset, found);
    }
    if (!width.contains(wanted.base)) { found(rule::REG_070); }
}

/// Computes the output MSRs for a region.
///
/// Errors: the first rule that the request breaks; the MSRs are then those of a cold reset.
/// Source: OUT-020, OUT-022..024, REG-070.
[[nodiscard]] constexpr auto build(region wanted, max_phys_addr width = {}) noexcept -> built {
    using pointer = ia32_rtit_output_mask_ptrs;
    constexpr pointer cold{pointer::forced_1_mask()};
    first_rule first;
    find_broken_rules(wanted, width, first);
    if (first.broken != rule::none) { return {first.broken, {}, cold}; }
    return {.base = {wanted.base.value},
            .pointers = cold.with(pointer::MaskOrTableOffset{wrapped{wanted.bytes / 128 - 1}},
                                  pointer::OutputOffset{wrapped{wanted.offset}})};
}

}  // namespace ptspec::single_range
