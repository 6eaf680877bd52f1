// SPDX-License-Identifier: BSL-1.0
#include <ptspec/config/trace_config.hpp>

#include <support/check_twice.hpp>

#include <cstdint>
#include <random>

using namespace ptspec::cpu;
using namespace ptspec::config;
using ptspec::wrapped;
using ptspec::text;
using ptspec::reg::addr_cfg;
using ptspec::reg::ia32_rtit_ctl;

namespace {

/// Everything off, into a single range: CTL is 0 except for what a test sets.
constexpr trace_config nothing{.branches = false, .output = output_scheme::single_range};

template <class Change>
constexpr auto ctl_with(Change change) -> uint64_t {
    auto config = nothing;
    change(config);
    return ctl_of(config).raw;
}

/// The bits of CTL that belong to no member: TraceEn and reserved bits (REG-044).
constexpr uint64_t no_member = 0xFE7F'0000'7084'0001;

}  // namespace

TEST_CASE("a default configuration traces only branches, into ToPA") {
    CHECK_TWICE([](auto value) {
        auto const ctl = ctl_of(value(trace_config{}));
        return ctl.raw == 0x2100 && ctl_of(value(nothing)).raw == 0;
    });
}

TEST_CASE("each member maps to its field of IA32_RTIT_CTL") {
    CHECK_TWICE([](auto value) {
        bool const on = value(true);
        return ctl_with([=](auto& c) { c.cyc = on; }) == 1U << 1 &&
               ctl_with([=](auto& c) { c.os = on; }) == 1U << 2 &&
               ctl_with([=](auto& c) { c.user = on; }) == 1U << 3 &&
               ctl_with([=](auto& c) { c.power_events = on; }) == 1U << 4 &&
               ctl_with([=](auto& c) { c.fup_on_ptwrite = on; }) == 1U << 5 &&
               ctl_with([=](auto& c) { c.cr3_filter = on; }) == 1U << 7 &&
               ctl_with([=](auto& c) { c.mtc = on; }) == 1U << 9 &&
               ctl_with([=](auto& c) { c.tsc = on; }) == 1U << 10 &&
               ctl_with([=](auto& c) { c.ret_compression = !on; }) == 1U << 11 &&
               ctl_with([=](auto& c) { c.ptwrite = on; }) == 1U << 12 &&
               ctl_with([=](auto& c) { c.branches = on; }) == 1U << 13;
    });
    CHECK_TWICE([](auto value) {
        bool const on = value(true);
        unsigned const n = value(0xBU);
        return ctl_with([=](auto& c) { c.mtc_every = mtc_period::encoded(wrapped{n}); }) ==
                   0xB << 14 &&
               ctl_with([=](auto& c) { c.cyc_after = cyc_threshold::encoded(wrapped{n}); }) ==
                   0xB << 19 &&
               ctl_with([=](auto& c) { c.psb_every = psb_period::encoded(wrapped{n}); }) ==
                   0xB << 24 &&
               ctl_with([=](auto& c) { c.event_trace = on; }) == 0x8000'0000 &&
               ctl_with([=](auto& c) { c.no_tnt = on; }) == 0x0080'0000'0000'0000 &&
               ctl_with([=](auto& c) { c.inject_psb_pmi = on; }) == 0x0100'0000'0000'0000;
    });
    CHECK_TWICE([](auto value) {
        auto const stop = value(addr_cfg::trace_stop);
        return ctl_with([=](auto& c) { c.addr[0] = stop; }) == 0x2'0000'0000 &&
               ctl_with([=](auto& c) { c.addr[1] = stop; }) == 0x20'0000'0000 &&
               ctl_with([=](auto& c) { c.addr[2] = addr_cfg::filter; }) == 0x100'0000'0000 &&
               ctl_with([=](auto& c) { c.addr[3] = stop; }) == 0x2000'0000'0000;
    });
}

TEST_CASE("the output scheme is two bits (REG-026)") {
    CHECK_TWICE([](auto value) {
        return ctl_with([&](auto& c) { c.output = value(output_scheme::topa); }) == 0x100 &&
               ctl_with([&](auto& c) { c.output = value(output_scheme::fabric); }) == 0x40 &&
               ctl_with([&](auto& c) { c.output = value(output_scheme::single_range); }) == 0;
    });
    CHECK_TWICE([](auto value) {
        return output_scheme_of({value(uint64_t{0x100})}) == output_scheme::topa &&
               output_scheme_of({value(uint64_t{0x40})}) == output_scheme::fabric &&
               output_scheme_of({value(uint64_t{0x140})}) == output_scheme::fabric &&
               output_scheme_of({~value(uint64_t{0x140})}) == output_scheme::single_range;
    });
}

TEST_CASE("a usual configuration is the number that a driver would write") {
    CHECK_TWICE([](auto value) {
        trace_config const config{.os = true,
                                  .user = value(true),
                                  .tsc = true,
                                  .mtc = true,
                                  .mtc_every = mtc_period::encoded(wrapped{value(3U)}),
                                  .psb_every = psb_period::encoded(5)};
        return ctl_of(config).raw == 0x0500'E70C;
    });
}

TEST_CASE("ctl_of(config_of()) keeps every bit of IA32_RTIT_CTL that belongs to a member") {
    std::mt19937_64 random{4};
    unsigned wrong = 0;
    for (unsigned i = 0; i < 20000; ++i) {
        uint64_t const raw = i < 64 ? uint64_t{1} << i : random();
        uint64_t expected = raw & ~no_member;
        if ((raw & 0x40) != 0) { expected &= ~uint64_t{0x100}; }
        auto const config = config_of(ia32_rtit_ctl{raw});
        if (ctl_of(config).raw != expected) { ++wrong; }
        if (!(config_of(ctl_of(config)) == config)) { ++wrong; }
    }
    CHECK(wrong == 0);
    CHECK_TWICE([](auto value) {
        return ctl_of(config_of({value(uint64_t{0x0180'2102'8508'FEBE})})).raw ==
                   0x0180'2102'8508'FEBE &&
               config_of({value(uint64_t{0x2101})}) == trace_config{} &&
               config_of({value(uint64_t{0})}) == nothing;
    });
}

TEST_CASE("config_of reads each field into its member") {
    CHECK_TWICE([](auto value) {
        auto const config = config_of({value(uint64_t{0x0080'3210'8500'D60E})});
        return config == trace_config{.os = true,
                                      .user = true,
                                      .branches = false,
                                      .no_tnt = true,
                                      .tsc = true,
                                      .mtc = true,
                                      .mtc_every = mtc_period::encoded(3),
                                      .cyc = true,
                                      .psb_every = psb_period::encoded(5),
                                      .ptwrite = true,
                                      .event_trace = true,
                                      .addr = {addr_cfg::off, addr_cfg::filter,
                                               addr_cfg::trace_stop, addr_cfg{3}},
                                      .output = output_scheme::single_range};
    });
    CHECK_TWICE([](auto value) {
        return config_of({value(uint64_t{0x0100'0001'0038'29B0})}) ==
               trace_config{.branches = true,
                            .ret_compression = false,
                            .cyc_after = cyc_threshold::encoded(7),
                            .fup_on_ptwrite = true,
                            .power_events = true,
                            .cr3_filter = true,
                            .addr = {addr_cfg::filter},
                            .inject_psb_pmi = true};
    });
}

TEST_CASE("a number that exceeds ADDRn_CFG is truncated to four bits") {
    CHECK_TWICE([](auto value) {
        return ctl_with([&](auto& c) { c.addr[1] = value(addr_cfg{0x21}); }) == 0x10'0000'0000;
    });
}

// ------------------------------------------------------------------------------------ members

TEST_CASE("the members partition the bits of IA32_RTIT_CTL that they use") {
    uint64_t seen = no_member;
    unsigned count = 0;
    for (auto const& info : config_members) {
        CAPTURE(count);
        CHECK(static_cast<unsigned>(info.member) == count);
        CHECK(&info_of(info.member) == &info);
        CHECK((seen & info.ctl_bits) == 0);
        CHECK(info.ctl_bits != 0);
        CHECK(info.name.size() != 0);
        seen |= info.ctl_bits;
        ++count;
    }
    CHECK(config_member_count == count);
    CHECK(config_member_info{}.ctl_bits == 0);
    CHECK(sizeof(trace_config::addr) == 4);
    CHECK(seen == ~uint64_t{0});
}

TEST_CASE("a member's bits are those that change with it, and its name is its spelling") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](config_member which, uint64_t bits, text name) {
            return info_of(value(which)).ctl_bits == bits && info_of(which).name == name;
        };
        return is(config_member::os, 1U << 2, "os") && is(config_member::user, 1U << 3, "user") &&
               is(config_member::branches, 1U << 13, "branches") &&
               is(config_member::ret_compression, 1U << 11, "ret_compression") &&
               is(config_member::no_tnt, uint64_t{1} << 55, "no_tnt") &&
               is(config_member::tsc, 1U << 10, "tsc") && is(config_member::mtc, 1U << 9, "mtc") &&
               is(config_member::mtc_every, 0x3C000, "mtc_every") &&
               is(config_member::cyc, 2, "cyc") &&
               is(config_member::cyc_after, 0x78'0000, "cyc_after") &&
               is(config_member::psb_every, 0xF00'0000, "psb_every");
    });
    CHECK_TWICE([](auto value) {
        auto const is = [&](config_member which, uint64_t bits, text name) {
            return info_of(value(which)).ctl_bits == bits && info_of(which).name == name;
        };
        return is(config_member::ptwrite, 1U << 12, "ptwrite") &&
               is(config_member::fup_on_ptwrite, 1U << 5, "fup_on_ptwrite") &&
               is(config_member::power_events, 1U << 4, "power_events") &&
               is(config_member::event_trace, 0x8000'0000, "event_trace") &&
               is(config_member::cr3_filter, 1U << 7, "cr3_filter") &&
               is(config_member::addr_0, 0xF'0000'0000, "addr[0]") &&
               is(config_member::addr_1, 0xF0'0000'0000, "addr[1]") &&
               is(config_member::addr_2, 0xF00'0000'0000, "addr[2]") &&
               is(config_member::addr_3, 0xF000'0000'0000, "addr[3]") &&
               is(config_member::output, 0x140, "output") &&
               is(config_member::inject_psb_pmi, uint64_t{1} << 56, "inject_psb_pmi");
    });
}

TEST_CASE("a set contains the members that were added") {
    CHECK_TWICE([](auto value) {
        config_member_set some;
        bool const empty = some.empty();
        some.add(value(config_member::inject_psb_pmi));
        some.add(config_member::user);
        auto again = some;
        again.add(config_member::user);
        return empty && !some.empty() && some.has(config_member::user) && again == some &&
               some.has(config_member::inject_psb_pmi) && !some.has(config_member::os) &&
               !some.has(config_member::branches) && some.bits == 0x20'0002 &&
               !(some == config_member_set{});
    });
}
