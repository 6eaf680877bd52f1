// SPDX-License-Identifier: BSL-1.0
// expect: field_of
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(!mode_tsx{}.get<mode_tsx::InTX>());
#else
static_assert(!mode_tsx{}.get<mode_exec::CS_L>());
#endif
