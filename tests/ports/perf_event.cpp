// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event.hpp>

#include <doctest/doctest.h>

using namespace ptspec;

TEST_CASE("the door has all that traces a program") {
    ports::perf_event::program const child;
    ports::perf_event::perf_trace const trace;
    CHECK(child.thread() == -1);
    CHECK(!trace.is_open());
    auto const pmu = ports::perf_event::read_pmu();
    CHECK(pmu.pmu.caps.has_pt() == static_cast<bool>(pmu));
}
