// SPDX-License-Identifier: BSL-1.0
// expect: value_does_not_fit_in_the_field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(cbr{}.with(cbr::CoreBusRatio{0xFF}).raw != 0);
#else
static_assert(cbr{}.with(cbr::CoreBusRatio{0x100}).raw != 0);
#endif
