// SPDX-License-Identifier: BSL-1.0
// Guests with fewer capabilities than their host: each bit of leaf 14H hidden in turn, and guests
// of pools of two hosts on both. What they read, which #GP they get, and their memory must be those
// of a processor with their capabilities.
#include <ptspec/vmx/guest_cpuid.hpp>

#include <ptspec/vmx/unhonourable.hpp>

#include <support/check_twice.hpp>
#include <support/hostile_guest.hpp>
#include <support/how_many.hpp>

#include <memory>
#include <random>
#include <string>

using namespace ptspec;
using vmx::guest_output;

namespace {

struct counts {
    std::uint64_t guests = 0;
    std::uint64_t steps = 0;
    std::uint64_t traced = 0;
};

/// Runs a guest on a host beside one on a processor of its own. Returns the first difference.
auto difference(cpu::capabilities const& host, cpu::capabilities caps, guest_output output,
                std::uint64_t seed, std::uint64_t steps, counts& sum) -> std::string {
    caps.vmx_misc = {};
    auto const both = std::make_unique<test::pair_of_guests>(output, std::mt19937_64{seed}, false,
                                                             caps, host);
    for (std::uint64_t i = 0; i < steps && both->difference.empty(); ++i, ++sum.steps) {
        both->step();
    }
    both->finish();
    ++sum.guests;
    sum.traced += both->steps_traced;
    return both->difference;
}

/// The rule of a bit that a VMM cannot virtualize on this processor, or none. Where the guest has
/// narrower addresses than the host, wider ones in its tables cause EPT violations, which the
/// processor of these runs does not raise.
auto broken_rule(cpu::capabilities const& host, cpu::capabilities const& guest, guest_output output)
    -> rule {
    bool const is_narrower = guest.max_phys_addr().bits < host.max_phys_addr().bits;
    rule found = is_narrower && output == guest_output::guest_physical ? rule::OUT_063 : rule::none;
    vmx::find_unhonourable(host, guest, [&](vmx::unhonourable const& one) {
        // No guest of these runs executes PTWRITE.
        if (!one.is_hidden || one.broken != rule::REG_032) { found = one.broken; }
    });
    return found;
}

/// Calls `each(caps)` with one bit of leaf 14H less.
template <class Each>
void hide_each_bit(cpu::capabilities const& of, Each const& each) {
    auto const hide = [&](auto member) {
        for (unsigned bit = 0; bit < 32; ++bit) {
            auto caps = of;
            (caps.*member).raw &= ~(1U << bit);
            if (caps != of) { each(caps); }
        }
    };
    hide(&cpu::capabilities::leaf_14_0_eax);
    hide(&cpu::capabilities::leaf_14_0_ebx);
    hide(&cpu::capabilities::leaf_14_0_ecx);
    hide(&cpu::capabilities::leaf_14_1_eax);
    hide(&cpu::capabilities::leaf_14_1_ebx);
}

auto name_of(cpu::preset::named const& one) -> std::string {
    return {one.name.data(), one.name.size()};
}

}  // namespace

TEST_CASE("a guest without a bit of leaf 14H sees a processor without it (REG-013, REG-014, "
          "REG-051, REG-055, REG-063, "
          "PRG-172..174)") {
    auto const steps = test::number_from("PTSPEC_FEWER_CAPABILITIES", 300);
    counts sum;
    auto host = test::usual_host();
    unsigned not_enforced = 0;
    for (auto const output : {guest_output::guest_physical, guest_output::shadow}) {
        auto const offer = vmx::guest_capabilities(host, {.output = output});
        REQUIRE(offer);
        hide_each_bit(offer.value, [&](cpu::capabilities const& caps) {
            if (!caps.has_output_msrs()) { return; }
            if (broken_rule(host, caps, output) != rule::none) {
                ++not_enforced;
                return;
            }
            CAPTURE(caps.leaf_14_0_eax.raw);
            CAPTURE(caps.leaf_14_0_ebx.raw);
            CAPTURE(caps.leaf_14_0_ecx.raw);
            CAPTURE(caps.leaf_14_1_eax.raw);
            CAPTURE(caps.leaf_14_1_ebx.raw);
            CHECK(difference(host, caps, output, sum.guests, steps, sum) == "");
        });
    }
    MESSAGE(sum.guests << " guests, " << sum.traced << " of " << sum.steps
                       << " steps with traced code, " << not_enforced << " not enforced");
    CHECK(sum.guests > 70);
    CHECK(sum.traced > sum.steps / 10);
    CHECK(not_enforced == 4);  // MENTRY and LIP
}

TEST_CASE("a guest of a pool of two hosts sees the same processor on both (REG-164, REG-165, "
          "PRG-174)") {
    auto const steps = test::number_from("PTSPEC_FEWER_CAPABILITIES", 300) / 5;
    counts sum;
    for (auto const& first : cpu::preset::all) {
        for (auto const& second : cpu::preset::all) {
            cpu::capabilities const pool[] = {first.value, second.value};
            for (auto const output : {guest_output::guest_physical, guest_output::shadow}) {
                auto const offer = vmx::guest_capabilities(pool, 2, {.output = output});
                bool const has_tables = first.value.has_topa_of_many_entries() &&
                                        second.value.has_topa_of_many_entries();
                if (!offer || !has_tables) { continue; }
                auto const& host = pool[sum.guests % 2];
                if (broken_rule(host, offer.value, output) != rule::none) { continue; }
                std::string const names = name_of(first) + " and " + name_of(second);
                CAPTURE(names);
                CHECK(difference(host, offer.value, output, sum.guests, steps, sum) == "");
            }
        }
    }
    MESSAGE(sum.guests << " guests, " << sum.traced << " of " << sum.steps
                       << " steps with traced code");
    CHECK(sum.guests > 300);
    CHECK(sum.traced > sum.steps / 10);
}
