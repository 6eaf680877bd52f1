// SPDX-License-Identifier: BSL-1.0
// expect: constraints not satisfied
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(ptw{}.with_payload(1).payload() == 1);
#else
static_assert(cbr{}.with_payload(1).raw != 0);
#endif
