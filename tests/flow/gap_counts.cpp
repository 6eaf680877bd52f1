// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/gap_counts.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::gap_counts;
using flow::gap_reason;

TEST_CASE("gaps and their bytes are added, each byte once") {
    CHECK_TWICE([](auto value) {
        gap_counts all;
        bool const was_complete = all.is_complete();
        all.add({.why = gap_reason::missing_code, .offset = value(uint64_t{10})}, 15);
        all.add({.why = gap_reason::wrong_turn, .offset = 12}, 18);
        all.add({.why = gap_reason::damage, .offset = 16}, 14);
        all.add_bytes(20, value(uint64_t{30}));
        return was_complete && !all.is_complete() && all.gaps == 3 && all.bytes == 8 + 10 &&
               all.first.why == gap_reason::missing_code && all.first.offset == 10;
    });
}

TEST_CASE("bytes without a gap are not complete") {
    CHECK_TWICE([](auto value) {
        gap_counts all;
        all.add_bytes(0, value(uint64_t{1}));
        return !all.is_complete() && all.gaps == 0;
    });
}
