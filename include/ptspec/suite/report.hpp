// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/print/text.hpp>
#include <ptspec/suite/checks.hpp>
#include <ptspec/suite/run.hpp>

/// The findings of a run as lines of the Test Anything Protocol (TAP).
namespace ptspec::suite {

/// How many checks had each outcome.
struct outcome_counts {
    static constexpr unsigned kinds = underlying(outcome::error) + 1U;

    unsigned of[kinds] = {};
    unsigned total = 0;

    constexpr void add(outcome what) noexcept {
        ++of[underlying(what)];
        ++total;
    }
    [[nodiscard]] constexpr auto operator[](outcome what) const noexcept -> unsigned {
        return of[underlying(what)];
    }
    /// True if a rule is broken, an outcome is unsteady, or a check failed.
    [[nodiscard]] constexpr auto has_failures() const noexcept -> bool {
        return (*this)[outcome::broken] + (*this)[outcome::unsteady] + (*this)[outcome::error] != 0;
    }
    /// True if each check was skipped: nothing could be asked.
    [[nodiscard]] constexpr auto is_empty() const noexcept -> bool {
        return (*this)[outcome::skipped] == total;
    }
};

/// The rule of a line: the broken one, else the first of the check.
[[nodiscard]] constexpr auto reported_rule(finding const& found, rule primary) noexcept -> rule {
    return found.which != rule::none ? found.which : primary;
}

namespace detail {

/// The directive of a test that fails as is known.
inline constexpr char known_letters[] = {'T', 'O', 'D', 'O', ' '};
inline constexpr text known{known_letters, sizeof known_letters};

template <class Sink>
constexpr void print_hex(uint64_t value, Sink& out) {
    print::hex(value, out);
    print::put("H", out);
}

}  // namespace detail

/// Prints what was expected and seen, or what is said of another outcome.
template <class Sink>
constexpr void print_why(finding const& found, Sink& out) {
    print::put(found.detail, out);
    if (found.what == outcome::observed) {
        print::put(": ", out);
        print::decimal(found.seen, out);
    }
    if (found.what != outcome::broken) { return; }
    if (found.msr.value != 0) {
        print::put(", MSR ", out);
        detail::print_hex(found.msr.value, out);
    }
    if (found.wrote != 0) {
        print::put(", wrote ", out);
        detail::print_hex(found.wrote, out);
    }
    print::put(": expected ", out);
    detail::print_hex(found.expected, out);
    print::put(", seen ", out);
    detail::print_hex(found.seen, out);
}

/// Prints the head of a report: the version, and the plan.
template <class Sink>
constexpr void print_tap_head(unsigned checks, Sink&& out, text version = "TAP version 14") {
    print::put(version, out);
    print::put("\n1..", out);
    print::decimal(checks, out);
    print::put("\n", out);
}

/// A line of TAP.
struct tap_line {
    unsigned number = 0;
    text check{};
    rule primary = rule::none;  ///< the first rule of the check
    finding found{};
    text waived{};  ///< why the broken rule is waived; empty: it is not
    text where{};   ///< the type of the processors, if there are several
};

/// Prints `not ok 12 - CHECK RULE # what was expected and seen`.
template <class Sink>
constexpr void print_tap_line(tap_line const& line, Sink&& out) {
    auto const& found = line.found;
    bool const is_ok = found.what == outcome::holds || found.what == outcome::observed ||
                       found.what == outcome::skipped;
    print::put(is_ok ? text{"ok "} : text{"not ok "}, out);
    print::decimal(line.number, out);
    print::put(" - ", out);
    print::put(line.check, out);
    print::put(" ", out);
    print::put(rule_id{reported_rule(found, line.primary)}.view(), out);
    if (line.where.size() != 0) {
        print::put(" on ", out);
        print::put(line.where, out);
    }
    switch (found.what) {
        case outcome::holds: break;
        case outcome::observed: print::put(" # OBSERVED ", out); break;
        case outcome::skipped: print::put(" # SKIP ", out); break;
        case outcome::error: print::put(" # ERROR ", out); break;
        case outcome::unsteady: print::put(" # UNSTEADY ", out); break;
        case outcome::broken:
            print::put(" # ", out);
            if (line.waived.size() != 0) { print::put(detail::known, out); }
            break;
    }
    if (line.waived.size() != 0 && found.is_broken()) {
        print::put(line.waived, out);
    } else {
        print_why(found, out);
    }
    print::put("\n", out);
}

/// Prints the last line of a report, without its end: how many checks had each outcome.
template <class Sink>
constexpr void print_tap_counts(outcome_counts const& counts, Sink&& out) {
    print::put("# ", out);
    for (unsigned i = 0; i < outcome_counts::kinds; ++i) {
        auto const what = static_cast<outcome>(i);
        if (i != 0) { print::put(", ", out); }
        print::decimal(counts[what], out);
        print::put(" ", out);
        print::put(name_of(what), out);
        if (what == outcome::error) { print::put("s", out); }
    }
}

/// Prints `# runs NAME` before the first run of each check, so that the report of a machine that
/// hung ends with the check. For the `note` of a target.
class check_names {
public:
    template <class Sink>
    constexpr void note(text name, Sink&& out) {
        if (name.size() == 0 || name == last_) { return; }
        last_ = name;
        print::put(prefix, out);
        print::put(name, out);
        print::put("\n", out);
    }
    static constexpr text prefix = "# runs ";

private:
    text last_{};
};

/// Prints that the target ignores accesses to absent MSRs, and how many checks that decides.
template <class Sink>
constexpr void print_policy(unsigned decided, Sink&& out) {
    print::put("# ", out);
    print::put(by_policy, out);
    print::put("; it decides ", out);
    print::decimal(decided, out);
    print::put(" checks\n", out);
}

/// What the report says of a check that is left out.
inline constexpr text did_not_end = "it did not end the last time";

/// Runs all checks on a target, and prints a report of TAP. `is_left_out` is called with the name
/// of each check: true for one during which the machine hung, which does not run again.
template <target T, class Sink, callable<text> LeftOut>
[[nodiscard]] constexpr auto run_all(T& it, run_options options, Sink&& out, LeftOut&& is_left_out,
                                     text version = "TAP version 14") -> outcome_counts {
    unsigned checks = 0;
    for_each_check([&]<class Check>(text) { ++checks; });
    print_tap_head(checks, out, version);
    auto const caps = capabilities_of(it);
    options.absent = policy_of(it);
    outcome_counts counts{};
    unsigned decided = 0;
    for_each_check([&]<class Check>(text) {
        finding found{.what = outcome::error, .detail = did_not_end};
        if (!is_left_out(text{Check::name})) { found = run_check<Check>(it, caps, options); }
        counts.add(found.what);
        decided += found.detail == by_policy;
        print_tap_line({counts.total, Check::name, Check::rules.ids[0], found}, out);
    });
    if (options.absent == absence_policy::ignores) { print_policy(decided, out); }
    print_tap_counts(counts, out);
    print::put("\n", out);
    return counts;
}

}  // namespace ptspec::suite
