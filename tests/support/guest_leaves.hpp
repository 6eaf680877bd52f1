// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/facts.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/vmx/unhonourable.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

// Processors with many kinds of leaf 14H, and what they cannot honour of another leaf.
namespace ptspec::test {

/// Everything that CPUID can say, on a processor with all VMX controls.
constexpr auto with_leaf(uint32_t ebx, uint32_t ecx, uint32_t eax_1, uint32_t ebx_1)
    -> cpu::capabilities {
    auto caps = cpu::preset::P_FUT;
    caps.leaf_14_0_ebx = {ebx};
    caps.leaf_14_0_ecx = {ecx};
    caps.leaf_14_1_eax = {eax_1};
    caps.leaf_14_1_ebx = {ebx_1};
    caps.leaf_14_1_ecx = {};
    return caps;
}

struct found_bits {
    vmx::unhonourable all[12] = {};
    unsigned count = 0;

    [[nodiscard]] constexpr auto is(vmx::unhonourable const& only) const -> bool {
        return count == 1 && all[0] == only;
    }
};
constexpr auto found_for(cpu::capabilities const& host, cpu::capabilities const& guest)
    -> found_bits {
    found_bits found;
    vmx::find_unhonourable(host, guest, [&](vmx::unhonourable const& one) {
        if (one.is_hidden) { return; }
        if (found.count < 12) { found.all[found.count] = one; }
        ++found.count;
    });
    return found;
}

struct processor {
    std::string name;
    cpu::capabilities caps;
};

/// CPUID words of real processors, with the VMX controls of P-FUT.
inline auto dumps() -> std::vector<processor> {
    std::vector<processor> all;
    auto const table = facts_table("leaf14_instlatx64.csv");
    if (!table) { return all; }
    auto const word = [](std::string const& cell, int base = 16) {
        return static_cast<uint32_t>(std::stoul(cell, nullptr, base));
    };
    for (auto const& row : table->rows) {
        auto caps = cpu::preset::P_FUT;
        caps.leaf_07_0_ebx = {row["PT"] == "1" ? 1U << 25 : 0U};
        caps.leaf_14_0_eax = {word(row["14.0.EAX"])};
        caps.leaf_14_0_ebx = {word(row["14.0.EBX"])};
        caps.leaf_14_0_ecx = {word(row["14.0.ECX"])};
        caps.leaf_14_1_eax = {word(row["14.1.EAX"])};
        caps.leaf_14_1_ebx = {word(row["14.1.EBX"])};
        caps.leaf_14_1_ecx = {word(row["14.1.ECX"])};
        caps.leaf_80000008_eax = {word(row["LA"], 10) << 8 | word(row["MAXPHYADDR"], 10)};
        bool const xsaves = row["XSS8"] == "1";
        caps.leaf_01_ecx = {caps.leaf_01_ecx.raw | 1U << 26};
        caps.leaf_0d_1_eax = {xsaves ? 8U : 0U};
        caps.leaf_0d_1_ecx = {xsaves ? 0x100U : 0U};
        caps.leaf_0d_8_eax = {xsaves ? word(row["0D.8.EAX"]) : 0U};
        caps.leaf_0d_8_ecx = {xsaves ? word(row["0D.8.ECX"]) : 0U};
        all.push_back({row["dump"] + " " + row["coretype"], caps});
    }
    CHECK(!all.empty());
    return all;
}

inline auto presets() -> std::vector<processor> {
    std::vector<processor> all;
    for (auto const& one : cpu::preset::all) {
        all.push_back({std::string{one.name.data(), one.name.size()}, one.value});
    }
    return all;
}

inline auto processors() -> std::vector<processor> {
    auto all = presets();
    for (auto& one : dumps()) { all.push_back(one); }
    return all;
}

}  // namespace ptspec::test
