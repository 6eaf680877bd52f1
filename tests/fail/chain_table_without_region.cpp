// SPDX-License-Identifier: BSL-1.0
// expect: no matching function for call to 'table_at
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto chain = topa::chain(topa::table_at(0x1000, topa::region{0x10'0000}));
#else
constexpr auto chain = topa::chain(topa::table_at(0x1000));
#endif
