// SPDX-License-Identifier: BSL-1.0
// expect: no member named
// expect: ptspec::packet::mode_exec::Leaf
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(mode_exec{}.with(mode_exec::IF{true}).raw == 0x0499);
#else
static_assert(mode_exec{}.with(mode_exec::Leaf{}).raw == 0x99);
#endif
