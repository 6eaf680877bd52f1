// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/failure.hpp>

#include <doctest/doctest.h>

using namespace ptspec;
using namespace ptspec::ports::perf_event;

TEST_CASE("each failure has a sentence of its own") {
    for (int one = 0; one <= static_cast<int>(failure::other); ++one) {
        CAPTURE(one);
        auto const sentence = describe(static_cast<failure>(one));
        CHECK(sentence.size() > 10);
        CHECK(!(sentence == text{"unknown failure"}));
        for (int two = 0; two < one; ++two) {
            CHECK(!(sentence == describe(static_cast<failure>(two))));
        }
    }
    CHECK(describe(static_cast<failure>(99)) == text{"unknown failure"});
}
