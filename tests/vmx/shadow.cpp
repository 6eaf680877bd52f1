// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/shadow.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;

namespace {

constexpr uint64_t host_table = 0x7'0000'0000;

/// Guest pages 0 to 15; page n is at host page `host[n]`.
struct small_guest {
    uint64_t words[16] = {};  ///< at the start of page 8
    uint64_t host[16] = {};

    constexpr auto load(uint64_t address) const noexcept -> port_value {
        uint64_t const at = address - 0x8000;
        return at < sizeof words ? port_value{true, words[at / 8]} : port_value{};
    }
    constexpr auto translate(uint64_t address, uint64_t) const noexcept -> vmx::translation {
        uint64_t const page = address / 4096;
        return page < 16 ? vmx::translation{vmx::backing::mapped, host[page]} : vmx::translation{};
    }
};

}  // namespace

TEST_CASE("a region is split where its pages are not contiguous in the host (PRG-184)") {
    CHECK_TWICE([](auto value) {
        small_guest guest;
        guest.host[4] = 0x10'0000;
        guest.host[5] = 0x10'1000;
        guest.host[6] = 0x20'3000;
        guest.host[7] = 0x10'7000;
        guest.words[0] = value(uint64_t{0x4000 | 2 << 6 | 1 << 2});
        guest.words[1] = 0x8001;
        topa::entry entries[512] = {};
        topa::position origins[512] = {};
        vmx::shadow_page const pages[] = {{host_table, entries, origins}};
        access::msr_state now;
        now.ctl = now.ctl.with(access::ia32_rtit_ctl::ToPA{true});
        now.output_base = {0x8000};
        vmx::shadow one;
        bool const begun = one.begin(preset::P_SKL, preset::P_SKL, now, pages, 1) == rule::none;
        bool const built = static_cast<bool>(one.build(guest));
        return begun && built && entries[0].raw == (0x10'0000 | 1 << 6) &&
               entries[1].raw == 0x20'3000 && entries[2].raw == (0x10'7000 | 1 << 2) &&
               entries[3].raw == (host_table | 1);
    });
}
