// SPDX-License-Identifier: BSL-1.0
// The output engine against a reference model, on random and hostile set-ups: 1 000 000 by default.
// The environment variables PTSPEC_HOSTILE and PTSPEC_HOSTILE_FIRST set the count and the first
// seed.
#include <ptspec/engine/output/explain.hpp>

#include <doctest/doctest.h>
#include <support/how_many.hpp>
#include <support/output_twin.hpp>

#include <string>

using namespace ptspec;

TEST_CASE("on random set-ups the engine and the reference model agree (OUT-151)") {
    uint64_t const first = test::number_from("PTSPEC_HOSTILE_FIRST", 0);
    uint64_t const count = test::number_from("PTSPEC_HOSTILE", test::usual_count / 2);
    test::output_twins twins;
    unsigned differ = 0;
    for (uint64_t seed = first; seed - first < count && differ < 5; ++seed) {
        auto const what = twins.difference(reference::random_setup(seed), seed);
        if (what == nullptr) { continue; }
        ++differ;
        FAIL_CHECK("seed ", seed, ": engine and model differ: ", std::string{what});
    }
    // Coverage: every kind of event occurs in many set-ups.
    if (differ != 0 || count < 10'000) { return; }
    auto const& seen = twins.seen;
    CHECK(seen.errors > count / 10);
    CHECK(seen.stops > count / 50);
    CHECK(seen.interrupts > count / 20);
    CHECK(seen.drops > count / 50);
    CHECK(seen.advances > count / 5);
    CHECK(seen.faults > count / 20);
    CHECK(seen.in_place > count / 4);
    for (int const number : {22, 23, 24, 60, 61, 62, 63, 64, 65, 66, 67, 68, 71, 80, 91, 111}) {
        auto const out = static_cast<unsigned>(number);
        CAPTURE(out);
        CHECK(seen.rules[out] != 0);
    }
}
