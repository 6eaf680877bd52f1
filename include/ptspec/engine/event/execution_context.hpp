// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>

namespace ptspec::engine {

/// The width of the code that runs, by CS.L, CS.D and IA32_EFER.LMA.
///
/// Source: GEN-235.
enum class code_width : uint8_t { bits_16, bits_32, bits_64 };

/// Source: GEN-285, GEN-286.
enum class enclave : uint8_t {
    none,
    debug,       ///< traced as any code
    production,  ///< not traced
};

/// What a logical processor runs: all that trace depends on, but for the address.
struct running {
    uint64_t cr3 = 0;
    uint64_t cs_base = 0;  ///< added to IPs where packets have linear addresses; 0 in 64-bit code
    uint8_t cpl = 0;       ///< does not count in real and virtual-8086 mode
    code_width width = code_width::bits_64;
    bool real_mode = false;
    bool virtual_8086 = false;
    bool pae = false;  ///< PAE paging: CR4.PAE is 1, IA32_EFER.LMA is 0
    bool IF = false;   ///< of RFLAGS
    engine::enclave inside = enclave::none;
    bool vmx_non_root = false;

    /// Real mode counts as 0, virtual-8086 mode as 3.
    ///
    /// Source: SDM vol. 3, "Filtering by Current Privilege Level (CPL)"; GEN-051.
    [[nodiscard]] constexpr auto counted_cpl() const noexcept -> unsigned {
        return real_mode ? 0 : virtual_8086 ? 3 : cpl;
    }
    friend constexpr auto operator==(running const&, running const&) -> bool = default;
};

/// An IP as packets have it, and as address ranges are compared with: LIP or RIP.
///
/// Source: SDM vol. 3, "Linear IP vs. RIP"; GEN-091, REG-079.
[[nodiscard]] constexpr auto ip_in_packets(cpu::ip_payload form, running const& code,
                                           uint64_t ip) noexcept -> uint64_t {
    if (form == cpu::ip_payload::effective || code.width == code_width::bits_64) { return ip; }
    return (code.cs_base + ip) & low_bits(32);
}

/// What ContextEn and FilterEn depend on, when `code` runs at an IP that is in the form of packets.
[[nodiscard]] constexpr auto context_of(running const& code, uint64_t ip) noexcept
    -> access::context {
    return {code.counted_cpl(), code.cr3, code.pae, code.inside == enclave::production, ip};
}

}  // namespace ptspec::engine
