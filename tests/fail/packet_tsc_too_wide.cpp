// SPDX-License-Identifier: BSL-1.0
// PKT-340
// expect: value_does_not_fit_in_the_field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(tsc{}.with(tsc::TSC{0xFF'FFFF'FFFF'FFFF}).raw != 0);
#else
static_assert(tsc{}.with(tsc::TSC{0x100'0000'0000'0000}).raw != 0);
#endif
