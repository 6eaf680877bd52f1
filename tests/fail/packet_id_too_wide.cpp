// SPDX-License-Identifier: BSL-1.0
// PKT-340
// expect: value_does_not_fit_in_the_field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(bip{}.with(bip::id{31}).raw.low != 0);
#else
static_assert(bip{}.with(bip::id{32}).raw.low != 0);
#endif
