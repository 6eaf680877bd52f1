// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/ports.hpp>
#include <ptspec/cpu/capabilities.hpp>

namespace ptspec::simulate {

/// The CPUID leaves that enumerate given capabilities, as a `cpuid_port`.
///
/// Source: REG-160..168, PRG-001.
class capabilities_cpuid {
public:
    constexpr explicit capabilities_cpuid(cpu::capabilities const& caps) noexcept : caps_{caps} {}

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) const noexcept
        -> cpuid_registers {
        switch (leaf) {
            case 0x00: return {.eax = 0x15};
            case 0x01: return {.eax = caps_.leaf_01_eax.raw, .ecx = caps_.leaf_01_ecx.raw};
            case 0x07:
                if (subleaf == 0) { return {.eax = 1, .ebx = caps_.leaf_07_0_ebx.raw}; }
                return {.eax = subleaf == 1 ? caps_.leaf_07_1_eax.raw : 0};
            case 0x0A: return {.eax = caps_.leaf_0a_eax.raw};
            case 0x0D:
                if (subleaf == 1) {
                    return {.eax = caps_.leaf_0d_1_eax.raw, .ecx = caps_.leaf_0d_1_ecx.raw};
                }
                if (subleaf == 8) {
                    return {.eax = caps_.leaf_0d_8_eax.raw, .ecx = caps_.leaf_0d_8_ecx.raw};
                }
                return {};
            case 0x14:
                if (subleaf == 0) {
                    return {.eax = caps_.leaf_14_0_eax.raw,
                            .ebx = caps_.leaf_14_0_ebx.raw,
                            .ecx = caps_.leaf_14_0_ecx.raw};
                }
                if (subleaf == 1) {
                    return {.eax = caps_.leaf_14_1_eax.raw,
                            .ebx = caps_.leaf_14_1_ebx.raw,
                            .ecx = caps_.leaf_14_1_ecx.raw};
                }
                return {};
            case 0x15:
                return {.eax = caps_.leaf_15_eax.raw,
                        .ebx = caps_.leaf_15_ebx.raw,
                        .ecx = caps_.leaf_15_ecx.raw};
            case 0x8000'0000: return {.eax = 0x8000'0008};
            case 0x8000'0008: return {.eax = caps_.leaf_80000008_eax.raw};
            default: return {};
        }
    }

private:
    cpu::capabilities caps_;
};

}  // namespace ptspec::simulate
