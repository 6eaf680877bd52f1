// SPDX-License-Identifier: BSL-1.0
// PKT-340
// expect: address_has_bits_outside_the_field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(pip{}.with(pip::CR3{0x8'0000'0000'0000}).raw != 0);
#else
static_assert(pip{}.with(pip::CR3{0x10'0000'0000'0000}).raw != 0);
#endif
