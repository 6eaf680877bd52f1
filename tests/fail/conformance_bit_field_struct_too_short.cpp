// SPDX-License-Identifier: BSL-1.0
// expect: the struct ends below the field
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

struct my_ctl {
    uint8_t below : 2;
    uint8_t os : 1;
};

#ifndef SHOULD_FAIL
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::OS>([](my_ctl const& it) { return it.os; }));
#else
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.os; }));
#endif
