// SPDX-License-Identifier: BSL-1.0
// expect: EventEn
// expect: the_definition_ends_at_another_bit
// expect: Bit = 63] | another_bit<63U>

// This file does not compile, and the message says why: EventEn is bit 31, but `1 << 31` is a
// negative int. In a 64-bit word it sets the bits 63:31.

#include "pt_definitions.h"

#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

static_assert(conforms<ctl::EventEn>(RTIT_CTL_EVENTEN));

auto main() -> int {}
