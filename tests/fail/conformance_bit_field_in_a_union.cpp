// SPDX-License-Identifier: BSL-1.0
// expect: a_union_is_compared_at_run_time_or_by_its_named_member | only_gcc_reads_bit_fields
#include <ptspec/conformance.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

union my_ctl {
    struct {
        uint64_t flags : 14;
        uint64_t mtc_freq : 4;
        uint64_t rest : 46;
    } bits;
    uint64_t value;
};

#ifndef SHOULD_FAIL
static_assert(!reads_constant_bit_fields ||
              conforms_bit_field<ctl::MTCFreq>([](decltype(my_ctl::bits) it) {
                  return it.mtc_freq;
              }));
#else
static_assert(conforms_bit_field<ctl::MTCFreq>([](my_ctl const& it) { return it.bits.mtc_freq; }));
#endif
