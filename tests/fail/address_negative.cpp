// SPDX-License-Identifier: BSL-1.0
// expect: address_has_bits_outside_the_field
// expect: (-128)
#include <ptspec/reg/rtit_output.hpp>

using base = ptspec::reg::ia32_rtit_output_base;

#ifndef SHOULD_FAIL
static_assert(base{}.with(base::BasePhysAddr{0x80}).raw != 0);
#else
static_assert(base{}.with(base::BasePhysAddr{-0x80}).raw != 0);
#endif
