// SPDX-License-Identifier: BSL-1.0
// expect: a field is named twice
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(evd{}.with(evd::payload{1}).raw.low != 0);
#else
static_assert(evd{}.with(evd::payload{1}, evd::payload{2}).raw.low != 0);
#endif
