// SPDX-License-Identifier: BSL-1.0
#pragma once

// The findings of a run as TAP or JSON, waivers of broken rules, the comparison of two reports.

#include "../common/json.hpp"
#include "../common/tool.hpp"
#include "names.hpp"

#include <ptspec/suite/run.hpp>

#include <ptspec/suite/report.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pt_suite {

/// A check and what it found.
struct result {
    std::string check;
    rule primary = rule::none;  ///< the first rule of the check
    suite::finding found{};
    std::string more{};       ///< instead of the detail, where it is not empty
    std::string core_type{};  ///< of the processors, where there are several types
    bool differs = false;     ///< between processors of one type: `more` has the outcomes

    [[nodiscard]] auto detail() const -> std::string {
        return more.empty() ? string_of(found.detail) : more;
    }
    [[nodiscard]] auto outcome() const -> std::string {
        return differs ? "differs" : string_of(suite::name_of(found.what));
    }
    [[nodiscard]] auto id() const -> std::string {
        return string_of(suite::reported_rule(found, primary));
    }
};

// ------------------------------------------------------------------------------------ waivers

/// A line of a file of waivers: a check that may find this rule broken, and why.
struct waiver {
    std::string check;
    std::string id;
    std::string why;
    bool is_used = false;
};

/// Reads waivers: `CHECK RULE REASON`, a line each. Text after # is a comment.
inline auto read_waivers(std::string const& path) -> std::vector<waiver> {
    auto const bytes = tool::read_all(path, std::size_t{1} << 20);
    std::vector<waiver> made;
    unsigned number = 0;
    std::string_view const all{reinterpret_cast<char const*>(bytes.data()), bytes.size()};
    tool::for_each_line(all, [&](std::string_view line) {
        ++number;
        auto const given = line.substr(0, line.find('#'));
        auto const words = tool::words_of(given);
        if (words.empty()) { return; }
        if (words.size() < 3) {
            throw tool::failure{path + ": line " + std::to_string(number) +
                                ": a waiver is CHECK RULE REASON"};
        }
        auto const why = given.substr(static_cast<std::size_t>(words[2].data() - given.data()));
        made.push_back({std::string{words[0]}, std::string{words[1]}, std::string{why}, false});
    });
    return made;
}

/// The waiver for a result; null if there is none.
inline auto waiver_for(std::vector<waiver>& all, result const& one) -> waiver* {
    for (auto& each : all) {
        if (each.check == one.check && each.id == one.id()) { return &each; }
    }
    return nullptr;
}

// ------------------------------------------------------------------------------------ TAP

/// What a printer of the library prints.
template <class Prints>
auto printed(Prints const& prints) -> std::string {
    std::string made;
    prints([&](text piece) { made.append(piece.data(), piece.size()); });
    return made;
}
inline auto text_of(std::string const& from) -> text { return {from.data(), from.size()}; }

/// The finding with what is said of it.
inline auto with_detail(result const& one, std::string const& detail) -> suite::finding {
    auto found = one.found;
    found.detail = text_of(detail);
    return found;
}
/// What was expected and seen, as a sentence.
inline auto why(result const& one) -> std::string {
    auto const detail = one.detail();
    return printed([&](auto out) { suite::print_why(with_detail(one, detail), out); });
}

/// A line of TAP: `not ok 12 - CHECK RULE # what was expected and seen`.
inline auto tap_line(result const& one, unsigned number, waiver const* waived) -> std::string {
    auto const detail = one.detail();
    if (one.differs) {
        return "not ok " + std::to_string(number) + " - " + one.check + ' ' + one.id() +
               (one.core_type.empty() ? "" : " on " + one.core_type) + " # DIFFERS " + detail +
               '\n';
    }
    return printed([&](auto out) {
        suite::print_tap_line({.number = number,
                               .check = text_of(one.check),
                               .primary = one.primary,
                               .found = with_detail(one, detail),
                               .waived = waived != nullptr ? text_of(waived->why) : text{},
                               .where = text_of(one.core_type)},
                              out);
    });
}

// ------------------------------------------------------------------------------------ JSON

/// The version of the reports that --json writes and --compare reads.
inline constexpr unsigned report_version = 1;

inline auto json_head(std::string const& target, suite::absence_policy absent) -> std::string {
    std::string line = "{\"pt_suite\":" + std::to_string(report_version) + ",\"target\":";
    json::append_json_string(line, target);
    return line + ",\"policy\":\"" +
           (absent == suite::absence_policy::ignores ? "ignores" : "faults") + "\"}\n";
}
inline auto json_line(result const& one) -> std::string {
    std::string line = "{\"check\":";
    json::append_json_string(line, one.check);
    line += ",\"rule\":\"" + one.id() + "\",\"outcome\":\"" + one.outcome() + "\",\"detail\":";
    json::append_json_string(line, one.detail());
    line += ",\"msr\":" + std::to_string(one.found.msr.value) +
            ",\"wrote\":" + std::to_string(one.found.wrote) +
            ",\"expected\":" + std::to_string(one.found.expected) +
            ",\"seen\":" + std::to_string(one.found.seen);
    if (!one.core_type.empty()) { line += ",\"core_type\":\"" + one.core_type + '"'; }
    return line + "}\n";
}

/// The outcomes of a report, by check.
inline auto read_report(std::string const& path) -> std::map<std::string, std::string> {
    auto const bytes = tool::read_all(path, std::size_t{16} << 20);
    std::string_view const all{reinterpret_cast<char const*>(bytes.data()), bytes.size()};
    std::map<std::string, std::string> made;
    unsigned number = 0;
    auto const value_of = [&](std::string_view line, std::string_view name) {
        auto const begin = line.find("\"" + std::string{name} + "\":\"");
        if (begin == std::string_view::npos) {
            throw tool::failure{path + ": line " + std::to_string(number) + ": no finding"};
        }
        auto const first = begin + name.size() + 4;
        return std::string{line.substr(first, line.find('"', first) - first)};
    };
    tool::for_each_line(all, [&](std::string_view line) {
        if (number++ == 0) {
            auto const wanted = "{\"pt_suite\":" + std::to_string(report_version) + ",";
            if (line.substr(0, wanted.size()) != wanted) {
                throw tool::failure{path + ": not a report of pt_suite --json, version " +
                                    std::to_string(report_version)};
            }
            return;
        }
        auto check = value_of(line, "check");
        if (line.find("\"core_type\":") != line.npos) {
            check += " on " + value_of(line, "core_type");
        }
        made[check] = value_of(line, "outcome") + ' ' + value_of(line, "rule");
    });
    if (number == 0) { throw tool::failure{path + ": empty"}; }
    return made;
}

/// The lines in which two reports differ.
inline auto differences(std::string const& one_path, std::string const& other_path) -> std::string {
    auto const one = read_report(one_path);
    auto const other = read_report(other_path);
    std::string lines;
    auto const value = [](auto const& from, std::string const& check) {
        auto const found = from.find(check);
        return found == from.end() ? std::string{"absent"} : found->second;
    };
    std::vector<std::string> checks;
    for (auto const& [check, outcome] : one) { checks.push_back(check); }
    for (auto const& [check, outcome] : other) {
        if (one.count(check) == 0) { checks.push_back(check); }
    }
    for (auto const& check : checks) {
        auto const before = value(one, check);
        auto const after = value(other, check);
        if (before != after) { lines += check + ": " + before + " -> " + after + '\n'; }
    }
    return lines;
}

}  // namespace pt_suite
