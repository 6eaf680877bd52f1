// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/access/enables.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/vmx/controls.hpp>

/// Intel PT of a virtual processor.
///
/// A VM exit ends the guest's trace, and VM entry continues it (`vmx/world_switch.hpp`). Between
/// the two, `guest_pt::msrs` has the guest's values, and no value of the guest is in the processor.
namespace ptspec::vmx {

/// Whose code a virtual processor executes. Source: PRG-173.
enum class guest_level : uint8_t {
    l1,         ///< the guest's own
    l2,         ///< that of a guest of the guest: between `enter_nested` and `leave_nested`
    smm_of_l2,  ///< SMM of the guest, entered from L2: RSM returns there
};

/// Intel PT of a virtual processor.
///
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-170..177.
struct guest_pt {
    cpu::capabilities caps{};  ///< what CPUID reports to the guest
    /// How the VMM translates the output of the guest's own code; see `current_output`.
    guest_output output = guest_output::guest_physical;
    /// The values that the guest sees. Of IA32_PERF_GLOBAL_STATUS only Trace_ToPA_PMI is in use.
    access::msr_state msrs{};
    /// What the processor holds while a guest with shadow tables traces, in place of the output
    /// MSRs of the guest, and CTL.ToPA.
    access::output_registers host_output{};
    bool host_topa = true;
    shadow_use shadow = shadow_use::needed;
    /// With shadow paging the processor's CR3 is that of tables which the VMM made, and it compares
    /// this CR3 with `host_cr3_match`, not with the guest's IA32_RTIT_CR3_MATCH. Before VM entry,
    /// set `host_cr3_match` to the CR3 of the tables for the guest's value. If there are none yet,
    /// set it to a CR3 that is never used. For the PIPs of the trace see `edit::replace_cr3`.
    bool shadow_paging = false;
    access::ia32_rtit_cr3_match host_cr3_match{};

    bool pmi_pending = false;  ///< inject a PMI: `take_pmi` clears it
    /// TraceEn rose, and VM entry has not loaded it yet: the effects of enabling are not
    /// performed yet.
    bool starts = false;
    /// The processor holds a STATUS without PendToPAPMI: its reads are intercepted.
    bool hides_pend_topa_pmi = false;
    /// PacketByteCnt of the processor, for a guest without CPSB_CAM, which reads 0.
    uint64_t hidden_byte_count = 0;

    guest_level level = guest_level::l1;
    controls nested{};  ///< of the VMCS with which L1 runs L2; set by `enter_nested`

    [[nodiscard]] constexpr auto trace_en() const noexcept -> bool {
        return msrs.ctl.get<access::ia32_rtit_ctl::TraceEn>();
    }
    /// How the output of the code that runs now is translated. If L1 does not use guest-physical
    /// output for L2, the addresses are physical ones of L1, which the EPT of L2 does not
    /// translate: then the VMM needs shadow tables.
    ///
    /// Source: REG-128, PRG-180, PRG-184.
    [[nodiscard]] constexpr auto current_output() const noexcept -> guest_output {
        return level == guest_level::l2 && guest_output_of(nested) == guest_output::shadow
                   ? guest_output::shadow
                   : output;
    }
    /// VM entry is refused until `begin_shadow` was called, and the shadow is complete.
    [[nodiscard]] constexpr auto needs_shadow() const noexcept -> bool {
        return current_output() == guest_output::shadow && trace_en() &&
               shadow == shadow_use::needed;
    }
};

/// How to handle accesses of a guest to `index` while it runs, after `enter`.
///
/// Source: PRG-172, PRG-175, PRG-184.
[[nodiscard]] constexpr auto access_of_guest(guest_pt const& guest, msr_index index) noexcept
    -> guest_access {
    auto const usual = access_of_guest(guest.caps, guest.trace_en(), index, guest.current_output());
    bool const is_other_value = (guest.hides_pend_topa_pmi &&
                                 index == access::ia32_rtit_status::address) ||
                                (guest.shadow_paging &&
                                 index == access::ia32_rtit_cr3_match::address);
    return usual == guest_access::pass_through && is_other_value ? guest_access::intercept : usual;
}

namespace detail {

using namespace ptspec::detail;

/// Sets CTL without what the processor does when TraceEn rises. TriggerEn follows.
constexpr void set_ctl(guest_pt& guest, access::ia32_rtit_ctl value) noexcept {
    using status = access::ia32_rtit_status;
    guest.starts = value.get<access::ia32_rtit_ctl::TraceEn>();
    guest.shadow = shadow_use::needed;
    guest.msrs.ctl = value;
    guest.msrs.status = guest.msrs.status.with(
        status::TriggerEn{access::trigger_en(value, guest.msrs.status)});
}

/// STATUS as a guest sees it: without the bits of features that it does not have.
///
/// Source: REG-051, REG-054, REG-055, REG-067.
constexpr auto visible_status(cpu::capabilities const& guest_caps,
                              access::ia32_rtit_status status) noexcept
    -> access::ia32_rtit_status {
    using word = access::ia32_rtit_status;
    uint64_t const filter_en = guest_caps.has_ip_filtering() ? 0 : field_mask<word::FilterEn>;
    return {status.raw & ~(access::faulting_status_mask(guest_caps) | filter_en)};
}

/// Goes to another level. If the output is translated in another way there, the guest needs a new
/// shadow.
constexpr void set_level(guest_pt& guest, guest_level level, controls const& nested) noexcept {
    auto const before = guest.current_output();
    guest.level = level;
    guest.nested = nested;
    if (guest.current_output() != before) { guest.shadow = shadow_use::needed; }
}

}  // namespace detail

}  // namespace ptspec::vmx
