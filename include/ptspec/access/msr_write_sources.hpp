// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>

/// What writes values to MSRs, and how each of these sources reports an illegal value.
namespace ptspec::access {

/// Source: REG-010.
enum class msr_write_source : uint8_t {
    wrmsr,    ///< also WRMSRNS, and WRMSRLIST for each of its MSRs
    xrstors,  ///< component 8 of an XSAVE area
    vm_entry_msr_load_list,
    vm_exit_msr_load_list,
};

/// How a source reports an illegal value.
enum class refusal : uint8_t {
    none,                ///< the value is legal
    general_protection,  ///< #GP(0)
    vm_entry_fails,      ///< exit reason 34 with bit 31 set, "VM-entry failure due to MSR loading"
    vmx_abort,
};

/// The exit reason of a VM entry that fails while loading its MSR-load list.
///
/// Source: REG-010.
inline constexpr uint32_t exit_reason_of_msr_load_failure = 0x8000'0000U | 34U;

/// How a source reports an illegal value.
///
/// Source: SDM vol. 3, "Loading MSRs" of VM entries and of VM exits; REG-010.
[[nodiscard]] constexpr auto refusal_of(msr_write_source source) noexcept -> refusal {
    switch (source) {
        case msr_write_source::vm_entry_msr_load_list: return refusal::vm_entry_fails;
        case msr_write_source::vm_exit_msr_load_list: return refusal::vmx_abort;
        case msr_write_source::wrmsr:
        case msr_write_source::xrstors: break;
    }
    return refusal::general_protection;
}

/// The verdict on a write, and how its source reports an illegal value.
struct msr_write_verdict {
    access::verdict verdict{};
    access::refusal refusal = access::refusal::none;

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

/// Applies the checks of a WRMSR at CPL 0 to a value that `source` writes.
///
/// Errors: those of `check_write`.
/// Source: REG-010.
[[nodiscard]] constexpr auto check_write_from(msr_write_source source, capabilities const& caps,
                                              msr_state const& state, msr_index index,
                                              uint64_t value, policy const& policy = {}) noexcept
    -> msr_write_verdict {
    auto const checked = check_write(caps, state, index, value, 0, policy);
    return {checked,
            checked.what == outcome::general_protection ? refusal_of(source) : refusal::none};
}

}  // namespace ptspec::access
