// SPDX-License-Identifier: BSL-1.0
#include <ptspec/config/check_config.hpp>

#include <ptspec/cpu/presets.hpp>
#include <support/check_twice.hpp>

#include <random>

using namespace ptspec::cpu;
using namespace ptspec::config;
using ptspec::wrapped;
using ptspec::rule;
using ptspec::reg::addr_cfg;
using ptspec::reg::ia32_rtit_ctl;

namespace {

/// A configuration with every feature.
constexpr trace_config everything{
    .os = true,
    .user = true,
    .branches = true,
    .ret_compression = false,
    .no_tnt = true,
    .tsc = true,
    .mtc = true,
    .mtc_every = mtc_period::encoded(4),
    .cyc = true,
    .cyc_after = cyc_threshold::encoded(15),
    .psb_every = psb_period::encoded(7),
    .ptwrite = true,
    .fup_on_ptwrite = true,
    .power_events = true,
    .event_trace = true,
    .cr3_filter = true,
    .addr = {addr_cfg::filter, addr_cfg::trace_stop, addr_cfg::filter, addr_cfg::filter},
    .output = output_scheme::fabric,
    .inject_psb_pmi = true};

constexpr auto refuses(capabilities const& of, trace_config const& wanted, config_member which,
                       rule why) -> bool {
    auto const found = check(of, wanted);
    return !found && found.violation_count == 1 && found.violations[0] == violation{which, why} &&
           found.broken_by(which) == why && found.broken == rule::none;
}

constexpr auto member_of(trace_config const& config, config_member which) -> uint64_t {
    return ctl_of(config).raw & info_of(which).ctl_bits;
}

/// `config` with one member taken from `other`.
constexpr auto with_member(trace_config const& config, trace_config const& other,
                           config_member which) -> trace_config {
    auto const bits = info_of(which).ctl_bits;
    return config_of(ia32_rtit_ctl{(ctl_of(config).raw & ~bits) | (ctl_of(other).raw & bits)});
}

/// A random configuration, plausible or not.
auto random_config(std::mt19937_64& random) -> trace_config {
    uint64_t const raw = random();
    auto config = config_of(ia32_rtit_ctl{random() % 2 == 0 ? raw : raw & random()});
    if (random() % 8 == 0) {
        auto& range = config.addr[random() % 4];
        range = static_cast<addr_cfg>(static_cast<unsigned>(range) | (random() & 0xF0));
    }
    return config;
}

constexpr auto fits(trace_config const& config) -> bool {
    bool all = true;
    for (auto const range : config.addr) { all = all && static_cast<unsigned>(range) < 16; }
    return all;
}

constexpr auto is_legal_on(trace_config const& config, capabilities const& of) -> bool {
    return fits(config) &&
           ptspec::access::is_legal(of, ctl_of(config).with(ia32_rtit_ctl::TraceEn{true}));
}

}  // namespace

// ------------------------------------------------------------------------------------ refusals

TEST_CASE("supported features are not refused") {
    CHECK_TWICE([](auto value) {
        trace_config const config{.user = true,
                                  .tsc = true,
                                  .mtc = true,
                                  .mtc_every = mtc_period::encoded(wrapped{value(3U)}),
                                  .cyc = true,
                                  .cyc_after = cyc_threshold::encoded(13),
                                  .psb_every = psb_period::encoded(5),
                                  .addr = {addr_cfg::filter, addr_cfg::trace_stop}};
        auto const found = check(preset::P_SKL, config);
        return found && found.violation_count == 0 && found.begin() == found.end() &&
               found.nearest == config && found.advice == config_advice_set{} &&
               found.broken_by(config_member::mtc_every) == rule::none;
    });
}

TEST_CASE("a missing feature is refused by its rule (REG-027, REG-030..036)") {
    CHECK_TWICE([](auto value) {
        auto const of = value(preset::P_BDW);
        return refuses(of, {.mtc = true}, config_member::mtc, rule::REG_030) &&
               refuses(of, {.mtc_every = mtc_period::encoded(3)}, config_member::mtc_every,
                       rule::REG_030) &&
               refuses(of, {.cyc = true}, config_member::cyc, rule::REG_027) &&
               refuses(of, {.cyc_after = cyc_threshold::encoded(1)}, config_member::cyc_after,
                       rule::REG_027) &&
               refuses(of, {.psb_every = psb_period::encoded(1)}, config_member::psb_every,
                       rule::REG_027) &&
               refuses(of, {.ptwrite = true}, config_member::ptwrite, rule::REG_032) &&
               refuses(of, {.fup_on_ptwrite = true}, config_member::fup_on_ptwrite,
                       rule::REG_032) &&
               refuses(of, {.power_events = true}, config_member::power_events, rule::REG_033);
    });
    CHECK_TWICE([](auto value) {
        auto const of = value(preset::P_BDW);
        return refuses(of, {.inject_psb_pmi = true}, config_member::inject_psb_pmi,
                       rule::REG_034) &&
               refuses(of, {.event_trace = true}, config_member::event_trace, rule::REG_035) &&
               refuses(of, {.no_tnt = true}, config_member::no_tnt, rule::REG_036) &&
               refuses(of, {.addr = {addr_cfg::filter}}, config_member::addr_0, rule::REG_037) &&
               refuses(value(preset::P_SRO),
                       {.cr3_filter = true, .output = output_scheme::single_range},
                       config_member::cr3_filter, rule::REG_031);
    });
}

TEST_CASE("an encoding that is not enumerated is refused (REG-028)") {
    CHECK_TWICE([](auto value) {
        auto const of = value(preset::P_SKL);
        return refuses(of, {.mtc_every = mtc_period::encoded(4)}, config_member::mtc_every,
                       rule::REG_028) &&
               refuses(of, {.cyc_after = cyc_threshold::encoded(14)}, config_member::cyc_after,
                       rule::REG_028) &&
               refuses(of, {.psb_every = psb_period::encoded(6)}, config_member::psb_every,
                       rule::REG_028) &&
               check(of, {.mtc_every = mtc_period::encoded(4)}).nearest.mtc_every.encoding() == 3 &&
               check(of, {.cyc_after = cyc_threshold::encoded(14)}).nearest.cyc_after.encoding() ==
                   13 &&
               check(of, {.psb_every = psb_period::encoded(15)}).nearest.psb_every.encoding() == 5;
    });
}

TEST_CASE("a number that exceeds its field is refused, not truncated (REG-037)") {
    CHECK_TWICE([](auto value) {
        auto const of = value(preset::P_FUT);
        auto const too_large = addr_cfg{0x10};
        return refuses(of, {.addr = {too_large}}, config_member::addr_0, rule::REG_037) &&
               refuses(of, {.addr = {addr_cfg::off, too_large}}, config_member::addr_1,
                       rule::REG_037) &&
               refuses(of, {.addr = {addr_cfg::off, addr_cfg::off, too_large}},
                       config_member::addr_2, rule::REG_037) &&
               refuses(of, {.addr = {addr_cfg::off, addr_cfg::off, addr_cfg::off, too_large}},
                       config_member::addr_3, rule::REG_037) &&
               check(of, {.addr = {addr_cfg{0x11}}}).nearest.addr[0] == addr_cfg::off;
    });
}

TEST_CASE("a range that does not exist, or has a reserved ADDRn_CFG, is turned off (REG-037)") {
    CHECK_TWICE([](auto value) {
        trace_config const config{.addr = {addr_cfg::filter, addr_cfg{3}, addr_cfg::trace_stop}};
        auto const found = check(value(preset::P_SKL), config);
        return found.violation_count == 2 &&
               found.broken_by(config_member::addr_1) == rule::REG_037 &&
               found.broken_by(config_member::addr_2) == rule::REG_037 &&
               found.broken_by(config_member::addr_0) == rule::none &&
               found.nearest == trace_config{.addr = {addr_cfg::filter}};
    });
}

TEST_CASE("BranchEn cannot be 0 without MTC, or where an erratum keeps it on "
          "(REG-040, PRG-027)") {
    CHECK_TWICE([](auto value) {
        return refuses(value(preset::P_BDW), {.branches = false}, config_member::branches,
                       rule::REG_040) &&
               check(preset::P_BDW, {.branches = false}).nearest == trace_config{} &&
               static_cast<bool>(check(value(preset::P_SKL), {.branches = false})) &&
               static_cast<bool>(check(value(preset::P_BDW), {.branches = true}));
    });
    CHECK_TWICE([](auto value) {
        auto broadwell_model = value(preset::P_SKL);
        broadwell_model.leaf_01_eax = {0x4'06F1};
        return refuses(broadwell_model, {.branches = false}, config_member::branches,
                       rule::REG_040);
    });
}

TEST_CASE("a missing output scheme is replaced (REG-024..026)") {
    CHECK_TWICE([](auto value) {
        trace_config const range{.output = output_scheme::single_range};
        trace_config const fabric{.output = output_scheme::fabric};
        return refuses(value(preset::P_BDW), range, config_member::output, rule::REG_025) &&
               refuses(value(preset::P_BDW), fabric, config_member::output, rule::REG_026) &&
               refuses(value(preset::P_SRO), {}, config_member::output, rule::REG_024) &&
               check(preset::P_BDW, range).nearest.output == output_scheme::topa &&
               check(preset::P_SRO, {}).nearest.output == output_scheme::single_range &&
               check(preset::P_FAB, {}).nearest.output == output_scheme::fabric;
    });
}

TEST_CASE("every feature on Skylake-X gives twelve refusals, in the order of the members") {
    CHECK_TWICE([](auto value) {
        auto const found = check(value(preset::skylake_x), everything);
        violation const expected[] = {{config_member::no_tnt, rule::REG_036},
                                      {config_member::mtc_every, rule::REG_028},
                                      {config_member::cyc_after, rule::REG_028},
                                      {config_member::psb_every, rule::REG_028},
                                      {config_member::ptwrite, rule::REG_032},
                                      {config_member::fup_on_ptwrite, rule::REG_032},
                                      {config_member::power_events, rule::REG_033},
                                      {config_member::event_trace, rule::REG_035},
                                      {config_member::addr_2, rule::REG_037},
                                      {config_member::addr_3, rule::REG_037},
                                      {config_member::output, rule::REG_026},
                                      {config_member::inject_psb_pmi, rule::REG_034}};
        bool same = found.violation_count == 12;
        unsigned n = 0;
        for (auto const& one : found) { same = same && one == expected[n++]; }
        return same && n == 12 && !found;
    });
    CHECK_TWICE([](auto value) {
        auto const found = check(value(preset::skylake_x), everything);
        return found.nearest == trace_config{.os = true,
                                             .user = true,
                                             .ret_compression = false,
                                             .tsc = true,
                                             .mtc = true,
                                             .mtc_every = mtc_period::encoded(3),
                                             .cyc = true,
                                             .cyc_after = cyc_threshold::encoded(13),
                                             .psb_every = psb_period::encoded(5),
                                             .cr3_filter = true,
                                             .addr = {addr_cfg::filter, addr_cfg::trace_stop}};
    });
}

TEST_CASE(
    "without Intel PT, or without an output scheme, tracing is impossible (REG-001, PRG-003)") {
    CHECK_TWICE([](auto value) {
        auto const found = check(value(preset::P_NONE), everything);
        return !found && found.broken == rule::REG_001 && found.violation_count == 0 &&
               found.nearest == everything;
    });
    CHECK_TWICE([](auto value) {
        auto hidden = value(preset::P_SKL);
        hidden.leaf_07_0_ebx = {0};  // leaf 14H still exists
        auto const found = check(hidden, trace_config{.user = true});
        return !found && found.broken == rule::REG_001;
    });
    CHECK_TWICE([](auto value) {
        auto without_output = value(preset::P_SKL);
        without_output.leaf_14_0_ecx = {0x8000'0002};
        auto const found = check(without_output, everything);
        return !found && found.broken == rule::REG_025 && found.violation_count == 0 &&
               found.nearest == everything;
    });
}

// ------------------------------------------------------------------------------------ laws

TEST_CASE("a verdict is true exactly when the value of IA32_RTIT_CTL is legal with TraceEn") {
    std::mt19937_64 random{5};
    unsigned wrong = 0;
    unsigned good = 0;
    for (auto const& one : preset::all) {
        for (unsigned i = 0; i < 1500; ++i) {
            auto const wanted = random_config(random);
            auto const found = check(one.value, wanted);
            bool const legal = one.value.has_pt() && is_legal_on(wanted, one.value);
            if (static_cast<bool>(found) != legal) { ++wrong; }
            good += found ? 1U : 0U;
        }
    }
    CHECK(wrong == 0);
    CHECK(good > 20);
}

TEST_CASE(
    "the nearest configuration is legal, differs only where necessary, and is its own nearest") {
    std::mt19937_64 random{6};
    unsigned wrong = 0;
    for (auto const& one : preset::all) {
        if (!one.value.has_pt()) { continue; }
        for (unsigned i = 0; i < 1500; ++i) {
            auto const wanted = random_config(random);
            auto const found = check(one.value, wanted);
            auto const again = check(one.value, found.nearest);
            if (!is_legal_on(found.nearest, one.value) || !again ||
                !(again.nearest == found.nearest) || !(again.advice == found.advice)) {
                ++wrong;
            }
            for (auto const& info : config_members) {
                bool const refused = found.broken_by(info.member) != rule::none;
                bool const same = member_of(found.nearest, info.member) ==
                                  member_of(wanted, info.member);
                if (!refused && !same) { ++wrong; }
                // Reverting one change is refused again.
                if (refused && fits(wanted) &&
                    check(one.value, with_member(found.nearest, wanted, info.member))) {
                    ++wrong;
                }
            }
            if (found && !(found.nearest == wanted)) { ++wrong; }
        }
    }
    CHECK(wrong == 0);
}

// ------------------------------------------------------------------------------------ advice

TEST_CASE("a setting without use gives advice, not a refusal (REG-032, REG-041, REG-047, "
          "PRG-132)") {
    auto const only = [](trace_config const& config, config_advice one, uint8_t bit) {
        auto const found = check(preset::P_FUT, config);
        return found && found.advice.bits == bit && found.advice.has(one) &&
               !config_advice_set{~uint32_t{bit}}.has(one);
    };
    CHECK_TWICE([=](auto value) {
        bool const on = value(true);
        return only({}, config_advice::nothing_to_trace, 1) &&
               only({.user = on, .cyc = on}, config_advice::cyc_without_tsc, 2) &&
               only({.user = on, .cyc_after = cyc_threshold::encoded(1)},
                    config_advice::threshold_without_cyc, 4) &&
               only({.os = on, .branches = false, .no_tnt = on},
                    config_advice::no_tnt_without_branches, 8) &&
               only({.os = on, .fup_on_ptwrite = on}, config_advice::fup_without_ptwrite, 16);
    });
    CHECK_TWICE([](auto value) {
        bool const on = value(true);
        auto const has_no_advice = [](trace_config const& config) {
            return check(preset::P_FUT, config).advice == config_advice_set{};
        };
        return has_no_advice({.os = on}) && has_no_advice({.user = on}) &&
               has_no_advice(
                   {.user = on, .tsc = on, .cyc = on, .cyc_after = cyc_threshold::encoded(1)}) &&
               has_no_advice({.user = on, .no_tnt = on}) &&
               has_no_advice({.user = on, .branches = false}) &&
               has_no_advice({.user = on, .ptwrite = on, .fup_on_ptwrite = on}) &&
               !(check(preset::P_FUT, {}).advice == config_advice_set{});
    });
}

TEST_CASE("a single range of one page is advised where longer ranges are not reliable") {
    static constexpr trace_config range{.user = true, .output = output_scheme::single_range};
    CHECK_TWICE([](auto value) {
        auto const found = check(value(preset::tiger_lake), range);
        return found && found.advice.has(config_advice::range_of_one_page) &&
               found.advice.bits == 0x20 &&
               check(preset::tiger_lake, trace_config{.user = true}).advice.bits == 0 &&
               check(preset::ice_lake_u, range).advice.bits == 0;
    });
}

TEST_CASE("there is advice where a ToPA table has only one region (REG-163)") {
    CHECK_TWICE([](auto value) {
        auto const found = check(value(preset::P_BDW), trace_config{.user = true});
        return found && found.advice.has(config_advice::table_of_one_region) &&
               found.advice.bits == 0x40 &&
               check(preset::P_SKL, trace_config{.user = true}).advice.bits == 0;
    });
    CHECK_TWICE([](auto value) {
        auto part = value(preset::P_SKL);
        part.leaf_14_0_ecx = {0x5};
        return check(part, {.user = true, .output = output_scheme::single_range}).advice.bits == 0;
    });
}

TEST_CASE("advice is about the nearest configuration, not about refused members") {
    CHECK_TWICE([](auto value) {
        trace_config const range{
            .user = true, .fup_on_ptwrite = true, .output = output_scheme::single_range};
        return check(value(preset::P_BDW), range).advice.bits == 0x40 &&
               check(value(preset::P_NONE), range).advice.bits == 0;
    });
}

TEST_CASE("every advice has its own sentence") {
    config_advice const all[] = {
        config_advice::nothing_to_trace,      config_advice::cyc_without_tsc,
        config_advice::threshold_without_cyc, config_advice::no_tnt_without_branches,
        config_advice::fup_without_ptwrite,   config_advice::range_of_one_page,
        config_advice::table_of_one_region};
    for (auto const one : all) {
        CHECK(describe(one).size() > 20);
        for (auto const other : all) {
            CHECK((describe(one) == describe(other)) == (one == other));
        }
    }
    CHECK_TWICE([](auto value) {
        return describe(value(config_advice::range_of_one_page)) ==
                   ptspec::text{"on this model a single range of more than 4 KB is not reliable"} &&
               describe(value(config_advice{0x80})) == ptspec::text{"unknown advice"};
    });
}
