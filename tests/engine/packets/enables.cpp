// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/packets/enables.hpp>

#include <support/check_twice.hpp>

#include <cstdint>

using namespace ptspec;
using engine::enables;
using engine::evaluate;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

namespace {

constexpr auto running_state() -> access::msr_state {
    access::msr_state now;
    now.ctl = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true}, ctl::BranchEn{true});
    now.status = status{}.with(status::TriggerEn{true}, status::ContextEn{true},
                               status::FilterEn{true});
    return now;
}
/// A filter range from 1000H to 10FFH, a TraceStop range from 10F0H to 20FFH.
constexpr auto with_ranges() -> access::msr_state {
    auto now = running_state();
    now.ctl = now.ctl.with(ctl::ADDR0_CFG{reg::addr_cfg::filter},
                           ctl::ADDR1_CFG{reg::addr_cfg::trace_stop});
    now.addr[0] = {{0x1000}, {0x10FF}};
    now.addr[1] = {{0x10F0}, {0x20FF}};
    return now;
}
constexpr auto const& caps = cpu::preset::P_FUT;

constexpr auto branch_to(access::msr_state const& now, std::uint64_t ip) -> engine::evaluated {
    return evaluate(caps, now, {.ip = ip}, {true, ip, ip});
}

}  // namespace

TEST_CASE("PacketEn is 1 where all four enables are") {  // GEN-020, GEN-026, GEN-027
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bits = 0; bits < 16; ++bits) {
            unsigned const is = value(bits);
            enables const now{(is & 1) != 0, (is & 2) != 0, (is & 4) != 0, (is & 8) != 0};
            good = good && now.packet() == (bits == 15);
            auto state = running_state();
            state.ctl = state.ctl.with(ctl::BranchEn{now.branch});
            state.status = state.status.with(status::TriggerEn{now.trigger},
                                             status::ContextEn{now.context},
                                             status::FilterEn{now.filter});
            good = good && engine::enables_of(caps, state) == now;
        }
        return good;
    });
    CHECK_TWICE([](auto value) {  // without filtering by IP FilterEn counts as 1: GEN-025
        auto state = running_state();
        state.status = state.status.with(status::FilterEn{value(false)});
        return engine::enables_of(cpu::preset::P_BDW, state).filter;
    });
}

TEST_CASE("a branch is judged by where it goes: in a filter range, in a TraceStop range") {
    // GEN-080, GEN-081, GEN-083, GEN-085
    CHECK_TWICE([](auto value) {
        auto const now = with_ranges();
        auto const first = branch_to(now, value(std::uint64_t{0x1000}));
        auto const before = branch_to(now, value(std::uint64_t{0xFFF}));
        auto const both = branch_to(now, value(std::uint64_t{0x10F0}));
        auto const stop = branch_to(now, value(std::uint64_t{0x20FF}));
        auto const behind = branch_to(now, value(std::uint64_t{0x2100}));
        return first.after.filter && first.after.packet() && !first.trace_stop &&
               !before.after.filter && !before.trace_stop && both.trace_stop &&
               !both.after.filter && stop.trace_stop && !behind.trace_stop && !behind.after.filter;
    });
}

TEST_CASE("a TraceStop sets Stopped and drops TriggerEn; the packets are chosen as if it did not") {
    // GEN-005, GEN-090
    CHECK_TWICE([](auto value) {
        engine::evaluated const done = branch_to(with_ranges(), value(std::uint64_t{0x2000}));
        return done.status.get<status::Stopped>() && !done.status.get<status::TriggerEn>() &&
               !done.status.get<status::FilterEn>() && done.status.get<status::ContextEn>() &&
               done.after == enables{true, true, false, true};
    });
}

TEST_CASE("out of context no range is asked") {  // GEN-025, GEN-089
    CHECK_TWICE([](auto value) {
        auto now = with_ranges();
        now.ctl = now.ctl.with(ctl::OS{value(false)});
        engine::evaluated const done = branch_to(now, 0x2000);
        return !done.trace_stop && !done.after.context && done.after.filter &&
               !done.status.get<status::ContextEn>() && done.status.get<status::FilterEn>();
    });
}

TEST_CASE("what is no point of evaluation leaves FilterEn, and nothing moves without TriggerEn") {
    // GEN-024, GEN-084
    CHECK_TWICE([](auto value) {
        engine::evaluated const done = evaluate(caps, with_ranges(),
                                                {.ip = value(std::uint64_t{0x2000})}, {});
        return done.after.packet() && !done.trace_stop;
    });
    CHECK_TWICE([](auto value) {
        auto now = with_ranges();
        now.status = now.status.with(status::TriggerEn{value(false)});
        engine::evaluated const done = branch_to(now, 0x2000);
        return done.status == now.status && !done.trace_stop && !done.after.trigger &&
               done.after.context;
    });
}

TEST_CASE("FilterEn and TraceStop may be judged by different instructions") {  // GEN-087
    CHECK_TWICE([](auto value) {
        auto const at = [&](std::uint64_t filter, std::uint64_t stop) {
            return evaluate(caps, with_ranges(), {}, {true, value(filter), value(stop)});
        };
        return at(0x1000, 0xFFF).after.filter && !at(0x1000, 0xFFF).trace_stop &&
               at(0x1000, 0x2000).trace_stop && !at(0x1000, 0x2000).after.filter &&
               at(0x10F0, 0x1000).after.filter && !at(0x10F0, 0x1000).trace_stop;
    });
}

TEST_CASE("an empty range matches nothing, and keeps FilterEn 0") {  // GEN-082
    CHECK_TWICE([](auto value) {
        auto now = running_state();
        now.ctl = now.ctl.with(ctl::ADDR0_CFG{reg::addr_cfg::filter});
        now.addr[0] = {{value(std::uint64_t{0x2000})}, {0x1FFF}};
        return !branch_to(now, 0x2000).after.filter && !branch_to(now, 0x1FFF).after.filter;
    });
}

TEST_CASE("OS and User say which privilege levels are traced") {  // GEN-023, GEN-050
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned both = 0; both < 4; ++both) {
            auto now = running_state();
            now.ctl = now.ctl.with(ctl::OS{(value(both) & 1) != 0},
                                   ctl::User{(value(both) & 2) != 0});
            for (unsigned cpl = 0; cpl < 4; ++cpl) {
                bool const traced = cpl == 0 ? both == 1 || both == 3 : both >= 2;
                good = good && evaluate(caps, now, {.cpl = cpl}, {}).after.context == traced;
            }
        }
        return good;
    });
}

TEST_CASE("CR3 is compared from bit 12 on, in PAE paging from bit 5 on") {
    // GEN-060..062; GEN-061 leaves open whether paging has to be on
    CHECK_TWICE([](auto value) {
        auto now = running_state();
        now.ctl = now.ctl.with(ctl::CR3Filter{true});
        now.cr3_match = {value(std::uint64_t{0x12345020})};
        auto const traces = [&](std::uint64_t cr3, bool pae) {
            return evaluate(caps, now, {.cr3 = cr3, .pae = pae}, {}).after.context;
        };
        return traces(0x12345FFF, false) && !traces(0x12344020, false) &&
               traces(0x1234503F, true) && !traces(0x12345000, true) && !traces(0x12345040, true);
    });
    CHECK_TWICE([](auto value) {  // a match alone does not make a context
        auto now = running_state();
        now.ctl = now.ctl.with(ctl::CR3Filter{true}, ctl::OS{value(false)});
        return !evaluate(caps, now, {}, {}).after.context;
    });
}

TEST_CASE("at first nothing is enabled, looked up or stopped") {
    CHECK_TWICE([](auto value) {
        auto const none = value(engine::enables{});
        auto const ips = value(engine::tested_ips{});
        auto const done = value(engine::evaluated{});
        return !none.trigger && !none.context && !none.filter && !none.branch && !ips.any &&
               ips.filter == 0 && ips.trace_stop == 0 && !done.trace_stop && done.after == none &&
               done.status.raw == 0;
    });
}

TEST_CASE("around an IP are those to which a branch changes nothing") {  // GEN-080..085
    using engine::ip_span;
    using engine::traced_around;
    constexpr auto all = ~std::uint64_t{0};
    constexpr auto with = [](reg::addr_cfg zero, access::address_range const& first,
                             reg::addr_cfg one, access::address_range const& second) {
        auto now = running_state();
        now.ctl = now.ctl.with(ctl::ADDR0_CFG{zero}, ctl::ADDR1_CFG{one});
        now.addr[0] = first;
        now.addr[1] = second;
        return now;
    };
    constexpr auto off = reg::addr_cfg::off;
    constexpr auto filter = reg::addr_cfg::filter;
    constexpr auto stop = reg::addr_cfg::trace_stop;
    CHECK_TWICE([=](auto value) {
        access::address_range const low{{0x2000}, {value(std::uint64_t{0x2FFF})}};
        access::address_range const high{{0x5000}, {0x5FFF}};
        auto const two = with(filter, low, filter, high);
        auto const stops = with(stop, low, stop, high);
        auto const both = with(filter, {{0x2000}, {0x5FFF}}, stop, {{0x3000}, {0x3FFF}});
        return traced_around(with(off, low, off, high), 0x2000) == ip_span{0, all} &&
               traced_around(two, 0x2000) == ip_span{0x2000, 0x2FFF} &&
               traced_around(two, 0x2FFF) == ip_span{0x2000, 0x2FFF} &&
               traced_around(two, 0x5800) == ip_span{0x5000, 0x5FFF} &&
               traced_around(two, 0x3000) == ip_span{} &&
               traced_around(stops, 0x1FFF) == ip_span{0, 0x1FFF} &&
               traced_around(stops, 0x3000) == ip_span{0x3000, 0x4FFF} &&
               traced_around(stops, 0x6000) == ip_span{0x6000, all} &&
               traced_around(stops, 0x2000) == ip_span{} &&
               traced_around(both, 0x2FFF) == ip_span{0x2000, 0x2FFF} &&
               traced_around(both, 0x4000) == ip_span{0x4000, 0x5FFF} &&
               traced_around(both, 0x3000) == ip_span{};
    });
    CHECK_TWICE([=](auto value) {
        return value(ip_span{}).size() == 0 && value(ip_span{0, all}).size() == all &&
               value(ip_span{1, all}).size() == all && value(ip_span{5, 5}).size() == 1 &&
               value(ip_span{0x2000, 0x2FFF}).size() == 0x1000 && ip_span{}.first > ip_span{}.last;
    });
    // Wherever a branch goes from there, it finds what is said, and next to it something else.
    auto const is_valid_packet = [=](access::msr_state const& now, bool has_order) {
        auto const is_traced = [&](std::uint64_t ip) {
            auto const done = branch_to(now, ip);
            return done.after.filter && !done.trace_stop;
        };
        for (std::uint64_t from = 0; from < 8; ++from) {
            auto const span = traced_around(now, from);
            auto const has = [&](std::uint64_t ip) { return span.first <= ip && ip <= span.last; };
            if (is_traced(from) != has(from)) { return false; }
            for (std::uint64_t to = 0; to < 8; ++to) {
                if (has(to) && !is_traced(to)) { return false; }
                bool const is_next = to + 1 == span.first || (to != 0 && to - 1 == span.last);
                if (has(from) && has_order && is_next && is_traced(to)) { return false; }
            }
        }
        return true;
    };
    unsigned wrong = 0;
    for (std::uint64_t i = 0; i < 6 * 6 * 6 * 6; ++i) {
        access::address_range const one{{i % 6}, {i / 6 % 6}};
        access::address_range const two{{i / 36 % 6}, {i / 216}};
        bool const has_order = one.a.raw <= one.b.raw && two.a.raw <= two.b.raw;
        wrong += is_valid_packet(with(filter, one, stop, two), has_order) ? 0 : 1;
        wrong += is_valid_packet(with(stop, one, filter, two), has_order) ? 0 : 1;
        wrong += is_valid_packet(with(stop, one, stop, two), has_order) ? 0 : 1;
    }
    CHECK(wrong == 0);
}
