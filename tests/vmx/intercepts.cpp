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

TEST_CASE("every instruction that accesses MSRs has its exit reason (PRG-186)") {
    CHECK_TWICE([](auto value) {
        using vmx::msr_exit;
        using vmx::msr_index_at;
        // The numbers of the manual, 31 and 32, and those that Linux 7.2.13 has.
        constexpr struct {
            uint32_t reason;
            msr_exit wanted;
        } rows[] = {{31, {msr_index_at::rcx, false}},
                    {32, {msr_index_at::rcx, true}},
                    {78, {msr_index_at::list, false}},
                    {79, {msr_index_at::list, true}},
                    {84, {msr_index_at::exit_qualification, false}},
                    {85, {msr_index_at::exit_qualification, true}}};
        bool right = true;
        unsigned count = 0;
        for (uint32_t reason = 0; reason < 0x100; ++reason) {
            count += static_cast<bool>(vmx::msr_exit_of(value(reason)));
        }
        for (auto const& row : rows) {
            right = right && vmx::msr_exit_of(value(row.reason)) == row.wanted &&
                    vmx::msr_exit_of(value(row.reason | 1U << 27)) == row.wanted &&
                    !vmx::msr_exit_of(value(row.reason | 1U << 31));
        }
        return right && count == 6;
    });
}

TEST_CASE(
    "STATUS of a guest that does not see all of it is never passed through (REG-051, REG-055)") {
    CHECK_TWICE([](auto value) {
        using ebx = reg::cpuid_14h_0_ebx;
        auto const how = [&](auto flag) {
            auto guest = cpu::preset::ice_lake_u;
            guest.leaf_14_0_ebx = guest.leaf_14_0_ebx.with(flag);
            return vmx::access_of_guest(guest, value(true), 0x571);
        };
        return how(ebx::CPSB_CAM{false}) == guest_access::intercept &&
               how(ebx::IPFILT_WRSTPRSV{false}) == guest_access::intercept &&
               how(ebx::CR3FILTER{false}) == guest_access::pass_through &&
               how(ebx::MTC{false}) == guest_access::pass_through;
    });
}
