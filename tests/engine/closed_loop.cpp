// SPDX-License-Identifier: BSL-1.0
// Random programs on random configurations, under each kind of processor in turn: the reader
// returns what the unit recorded.
// GEN-005, GEN-023, GEN-025, GEN-080..105, GEN-110..139, GEN-170..176, GEN-203, GEN-211, GEN-216,
// GEN-218, GEN-227, GEN-236, GEN-240..243, GEN-250..257, GEN-300, GEN-310, GEN-313, GEN-340.
#include <support/how_many.hpp>
#include <support/program_runs.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

using namespace ptspec;
using namespace ptspec::test;

TEST_CASE("the reader returns what the unit recorded") {
#if defined(__powerpc__)  // emulated
    constexpr std::uint64_t usual_programs = 1'000;
#else
    constexpr std::uint64_t usual_programs = 10'000;
#endif
    auto const count = number_from("PTSPEC_PROGRAMS", usual_programs);
    std::uint64_t programs_of[programs::kind_count] = {};
    std::uint64_t items_of[programs::kind_count] = {};
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        CAPTURE(seed);
        test::dice from{seed};
        auto const with = programs::random_setting(from);
        auto const& of = programs::kind_of_run(seed);
        INFO(std::string_view{of.name.data(), of.name.size()});
        auto const how = programs::random_options(from, with, of);
        programs::program one{with, how, from};
        one.run(1000, seed % 4 == 0);
        CHECK(one.difference() == "");
        ++programs_of[underlying(of.which)];
        items_of[underlying(of.which)] += one.item_count();
    }
    for (auto const& of : engine::model_kinds) {
        MESSAGE(std::string_view{of.name.data(), of.name.size()}, ": ",
                programs_of[underlying(of.which)], " programs, ", items_of[underlying(of.which)],
                " items agree");
    }
}
