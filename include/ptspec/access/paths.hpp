// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>

/// The paths by which a value reaches an MSR, and how each reports an illegal value.
namespace ptspec::access {

/// Source: REG-010.
enum class write_path : uint8_t {
    wrmsr,    ///< also WRMSRNS, and WRMSRLIST for each of its MSRs
    xrstors,  ///< component 8 of an XSAVE area
    vm_entry_msr_load_list,
    vm_exit_msr_load_list,
};

/// How a path reports an illegal value.
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

/// How a path reports an illegal value.
///
/// Source: SDM vol. 3, "Loading MSRs" of VM entries and of VM exits; REG-010.
[[nodiscard]] constexpr auto refusal_on(write_path path) noexcept -> refusal {
    switch (path) {
        case write_path::vm_entry_msr_load_list: return refusal::vm_entry_fails;
        case write_path::vm_exit_msr_load_list: return refusal::vmx_abort;
        case write_path::wrmsr:
        case write_path::xrstors: break;
    }
    return refusal::general_protection;
}

/// The verdict on a write, and how the path reports an illegal value.
struct path_verdict {
    access::verdict verdict{};
    refusal how = refusal::none;

    constexpr explicit operator bool() const noexcept { return static_cast<bool>(verdict); }
};

/// Applies the checks of a WRMSR at CPL 0 to a value that is written on `path`.
///
/// Errors: those of `check_write`.
/// Source: REG-010.
[[nodiscard]] constexpr auto check_write_on(write_path path, capabilities const& caps,
                                            msr_state const& now, msr_index index, uint64_t value,
                                            policy const& how = {}) noexcept -> path_verdict {
    auto const checked = check_write(caps, now, index, value, 0, how);
    return {checked,
            checked.what == outcome::general_protection ? refusal_on(path) : refusal::none};
}

}  // namespace ptspec::access
