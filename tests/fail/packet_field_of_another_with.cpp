// SPDX-License-Identifier: BSL-1.0
// expect: the word has no such field
#include <ptspec/packet/list.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
static_assert(tma{}.with(tma::CTC{1}).raw != 0);
#else
static_assert(tma{}.with(mtc::CTC{1}).raw != 0);
#endif
