// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 1,
// expect: an_interrupt_must_come_before_the_last_region
#include <ptspec/topa/builders.hpp>

using namespace ptspec;

#ifndef SHOULD_FAIL
constexpr auto table = topa::interrupt_and_stop(0x1000, topa::region{0x10'0000},
                                                topa::region{0x20'0000});
#else
constexpr auto table = topa::interrupt_and_stop(0x1000, topa::region{0x10'0000});
#endif
