// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/word.hpp>

/// The parts of VMX that concern tracing: capability MSRs, controls and fields of the VMCS.
namespace ptspec::reg {

/// IA32_VMX_MISC, miscellaneous capabilities of VMX.
///
/// Shape:  64-bit MSR 485H, read-only.
/// Units:  CR3TargetCount counts values, MaxMsrList is an encoding of a number of MSRs.
/// Source: SDM vol. 3, "Miscellaneous Data"; REG-110, REG-120, REG-121, REG-132.
struct ia32_vmx_misc : read_only_word<ia32_vmx_misc, uint64_t> {
    static constexpr uint32_t address = 0x485;

    struct PreemptTscShift : field<4, 0> {};  ///< the preemption timer counts at this TSC bit
    struct StoreEferLma : flag<5> {};         ///< a VM exit stores EFER.LMA in the entry controls
    struct ActivityStates : field<8, 6> {};   ///< HLT, shutdown, wait-for-SIPI: one bit each
    struct INTEL_PT : flag<14> {};            ///< PT may be used in VMX operation
    struct RdmsrSmbase : flag<15> {};         ///< RDMSR of SMBASE is allowed in SMM
    struct CR3TargetCount : field<24, 16> {};
    struct MaxMsrList : field<27, 25> {
        [[nodiscard]] static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return {512 * (encoding + 1), "MSRs"};
        }
    };
    struct MsegRevision : field<63, 32> {};

    // clang-format off
    struct layout : bit_layout<64,
        PreemptTscShift, StoreEferLma, ActivityStates, reserved<13, 9>, INTEL_PT, RdmsrSmbase,
        CR3TargetCount, MaxMsrList, other<31, 28>, MsegRevision> {};
    // clang-format on
};

// ------------------------------------------------------------------------------------ capabilities

// For each control, `Must1` means that it cannot be 0, and `Can1` that it can be 1.

/// IA32_VMX_PROCBASED_CTLS2, the allowed settings of the secondary processor-based controls.
///
/// Shape:  64-bit MSR 48BH, read-only.
/// Source: SDM vol. 3, "Secondary Processor-Based VM-Execution Controls"; REG-122, REG-128.
struct ia32_vmx_procbased_ctls2 : read_only_word<ia32_vmx_procbased_ctls2, uint64_t> {
    static constexpr uint32_t address = 0x48B;

    struct Allowed0_18_0 : field<18, 0> {};
    struct Must1_CONCEAL_VMX_NONROOT_FROM_PT : flag<19> {};
    struct Allowed0_23_20 : field<23, 20> {};
    struct Must1_PT_USES_GPA : flag<24> {};
    struct Allowed0_31_25 : field<31, 25> {};
    struct Allowed1_18_0 : field<50, 32> {};
    struct Can1_CONCEAL_VMX_NONROOT_FROM_PT : flag<51> {};
    struct Allowed1_23_20 : field<55, 52> {};
    struct Can1_PT_USES_GPA : flag<56> {};
    struct Allowed1_31_25 : field<63, 57> {};

    // clang-format off
    struct layout : bit_layout<64,
        Allowed0_18_0, Must1_CONCEAL_VMX_NONROOT_FROM_PT, Allowed0_23_20, Must1_PT_USES_GPA,
        Allowed0_31_25,
        Allowed1_18_0, Can1_CONCEAL_VMX_NONROOT_FROM_PT, Allowed1_23_20, Can1_PT_USES_GPA,
        Allowed1_31_25> {};
    // clang-format on
};

/// IA32_VMX_EXIT_CTLS, the allowed settings of the VM-exit controls.
///
/// Shape:  64-bit MSR 483H, read-only.
/// Source: SDM vol. 3, "VM-Exit Controls"; REG-123, REG-126.
struct ia32_vmx_exit_ctls : read_only_word<ia32_vmx_exit_ctls, uint64_t> {
    static constexpr uint32_t address = 0x483;

    struct Allowed0_23_0 : field<23, 0> {};
    struct Must1_CONCEAL_VMEXITS_FROM_PT : flag<24> {};
    struct Must1_CLEAR_IA32_RTIT_CTL : flag<25> {};
    struct Allowed0_31_26 : field<31, 26> {};
    struct Allowed1_23_0 : field<55, 32> {};
    struct Can1_CONCEAL_VMEXITS_FROM_PT : flag<56> {};
    struct Can1_CLEAR_IA32_RTIT_CTL : flag<57> {};
    struct Allowed1_31_26 : field<63, 58> {};

    // clang-format off
    struct layout : bit_layout<64,
        Allowed0_23_0, Must1_CONCEAL_VMEXITS_FROM_PT, Must1_CLEAR_IA32_RTIT_CTL, Allowed0_31_26,
        Allowed1_23_0, Can1_CONCEAL_VMEXITS_FROM_PT, Can1_CLEAR_IA32_RTIT_CTL, Allowed1_31_26> {};
    // clang-format on
};

/// IA32_VMX_ENTRY_CTLS, the allowed settings of the VM-entry controls.
///
/// Shape:  64-bit MSR 484H, read-only.
/// Source: SDM vol. 3, "VM-Entry Controls"; REG-124, REG-125.
struct ia32_vmx_entry_ctls : read_only_word<ia32_vmx_entry_ctls, uint64_t> {
    static constexpr uint32_t address = 0x484;

    struct Allowed0_16_0 : field<16, 0> {};
    struct Must1_CONCEAL_VMENTRIES_FROM_PT : flag<17> {};
    struct Must1_LOAD_IA32_RTIT_CTL : flag<18> {};
    struct Allowed0_31_19 : field<31, 19> {};
    struct Allowed1_16_0 : field<48, 32> {};
    struct Can1_CONCEAL_VMENTRIES_FROM_PT : flag<49> {};
    struct Can1_LOAD_IA32_RTIT_CTL : flag<50> {};
    struct Allowed1_31_19 : field<63, 51> {};

    // clang-format off
    struct layout : bit_layout<64,
        Allowed0_16_0, Must1_CONCEAL_VMENTRIES_FROM_PT, Must1_LOAD_IA32_RTIT_CTL, Allowed0_31_19,
        Allowed1_16_0, Can1_CONCEAL_VMENTRIES_FROM_PT, Can1_LOAD_IA32_RTIT_CTL, Allowed1_31_19> {};
    // clang-format on
};

// ------------------------------------------------------------------------------------ the VMCS

/// The secondary processor-based VM-execution controls.
///
/// Shape:  32-bit field 401EH of the VMCS.
/// Errors: VM entry fails for a control that IA32_VMX_PROCBASED_CTLS2 does not allow.
/// Source: SDM vol. 3, "Processor-Based VM-Execution Controls"; REG-122, REG-128, REG-129.
struct vmcs_secondary_proc_ctls : bit_word<vmcs_secondary_proc_ctls, uint32_t> {
    static constexpr uint32_t encoding = 0x401E;

    /// PIPs without NR; no VMCS packet in a guest's PSB+
    struct ConcealVmxNonRootFromPT : flag<19> {};
    /// output and ToPA addresses are translated by EPT
    struct PTUsesGuestPhysAddr : flag<24> {};

    // clang-format off
    struct layout : bit_layout<32,
        other<18, 0>, ConcealVmxNonRootFromPT, other<23, 20>, PTUsesGuestPhysAddr,
        other<31, 25>> {};
    // clang-format on
};

/// The VM-exit controls.
///
/// Shape:  32-bit field 400CH of the VMCS.
/// Errors: VM entry fails for a control that IA32_VMX_EXIT_CTLS does not allow.
/// Source: SDM vol. 3, "VM-Exit Controls"; REG-123, REG-126.
struct vmcs_vmexit_ctls : bit_word<vmcs_vmexit_ctls, uint32_t> {
    static constexpr uint32_t encoding = 0x400C;

    /// no PIP on exit, no VMCS packet on an SMM VM exit
    struct ConcealVmExitsFromPT : flag<24> {};
    struct ClearIA32_RTIT_CTL : flag<25> {};

    // clang-format off
    struct layout : bit_layout<32,
        other<23, 0>, ConcealVmExitsFromPT, ClearIA32_RTIT_CTL, other<31, 26>> {};
    // clang-format on
};

/// The VM-entry controls.
///
/// Shape:  32-bit field 4012H of the VMCS.
/// Errors: VM entry fails for a control that IA32_VMX_ENTRY_CTLS does not allow.
/// Source: SDM vol. 3, "VM-Entry Controls"; REG-124, REG-125.
struct vmcs_vmentry_ctls : bit_word<vmcs_vmentry_ctls, uint32_t> {
    static constexpr uint32_t encoding = 0x4012;

    /// no PIP on entry, no VMCS packet on a return from SMM
    struct ConcealVmEntriesFromPT : flag<17> {};
    struct LoadIA32_RTIT_CTL : flag<18> {};  ///< loads it from the guest-state field

    // clang-format off
    struct layout : bit_layout<32,
        other<16, 0>, ConcealVmEntriesFromPT, LoadIA32_RTIT_CTL, other<31, 19>> {};
    // clang-format on
};

/// The guest's IA32_RTIT_CTL.
///
/// Shape:  64-bit field 2814H of the VMCS; 2815H is its upper half. It exists if the load control
///         or the clear control exists.
/// Source: SDM vol. 3, "Guest Register State"; REG-125, REG-127.
struct vmcs_guest_ia32_rtit_ctl : bit_word<vmcs_guest_ia32_rtit_ctl, uint64_t> {
    static constexpr uint32_t encoding = 0x2814;
    static constexpr uint32_t encoding_high = 0x2815;

    struct GuestRtitCtl : field<63, 0> {};  ///< the bits of ia32_rtit_ctl

    struct layout : bit_layout<64, GuestRtitCtl> {};
};

/// The XSS-exiting bitmap: the components for which XSAVES and XRSTORS cause a VM exit.
///
/// Shape:  64-bit field 202CH of the VMCS.
/// Source: SDM vol. 3, "XSS-Exiting Bitmap".
struct vmcs_xss_exiting_bitmap : bit_word<vmcs_xss_exiting_bitmap, uint64_t> {
    static constexpr uint32_t encoding = 0x202C;

    struct PT_STATE : flag<8> {};

    struct layout : bit_layout<64, other<7, 0>, PT_STATE, other<63, 9>> {};
};

/// The exit qualification of an EPT violation.
///
/// Shape:  64-bit field 6400H of the VMCS, read-only.
/// Source: SDM vol. 3, "Exit Qualification for EPT Violations"; REG-128.
struct vmcs_exit_qual_ept_violation : read_only_word<vmcs_exit_qual_ept_violation, uint64_t> {
    static constexpr uint32_t encoding = 0x6400;

    /// not caused by an instruction, for example by trace output
    struct Asynchronous : flag<16> {};

    struct layout : bit_layout<64, other<15, 0>, Asynchronous, other<63, 17>> {};
};

}  // namespace ptspec::reg
