// SPDX-License-Identifier: BSL-1.0
// expect: conforms<
// expect: the_definition_begins_at_another_bit
// expect: Bit = 18] | another_bit<18U>

// This file does not compile, and the message says why: CycThresh is bits 22:19, and the driver's
// mask begins at bit 18.

#include "pt_definitions.h"

#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

static_assert(conforms<ctl::MTCFreq>(RTIT_CTL_MTC, RTIT_CTL_MTC_SHIFT));
static_assert(conforms<ctl::CycThresh>(RTIT_CTL_CYC, RTIT_CTL_CYC_SHIFT));
static_assert(conforms<ctl::PSBFreq>(RTIT_CTL_PSB, RTIT_CTL_PSB_SHIFT));

auto main() -> int {}
