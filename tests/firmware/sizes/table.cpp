// SPDX-License-Identifier: BSL-1.0
// at most: 200 bytes
// A constant table is its entries, and a position in it is shifts and masks.

#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/position.hpp>

using namespace ptspec;

extern topa::table<3> const ring;
constinit topa::table<3> const ring = topa::ring(
    0x1'0000'0000, topa::region{.base = 0x1'0010'0000, .size = topa::region_size::size_1M},
    topa::region{.base = 0x1'0020'0000, .size = topa::region_size::size_64K, .interrupt = true});

auto next_byte(reg::ia32_rtit_output_base base, reg::ia32_rtit_output_mask_ptrs pointers,
               topa::entry const* in) noexcept -> phys_addr {
    auto const now = topa::position_in(base, pointers);
    return topa::trace_store_phys_addr(now, in[now.index]);
}
auto after(reg::ia32_rtit_output_base base, reg::ia32_rtit_output_mask_ptrs pointers,
           topa::entry const* in, uint64_t bytes) noexcept -> reg::ia32_rtit_output_mask_ptrs {
    auto const now = topa::position_in(base, pointers);
    return topa::mask_ptrs_of(topa::advanced(now, in[now.index], bytes));
}
