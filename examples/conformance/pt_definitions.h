// SPDX-License-Identifier: BSL-1.0
#pragma once

// The definitions of a driver for Intel PT, in C and without ptspec. Only names differ between
// drivers. pt_definitions.cpp compares them with ptspec.

#include <stdint.h>

#define BIT(n) (1ULL << (n))
#define GENMASK(high, low) ((~0ULL >> (63 - (high))) & (~0ULL << (low)))

// MSRs
#define MSR_RTIT_OUTPUT_BASE 0x560
#define MSR_RTIT_OUTPUT_MASK 0x561
#define MSR_RTIT_CTL 0x570
#define MSR_RTIT_STATUS 0x571
#define MSR_RTIT_CR3_MATCH 0x572
#define MSR_RTIT_ADDR_A(n) (0x580 + 2 * (n))
#define MSR_RTIT_ADDR_B(n) (0x581 + 2 * (n))

// RTIT_CTL
#define RTIT_CTL_TRACEEN BIT(0)
#define RTIT_CTL_CYCEN BIT(1)
#define RTIT_CTL_OS BIT(2)
#define RTIT_CTL_USR BIT(3)
#define RTIT_CTL_PWREVTEN BIT(4)
#define RTIT_CTL_FUPONPTW BIT(5)
#define RTIT_CTL_FABRICEN BIT(6)
#define RTIT_CTL_CR3FILTER BIT(7)
#define RTIT_CTL_TOPA BIT(8)
#define RTIT_CTL_MTCEN BIT(9)
#define RTIT_CTL_TSCEN BIT(10)
#define RTIT_CTL_DISRETC BIT(11)
#define RTIT_CTL_PTWEN BIT(12)
#define RTIT_CTL_BRANCHEN BIT(13)
#define RTIT_CTL_MTC_SHIFT 14
#define RTIT_CTL_MTC (0xFULL << RTIT_CTL_MTC_SHIFT)
#define RTIT_CTL_CYC_SHIFT 19
#define RTIT_CTL_CYC (0xFULL << RTIT_CTL_CYC_SHIFT)
#define RTIT_CTL_PSB_SHIFT 24
#define RTIT_CTL_PSB_VALUES 0xF
#define RTIT_CTL_EVENTEN BIT(31)
#define RTIT_CTL_ADDR0 GENMASK(35, 32)
#define RTIT_CTL_ADDR1 GENMASK(39, 36)
#define RTIT_CTL_ADDR2 GENMASK(43, 40)
#define RTIT_CTL_ADDR3 GENMASK(47, 44)
// NOLINTNEXTLINE(performance-enum-size): C has no base types
enum rtit_addr_use { RTIT_ADDR_OFF, RTIT_ADDR_FILTER, RTIT_ADDR_STOP };
#define RTIT_CTL_ADDR0_STOP (2ULL << 32)

// RTIT_STATUS
union rtit_status {
    uint64_t value;
    struct {
        uint64_t filter_en : 1;
        uint64_t context_en : 1;
        uint64_t trigger_en : 1;
        uint64_t : 1;
        uint64_t error : 1;
        uint64_t stopped : 1;
        uint64_t pend_psb : 1;
        uint64_t pend_topa_pmi : 1;
        uint64_t : 24;
        uint64_t packet_bytes : 17;
        uint64_t : 15;
    } bits;
};

// CPUID
#define CPUID_PT 0x14
#define CPUID_PT_EBX_MTC BIT(3)
// NOLINTNEXTLINE(performance-enum-size)
enum cpuid_pt_ecx { CPUID_PT_TOPA_BIT = 0, CPUID_PT_MULTI_BIT = 1, CPUID_PT_LIP_BIT = 31 };

// ToPA entries
#define TOPA_END BIT(0)
#define TOPA_INT BIT(2)
#define TOPA_STOP BIT(4)
#define TOPA_SIZE GENMASK(9, 6)
#define TOPA_SIZE_64K (4 << 6)
#define TOPA_BASE GENMASK(51, 12)

// Packets: opcode, mask of the opcode, length
#define PT_TIP 0x0D
#define PT_IP_MASK 0x1F
#define PT_IP_BYTES_MAX 9
#define PT_CBR 0x0302
#define PT_CBR_BYTES 4
#define PT_MTC 0x59
#define PT_MODE_TSX 0x2099
#define PT_MODE_MASK 0xE0FF
#define PT_ESCAPE 0x02
#define PT_ESCAPED_PSBEND 0x23
static const uint8_t pt_psb[16] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                   0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
