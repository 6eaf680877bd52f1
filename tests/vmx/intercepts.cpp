// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/intercepts.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using vmx::guest_access;

TEST_CASE("PC-34: 570H is always intercepted, the others while the guest does not trace "
          "(PRG-172)") {
    CHECK_TWICE([](auto value) {
        auto const& guest = cpu::preset::ice_lake_u;  // two ranges
        constexpr bool steps[] = {false, true, false};
        constexpr uint32_t indices[] = {0x571, 0x560, 0x561, 0x572, 0x580, 0x583};
        bool right = true;
        for (bool const trace_en : steps) {
            auto const how = [&](uint32_t index) {
                return vmx::access_of_guest(guest, value(trace_en), index);
            };
            auto const others = trace_en ? guest_access::pass_through : guest_access::intercept;
            right = right && how(0x570) == guest_access::intercept;
            for (uint32_t const index : indices) { right = right && how(index) == others; }
        }
        return right;
    });
}

TEST_CASE("MSRs that the guest does not have raise #GP, ranges beyond its count among them "
          "(PRG-172)") {
    CHECK_TWICE([](auto value) {
        auto const how = [](cpu::capabilities const& guest, uint32_t index) {
            return vmx::access_of_guest(guest, true, index);
        };
        auto none = cpu::preset::ice_lake_u;
        none.leaf_07_0_ebx = value(reg::cpuid_07h_0_ebx{});
        return how(cpu::preset::ice_lake_u, 0x584) == guest_access::inject_gp &&
               how(cpu::preset::broadwell, 0x580) == guest_access::inject_gp &&
               how(none, 0x570) == guest_access::inject_gp &&
               how(none, 0x561) == guest_access::inject_gp &&
               how(cpu::preset::ice_lake_u, 0x38E) == guest_access::not_pt &&
               how(cpu::preset::ice_lake_u, 0x10) == guest_access::not_pt;
    });
}
