// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/check_options.hpp>

#include <support/check_twice.hpp>
#include <support/how_many.hpp>
#include <support/program_runs.hpp>

#include <ptspec/trace/check/checker.hpp>

#include <cstdint>
#include <string>

using namespace ptspec;
using engine::model_kind;
namespace programs = test::programs;

TEST_CASE("a kind is checked for what it writes, manual only for what all do (GEN-009)") {
    CHECK_TWICE([](auto value) {
        auto const bdw = engine::check_options_of(value(model_kind::broadwell));
        auto const skl = engine::check_options_of(value(model_kind::skylake));
        auto const atom = engine::check_options_of(value(model_kind::atom));
        return !engine::check_options_of(value(model_kind::manual)).has_model && bdw.has_model &&
               bdw.writes.tnt_capacity == 44 && bdw.end_alignment == 8 &&
               bdw.writes.pads == trace::pad_policy::broadwell && bdw.has_tsx &&
               skl.writes.ips == trace::ip_choice::skylake && skl.end_alignment == 16 &&
               skl.writes.in_psb == trace::psb_order::skylake && atom.has_model && !atom.has_tsx &&
               atom.writes.pads == trace::pad_policy::none &&
               atom.writes.in_psb == trace::psb_order::atom;
    });
}

TEST_CASE("what a unit of each kind writes has no finding (GEN-005)") {
    auto const count = test::number_from("PTSPEC_PROGRAMS", 1'000);
    for (auto const& one : engine::model_kinds) {
        std::string const name{one.name.data(), one.name.size()};
        for (std::uint64_t seed = 1; seed <= count; ++seed) {
            test::dice from{seed};
            auto const with = programs::random_setting(from);
            programs::program run{with, one.options, from};
            run.run(400, false);
            std::string found;
            trace::check(run.bytes(), engine::check_options_of(one.which),
                         [&](trace::violation const& each) {
                             found += std::to_string(each.offset) + ' ' +
                                      rule_id{each.broken}.letters + '\n';
                         });
            CAPTURE(seed);
            CAPTURE(name);
            CHECK(found == "");
        }
    }
}
