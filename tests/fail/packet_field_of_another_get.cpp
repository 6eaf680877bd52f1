// SPDX-License-Identifier: BSL-1.0
// expect: the word has no such field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(mtc{}.get<mtc::CTC>() == 0);
#else
static_assert(mtc{}.get<tma::CTC>() == 0);
#endif
