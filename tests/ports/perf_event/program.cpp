// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/program.hpp>

#include <support/dummy_event.hpp>

#include <doctest/doctest.h>

#include <cerrno>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using test::resources;

TEST_CASE("a program that cannot be executed is an error, and no process stays") {
    auto const before = resources();
    {
        char name[] = "/no/such/program";
        char* const arguments[] = {name, nullptr};
        program child;
        REQUIRE(child.start(arguments));
        auto const done = child.run();
        CHECK(done.what == failure::no_program);
        CHECK(done.error == ENOENT);
        CHECK(child.wait() == 127 << 8);
        program never;
        REQUIRE(never.start(arguments));
        int const thread = never.thread();
        CHECK(thread > 0);
    }
    CHECK(::waitpid(-1, nullptr, 0) == -1);
    CHECK(errno == ECHILD);
    CHECK(resources() == before);
    char* const none[] = {nullptr};
    program child;
    CHECK(child.start(none).what == failure::no_program);
}
