// SPDX-License-Identifier: BSL-1.0
// expect: a bit range is written msb, lsb
#include <ptspec/base/bits.hpp>

#ifndef SHOULD_FAIL
struct Number : ptspec::field<17, 14> {};
#else
struct Number : ptspec::field<14, 17> {};
#endif
