// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/kind_set.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <string>

using namespace ptspec;
using packet::kind;
using packet::kind_set;

TEST_CASE("a set has the kinds that were added") {
    CHECK_TWICE([](auto value) {
        auto set = packet::kinds_of(kind::tip, kind::trig);
        bool const had = set.has(value(kind::fup));
        set.add(value(kind::fup));
        return !had && set.has(kind::fup) && set.has(kind::tip) && set.has(value(kind::trig)) &&
               !set.has(value(kind::pad)) && set.bits == (1U << 3 | 1U << 6 | 1U << 31);
    });
    CHECK_TWICE([](auto value) {
        kind_set set{};
        set.add(value(kind::none));
        return set == kind_set{} && !kind_set{~kind_set::mask{}}.has(value(kind::none));
    });
}

TEST_CASE("the sets are those of packets.csv (PKT-134,138,205,272, GEN-213)") {
    auto const table = test::read_csv("tests/spec/packets.csv");
    unsigned row = 0;
    for (auto const& one : table.rows) {
        auto const which = static_cast<kind>(row++);
        CAPTURE(one["name"]);
        bool const is_psb = which == kind::psb || which == kind::psbend;
        CHECK(packet::unbound_kinds.has(which) == (one["binds_to_IP"] == "no" && !is_psb));
        CHECK(packet::psb_plus_kinds.has(which) == (one["allowed_in_psb_plus"] == "y"));
        CHECK(packet::block_kinds.has(which) == (one["block"] == "keeps"));
        CHECK(packet::cyc_kinds.has(which) == (one["cyc_eligible"] == "y"));
    }
    CHECK(row == packet::kind_count);
}
