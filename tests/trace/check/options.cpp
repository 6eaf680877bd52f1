// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/check/options.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::check_options;
using trace::violation;

TEST_CASE("by default nothing is checked that only one kind of processor does") {
    CHECK_TWICE([](auto value) {
        auto const how = value(check_options{});
        return !how.has_model && how.mtc_freq > 15 && how.tsc_per_crystal == 0 &&
               how.end_alignment == 0;
    });
}

TEST_CASE("violations are equal if the packet and the rule are") {
    CHECK_TWICE([](auto value) {
        auto const one = value(violation{16, rule::GEN_122, packet::kind::tnt_short});
        return one == violation{16, rule::GEN_122, packet::kind::tnt_short} &&
               !(one == violation{17, rule::GEN_122, packet::kind::tnt_short}) &&
               !(one == violation{16, rule::GEN_120, packet::kind::tnt_short}) &&
               violation{}.broken == rule::none;
    });
}
