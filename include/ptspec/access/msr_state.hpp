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
[[nodiscard]] constexpr auto use_of_range(ia32_rtit_ctl from, unsigned n) noexcept
    -> reg::addr_cfg {
    using ctl = ia32_rtit_ctl;
    switch (n) {
        case 0: return from.get<ctl::ADDR0_CFG>();
        case 1: return from.get<ctl::ADDR1_CFG>();
        case 2: return from.get<ctl::ADDR2_CFG>();
        default: return from.get<ctl::ADDR3_CFG>();
    }
}

/// The running context: ContextEn and FilterEn depend on it.
struct context {
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

// ------------------------------------------------------------------------------------ by index

namespace detail {

using namespace ptspec::detail;

inline constexpr uint32_t first_pt_msr = ia32_rtit_output_base::address;
inline constexpr uint32_t first_addr_msr = ia32_rtit_addr::address(0, range_end::a);
inline constexpr uint32_t last_pt_msr = first_addr_msr + 2 * ia32_rtit_addr::count - 1;

constexpr auto is_addr_msr(uint32_t index) noexcept -> bool {
    return index >= first_addr_msr && index <= last_pt_msr;
}

}  // namespace detail

/// True for the MSRs of Intel PT, 560H to 587H, whether or not the processor has them.
///
/// Source: REG-017.
[[nodiscard]] constexpr auto is_pt_msr(uint32_t index) noexcept -> bool {
    return index >= detail::first_pt_msr && index <= detail::last_pt_msr;
}

/// True for the MSRs that this directory models: those of Intel PT, and the fields of Intel PT in
/// IA32_DEBUGCTL, IA32_XSS and the three IA32_PERF_GLOBAL_STATUS registers.
///
/// Source: REG-017, REG-018.
[[nodiscard]] constexpr auto covers(uint32_t index) noexcept -> bool {
    return is_pt_msr(index) || index == reg::ia32_perf_global_status::address ||
           index == reg::ia32_perf_global_status_reset::address ||
           index == reg::ia32_perf_global_status_set::address || index == reg::ia32_xss::address ||
           index == reg::ia32_debugctl::address;
}

/// The value of a covered MSR, whether or not the processor has it. The two registers that set and
/// reset IA32_PERF_GLOBAL_STATUS read 0.
///
/// Source: REG-011, REG-080.
[[nodiscard]] constexpr auto value_of(msr_state const& now, uint32_t index) noexcept -> uint64_t {
    switch (index) {
        case ia32_rtit_output_base::address: return now.output.base.raw;
        case ia32_rtit_output_mask_ptrs::address: return now.output.mask_ptrs.raw;
        case ia32_rtit_ctl::address: return now.ctl.raw;
        case ia32_rtit_status::address: return now.status.raw;
        case ia32_rtit_cr3_match::address: return now.cr3_match.raw;
        case reg::ia32_perf_global_status::address: return now.perf_global_status.raw;
        case reg::ia32_xss::address: return now.xss.raw;
        case reg::ia32_debugctl::address: return now.debugctl.raw;
        default: break;
    }
    if (!detail::is_addr_msr(index)) { return 0; }
    uint32_t const at = index - detail::first_addr_msr;
    auto const& range = now.addr[at / 2];
    return at % 2 == 0 ? range.a.raw : range.b.raw;
}

/// Stores a value in a covered MSR without checks or side effects.
///
/// Errors: none; ignored for an MSR that is not covered or has no storage. LowerMask always reads
///         as ones.
/// Source: REG-072.
constexpr void set_raw(msr_state& state, uint32_t index, uint64_t value) noexcept {
    switch (index) {
        case ia32_rtit_output_base::address: state.output.base = {value}; return;
        case ia32_rtit_output_mask_ptrs::address:
            state.output.mask_ptrs = {value | ia32_rtit_output_mask_ptrs::forced_1_mask()};
            return;
        case ia32_rtit_ctl::address: state.ctl = {value}; return;
        case ia32_rtit_status::address: state.status = {value}; return;
        case ia32_rtit_cr3_match::address: state.cr3_match = {value}; return;
        case reg::ia32_perf_global_status::address: state.perf_global_status = {value}; return;
        case reg::ia32_xss::address: state.xss = {value}; return;
        case reg::ia32_debugctl::address: state.debugctl = {value}; return;
        default: break;
    }
    if (!detail::is_addr_msr(index)) { return; }
    uint32_t const at = index - detail::first_addr_msr;
    auto& range = state.addr[at / 2];
    (at % 2 == 0 ? range.a : range.b) = {value};
}

}  // namespace ptspec::access
