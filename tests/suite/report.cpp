// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/report.hpp>

#include <support/suite_sweep.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace ptspec;
using suite::finding;
using suite::outcome;

/// A line, with the text that is expected.
constexpr auto is_line(finding const& found, text expected, text waived = {}) -> bool {
    char room[256] = {};
    print::text_buffer out{room};
    suite::print_tap_line({12, "locked-while-tracing", rule::REG_004, found, waived}, out);
    return out.written() == expected;
}

constexpr finding broken{.what = outcome::broken,
                         .which = rule::REG_021,
                         .msr = {0x570},
                         .wrote = 0x2001,
                         .expected = 1,
                         .seen = 0xAB,
                         .detail = "RDMSR after WRMSR"};

static_assert(is_line({}, "ok 12 - locked-while-tracing REG-004\n"));
static_assert(is_line(broken, "not ok 12 - locked-while-tracing REG-021 # RDMSR after WRMSR, MSR "
                              "570H, wrote 2001H: expected 1H, seen ABH\n"));
static_assert(is_line(broken,
                      "not ok 12 - locked-while-tracing REG-021 # TO"
                      "DO known\n",
                      "known"));
static_assert(is_line({.what = outcome::observed, .seen = 17, .detail = "lag"},
                      "ok 12 - locked-while-tracing REG-004 # OBSERVED lag: 17\n", "not broken"));
static_assert(is_line({.what = outcome::skipped, .detail = "unsafe"},
                      "ok 12 - locked-while-tracing REG-004 # SKIP unsafe\n"));
static_assert(is_line({.what = outcome::error, .detail = "vacuous"},
                      "not ok 12 - locked-while-tracing REG-004 # ERROR vacuous\n"));
static_assert(is_line({.what = outcome::unsteady, .detail = "disturbed"},
                      "not ok 12 - locked-while-tracing REG-004 # UNSTEADY disturbed\n"));

constexpr auto failures_of(outcome what) -> bool {
    suite::outcome_counts counts;
    counts.add(outcome::holds);
    counts.add(what);
    return counts.has_failures();
}
static_assert(!failures_of(outcome::holds) && !failures_of(outcome::observed));
static_assert(!failures_of(outcome::skipped) && failures_of(outcome::broken));
static_assert(failures_of(outcome::unsteady) && failures_of(outcome::error));
static_assert(suite::outcome_counts{}.is_empty());

/// The lines of a run of all checks on a model.
struct run_of_model {
    std::vector<std::string> lines{};
    suite::outcome_counts counts{};

    explicit run_of_model(suite::defect wrong, text left_out = {},
                          text version = "TAP version 14") {
        constexpr uint32_t pages = 64;
        std::vector<uint8_t> bytes(pages * suite::given_memory::page_bytes);
        auto const& caps = cpu::preset::skylake_x;
        suite::model_target target{caps, engine::options_of(caps), bytes.data(), pages, wrong};
        std::string all;
        counts = suite::run_all(
            target, {.runs = 1}, [&](text piece) { all.append(piece.data(), piece.size()); },
            [&](text check) { return check == left_out; }, version);
        for (size_t at = 0; at < all.size();) {
            auto const end = all.find('\n', at);
            lines.push_back(all.substr(at, end - at));
            at = end + 1;
        }
    }
};

}  // namespace

TEST_CASE("a run prints a plan, a line for each check, and the counts") {
    run_of_model const run{suite::defect::none};
    auto const checks = run.counts.total;
    REQUIRE(run.lines.size() == checks + 3);
    CHECK(run.lines[0] == "TAP version 14");
    CHECK(run.lines[1] == "1.." + std::to_string(checks));
    for (unsigned i = 0; i < checks; ++i) {
        auto const head = "ok " + std::to_string(i + 1) + " - ";
        CHECK(run.lines[i + 2].substr(0, head.size()) == head);
    }
    CHECK(run.lines.back() ==
          "# " + std::to_string(run.counts[outcome::holds]) + " holds, 0 broken, " +
              std::to_string(run.counts[outcome::observed]) + " observed, 0 unsteady, " +
              std::to_string(run.counts[outcome::skipped]) + " skipped, 0 errors");
    CHECK_FALSE(run.counts.has_failures());
    CHECK_FALSE(run.counts.is_empty());
}

TEST_CASE("a run on a model with a defect has broken rules") {
    run_of_model const run{suite::defect::refuses_all};
    CHECK(run.counts[outcome::broken] > 50);
    CHECK(run.counts.has_failures());
}

TEST_CASE("a check during which the machine hung does not run again, and is an error") {
    run_of_model const run{suite::defect::none, "topa-int", "KTAP version 1"};
    CHECK(run.lines[0] == "KTAP version 1");
    CHECK(run.counts[outcome::error] == 1);
    unsigned found = 0;
    for (auto const& line : run.lines) {
        found += line.find(" - topa-int ") != std::string::npos &&
                 line.find("# ERROR it did not end the last time") != std::string::npos;
    }
    CHECK(found == 1);
}
