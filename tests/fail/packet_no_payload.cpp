// SPDX-License-Identifier: BSL-1.0
// expect: constraints not satisfied
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(ptw{}.payload() == 0);
#else
static_assert(cbr{}.payload() == 0);
#endif
