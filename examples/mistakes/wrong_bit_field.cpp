// SPDX-License-Identifier: BSL-1.0
// expect: CycThresh
// expect: the_definition_has_a_bit_outside_the_field | only_gcc_reads_bit_fields
// expect: Bit = 18] | the_field<18U> | only_gcc_reads_bit_fields

// This file does not compile, and g++ says why: CycThresh is bits 22:19, but the driver's struct
// lacks the reserved bit below it, so that its member is bits 21:18. Other compilers say that they
// cannot read bit-fields in a constant expression.

#include "pt_definitions.h"

#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

static_assert(conforms_bit_field<ctl::CycThresh>([](rtit_ctl_bits it) { return it.cyc_thresh; }));

auto main() -> int {}
