// SPDX-License-Identifier: BSL-1.0
// expect: the_member_is_signed | only_gcc_reads_bit_fields_in_constant_expressions
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
    int64_t mtc_freq : 4;
    uint64_t rest : 46;
};
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.mtc_freq; }));
#endif
