// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// The performance-monitoring registers that tracing uses: the ToPA PMI is reported in them.
namespace ptspec::reg {

/// The common part of IA32_PERF_GLOBAL_STATUS and its RESET and SET registers, which have the same
/// bits.
///
/// Shape:  64 bits.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS MSR"; REG-203, REG-205.
template <class Derived, row_access Access = row_access::plain>
struct perf_global_status_word : bit_word<Derived, uint64_t, Access> {
    using base = bit_word<Derived, uint64_t, Access>;
    using base::base;

    struct OvfPMC : field<31, 0> {};  ///< one bit per general-purpose counter
    struct OvfFixed : field<47, 32> {};
    struct OvfPerfMetrics : flag<48> {};
    struct ArchPebsThresh : flag<54> {};  ///< the architectural PEBS buffer reached its threshold
    struct Trace_ToPA_PMI : flag<55> {};  ///< a ToPA region with INT is full
    struct LBR_Frz : flag<58> {};         ///< a PMI froze the LBRs
    struct CTR_Frz : flag<59> {};         ///< a PMI froze the counters
    struct ASCI : flag<60> {};            ///< an SGX enclave may have contributed to the counts
    struct OvfUncore : flag<61> {};
    struct OvfBuf : flag<62> {};  ///< the DS buffer overflowed
    struct CondChgd : flag<63> {};

    // clang-format off
    struct layout : bit_layout<64,
        OvfPMC, OvfFixed, OvfPerfMetrics, reserved<53, 49>, ArchPebsThresh, Trace_ToPA_PMI,
        reserved<57, 56>, LBR_Frz, CTR_Frz, ASCI, OvfUncore, OvfBuf, CondChgd> {};
    // clang-format on
};

/// IA32_PERF_GLOBAL_STATUS, the causes of a performance-monitoring interrupt.
///
/// Shape:  64-bit MSR 38EH, read-only.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS MSR"; REG-203..205.
struct ia32_perf_global_status
    : perf_global_status_word<ia32_perf_global_status, row_access::read_only> {
    static constexpr uint32_t address = 0x38E;
};

/// IA32_PERF_GLOBAL_STATUS_RESET: writing 1 to a bit clears that bit of IA32_PERF_GLOBAL_STATUS.
///
/// Shape:  64-bit MSR 390H. Below version 4 of performance monitoring it is called
///         IA32_PERF_GLOBAL_OVF_CTRL.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS_RESET MSR"; REG-203, OUT-084.
struct ia32_perf_global_status_reset : perf_global_status_word<ia32_perf_global_status_reset> {
    static constexpr uint32_t address = 0x390;
};

/// IA32_PERF_GLOBAL_STATUS_SET: writing 1 to a bit sets that bit of IA32_PERF_GLOBAL_STATUS.
///
/// Shape:  64-bit MSR 391H, from version 4 of performance monitoring on.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS_SET MSR"; REG-203.
struct ia32_perf_global_status_set : perf_global_status_word<ia32_perf_global_status_set> {
    static constexpr uint32_t address = 0x391;
};

/// IA32_PERF_GLOBAL_CTRL, the enabled counters.
///
/// Shape:  64-bit MSR 38FH. Up to version 3 of performance monitoring, FREEZE_PERFMON_ON_PMI clears
///         it on a PMI.
/// Source: SDM vol. 3, "IA32_PERF_GLOBAL_CTRL MSR"; REG-205.
struct ia32_perf_global_ctrl : bit_word<ia32_perf_global_ctrl, uint64_t> {
    static constexpr uint32_t address = 0x38F;

    struct EnPMC : field<31, 0> {};  ///< one bit per general-purpose counter
    struct EnFixed : field<47, 32> {};

    struct layout : bit_layout<64, EnPMC, EnFixed, other<63, 48>> {};
};

/// IA32_PERF_CAPABILITIES, the performance-monitoring features.
///
/// Shape:  64-bit MSR 345H, where CPUID.01H:ECX.PDCM is 1. Read-only.
/// Source: SDM vol. 3, "IA32_PERF_CAPABILITIES MSR"; REG-200.
struct ia32_perf_capabilities : read_only_word<ia32_perf_capabilities, uint64_t> {
    static constexpr uint32_t address = 0x345;

    struct LBR_FMT : field<5, 0> {};  ///< the format of LBR records
    struct PEBSTrap : flag<6> {};
    struct PEBSArchRegs : flag<7> {};
    /// the format of PEBS records; FH is architectural PEBS
    struct PEBS_FMT : field<11, 8> {};
    struct SMM_FREEZE : flag<12> {};            ///< IA32_DEBUGCTL has FREEZE_WHILE_SMM
    struct FW_WRITE : flag<13> {};              ///< counters can be written in their full width
    struct PEBS_BASELINE : flag<14> {};         ///< adaptive PEBS
    struct PERF_METRICS : flag<15> {};          ///< top-down metrics
    struct PEBS_OUTPUT_PT_AVAIL : flag<16> {};  ///< PEBS records may go into the trace
    struct PEBS_TIMING_INFO : flag<17> {};      ///< PEBS records may hold timing information

    // clang-format off
    struct layout : bit_layout<64,
        LBR_FMT, PEBSTrap, PEBSArchRegs, PEBS_FMT, SMM_FREEZE, FW_WRITE, PEBS_BASELINE,
        PERF_METRICS, PEBS_OUTPUT_PT_AVAIL, PEBS_TIMING_INFO, other<63, 18>> {};
    // clang-format on
};

/// MSR_PLATFORM_INFO, the ratio of the TSC to the bus clock.
///
/// Shape:  64-bit MSR CEH, read-only.
/// Units:  MaxNonTurboRatio multiplies the bus clock, as CoreBusRatio of a CBR packet does.
/// Source: SDM vol. 4, "MSR_PLATFORM_INFO"; REG-168, GEN-208.
struct msr_platform_info : read_only_word<msr_platform_info, uint64_t> {
    static constexpr uint32_t address = 0xCE;

    struct MaxNonTurboRatio : field<15, 8> {};

    struct layout : bit_layout<64, other<7, 0>, MaxNonTurboRatio, other<63, 16>> {};
};

}  // namespace ptspec::reg
