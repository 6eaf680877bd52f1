// SPDX-License-Identifier: BSL-1.0
#pragma once

// The arguments of the library: preset=NAME, hide=CAPABILITY, kind=KIND, cycles=N.

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/print/word.hpp>
#include <ptspec/simulate/capabilities_cpuid.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace machine {

using namespace ptspec;

struct settings {
    cpu::capabilities caps{};
    engine::model_options options{};
    std::uint64_t tsc_hz = 0;
    unsigned cycles_per_instruction = 2;  ///< 1 to 25
    std::string error{};                  ///< what is wrong with the arguments

    /// An instruction takes a nanosecond.
    static constexpr std::uint64_t instructions_per_second = 1'000'000'000, bus_hz = 100'000'000;

    /// The core:bus ratio.
    [[nodiscard]] auto core_to_bus() const -> std::uint8_t {
        return static_cast<std::uint8_t>(instructions_per_second / bus_hz * cycles_per_instruction);
    }
    /// What the time-stamp counter counts while instructions execute.
    [[nodiscard]] auto tsc_of(std::uint64_t instructions) const -> std::uint64_t {
        return instructions * tsc_hz / instructions_per_second;
    }
    /// The crystal clock at a value of the time-stamp counter, and the reverse. Source: GEN-201.
    [[nodiscard]] auto art_at(std::uint64_t tsc) const -> std::uint64_t {
        return tsc * caps.leaf_15_eax.raw / caps.leaf_15_ebx.raw;
    }
    [[nodiscard]] auto tsc_at(std::uint64_t art) const -> std::uint64_t {
        return art * caps.leaf_15_ebx.raw / caps.leaf_15_eax.raw;
    }
    /// The instructions that execute in ticks of the crystal clock.
    [[nodiscard]] auto instructions_in(std::uint64_t art) const -> std::uint64_t {
        return art * instructions_per_second / caps.leaf_15_ecx.raw;
    }
    /// The core clock cycles while the time-stamp counter counts up to a value.
    [[nodiscard]] auto cycles_at(std::uint64_t tsc) const -> std::uint64_t {
        std::uint64_t const instructions = tsc / tsc_hz * instructions_per_second +
                                           tsc % tsc_hz * instructions_per_second / tsc_hz;
        return instructions * cycles_per_instruction;
    }
};

/// The capabilities of a preset on this emulator: it has 40 physical and 48 linear address bits,
/// and neither VMX nor XSAVES.
inline auto emulated(cpu::capabilities caps) -> cpu::capabilities {
    constexpr std::uint32_t physical = 40, linear = 48;
    constexpr std::uint32_t crystal_hz = 24'000'000, ratio = 21;
    caps.leaf_80000008_eax.raw = physical | linear << 8;
    caps.leaf_01_ecx.raw &= ~(1U << reg::cpuid_01h_ecx::VMX::lsb);
    caps.leaf_0d_1_eax.raw = caps.leaf_0d_1_ecx.raw = 0;
    caps.leaf_0d_8_eax.raw = caps.leaf_0d_8_ecx.raw = 0;
    caps.vmx_misc = {};
    caps.vmx_procbased_ctls2 = {};
    caps.vmx_exit_ctls = {};
    caps.vmx_entry_ctls = {};
    auto const known = caps.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>();
    if (known == 0) {
        caps.platform_info.raw |= ratio << reg::msr_platform_info::MaxNonTurboRatio::lsb;
    }
    if (caps.leaf_15_eax.raw == 0 || caps.leaf_15_ebx.raw == 0) {
        caps.leaf_15_eax.raw = 6;  // 24 MHz * 25 / 6 = 100 MHz, the bus
        caps.leaf_15_ebx.raw = 25 * static_cast<std::uint32_t>(known == 0 ? ratio : known);
    }
    if (caps.leaf_15_ecx.raw == 0) { caps.leaf_15_ecx.raw = crystal_hz; }
    return caps;
}

/// Clears the fields of this name in the capability words of CPUID.07H and 14H. False if none has
/// it.
inline auto hide_field(cpu::capabilities& caps, std::string_view name) -> bool {
    bool is_known = false;
    auto const hide_in = [&](auto& word) {
        print::for_each_field(word, [&](print::field_value const& one) {
            auto const& row = one.facts->row;
            if (std::string_view{row.name.data(), row.name.size()} != name) { return; }
            is_known = true;
            word.raw &= ~(static_cast<std::uint32_t>(low_bits(row.msb - row.lsb + 1)) << row.lsb);
        });
    };
    hide_in(caps.leaf_07_0_ebx);
    hide_in(caps.leaf_14_0_ebx);
    hide_in(caps.leaf_14_0_ecx);
    hide_in(caps.leaf_14_1_eax);
    hide_in(caps.leaf_14_1_ebx);
    return is_known;
}

/// Hides a capability and the fields that say more about it: a driver may look at these alone, as
/// Linux does at RANGECNT. False if it is unknown.
inline auto hide(cpu::capabilities& caps, std::string_view name) -> bool {
    constexpr struct {
        std::string_view capability, detail;
    } details[] = {{"IPFILT_WRSTPRSV", "RANGECNT"}, {"CPSB_CAM", "CYC_THRESHOLDS"},
                   {"CPSB_CAM", "PSB_PERIODS"},     {"MTC", "MTC_PERIODS"},
                   {"TOPAOUT", "MENTRY"},           {"PTTT", "TRIGGER_CFG_CNT"}};
    for (auto const& [capability, detail] : details) {
        if (name == capability) { (void)hide_field(caps, detail); }
    }
    return hide_field(caps, name);
}

/// Reads the arguments of a plugin.
inline auto settings_of(int count, char** arguments) -> settings {
    settings made;
    std::string preset = "Skylake-X", kind;
    std::vector<std::string> hidden;
    for (int i = 0; i < count; ++i) {
        std::string_view const one = arguments[i];
        auto const equals = one.find('=');
        auto const name = one.substr(0, equals);
        std::string const value{equals == one.npos ? "" : one.substr(equals + 1)};
        if (name == "preset") {
            preset = value;
        } else if (name == "kind") {
            kind = value;
        } else if (name == "hide") {
            hidden.push_back(value);
        } else if (name == "cycles") {
            char* end = nullptr;
            auto const cycles = std::strtoul(value.c_str(), &end, 10);
            if (value.empty() || *end != 0 || cycles == 0 || cycles > 25) {
                made.error = "cycles: not 1 to 25: " + value;
            }
            made.cycles_per_instruction = static_cast<unsigned>(cycles);
        } else {
            made.error = "unknown argument " + std::string{one};
        }
    }
    auto const found = cpu::preset::find(text{preset.data(), preset.size()});
    if (!found) {
        made.error = "no preset " + preset;
        return made;
    }
    made.caps = emulated(found->value);
    for (auto const& one : hidden) {
        if (!hide(made.caps, one)) { made.error = "no capability " + one; }
    }
    made.options = engine::options_of(made.caps);
    bool is_known = kind.empty();
    for (auto const& one : engine::model_kinds) {
        if (std::string_view{one.name.data(), one.name.size()} != kind) { continue; }
        made.options = one.options;
        is_known = true;
    }
    if (!is_known) { made.error = "no kind " + kind; }
    made.tsc_hz = std::uint64_t{made.caps.leaf_15_ecx.raw} * made.caps.leaf_15_ebx.raw /
                  made.caps.leaf_15_eax.raw;
    return made;
}

}  // namespace machine
