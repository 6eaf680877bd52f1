// SPDX-License-Identifier: BSL-1.0
// A guest whose output is shadowed, and the same guest on a processor of its own: 100 000 random
// writes of output, and as many events of trace units. The environment variable PTSPEC_SHADOW sets
// the count.
#include <support/how_many.hpp>
#include <support/shadow_twin.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace ptspec;
using namespace ptspec::test::shadowed;

namespace {

template <class Run>
auto run_many(uint64_t count, unsigned each) -> counts {
    counts seen;
    unsigned wrong = 0;
    for (uint64_t seed = 0; seen.writes < count && wrong < 5; ++seed) {
        test::dice const from{seed};
        Run one{from, seen};
        char const* const what = one.run(each);
        if (what == nullptr) { continue; }
        ++wrong;
        FAIL_CHECK("seed ", seed, ": ", what);
    }
    return seen;
}

}  // namespace

TEST_CASE("a guest with a shadow and one with a processor of its own get the same output "
          "(PRG-083..091, PRG-184, PRG-185)") {
    auto const count = ptspec::test::number_from("PTSPEC_SHADOW", 100'000);
    auto const seen = run_many<output_run>(count, 100);
    MESSAGE(seen.enables, " shadows of up to ", seen.max_pages, " pages, ", seen.moves,
            " pages moved, ", seen.faults, " faults, ", seen.missing, " pages missing, ",
            seen.no_room, " times no room");
    if (count < 10'000) { return; }
    CHECK(seen.errors > count / 50);
    CHECK(seen.errors_later > count / 100);
    CHECK(seen.pmis > count / 200);
    CHECK(seen.moves > count / 20);
    CHECK(seen.faults > count / 50);
    CHECK(seen.missing > count / 50);
    CHECK(seen.no_room > count / 50);
    CHECK(seen.cut != 0);
    CHECK(seen.ranges > count / 50);
    CHECK(seen.direct > count / 500);
    for (int const number : {22, 23, 24, 60, 61, 62, 63, 64, 65, 66, 67, 68, 71, 80, 91, 111}) {
        CAPTURE(number);
        CHECK(seen.rules[number] != 0);
    }
}

TEST_CASE("trace units record the same events for both, and lose nothing when a page is gone "
          "(PRG-180, PRG-184)") {
    auto const count = ptspec::test::number_from("PTSPEC_SHADOW", 100'000);
    auto const seen = run_many<unit_run>(count, 1000);
    MESSAGE(seen.enables, " shadows, ", seen.faults, " faults, ", seen.missing, " pages missing");
    if (count < 10'000) { return; }
    CHECK(seen.enables > count / 100);
    CHECK(seen.faults > count / 5000);
}
