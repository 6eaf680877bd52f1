// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/reg/lbr.hpp>
#include <ptspec/reg/perf.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/reg/xsave.hpp>

/// The Intel PT state of a logical processor, and the context that it runs.
namespace ptspec::access {

using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;
using reg::ia32_rtit_status;
using reg::range_end;

/// An address range: ADDRn_A and ADDRn_B, both inclusive.
///
/// Source: REG-077, REG-078.
struct address_range {
    ia32_rtit_addr a{};
    ia32_rtit_addr b{};

    /// True when an instruction whose first byte is at `ip` belongs to the range.
    [[nodiscard]] constexpr auto contains(uint64_t ip) const noexcept -> bool {
        return a.raw <= ip && ip <= b.raw;
    }
    friend constexpr auto operator==(address_range const&, address_range const&) -> bool = default;
};

/// The values of IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS: an output buffer, or a
/// position in it.
struct output_registers {
    ia32_rtit_output_base base{};
    ia32_rtit_output_mask_ptrs mask_ptrs{ia32_rtit_output_mask_ptrs::forced_1_mask()};

    friend constexpr auto operator==(output_registers const&, output_registers const&)
        -> bool = default;
};

/// The MSRs of Intel PT on one logical processor, related MSRs that Intel PT uses, and the
/// processor modes that affect them. The default is the state after a cold reset.
///
/// Source: REG-003, REG-018, REG-090.
struct msr_state {
    ia32_rtit_ctl ctl{};
    ia32_rtit_status status{};
    output_registers output{};
    ia32_rtit_cr3_match cr3_match{};
    address_range addr[ia32_rtit_addr::count]{};

    reg::ia32_xss xss{};
    reg::ia32_perf_global_status perf_global_status{};
    reg::ia32_debugctl debugctl{};

    bool in_vmx_operation = false;
    bool in_smm = false;
    bool smram_trace_en = false;  ///< the TraceEn that the last SMI saved

    friend constexpr auto operator==(msr_state const&, msr_state const&) -> bool = default;
};

/// The use of address range `n`, 0 to 3: ADDRn_CFG.
///
/// Source: REG-037.
[[nodiscard]] constexpr auto use_of_range(ia32_rtit_ctl value, unsigned n) noexcept
    -> reg::addr_cfg {
    using ctl = ia32_rtit_ctl;
    switch (n) {
        case 0: return value.get<ctl::ADDR0_CFG>();
        case 1: return value.get<ctl::ADDR1_CFG>();
        case 2: return value.get<ctl::ADDR2_CFG>();
        default: return value.get<ctl::ADDR3_CFG>();
    }
}

/// The running context: ContextEn and FilterEn depend on it.
struct processor_context {
    unsigned cpl = 0;  ///< 0 in real mode, 3 in virtual-8086 mode
    uint64_t cr3 = 0;
    bool pae = false;  ///< PAE paging: CR3 bits 63:5 are compared, not 63:12
    bool production_enclave = false;
    uint64_t ip = 0;  ///< the address of the next instruction, in the form that packets use
};

/// Choices where the sources of the rule catalogue disagree.
struct policy {
    /// Where Intel PT is not allowed in VMX operation: a write of IA32_RTIT_CTL faults there only
    /// when it sets TraceEn, as in older manuals. Source: REG-121.
    bool only_enabling_faults_in_vmx = false;
    /// RSM that would enable both Intel PT and LBR, where they are mutually exclusive, shuts the
    /// processor down. When false, LBR is only suspended. Source: REG-103 (UNCONFIRMED).
    bool lbr_after_rsm_shuts_down = true;
};

}  // namespace ptspec::access
