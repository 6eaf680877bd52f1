// SPDX-License-Identifier: BSL-1.0
// expect: the_enumerator_differs
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
static_assert(conforms_value(reg::addr_cfg::trace_stop, 2));
#else
static_assert(conforms_value(reg::addr_cfg::trace_stop, 3));
#endif
