// SPDX-License-Identifier: BSL-1.0
// expect: the word has no such field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(!mode_tsx{}.get<mode_tsx::InTX>());
#else
static_assert(!mode_tsx{}.get<mode_exec::CS_L>());
#endif
