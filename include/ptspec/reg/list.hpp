// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_trigger.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/reg/cpuid.hpp>
#include <ptspec/reg/cpuid_14h.hpp>
#include <ptspec/reg/perf.hpp>
#include <ptspec/reg/pebs.hpp>
#include <ptspec/reg/lbr.hpp>
#include <ptspec/reg/smrr.hpp>
#include <ptspec/reg/apic.hpp>
#include <ptspec/reg/vmx.hpp>

namespace ptspec::reg {

/// All register and capability words, the trace unit's first. ToPA entries are in `topa`.
using all = type_list<
    // The trace unit
    ia32_rtit_output_base, ia32_rtit_output_mask_ptrs, ia32_rtit_ctl, ia32_rtit_status,
    ia32_rtit_cr3_match, ia32_rtit_addr, ia32_rtit_triggerx_cfg, dr7,
    // Performance monitoring
    ia32_perf_global_status, ia32_perf_global_status_reset, ia32_perf_global_status_set,
    ia32_perf_global_ctrl, ia32_perf_capabilities, ia32_pebs_enable, msr_reload_pmcx,
    msr_reload_fixed_ctrx,
    // Last branches
    ia32_debugctl, msr_lastbranch_tos, msr_lbr_select, msr_ler_from_lip, msr_ler_to_lip,
    msr_lastbranch_x_from_ip, msr_lastbranch_x_to_ip, msr_lbr_info_x,
    // Restricted memory, and the APIC that receives the PMI
    ia32_mtrrcap, ia32_smrr_physbase, ia32_smrr_physmask, ia32_apic_base, ia32_x2apic_lvt_pmi,
    apic_mmio_lvt_pmi, msr_platform_info,
    // VMX
    ia32_vmx_misc, ia32_vmx_procbased_ctls2, ia32_vmx_exit_ctls, ia32_vmx_entry_ctls,
    vmcs_secondary_proc_ctls, vmcs_vmexit_ctls, vmcs_vmentry_ctls, vmcs_guest_ia32_rtit_ctl,
    vmcs_xss_exiting_bitmap, vmcs_exit_qual_ept_violation,
    // CPUID
    cpuid_01h_eax, cpuid_01h_ecx, cpuid_07h_0_ebx, cpuid_07h_1_eax, cpuid_0ah_eax, cpuid_0dh_1_eax,
    cpuid_0dh_1_ecx, cpuid_0dh_8_eax, cpuid_0dh_8_ebx, cpuid_0dh_8_ecx, cpuid_14h_0_eax,
    cpuid_14h_0_ebx, cpuid_14h_0_ecx, cpuid_14h_0_edx, cpuid_14h_1_eax, cpuid_14h_1_ebx,
    cpuid_14h_1_ecx, cpuid_14h_1_edx, cpuid_15h_eax, cpuid_15h_ebx, cpuid_15h_ecx, cpuid_15h_edx,
    cpuid_80000007h_edx, cpuid_80000008h_eax,
    // XSAVE
    ia32_xss, xsave_header_xstate_bv, xsave_header_xcomp_bv, xsave_pt_state>;

}  // namespace ptspec::reg
