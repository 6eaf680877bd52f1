// SPDX-License-Identifier: BSL-1.0

// The suite on a guest whose Intel PT is that of `vmx/`: nothing is broken. Where the VMM forgets
// something, the suite finds it.

#include <support/guest_target.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/suite/checks.hpp>
#include <ptspec/suite/run.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace ptspec;
using suite::outcome;
using test::guest_target;
using test::vmm_fault;
using vmx::guest_output;

/// The checks that find a broken rule, and how many ran.
struct guest_run {
    std::vector<std::string> broken;
    unsigned asked = 0;
};

auto run_guest(cpu::capabilities const& host, guest_output output, vmm_fault fault) -> guest_run {
    guest_run made;
    // A VMM that forgets something offers less than the processor has.
    vmx::guest_policy policy{.output = output};
    if (fault != vmm_fault::none) {
        policy.features = reg::cpuid_14h_0_ebx{0xF};
        policy.address_ranges = 1;
    }
    auto const offer = vmx::guest_capabilities(host, policy);
    if (!offer) { return made; }
    suite::for_each_check([&]<class Check>(text) {
        guest_target target{host, offer.value, output, fault};
        auto const caps = suite::capabilities_of(target);
        suite::run_options const options{.runs = 1, .absent = suite::policy_of(target)};
        auto const found = suite::run_check<Check>(target, caps, options);
        made.asked += found.what != outcome::skipped;
        if (found.what != outcome::holds && found.what != outcome::observed &&
            found.what != outcome::skipped) {
            made.broken.push_back(std::string{text{Check::name}.data()} + ": " +
                                  std::string{rule_id{found.which}.view()} + " " +
                                  found.detail.data());
        }
        if (fault == vmm_fault::none && !Check::need.is_dangerous) {
            CHECK(target.violations() == 0);
        }
    });
    return made;
}

}  // namespace

TEST_CASE("a guest of each processor breaks no rule, with EPT and with shadow tables") {
    unsigned guests = 0;
    for (auto const& one : cpu::preset::all) {
        for (auto const output : {guest_output::guest_physical, guest_output::shadow}) {
            auto const run = run_guest(one.value, output, vmm_fault::none);
            CAPTURE(std::string{one.name.data()});
            CAPTURE(static_cast<int>(output));
            std::string all;
            for (auto const& line : run.broken) { all += line + '\n'; }
            CHECK(all == "");
            if (run.asked != 0) {
                ++guests;
                CHECK(run.asked > 60);
            }
        }
    }
    CHECK(guests > 40);
}

TEST_CASE("what a VMM forgets is found") {
    for (auto const fault : {vmm_fault::passes_ctl, vmm_fault::passes_status, vmm_fault::host_cpuid,
                             vmm_fault::keeps_base, vmm_fault::keeps_pointers, vmm_fault::no_pmi}) {
        CAPTURE(static_cast<int>(fault));
        bool is_found = false;
        for (auto const output : {guest_output::guest_physical, guest_output::shadow}) {
            for (auto const& host :
                 {cpu::preset::arrow_lake_p, cpu::preset::ice_lake_u, cpu::preset::alder_lake_e}) {
                is_found |= !run_guest(host, output, fault).broken.empty();
            }
        }
        CHECK(is_found);
    }
}

TEST_CASE("a VMM that ignores MSRs that the guest lacks has a policy, and breaks no rule by it") {
    auto const host = cpu::preset::ice_lake_u;
    auto const offer = vmx::guest_capabilities(host, {.address_ranges = 1});
    guest_target usual{host, offer.value, guest_output::guest_physical};
    guest_target lax{host, offer.value, guest_output::guest_physical, vmm_fault::absent_msrs};
    CHECK(suite::policy_of(usual) == suite::absence_policy::faults);
    CHECK(suite::policy_of(lax) == suite::absence_policy::ignores);
    CHECK(run_guest(host, guest_output::guest_physical, vmm_fault::absent_msrs).broken.empty());
}
