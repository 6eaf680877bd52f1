// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/finding.hpp>

#include <support/check_twice.hpp>

namespace {

using namespace ptspec;
using namespace ptspec::suite::literals;

}  // namespace

TEST_CASE("the id of a rule is its number, also of one that no function returns") {
    static_assert("REG-004"_rule == rule::REG_004);
    static_assert("OUT-111"_rule == rule::OUT_111);
    static_assert("PRG-260"_rule == static_cast<rule>(5260));
    CHECK_TWICE([](auto value) {
        return rule_id{value(static_cast<rule>(4133))}.view() == text{"GEN-133"} &&
               "GEN-133"_rule == value(static_cast<rule>(4133));
    });
}

TEST_CASE("a list of rules has those that it names, in their order") {
    constexpr suite::rule_list list{"PKT-030", "GEN-121"};
    CHECK_TWICE([=](auto value) {
        auto const more = list.after("REG-001"_rule);
        return list.count == 2 && list.has(value("GEN-121"_rule)) &&
               !list.has(value("GEN-120"_rule)) && list.ids[0] == "PKT-030"_rule &&
               more.count == 3 && more.ids[0] == "REG-001"_rule && more.ids[2] == "GEN-121"_rule;
    });
}

TEST_CASE("each outcome has a name of its own") {
    for (unsigned i = 0; i < 6; ++i) {
        auto const name = suite::name_of(static_cast<suite::outcome>(i));
        CHECK(name.size() != 0);
        for (unsigned other = 0; other < i; ++other) {
            CHECK(name != suite::name_of(static_cast<suite::outcome>(other)));
        }
    }
}
