// SPDX-License-Identifier: BSL-1.0
// at most: 32 bytes
// Setting two fields of a register is one mask and one OR.

#include <ptspec/reg/rtit_ctl.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;

auto with_mtc(ctl now, uint64_t freq) noexcept -> ctl {
    return now.with(ctl::MTCEn{true}, ctl::MTCFreq{wrapped{freq}});
}
