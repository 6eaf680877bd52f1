// SPDX-License-Identifier: BSL-1.0
#include <tools/pt_suite/core_types.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace ptspec;
using namespace pt_suite;

namespace {

constexpr suite::finding wrong{.what = suite::outcome::broken,
                               .which = rule::REG_044,
                               .msr = 0x570,
                               .wrote = 0x40000,
                               .expected = 1,
                               .detail = "WRMSR must raise #GP"};
constexpr suite::finding seen_3{.what = suite::outcome::observed, .seen = 3, .detail = "a choice"};
constexpr suite::finding seen_4{.what = suite::outcome::observed, .seen = 4, .detail = "a choice"};

auto lines_of(std::vector<processor_results> const& all) -> std::vector<std::string> {
    std::vector<std::string> made;
    unsigned number = 0;
    for (auto const& one : by_core_type(all)) {
        auto line = tap_line(one, ++number, nullptr);
        line.pop_back();
        made.push_back(std::move(line));
    }
    return made;
}
auto found(char const* check, suite::finding const& what = {}) -> result {
    return {check, rule::REG_044, what};
}

}  // namespace

TEST_CASE("core types have the names of Linux") {
    CHECK(core_type_of(0) == "");
    CHECK(core_type_of(0x2000'0001) == "atom");
    CHECK(core_type_of(0x4000'0001) == "core");
    CHECK(core_type_of(0x3000'0000) == "core type 30H");
}

TEST_CASE("processors of one type that agree have one line for each check") {
    std::vector<processor_results> const all = {
        {0, "core", {found("a"), found("b", wrong), found("c", seen_3)}},
        {1, "core", {found("a"), found("b", wrong), found("c", seen_4)}}};
    CHECK(lines_of(all) ==
          std::vector<std::string>{"ok 1 - a REG-044",
                                   "not ok 2 - b REG-044 # WRMSR must raise #GP, MSR 570H, wrote "
                                   "40000H: expected 1H, seen 0H",
                                   "ok 3 - c REG-044 # OBSERVED differs between processors: 3"});
}

TEST_CASE("an outcome that differs between processors of one type is a finding of its own") {
    std::vector<processor_results> const all = {
        {0, "", {found("a")}}, {1, "", {found("a", wrong)}}, {2, "", {found("a")}}};
    CHECK(lines_of(all) ==
          std::vector<std::string>{"not ok 1 - a REG-044 # DIFFERS cpu 0,2: holds REG-044; cpu 1: "
                                   "broken REG-044 WRMSR must raise #GP, MSR 570H, wrote 40000H: "
                                   "expected 1H, seen 0H"});
    CHECK(json_line(by_core_type(all)[0]).find("\"outcome\":\"differs\"") != std::string::npos);
}

TEST_CASE("processors of different types may differ") {
    std::vector<processor_results> const all = {
        {0, "core", {found("a")}}, {1, "core", {found("a")}}, {2, "atom", {found("a", wrong)}}};
    auto const lines = lines_of(all);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == "ok 1 - a REG-044 on core");
    CHECK(lines[1].starts_with("not ok 2 - a REG-044 on atom # WRMSR must raise #GP"));
    CHECK(json_line(by_core_type(all)[1]).find("\"core_type\":\"atom\"") != std::string::npos);
}

TEST_CASE("checks of a run that ended early count where they ran") {
    std::vector<processor_results> const all = {{0, "", {found("a"), found("b")}},
                                                {1, "", {found("a")}}};
    CHECK(lines_of(all) == std::vector<std::string>{"ok 1 - a REG-044", "ok 2 - b REG-044"});
}
