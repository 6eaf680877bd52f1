// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_ends_at_another_bit
// expect: Bit = 7] | another_bit<7U>
// expect: field_is<
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_output.hpp>

using namespace ptspec;
using pointers = reg::ia32_rtit_output_mask_ptrs;

#ifndef SHOULD_FAIL
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0x7F),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#else
static_assert(conforms_all<pointers>(field_is<pointers::LowerMask>(0xFF),
                                     field_is<pointers::MaskOrTableOffset>(at_bits{31, 7}),
                                     left_out<pointers::OutputOffset>()));
#endif
