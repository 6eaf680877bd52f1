// SPDX-License-Identifier: BSL-1.0
#pragma once

// The definitions of a driver for Intel PT, with three mistakes. Each one compiles; wrong_mask.cpp,
// wrong_sign.cpp and wrong_bit_field.cpp find one each.

#include <stdint.h>

#define RTIT_CTL_MTC_SHIFT 14
#define RTIT_CTL_MTC (0xF << RTIT_CTL_MTC_SHIFT)
#define RTIT_CTL_CYC_SHIFT 18
#define RTIT_CTL_CYC (0xF << RTIT_CTL_CYC_SHIFT)
#define RTIT_CTL_PSB_SHIFT 24
#define RTIT_CTL_PSB (0xF << RTIT_CTL_PSB_SHIFT)
#define RTIT_CTL_EVENTEN (1 << 31)

struct rtit_ctl_bits {
    uint64_t flags : 14;
    uint64_t mtc_freq : 4;
    uint64_t cyc_thresh : 4;
    uint64_t : 1;
    uint64_t psb_freq : 4;
    uint64_t : 37;
};
