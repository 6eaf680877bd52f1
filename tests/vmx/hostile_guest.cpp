// SPDX-License-Identifier: BSL-1.0
// A hostile guest in a virtual machine, and the same guest on a processor of its own whose trace
// ends and continues where the VM exits are. What the guest reads, and its memory, must be the
// same; no access may leave its memory, and the host's MSRs must stay as they were.
#include <support/check_twice.hpp>
#include <support/how_many.hpp>
#include <support/hostile_guest.hpp>

#include <memory>
#include <random>

using namespace ptspec;
TEST_CASE("a hostile guest sees what a processor of its own would show, and leaves the host alone "
          "(PRG-167,170..173,177,180,184,185)") {
    std::uint64_t const steps = test::number_from("PTSPEC_HOSTILE_GUEST", test::usual_count / 5);
    constexpr std::uint64_t in_a_run = 500;
    std::uint64_t traced = 0;
    std::uint64_t errors = 0;
    std::uint64_t pmis = 0;
    std::uint64_t max_calls = 0;
    std::uint64_t out_of_room = 0;
    for (std::uint64_t run = 0; run < steps / in_a_run; ++run) {
        auto const output = run % 3 == 0 ? vmx::guest_output::guest_physical
                                         : vmx::guest_output::shadow;
        auto const both = std::make_unique<test::pair_of_guests>(output, std::mt19937_64{run + 1},
                                                                 run % 4 == 3);
        std::uint64_t step = 0;
        for (; step < in_a_run && both->difference.empty(); ++step) { both->step(); }
        both->finish();
        CAPTURE(run);
        CAPTURE(step);
        REQUIRE(both->difference == "");
        traced += both->steps_traced;
        errors += both->errors;
        pmis += both->pmis;
        max_calls = std::max(max_calls, both->max_calls());
        out_of_room += both->out_of_room();
    }
    CHECK(traced > steps / 20);
    CHECK(errors > steps / 2000);
    CHECK(pmis > steps / 5000);
    CHECK(out_of_room < steps / 100);
    // A page for each entry of each table, and for each page of its regions.
    CHECK(max_calls < 64 * 512 * 4);
    MESSAGE(steps << " steps, " << traced << " with traced code, " << errors << " errors, " << pmis
                  << " PMIs, at most " << max_calls << " calls an enable, " << out_of_room
                  << " without room");
}
