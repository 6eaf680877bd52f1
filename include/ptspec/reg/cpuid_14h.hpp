// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/cpuid.hpp>

/// CPUID leaf 14H: the capabilities of the trace unit. Each one is enumerated separately.
namespace ptspec::reg {

/// CPUID.14H.0:EAX, the number of the last sub-leaf.
///
/// Shape:  32 bits.
/// Units:  MaxSubleaf is the number of the last sub-leaf.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-046,
///         REG-160.
struct cpuid_14h_0_eax : cpuid_word<cpuid_14h_0_eax, 0x14, 0, cpuid_register::eax> {
    struct MaxSubleaf : field<31, 0> {};

    struct layout : bit_layout<32, MaxSubleaf> {};
};

/// CPUID.14H.0:EBX, the supported features.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-161.
struct cpuid_14h_0_ebx : cpuid_word<cpuid_14h_0_ebx, 0x14, 0, cpuid_register::ebx> {
    struct CR3FILTER : flag<0> {};
    struct CPSB_CAM : flag<1> {};         ///< PSBFreq and cycle-accurate mode
    struct IPFILT_WRSTPRSV : flag<2> {};  ///< address ranges; MSRs preserved across warm reset
    struct MTC : flag<3> {};              ///< MTC packets; BranchEn may be 0
    struct PTWRITE : flag<4> {};
    struct PWR_EVT : flag<5> {};       ///< power events
    struct INJECTPSBPMI : flag<6> {};  ///< PendPSB and PendToPAPMI, for context switches
    struct EVENT_TRACE : flag<7> {};
    struct TNT_DIS : flag<8> {};  ///< DisTNT
    struct PTTT : flag<9> {};     ///< trigger tracing

    // clang-format off
    struct layout : bit_layout<32,
        CR3FILTER, CPSB_CAM, IPFILT_WRSTPRSV, MTC, PTWRITE, PWR_EVT, INJECTPSBPMI, EVENT_TRACE,
        TNT_DIS, PTTT, reserved<31, 10>> {};
    // clang-format on
};

/// CPUID.14H.0:ECX, the supported outputs and the kind of IPs.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-162,
///         REG-163.
struct cpuid_14h_0_ecx : cpuid_word<cpuid_14h_0_ecx, 0x14, 0, cpuid_register::ecx> {
    struct TOPAOUT : flag<0> {};
    struct MENTRY : flag<1> {};      ///< ToPA tables with more than one region
    struct SNGLRNGOUT : flag<2> {};  ///< single-range output
    struct FABRIC : flag<3> {};      ///< output to the trace transport subsystem
    struct LIP : flag<31> {};        ///< 1: IPs are linear addresses; 0: effective addresses

    struct layout : bit_layout<32, TOPAOUT, MENTRY, SNGLRNGOUT, FABRIC, reserved<30, 4>, LIP> {};
};

/// CPUID.14H.0:EDX, reserved.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration".
struct cpuid_14h_0_edx : cpuid_word<cpuid_14h_0_edx, 0x14, 0, cpuid_register::edx> {
    struct layout : bit_layout<32, reserved<31, 0>> {};
};

/// CPUID.14H.1:EAX, the number of ranges and triggers, and the supported MTC periods.
///
/// Shape:  32 bits.
/// Units:  RANGECNT counts address ranges, TRIGGER_CFG_CNT the IA32_RTIT_TRIGGERx_CFG MSRs. Bit n
///         of MTC_PERIODS is 1 if MTCFreq may be n.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-164.
struct cpuid_14h_1_eax : cpuid_word<cpuid_14h_1_eax, 0x14, 1, cpuid_register::eax> {
    struct RANGECNT : field<2, 0> {};
    struct TRIGGER_CFG_CNT : field<10, 8> {};
    struct MTC_PERIODS : field<31, 16> {};

    // clang-format off
    struct layout : bit_layout<32,
        RANGECNT, reserved<7, 3>, TRIGGER_CFG_CNT, reserved<15, 11>, MTC_PERIODS> {};
    // clang-format on
};

/// CPUID.14H.1:EBX, the supported CYC thresholds and PSB periods.
///
/// Shape:  32 bits.
/// Units:  Bit n of CYC_THRESHOLDS is 1 if CycThresh may be n, bit n of PSB_PERIODS if PSBFreq may
///         be n.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration"; REG-164.
struct cpuid_14h_1_ebx : cpuid_word<cpuid_14h_1_ebx, 0x14, 1, cpuid_register::ebx> {
    struct CYC_THRESHOLDS : field<15, 0> {};
    struct PSB_PERIODS : field<31, 16> {};

    struct layout : bit_layout<32, CYC_THRESHOLDS, PSB_PERIODS> {};
};

/// CPUID.14H.1:ECX, the supported trigger features.
///
/// Shape:  32 bits.
/// Source: REG-164.
struct cpuid_14h_1_ecx : cpuid_word<cpuid_14h_1_ecx, 0x14, 1, cpuid_register::ecx> {
    struct TRIGGER_ATTRIBUTION : flag<0> {};   ///< a TRIG packet may carry an instruction count
    struct TRIGGER_PAUSE_RESUME : flag<1> {};  ///< a trigger may pause and resume tracing
    struct TRIGGER_DR_MATCH : flag<15> {};     ///< a debug-register match may be a trigger

    // clang-format off
    struct layout : bit_layout<32,
        TRIGGER_ATTRIBUTION, TRIGGER_PAUSE_RESUME, reserved<14, 2>, TRIGGER_DR_MATCH,
        reserved<31, 16>> {};
    // clang-format on
};

/// CPUID.14H.1:EDX, reserved.
///
/// Shape:  32 bits.
/// Source: SDM vol. 3, "Detection of Intel Processor Trace and Capability Enumeration".
struct cpuid_14h_1_edx : cpuid_word<cpuid_14h_1_edx, 0x14, 1, cpuid_register::edx> {
    struct layout : bit_layout<32, reserved<31, 0>> {};
};

}  // namespace ptspec::reg
