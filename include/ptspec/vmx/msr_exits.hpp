// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/base/ports.hpp>
#include <ptspec/vmx/guest_pt.hpp>

/// The accesses of a guest to MSRs of Intel PT that exit: what they read, write, and raise.
namespace ptspec::vmx {

/// What a VMM does after an exit of a guest at RDMSR or WRMSR.
enum class exit_action : uint8_t {
    skip,       ///< skip the instruction; RDMSR returns `value`
    inject_gp,  ///< inject #GP(0)
    not_pt,     ///< not an MSR of Intel PT: the caller's own code handles it
};

/// The answer to an access of a guest that exited.
struct [[nodiscard]] exit_answer {
    exit_action what = exit_action::skip;
    rule broken = rule::none;       ///< of `inject_gp`
    uint64_t value = 0;             ///< that RDMSR reads
    bool trace_en_changed = false;  ///< with shadow tables they may be needed: `needs_shadow`

    constexpr explicit operator bool() const noexcept { return what == exit_action::skip; }
    friend constexpr auto operator==(exit_answer const&, exit_answer const&) -> bool = default;
};

namespace detail {

constexpr auto gp_of(access::verdict const& checked) noexcept -> exit_answer {
    return {.what = exit_action::inject_gp, .broken = checked.broken};
}

}  // namespace detail

/// Handles an exit at RDMSR.
///
/// Errors: `inject_gp` with the rule of `access::check_read`.
/// Source: PRG-172, PRG-173.
constexpr auto on_rdmsr(guest_pt const& guest, msr_index index, unsigned cpl = 0) noexcept
    -> exit_answer {
    if (!access::is_pt_msr(index)) { return {.what = exit_action::not_pt}; }
    auto const checked = access::check_read(guest.caps, index, cpl);
    if (!checked) { return detail::gp_of(checked); }
    return {.value = access::value_of(guest.msrs, index)};
}

/// Handles an exit at WRMSR. `code` is the guest's, after the instruction. If TraceEn rises, the
/// processor performs the effects at the next VM entry.
///
/// Errors: `inject_gp` with the rule of `access::check_write`, against the guest's capabilities.
///         Nothing has changed then.
/// Source: PRG-173.
constexpr auto on_wrmsr(guest_pt& guest, msr_index index, uint64_t value,
                        access::processor_context const& code = {},
                        access::policy const& policy = {}) noexcept -> exit_answer {
    if (!access::is_pt_msr(index)) { return {.what = exit_action::not_pt}; }
    bool const was_on = guest.trace_en();
    auto const checked = access::check_write(guest.caps, guest.msrs, index, value, code.cpl,
                                             policy);
    if (!checked) { return detail::gp_of(checked); }
    access::ia32_rtit_ctl const ctl{value};
    bool const starts = index == access::ia32_rtit_ctl::address && !was_on &&
                        ctl.get<access::ia32_rtit_ctl::TraceEn>();
    if (starts) {
        detail::set_ctl(guest, ctl);
    } else {
        guest.msrs = access::apply(guest.caps, guest.msrs, index, value, code).state;
        guest.starts = guest.starts && guest.trace_en();
    }
    return {.trace_en_changed = was_on != guest.trace_en()};
}

/// Handles an exit at XSAVES that saves component 8: returns the image, and clears TraceEn. If the
/// image cannot be stored, restore `guest` from a copy.
///
/// Source: REG-142, PRG-110.
[[nodiscard]] constexpr auto on_xsaves(guest_pt& guest) noexcept -> access::xsave_pt_state {
    auto const saved = access::xsaves(guest.caps, guest.msrs);
    guest.msrs = saved.state;
    guest.starts = false;
    return saved.image;
}

/// Handles an exit at XRSTORS that loads component 8.
///
/// Errors: `inject_gp`: REG-143 while TraceEn is 1, REG-144 for a value that a WRMSR would not
///         write. Nothing has changed then.
/// Source: REG-143..145, PRG-112.
constexpr auto on_xrstors(guest_pt& guest, access::xsave_pt_state const& image,
                          access::policy const& policy = {}) noexcept -> exit_answer {
    auto const loaded = access::xrstors_except_ctl(guest.caps, guest.msrs, image, policy);
    if (!loaded) { return detail::gp_of(loaded.effect.verdict); }
    guest.msrs = loaded.effect.state;
    detail::set_ctl(guest, image.get<access::xsave_pt_state::IA32_RTIT_CTL>());
    return {.trace_en_changed = guest.trace_en()};
}

/// Handles a write of IA32_PERF_GLOBAL_STATUS_RESET or IA32_PERF_GLOBAL_STATUS_SET by the guest, as
/// far as Intel PT is concerned: the caller's own code handles the other bits. RDMSR of
/// IA32_PERF_GLOBAL_STATUS returns Trace_ToPA_PMI of `guest.msrs.perf_global_status`. Setting the
/// bit raises no interrupt.
///
/// Errors: `inject_gp` with REG-204 for Trace_ToPA_PMI without ToPA output; `not_pt` for another
///         MSR.
/// Source: REG-203, REG-204, PRG-177.
constexpr auto on_global_status_write(guest_pt& guest, msr_index index, uint64_t value) noexcept
    -> exit_answer {
    bool const sets = index == reg::ia32_perf_global_status_set::address;
    if (!sets && index != reg::ia32_perf_global_status_reset::address) {
        return {.what = exit_action::not_pt};
    }
    // The bit is the same one in the three registers.
    uint64_t const bit = value & detail::field_mask<reg::ia32_perf_global_status::Trace_ToPA_PMI>;
    auto const checked = access::check_write(guest.caps, guest.msrs, index, bit);
    if (!checked) { return detail::gp_of(checked); }
    auto& status = guest.msrs.perf_global_status;
    status.raw = sets ? status.raw | bit : status.raw & ~bit;
    return {};
}

}  // namespace ptspec::vmx
