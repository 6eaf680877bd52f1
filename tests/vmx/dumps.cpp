// SPDX-License-Identifier: BSL-1.0
// The VMX capability MSRs of real processors, as InstLatx64 read them.
#include <ptspec/vmx/controls.hpp>

#include <support/facts.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace ptspec;
using cpu::capabilities;
using cpu::vmx_support;
namespace test = ptspec::test;

namespace {

struct dump {
    std::string place;
    unsigned model;
    capabilities of;
};

auto hex(std::string const& cell) -> uint64_t { return std::stoull(cell, nullptr, 16); }

/// The dumps that have 485H, 483H and 484H. 48BH counts as 0 where it is missing, as on some
/// processors without Intel PT.
auto dumps() -> std::vector<dump> {
    std::vector<dump> all;
    auto const table = test::facts_table("vmx_msrs_instlatx64.csv");
    if (!table) { return all; }
    for (auto const& row : table->rows) {
        if (row["485"].empty() || row["483"].empty() || row["484"].empty()) { continue; }
        auto const signature = static_cast<unsigned>(hex(row["dump"].substr(0, 5)));
        dump one{row.place, (signature >> 12 & 0xF0) | (signature >> 4 & 0xF), {}};
        one.of.vmx_misc = {hex(row["485"])};
        one.of.vmx_procbased_ctls2 = {row["48B"].empty() ? 0 : hex(row["48B"])};
        one.of.vmx_exit_ctls = {hex(row["483"])};
        one.of.vmx_entry_ctls = {hex(row["484"])};
        all.push_back(one);
    }
    CHECK(!all.empty());
    return all;
}

/// Models of the second generation: Skylake, its successors up to Cannon Lake, and Goldmont,
/// Denverton, Goldmont Plus.
std::vector<unsigned> const conceal = {0x4E, 0x55, 0x5E, 0x66, 0x8E, 0x9E,
                                       0xA5, 0xA6, 0x5C, 0x5F, 0x7A};
/// Models without Intel PT in VMX operation: up to Broadwell, Silvermont and Airmont.
std::vector<unsigned> const without = {0x0F, 0x17, 0x1D, 0x26, 0x2C, 0x2D, 0x37, 0x3A, 0x3C,
                                       0x3D, 0x3E, 0x3F, 0x46, 0x47, 0x4C, 0x4D, 0x4F, 0x56};

auto has(std::vector<unsigned> const& models, unsigned model) -> bool {
    return std::find(models.begin(), models.end(), model) != models.end();
}

}  // namespace

TEST_CASE("each dump has the VMX support of its model's generation (REG-120, REG-125..128)") {
    for (auto const& one : dumps()) {
        CAPTURE(one.place);
        CAPTURE(one.model);
        auto const expected = has(without, one.model)   ? vmx_support::none
                              : has(conceal, one.model) ? vmx_support::conceal
                                                        : vmx_support::whole;
        CHECK(one.of.vmx() == expected);
    }
}

TEST_CASE("on each dump an Intel PT control may be 1 where its capability MSR allows it, and is "
          "never required to be (REG-132, REG-135)") {
    reg::ia32_rtit_ctl const off{0x2108};
    for (auto const& one : dumps()) {
        CAPTURE(one.place);
        auto const check = [&](vmx::controls const& set, uint64_t capability, unsigned bit) {
            bool const allowed = (capability >> (32 + bit) & 1) != 0;
            bool const in_vmx = (one.of.vmx_misc.raw >> 14 & 1) != 0;
            auto const expected = !in_vmx ? rule::REG_132 : allowed ? rule::none : rule::REG_135;
            CHECK(vmx::broken_rule(one.of, set, off) == expected);
            CHECK((capability >> bit & 1) == 0);
        };
        auto const secondary = one.of.vmx_procbased_ctls2.raw;
        auto const vm_exit = one.of.vmx_exit_ctls.raw;
        auto const vm_entry = one.of.vmx_entry_ctls.raw;
        check({.secondary = {1U << 19}}, secondary, 19);
        check({.vm_exit = {1U << 24}}, vm_exit, 24);
        check({.vm_exit = {1U << 25}}, vm_exit, 25);
        check({.vm_entry = {1U << 17}}, vm_entry, 17);
        check({.vm_entry = {1U << 18}}, vm_entry, 18);
        CHECK(vmx::broken_rule(one.of, {}, off) == rule::none);
        auto const given = vmx::with_guest_pt(one.of, {.enable_ept = true},
                                              vmx::guest_output::guest_physical);
        CHECK(vmx::broken_rule(one.of, given, off) == rule::none);
        CHECK((given.secondary.raw == (1U << 24 | 1U << 19)) ==
              (one.of.vmx() == vmx_support::whole));
    }
}
