// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/written.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using engine::written;

TEST_CASE("a write that was not asked for anything did nothing, and did not fail") {
    CHECK_TWICE([](auto value) {
        auto const done = value(written{});
        return done && done.taken == 0 && done.stored == 0 && done.lost == 0 && done.pmis == 0 &&
               !done.had_address && !done.why_not_all;
    });
}

TEST_CASE("a write counts as done unless something was in its way") {
    CHECK_TWICE([](auto value) {
        return value(written{.taken = 5, .lost = 5}) &&
               !value(written{.taken = 5, .why_not_all = {true, 0x1000}}) &&
               !value(written{.why_not_all = {true, 0}});
    });
}

TEST_CASE("two writes are the same when all about them is") {
    CHECK_TWICE([](auto value) {
        written const one{.taken = 1, .stored = 2, .lost = 3, .pmis = 4, .first = 5, .last = 6};
        auto other = [&](auto change) {
            auto copy = value(one);
            change(copy);
            return copy;
        };
        return value(one) == one && other([](auto& it) { ++it.taken; }) != one &&
               other([](auto& it) { ++it.stored; }) != one &&
               other([](auto& it) { ++it.lost; }) != one &&
               other([](auto& it) { ++it.pmis; }) != one &&
               other([](auto& it) { ++it.first; }) != one &&
               other([](auto& it) { ++it.last; }) != one &&
               other([](auto& it) { it.had_address = true; }) != one &&
               other([](auto& it) { it.why_not_all.happened = true; }) != one;
    });
}
