// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/perf_trace.hpp>

#include <support/dummy_event.hpp>
#include <support/skip.hpp>

#include <doctest/doctest.h>

#include <cerrno>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using test::dummy;
using test::may_open;

namespace {

auto failure_of(int error, bool is_permitted = true) -> failure {
    return ports::perf_event::detail::result_of_open(error, is_permitted).what;
}

}  // namespace

TEST_CASE("an errno of perf_event_open is a failure with a name") {
    CHECK(failure_of(0) == failure::none);
    CHECK(failure_of(EACCES, false) == failure::not_permitted);
    CHECK(failure_of(EPERM, false) == failure::not_permitted);
    CHECK(failure_of(EPERM, true) == failure::blocked);
    CHECK(failure_of(ENOSYS) == failure::blocked);
    CHECK(failure_of(EBUSY) == failure::busy);
    CHECK(failure_of(ESRCH) == failure::no_such_thread);
    CHECK(failure_of(ENODEV) == failure::no_such_cpu);
    CHECK(failure_of(EMFILE) == failure::too_many_files);
    CHECK(failure_of(ENOMEM) == failure::no_memory);
    CHECK(failure_of(ENOENT) == failure::no_pmu);
    CHECK(failure_of(EINVAL) == failure::refused);
    CHECK(failure_of(E2BIG) == failure::other);
    CHECK(ports::perf_event::detail::result_of_map(EPERM).what == failure::over_memory_limit);
}

TEST_CASE("sizes are powers of 2 of pages") {
    if (!may_open("sizes of areas")) { return; }
    perf_trace one;
    REQUIRE(one.open(dummy(), {}));
    auto const page = static_cast<size_t>(::getpagesize());
    for (size_t const size : {size_t{0}, page - 1, page + 1, 3 * page}) {
        CHECK(one.map({.data = size, .aux = 0}).what == failure::bad_size);
    }
    CHECK(one.map({.data = 2 * page, .aux = 3 * page}).what == failure::bad_size);
    CHECK(one.map({.data = 2 * page, .aux = 2 * page}).what != failure::none);  // it has no trace
    CHECK(one.areas().page == nullptr);
    CHECK(one.map({.data = 2 * page, .aux = 0}));
    CHECK(one.areas().data_size == 2 * page);
    CHECK(one.enable());
    CHECK(one.disable());
    CHECK(one.set_filters("filter 0x1000/0x10@/bin/true").what == failure::bad_filter);
}

TEST_CASE("a thread that is not there, and an event that is not open") {
    perf_trace one;
    CHECK(!one.enable());
    CHECK(!one.map({.aux = 0}));
    if (!may_open("threads that are not there")) { return; }
    CHECK(one.open(dummy(), {.thread = 0x3FFF'FFFF}).what == failure::no_such_thread);
    CHECK(one.open(dummy(), {.thread = trace_target::any, .cpu = 100'000}).what != failure::none);
    CHECK(!one.is_open());
}
