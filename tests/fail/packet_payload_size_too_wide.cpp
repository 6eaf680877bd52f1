// SPDX-License-Identifier: BSL-1.0
// expect: value_does_not_fit_in_the_field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(ptw{}.with(ptw::PayloadBytes{3}).raw.low != 0);
#else
static_assert(ptw{}.with(ptw::PayloadBytes{4}).raw.low != 0);
#endif
