// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_is_another_value_of_the_field
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
static_assert(conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, 2ULL << 32));
#else
static_assert(conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, 1ULL << 32));
#endif
