// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/base/address.hpp>
#include <ptspec/cpu/code_segment.hpp>
#include <ptspec/cpu/code_width.hpp>

namespace ptspec::engine {

using cpu::code_width;

/// Source: GEN-285, GEN-286.
enum class enclave : uint8_t {
    none,
    debug,       ///< traced as any code
    production,  ///< not traced
};

/// The context in which a logical processor executes, without the IP: all state that its trace
/// depends on.
struct execution_context {
    uint64_t cr3 = 0;
    uint64_t cs_base = 0;  ///< added to IPs if packets have linear addresses; 0 in 64-bit code
    uint8_t cpl = 0;       ///< ignored in real mode and virtual-8086 mode
    code_width width = code_width::bits_64;
    bool real_mode = false;
    bool virtual_8086 = false;
    bool pae = false;  ///< PAE paging: CR4.PAE is 1, IA32_EFER.LMA is 0
    bool IF = false;   ///< RFLAGS.IF
    engine::enclave inside = enclave::none;
    bool vmx_non_root = false;

    /// The CPL that filtering uses: 0 in real mode, 3 in virtual-8086 mode.
    ///
    /// Source: SDM vol. 3, "Filtering by Current Privilege Level (CPL)"; GEN-051.
    [[nodiscard]] constexpr auto counted_cpl() const noexcept -> unsigned {
        return real_mode ? 0 : virtual_8086 ? 3 : cpl;
    }
    friend constexpr auto operator==(execution_context const&, execution_context const&)
        -> bool = default;
};

/// An IP in the form that packets and address ranges use: LIP or RIP.
///
/// Source: SDM vol. 3, "Linear IP vs. RIP"; GEN-091, REG-079.
[[nodiscard]] constexpr auto ip_in_packets(cpu::ip_payload form, execution_context const& code,
                                           cs_offset ip) noexcept -> packet_ip {
    return cpu::packet_ip_of_offset(form, {code.cs_base, code.width == code_width::bits_64},
                                    ip.value);
}

/// The inputs of ContextEn and FilterEn while `code` executes at `ip`.
[[nodiscard]] constexpr auto context_of(execution_context const& code, packet_ip ip) noexcept
    -> access::processor_context {
    return {code.counted_cpl(), code.cr3, code.pae, code.inside == enclave::production, ip.value};
}

}  // namespace ptspec::engine
