// SPDX-License-Identifier: BSL-1.0
// expect: no member named
// expect: ptspec::packet::cbr::Opcode
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(cbr{}.with(cbr::CoreBusRatio{3}).raw == 0x0003'0302);
#else
static_assert(cbr{}.with(cbr::Opcode{}).raw == 0x0302);
#endif
