// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/tsc_change.hpp>

#include <support/check_twice.hpp>

#include <random>

using namespace ptspec;
using trace::tsc_change;
using trace::tsc_range;

TEST_CASE("the host's TSCs that a guest sees as one value (PRG-164)") {
    CHECK_TWICE([](auto value) {
        tsc_change const moved{value(tsc_change::unscaled), 0 - uint64_t{1000}, 0};
        // 5 / 2: 4 is seen as 10, 5 as 12.
        tsc_change const fast{value(uint64_t{5} << 47), 7, 0};
        tsc_change const half{value(uint64_t{1} << 47), 7, 0};
        return moved.host_of(34) == tsc_range{1034, 1034} && fast.host_of(17) == tsc_range{4, 4} &&
               fast.host_of(18) == tsc_range{5, 5} && fast.host_of(19) == tsc_range{5, 5} &&
               half.host_of(17) == tsc_range{20, 21} &&
               tsc_change{value(uint64_t{0}), 7, 0}.host_of(17) == tsc_range{10, 10};
    });
}

TEST_CASE("what a guest sees of a TSC leads back to it") {
    std::mt19937_64 random{1};
    for (unsigned i = 0; i < 100'000; ++i) {
        uint64_t const multiplier = (random() >> 15) + (uint64_t{1} << 46);
        tsc_change const how{multiplier, random() >> 8, 0};
        uint64_t const tsc = random() >> (8 + random() % 40);
        auto const found = how.host_of(how.of(tsc));
        CHECK((found.first <= tsc && tsc <= found.last));
        CHECK(how.of(found.first) == how.of(tsc));
        CHECK(how.of(found.last) == how.of(tsc));
        CHECK((found.first == 0 || how.of(found.first - 1) != how.of(tsc)));
        CHECK(how.of(found.last + 1) != how.of(tsc));
    }
}
