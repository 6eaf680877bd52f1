// SPDX-License-Identifier: BSL-1.0
#include <ptspec/base/flag_set.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

enum class sign : uint8_t { stop = 1U << 0, yield = 1U << 1, detour = 1U << 7 };
using signs = flag_set<sign>;

}  // namespace

TEST_CASE("a flag set has the flags that were added, and no other") {
    CHECK_TWICE([](auto value) {
        signs set;
        bool const was_empty = set.empty() && !set.has(sign::stop) && !set.has(sign::detour);
        set.add(value(sign::detour));
        return was_empty && !set.empty() && set.bits == 0x80 && set.has(sign::detour) &&
               !set.has(sign::stop) && !set.has(sign::yield);
    });
}

TEST_CASE("with() and | add to a copy; equal sets have equal flags") {
    CHECK_TWICE([](auto value) {
        signs const stop = signs{}.with(value(sign::stop));
        signs const both = stop.with(value(sign::yield), value(true));
        return stop.bits == 1 && both.bits == 3 && stop.with(sign::yield, value(false)) == stop &&
               (stop | signs{}.with(sign::yield)) == both && !(both == stop) &&
               both.with(sign::stop) == both;
    });
}
