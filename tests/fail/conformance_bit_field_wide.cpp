// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_has_a_bit_outside_the_field | only_gcc_reads_bit_fields
// expect: Bit = 18] | the_field<18U> | only_gcc_reads_bit_fields
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

#ifndef SHOULD_FAIL
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#else
struct my_ctl {
    uint64_t flags : 14;
    uint64_t mtc_freq : 5;
    uint64_t rest : 45;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
