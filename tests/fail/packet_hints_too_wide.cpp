// SPDX-License-Identifier: BSL-1.0
// PKT-340
// expect: value_does_not_fit_in_the_field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(mwait{}.with(mwait::hints{255}).raw.low != 0);
#else
static_assert(mwait{}.with(mwait::hints{256}).raw.low != 0);
#endif
