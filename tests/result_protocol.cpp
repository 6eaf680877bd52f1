// SPDX-License-Identifier: BSL-1.0
// A result converts to true when nothing is wrong. What is wrong does not convert.
#include <ptspec/ptspec.hpp>

#include "support/check_twice.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

using namespace ptspec;

namespace {

// Not std::is_constructible_v: it also allows what a braced initialiser would convert.
template <class T>
concept converts = requires(T const& one) { static_cast<bool>(one); };

// Without a value that is wrong, and with one: the two differ, and the first is true.
template <class Result>
constexpr auto is_right_only(Result const& right, Result const& wrong) -> bool {
    return static_cast<bool>(right) && !static_cast<bool>(wrong);
}

}  // namespace

TEST_CASE("faults, violations and explanations do not convert to bool") {
    static_assert(!converts<port_fault> && !converts<driver::msr_fault>);
    static_assert(!converts<topa::violation> && !converts<trace::violation>);
    static_assert(!converts<vmx::violation> && !converts<config::violation>);
    static_assert(!converts<access::violation> && !converts<engine::explanation>);
    static_assert(!converts<vmx::unhonourable> && !converts<simulate::fake_fault>);
    static_assert(!converts<flow::gap> && !converts<trace::binding> && !converts<first_rule>);
    static_assert(!converts<engine::access_result>);
}

TEST_CASE("a result is true without, and false with a broken rule") {
    CHECK_TWICE([](auto value) {
        rule const bad = value(rule::REG_044);
        config::config_verdict impossible{};
        impossible.broken = bad;
        config::config_verdict refused{};
        refused.violation_count = value(1U);
        return is_right_only(access::verdict{}, {access::outcome::general_protection, bad}) &&
               is_right_only(access::effect{},
                             {.verdict = {access::outcome::general_protection, bad}}) &&
               is_right_only(topa::built<2>{}, {.violated = {bad, {}}}) &&
               is_right_only(topa::built_chain<2>{}, {.violated = {bad, {}}}) &&
               is_right_only(topa::page_regions{}, {.broken = bad}) &&
               is_right_only(topa::loaded_entry{}, {.broken = bad}) &&
               is_right_only(config::config_verdict{}, impossible) &&
               is_right_only(config::config_verdict{}, refused) &&
               is_right_only(driver::built_ring{}, {.broken = bad}) &&
               is_right_only(driver::parsed_area{}, {.broken = bad}) &&
               is_right_only(driver::plan_result{}, {.broken = bad}) &&
               is_right_only(vmx::transition{}, {.violated = {bad}}) &&
               is_right_only(vmx::nested_entry{}, {.broken = bad}) &&
               is_right_only(vmx::guest_offer{}, {.broken = bad}) &&
               is_right_only(edit::rebased_tsc{}, {.broken = bad}) &&
               is_right_only(edit::kept_part{}, {.broken = bad});
    });
}

TEST_CASE("a result is true without, and false with a fault or an error") {
    CHECK_TWICE([](auto value) {
        bool const happened = value(true);
        return is_right_only(driver::procedure_result{}, {.fault = {.happened = happened}}) &&
               is_right_only(topa::loaded_entry{}, {.fault = {happened, 0}}) &&
               is_right_only(engine::write_result{}, {.fault = {happened, 0}}) &&
               is_right_only(packet::decoded{}, {.error = packet::error::truncated}) &&
               is_right_only(access::load_result{}, {.error = access::error::refused}) &&
               is_right_only(config::perf_config{}, {.error = config::error::unknown_bit}) &&
               is_right_only(port_value{true, 0}, port_value{!happened, 0});
    });
}

namespace {

/// A struct with a broken rule that does not convert to bool.
struct exception {
    char const* header;
    char const* name;
    char const* why;
};

constexpr exception exceptions[] = {
    {"access/xsave.hpp", "violation", "what is wrong, not a result"},
    {"base/rule.hpp", "first_rule", "collects rules"},
    {"config/check_config.hpp", "violation", "what is wrong, not a result"},
    {"engine/access_result.hpp", "access_result", "took_effect: a retry would be wrong"},
    {"flow/sink.hpp", "gap", "what is wrong, not a result"},
    {"simulate/fake_processor.hpp", "fake_fault", "what is wrong, not a result"},
    {"topa/table.hpp", "violation", "what is wrong, not a result"},
    {"trace/binding.hpp", "violation", "what is wrong, not a result"},
    {"trace/binding.hpp", "binding", "what a packet belongs to, also where a rule is broken"},
    {"vmx/transition.hpp", "violation", "what is wrong, not a result"},
    {"vmx/unhonourable.hpp", "unhonourable", "what is wrong, not a result"},
};

/// `header name` of each struct in include/ with such a member. `all` counts those that convert,
/// too.
auto without_conversion(unsigned& all) -> std::vector<std::string> {
    namespace fs = std::filesystem;
    fs::path const top{PTSPEC_ROOT "/include/ptspec"};
    std::regex const head{R"(^struct (?:\[\[nodiscard\]\] )?(\w+)[^;]*\{$)"};
    std::regex const member{R"(^    (?:ptspec::)?rule \w*broken\w*( = .*)?;.*)"};
    std::vector<std::string> found;
    for (auto const& file : fs::recursive_directory_iterator{top}) {
        if (file.path().extension() != ".hpp") { continue; }
        std::ifstream in{file.path()};
        std::string name;
        bool has_rule = false;
        bool converts = false;
        for (std::string line; std::getline(in, line);) {
            std::smatch match;
            if (std::regex_match(line, match, head)) {
                name = match[1];
                has_rule = converts = false;
            } else if (name.empty()) {
                continue;
            } else if (line == "};") {
                all += has_rule;
                if (has_rule && !converts) {
                    found.push_back(fs::relative(file.path(), top).generic_string() + " " + name);
                }
                name.clear();
            } else {
                has_rule = has_rule || std::regex_match(line, member);
                converts = converts || line.find("operator bool()") != std::string::npos;
            }
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

TEST_CASE("every struct with a broken rule converts to bool, or is listed here with the reason") {
    unsigned all = 0;
    auto const found = without_conversion(all);
    std::vector<std::string> listed;
    for (auto const& one : exceptions) {
        listed.push_back(std::string{one.header} + " " + one.name);
    }
    std::sort(listed.begin(), listed.end());
    std::vector<std::string> unlisted;
    std::set_difference(found.begin(), found.end(), listed.begin(), listed.end(),
                        std::back_inserter(unlisted));
    for (auto const& one : unlisted) { FAIL_CHECK("no conversion to bool: ", one); }
    CHECK(found == listed);
    CHECK(all > 35);
}

TEST_CASE("what was put into a trace is true if all packets were written") {
    static_assert(is_right_only(trace::put_result{1}, {0, rule::PKT_052}));
}
