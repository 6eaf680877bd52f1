// SPDX-License-Identifier: BSL-1.0
#include <check_machine/last_report.hpp>

#include <doctest/doctest.h>

namespace {

using namespace ptspec;
using check_machine::hung;

constexpr text whole = "TAP version 14\n1..3\n"
                       "# runs ctl-topa\nok 1 - ctl-topa REG-024\n"
                       "# runs ctl-topa-more\nok 2 - ctl-topa-more REG-024 # SKIP unsafe\n"
                       "# runs flush\nnot ok 3 - flush PRG-060 # expected 1H\n# 1 holds\n";
constexpr text ended_early = "1..3\n# runs ctl-topa\nok 1 - ctl-topa REG-024\n"
                             "# runs ctl-topa-more\n";
constexpr text left_out = "1..3\nok 1 - ctl-topa REG-024\n"
                          "not ok 2 - flush PRG-060 # ERROR it did not end the last time\n"
                          "ok 3 - it-did-not-end REG-001\n";

static_assert(!hung(whole, "ctl-topa") && !hung(whole, "ctl-topa-more") && !hung(whole, "flush"));
static_assert(hung(ended_early, "ctl-topa-more"));
static_assert(!hung(ended_early, "ctl-topa"));  // the name of the other one begins with it
static_assert(!hung(ended_early, "flush"));     // it was not reached
static_assert(hung(left_out, "flush") && !hung(left_out, "ctl-topa"));
static_assert(!hung("", "flush"));
static_assert(!hung("# runs flus", "flush"));  // a line that was not written whole
static_assert(check_machine::find("abcabd", "abd") == 3);
static_assert(check_machine::find("abc", "abd") == 3 && check_machine::find("abab", "ab", 1) == 2);

}  // namespace

TEST_CASE("a check is known to have hung until a run has its outcome") {
    CHECK(hung(ended_early, "ctl-topa-more"));
    CHECK_FALSE(hung(whole, "ctl-topa-more"));
    CHECK(hung(left_out, "flush"));
}
