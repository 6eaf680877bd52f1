// SPDX-License-Identifier: BSL-1.0
// expect: no matching function for call to 'ring
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto table = topa::ring(0x1000, topa::region{0x10'0000});
#else
constexpr auto table = topa::ring(0x1000, 0x10'0000);
#endif
