// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/attributes.hpp>

#include <support/check_twice.hpp>

#include <linux/perf_event.h>

#include <cstddef>
#include <cstring>
#include <random>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using config::config_member;

namespace {

/// The PMU of Linux 6.1, by /sys/bus/event_source/devices/intel_pt/format.
constexpr auto linux_pmu() -> pmu {
    pmu made{.type = 8};
    auto const set = [&](config_member one, uint8_t msb, uint8_t lsb) {
        made.terms[underlying(one)] = {msb, lsb, true};
    };
    made.pt = {0, 0, true};
    set(config_member::cyc, 1, 1);
    set(config_member::power_events, 4, 4);
    set(config_member::fup_on_ptwrite, 5, 5);
    set(config_member::mtc, 9, 9);
    set(config_member::tsc, 10, 10);
    set(config_member::ret_compression, 11, 11);
    set(config_member::ptwrite, 12, 12);
    set(config_member::branches, 13, 13);
    set(config_member::mtc_every, 17, 14);
    set(config_member::cyc_after, 22, 19);
    set(config_member::psb_every, 27, 24);
    set(config_member::event_trace, 31, 31);
    set(config_member::no_tnt, 55, 55);
    return made;
}
constexpr auto config_of(config::trace_config const& wanted, pmu const& of = linux_pmu())
    -> uint64_t {
    auto const made = attributes_of({.config = wanted}, of);
    return made ? uint64_t{made.attr.config} : ~uint64_t{0};
}

}  // namespace

TEST_CASE("the bits of a configuration stand where the kernel says") {
    CHECK_TWICE([](auto value) {
        bool const on = value(true);
        return config_of({.user = on}) == 0 && config_of({.user = on, .tsc = on}) == 1U << 10 &&
               config_of({.user = on, .cyc = on}) == 1U << 1 &&
               config_of({.user = on, .ptwrite = on, .fup_on_ptwrite = on}) ==
                   (1U << 12 | 1U << 5) &&
               config_of({.user = on, .ret_compression = false}) == 1U << 11 &&
               config_of({.user = on,
                          .mtc = on,
                          .mtc_every = config::mtc_period::of_crystal_cycles(8)}) ==
                   (1U << 9 | 3U << 14) &&
               config_of({.user = on, .branches = false}) == 1 &&
               config_of({.user = on, .event_trace = on}) == 1U << 31 &&
               config_of({.user = on, .no_tnt = on}) == uint64_t{1} << 55;
    });
}

TEST_CASE("a kernel may have other bits, and needs none for what is off") {
    CHECK_TWICE([](auto value) {
        pmu other{.type = 9};
        other.terms[underlying(config_member::tsc)] = {40, 40, true};
        other.terms[underlying(config_member::psb_every)] = {63, 60, true};
        auto const period = config::psb_period::encoded(wrapped{value(5U)});
        return config_of({.user = true, .tsc = value(true), .psb_every = period}, other) ==
                   (uint64_t{1} << 40 | uint64_t{5} << 60) &&
               config_of({.user = true}, other) == 0;
    });
}

TEST_CASE("what a kernel has no bits for is refused, by its member") {
    CHECK_TWICE([](auto value) {
        pmu small{};
        small.terms[underlying(config_member::mtc_every)] = {15, 14, true};
        small.terms[underlying(config_member::mtc)] = {9, 9, true};
        auto const member_of = [&](config::trace_config const& wanted) {
            auto const made = attributes_of({.config = wanted}, small);
            return made.result.what == failure::unsupported ? made.result.member
                                                            : config_member::os;
        };
        return member_of({.cyc = value(true)}) == config_member::cyc &&
               member_of({.branches = value(false)}) == config_member::branches &&
               member_of(
                   {.mtc = true, .mtc_every = config::mtc_period::encoded(wrapped{value(4U)})}) ==
                   config_member::mtc_every &&
               member_of({.cr3_filter = value(true)}) == config_member::cr3_filter &&
               attributes_of({.config = {.ptwrite = false, .fup_on_ptwrite = value(true)}},
                             linux_pmu())
                       .result.what == failure::refused;
    });
}

TEST_CASE("any configuration, with bits at any places") {
    std::mt19937_64 numbers{61};
    auto const chance = [&] { return numbers() % 2 == 0; };
    for (int turn = 0; turn < 2000; ++turn) {
        // The widths of the terms are those of the fields; the gaps between them are random.
        unsigned next = 0, left = 64 - 11 - 3 * 4;
        auto const term_of = [&](unsigned width) {
            unsigned const gap = static_cast<unsigned>(numbers() % (left / 3 + 1));
            left -= gap;
            unsigned const lsb = next + gap;
            next = lsb + width;
            return term{static_cast<uint8_t>(next - 1), static_cast<uint8_t>(lsb), true};
        };
        pmu of{.type = 8};
        uint64_t wanted = 0;
        auto const add = [&](config_member member, unsigned width, uint64_t value) {
            auto const made = term_of(width);
            of.terms[underlying(member)] = made;
            wanted |= value << made.lsb;
        };
        config::trace_config given{.user = true};
        unsigned const periods[] = {static_cast<unsigned>(numbers() % 16),
                                    static_cast<unsigned>(numbers() % 16),
                                    static_cast<unsigned>(numbers() % 16)};
        given.mtc_every = config::mtc_period::encoded(wrapped{periods[0]});
        given.cyc_after = config::cyc_threshold::encoded(wrapped{periods[1]});
        given.psb_every = config::psb_period::encoded(wrapped{periods[2]});
        add(config_member::psb_every, 4, periods[2]);
        add(config_member::tsc, 1, given.tsc = chance());
        add(config_member::mtc_every, 4, periods[0]);
        add(config_member::ret_compression, 1, !(given.ret_compression = chance()));
        add(config_member::cyc, 1, given.cyc = chance());
        add(config_member::mtc, 1, given.mtc = chance());
        add(config_member::cyc_after, 4, periods[1]);
        add(config_member::ptwrite, 1, given.ptwrite = chance());
        add(config_member::fup_on_ptwrite, 1, given.fup_on_ptwrite = given.ptwrite && chance());
        add(config_member::power_events, 1, given.power_events = chance());
        add(config_member::event_trace, 1, given.event_trace = chance());
        add(config_member::no_tnt, 1, given.no_tnt = chance());
        add(config_member::branches, 1, 0);
        given.branches = chance();
        of.pt = term_of(1);
        wanted |= uint64_t{!given.branches} << of.pt.lsb;  // `pt` alone: without branches
        CAPTURE(turn);
        auto const made = attributes_of({.config = given}, of);
        REQUIRE(made);
        REQUIRE(made.attr.config == wanted);
    }
}

TEST_CASE("the attributes are those of the kernel's structure") {
    auto const made = attributes_of({.config = {.os = true, .user = true},
                                     .begin = begin::at_exec,
                                     .inherits = true,
                                     .records_switches = true,
                                     .wakeup_bytes = 8192},
                                    linux_pmu());
    REQUIRE(made);
    ::perf_event_attr kernel{};
    static_assert(offsetof(::perf_event_attr, sig_data) ==
                  offsetof(file::perf_data::perf_event_attr, sig_data));
    std::memcpy(&kernel, file::to_bytes(made.attr).data(), 128);
    CHECK(kernel.type == 8);
    CHECK(kernel.size == PERF_ATTR_SIZE_VER7);
    CHECK(kernel.sample_type == (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
    CHECK(+kernel.disabled == 1);
    CHECK(+kernel.enable_on_exec == 1);
    CHECK(+kernel.inherit == 1);
    CHECK(+kernel.exclude_kernel == 0);
    CHECK(+kernel.exclude_user == 0);
    CHECK(+kernel.mmap2 == 1);
    CHECK(+kernel.comm_exec == 1);
    CHECK(+kernel.task == 1);
    CHECK(+kernel.context_switch == 1);
    CHECK(+kernel.sample_id_all == 1);
    CHECK(+kernel.text_poke == 1);
    CHECK(+kernel.ksymbol == 1);
    CHECK(+kernel.watermark == 1);
    CHECK(kernel.aux_watermark == 8192);
    auto const user = attributes_of({.config = {.user = true}, .begin = begin::at_open},
                                    linux_pmu());
    std::memcpy(&kernel, file::to_bytes(user.attr).data(), 128);
    CHECK(+kernel.disabled == 0);
    CHECK(+kernel.enable_on_exec == 0);
    CHECK(+kernel.exclude_kernel == 1);
    CHECK(+kernel.exclude_hv == 1);
    CHECK(+kernel.text_poke == 0);
}

TEST_CASE("the side band of an event has its records from the begin on, and no trace") {
    trace_options const wanted{.config = {.os = true},
                               .begin = begin::at_exec,
                               .inherits = true,
                               .records_processes = false,
                               .records_switches = true};
    ::perf_event_attr kernel{};
    std::memcpy(&kernel, file::to_bytes(side_band_of(wanted)).data(), 128);
    CHECK(kernel.type == PERF_TYPE_SOFTWARE);
    CHECK(kernel.config == PERF_COUNT_SW_DUMMY);
    CHECK(kernel.sample_period == 0);
    CHECK(+kernel.disabled == 0);
    CHECK(+kernel.enable_on_exec == 0);
    CHECK(+kernel.inherit == 1);
    CHECK(+kernel.mmap2 == 1);
    CHECK(+kernel.task == 1);
    CHECK(+kernel.context_switch == 1);
    CHECK(+kernel.text_poke == 1);
    auto const trace = attributes_of(wanted, linux_pmu());
    REQUIRE(trace);
    std::memcpy(&kernel, file::to_bytes(trace.attr).data(), 128);
    CHECK(+kernel.mmap2 == 0);
    CHECK(+kernel.comm == 0);
    CHECK(+kernel.task == 0);
    CHECK(+kernel.text_poke == 0);
}
