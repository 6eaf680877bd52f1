// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/enables.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::processor_context;
using access::msr_state;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;
namespace preset = cpu::preset;

namespace {

/// Range n is [1000H * (n + 1), 1000H * (n + 1) + FFFH], for n in 0..3.
constexpr auto with_ranges(uint64_t ctl_value, uint64_t status_value = 0) -> msr_state {
    msr_state now;
    now.ctl = {ctl_value};
    now.status = {status_value};
    for (unsigned n = 0; n < 4; ++n) {
        now.addr[n] = {{0x1000 * (n + uint64_t{1})}, {0x1000 * (n + uint64_t{1}) + 0xFFF}};
    }
    return now;
}

constexpr auto in_context(uint64_t ctl_value, processor_context const& now, uint64_t match = 0)
    -> bool {
    return access::context_en(ctl{ctl_value}, {match}, now);
}

constexpr auto looked_up(msr_state const& now, uint64_t ip, bool filter_en, bool trace_stop)
    -> bool {
    auto const hit = access::match_ranges(now, ip);
    return hit.filter_en == filter_en && hit.trace_stop == trace_stop;
}

/// STATUS after a taken branch to `ip` at CPL 0.
constexpr auto branched(msr_state const& now, uint64_t ip,
                        cpu::capabilities const& of = preset::P_FUT) -> uint64_t {
    return access::after_branch(of, now, {.ip = ip}).status.raw;
}

constexpr uint64_t tracing = 0x2105;  // BranchEn, ToPA, OS, TraceEn
constexpr uint64_t filter_0 = uint64_t{1} << 32;
constexpr uint64_t stop_1 = uint64_t{2} << 36;

}  // namespace

TEST_CASE("TriggerEn is TraceEn without Stopped and without Error (REG-056, GEN-020)") {
    CHECK_TWICE([](auto value) {
        return access::trigger_en(ctl{value(uint64_t{1})}, status{0}) &&
               !access::trigger_en(ctl{value(uint64_t{0x2108})}, status{0}) &&
               !access::trigger_en(ctl{value(uint64_t{1})}, status{0x10}) &&
               !access::trigger_en(ctl{value(uint64_t{1})}, status{0x20}) &&
               access::trigger_en(ctl{value(uint64_t{1})}, status{~uint64_t{0x30}});
    });
}

TEST_CASE("ContextEn depends on OS at CPL 0 and on User above it (REG-057, GEN-023, GEN-050)") {
    CHECK_TWICE([](auto value) {
        return in_context(4, {.cpl = value(0U)}) && !in_context(8, {.cpl = value(0U)}) &&
               !in_context(4, {.cpl = value(1U)}) && in_context(8, {.cpl = value(1U)}) &&
               !in_context(4, {.cpl = value(3U)}) && in_context(8, {.cpl = value(3U)}) &&
               in_context(0xC, {.cpl = value(2U)}) && !in_context(0, {.cpl = value(0U)}) &&
               !in_context(0, {.cpl = value(3U)}) && !in_context(~uint64_t{0xC}, {});
    });
}

TEST_CASE("a production enclave is never traced (REG-113, REG-057)") {
    CHECK_TWICE([](auto value) {
        return !in_context(0xC, {.cpl = 3, .production_enclave = value(true)}) &&
               in_context(0xC, {.cpl = 3, .production_enclave = value(false)});
    });
}

TEST_CASE("CR3 is compared only with CR3Filter (REG-057, GEN-060, GEN-062)") {
    CHECK_TWICE([](auto value) {
        return in_context(4, {.cr3 = value(uint64_t{0x5000})}, 0x6000) &&
               !in_context(0x84, {.cr3 = value(uint64_t{0x5000})}, 0x6000) &&
               in_context(0x84, {.cr3 = value(uint64_t{0x6000})}, 0x6000) &&
               !in_context(0x88, {.cr3 = value(uint64_t{0x6000})}, 0x6000);  // but it is CPL 0
    });
}

TEST_CASE("CR3 is compared from bit 12 up, and with PAE paging from bit 5 up (REG-075, GEN-061)") {
    CHECK_TWICE([](auto value) {
        uint64_t const match = value(uint64_t{0x1234'5000});
        for (unsigned bit = 0; bit < 64; ++bit) {
            uint64_t const cr3 = match ^ uint64_t { 1 } << bit;
            if (access::cr3_matches({match}, cr3, false) != (bit < 12) ||
                access::cr3_matches({match}, cr3, true) != (bit < 5) ||
                in_context(0x84, {.cr3 = cr3, .pae = true}, match) != (bit < 5)) {
                return false;
            }
        }
        return access::cr3_matches({match}, match, true);
    });
}

TEST_CASE("without a filter range every address passes (REG-058, GEN-081)") {
    CHECK_TWICE([](auto value) {
        auto const none = with_ranges(tracing);
        auto const stop_only = with_ranges(tracing | stop_1);
        return !access::has_filter(none) && !access::has_filter(stop_only) &&
               looked_up(none, value(uint64_t{0x1000}), true, false) &&
               looked_up(stop_only, value(uint64_t{0x1000}), true, false);
    });
}

TEST_CASE("a default range_hit is that of a processor without ranges") {
    CHECK(access::range_hit{}.filter_en);
    CHECK(!access::range_hit{}.trace_stop);
}

TEST_CASE("with filter ranges an address passes only inside one of them (REG-058, GEN-081)") {
    CHECK_TWICE([](auto value) {
        for (unsigned n = value(0U); n < 4; ++n) {
            auto const now = with_ranges(tracing | uint64_t{1} << (32 + 4 * n));
            uint64_t const first = 0x1000 * (n + uint64_t{1});
            if (!access::has_filter(now) || !looked_up(now, first - 1, false, false) ||
                !looked_up(now, first, true, false) ||
                !looked_up(now, first + 0xFFF, true, false) ||
                !looked_up(now, first + 0x1000, false, false)) {
                return false;
            }
        }
        auto const two = with_ranges(tracing | 0x1001ULL << 32);
        return looked_up(two, value(uint64_t{0x1800}), true, false) &&
               looked_up(two, value(uint64_t{0x2800}), false, false) &&
               looked_up(two, value(uint64_t{0x4800}), true, false);
    });
}

TEST_CASE("a range with ADDRn_CFG 2 stops tracing, for each n (REG-068)") {
    CHECK_TWICE([](auto value) {
        for (unsigned n = value(0U); n < 4; ++n) {
            for (uint64_t kind = 0; kind < 16; ++kind) {
                auto now = with_ranges(tracing | kind << (32 + 4 * n));
                bool const has = access::has_trace_stop(now);
                now.addr[n] = {{0x2000}, {0x1000}};
                if (has != (kind == 2) || access::has_trace_stop(now) != has) { return false; }
            }
        }
        return !access::has_trace_stop(with_ranges(tracing)) &&
               !access::has_trace_stop(with_ranges(tracing | 0x1111ULL << 32)) &&
               access::has_trace_stop(with_ranges(tracing | 0x1211ULL << 32)) &&
               access::has_trace_stop(with_ranges(2ULL << 44));
    });
}

TEST_CASE("a TraceStop range is hit from its first to its last byte (REG-068, REG-078)") {
    CHECK_TWICE([](auto value) {
        for (unsigned n = value(0U); n < 4; ++n) {
            auto const now = with_ranges(tracing | uint64_t{2} << (32 + 4 * n));
            uint64_t const first = 0x1000 * (n + uint64_t{1});
            if (!looked_up(now, first - 1, true, false) || !looked_up(now, first, false, true) ||
                !looked_up(now, first + 0xFFF, false, true) ||
                !looked_up(now, first + 0x1000, true, false)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("where a filter range and a TraceStop range overlap, TraceStop wins (REG-068, GEN-085)") {
    CHECK_TWICE([](auto value) {
        auto now = with_ranges(tracing | filter_0 | stop_1);
        now.addr[0] = {{0x1000}, {0x2FFF}};
        return looked_up(now, value(uint64_t{0x1FFF}), true, false) &&
               looked_up(now, value(uint64_t{0x2000}), false, true) &&
               looked_up(now, value(uint64_t{0x3000}), false, false);
    });
}

TEST_CASE("a single filter range with A above B lets no address pass (REG-077, GEN-082)") {
    CHECK_TWICE([](auto value) {
        auto now = with_ranges(tracing | filter_0);
        now.addr[0] = {{0x1FFF}, {0x1000}};
        return access::has_filter(now) && looked_up(now, value(uint64_t{0x1800}), false, false) &&
               looked_up(now, value(uint64_t{0x1000}), false, false) &&
               looked_up(now, value(uint64_t{0x1FFF}), false, false);
    });
}

TEST_CASE("addresses compare as unsigned numbers (GEN-082)") {
    CHECK_TWICE([](auto value) {
        auto now = with_ranges(tracing | filter_0);
        now.addr[0] = {{0x1000}, {0xFFFF'8000'0000'0000}};
        return looked_up(now, value(uint64_t{0x2000}), true, false) &&
               looked_up(now, value(uint64_t{0xFFFF'8000'0000'0001}), false, false);
    });
}

TEST_CASE("without IP filtering FilterEn counts as 1 though its bit is 0 (REG-051, REG-058)") {
    CHECK_TWICE([](auto value) {
        return access::filter_en(preset::P_BDW, status{value(uint64_t{0})}) &&
               !access::filter_en(preset::P_SKL, status{value(uint64_t{6})}) &&
               access::filter_en(preset::P_SKL, status{value(uint64_t{1})});
    });
}

TEST_CASE("PacketEn is TriggerEn, ContextEn, FilterEn and BranchEn (REG-059, GEN-026, GEN-027)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t low = value(uint64_t{0}); low < 8; ++low) {
            bool const all = low == 7;
            bool const all_but_filter = low >= 6;
            if (access::packet_en(preset::P_SKL, with_ranges(0x2101, low)) != all ||
                access::packet_en(preset::P_BDW, with_ranges(0x2101, low)) != all_but_filter ||
                access::packet_en(preset::P_SKL, with_ranges(0x101, low))) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a branch into or out of a filter range updates FilterEn (REG-058, GEN-025, GEN-086)") {
    CHECK_TWICE([](auto value) {
        auto const now = with_ranges(tracing | filter_0, 6);
        return branched(now, value(uint64_t{0x1800})) == 7 &&
               branched(now, value(uint64_t{0x2000})) == 6 &&
               branched(with_ranges(tracing | filter_0, 7), value(uint64_t{0x2000})) == 6 &&
               branched(with_ranges(tracing | 0x1001ULL << 32, 7), value(uint64_t{0x4000})) == 7;
    });
}

TEST_CASE("FilterEn does not change while ContextEn is 0 (REG-058, GEN-025)") {
    CHECK_TWICE([](auto value) {
        // User is 0 and the branch goes to CPL 3.
        processor_context const user{.cpl = value(3U), .ip = 0x2000};
        auto const now = with_ranges(tracing | filter_0, 7);
        auto const after = access::after_branch(preset::P_SKL, now, user);
        return after.status.raw == 5 && after.ctl == now.ctl;
    });
}

TEST_CASE("ContextEn is evaluated at a branch while TriggerEn is 1, and frozen after (GEN-024)") {
    CHECK_TWICE([](auto value) {
        processor_context const user{.cpl = value(3U)};
        auto const filtered = with_ranges(tracing | 0x80, 7);  // CR3_MATCH is 0
        return access::after_branch(preset::P_SKL, filtered, {.cr3 = 0x1000}).status.raw == 5 &&
               access::after_branch(preset::P_SKL, with_ranges(tracing, 7), user).status.raw == 5 &&
               access::after_branch(preset::P_SKL, with_ranges(tracing, 5), {}).status.raw == 7 &&
               access::after_branch(preset::P_SKL, with_ranges(tracing, 0x23), user).status.raw ==
                   0x23 &&
               access::after_branch(preset::P_SKL, with_ranges(tracing - 1, 3), user).status.raw ==
                   3;
    });
}

// REG-237: Stopped is not only for ToPA STOP.
TEST_CASE("a branch into a TraceStop range sets Stopped, and TraceEn stays 1 (REG-068, GEN-089, "
          "GEN-090)") {
    CHECK_TWICE([](auto value) {
        auto const now = with_ranges(tracing | filter_0 | stop_1, 7);
        auto const after = access::after_branch(preset::P_SKL, now,
                                                {.ip = value(uint64_t{0x2000})});
        // Stopped and ContextEn; TriggerEn and FilterEn are 0.
        return after.status.raw == 0x22 && after.ctl == now.ctl &&
               // FilterEn and BranchEn do not matter.
               branched(with_ranges(0x105 | stop_1, 6), value(uint64_t{0x2800})) == 0x22;
    });
}

TEST_CASE("no TraceStop without TriggerEn before and ContextEn after (REG-068, GEN-089)") {
    CHECK_TWICE([](auto value) {
        processor_context const user{.cpl = 3, .ip = value(uint64_t{0x2000})};
        auto const now = with_ranges(tracing | stop_1, 7);
        return access::after_branch(preset::P_SKL, now, user).status.raw == 5 &&
               branched(with_ranges(tracing | stop_1, 0x13), value(uint64_t{0x2000})) == 0x13;
    });
}

TEST_CASE("without IP filtering bit 0 of STATUS stays 0 at a branch (REG-051)") {
    CHECK_TWICE([](auto value) {
        return branched(with_ranges(tracing, 4), value(uint64_t{0x1000}), preset::P_BDW) == 6 &&
               branched(with_ranges(tracing, 4), value(uint64_t{0x1000}), preset::P_SKL) == 7;
    });
}

TEST_CASE("a branch updates the enables and nothing else") {
    CHECK_TWICE([](auto value) {
        auto now = with_ranges(tracing | filter_0, 0x1'2345'0000'00C6);
        now.perf_global_status = {1};
        now.in_vmx_operation = true;
        auto expected = now;
        expected.status = {0x1'2345'0000'00C7};
        return access::after_branch(preset::P_FUT, now, {.ip = value(uint64_t{0x1000})}) ==
               expected;
    });
}

namespace {

constexpr auto enabled_state() -> access::msr_state {
    access::msr_state now;
    now.ctl = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true}, ctl::BranchEn{true});
    now.status = status{}.with(status::TriggerEn{true}, status::ContextEn{true},
                               status::FilterEn{true});
    return now;
}
/// A filter range from 1000H to 10FFH, a TraceStop range from 10F0H to 20FFH.
constexpr auto filter_and_stop() -> access::msr_state {
    auto now = enabled_state();
    now.ctl = now.ctl.with(ctl::ADDR0_CFG{reg::addr_cfg::filter},
                           ctl::ADDR1_CFG{reg::addr_cfg::trace_stop});
    now.addr[0] = {{0x1000}, {0x10FF}};
    now.addr[1] = {{0x10F0}, {0x20FF}};
    return now;
}
constexpr auto const& caps = cpu::preset::P_FUT;

}  // namespace

TEST_CASE("PacketEn is 1 where all four enables are") {  // GEN-020, GEN-026, GEN-027
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bits = 0; bits < 16; ++bits) {
            unsigned const is = value(bits);
            access::enables const now{(is & 1) != 0, (is & 2) != 0, (is & 4) != 0, (is & 8) != 0};
            good = good && now.packet() == (bits == 15);
            auto state = enabled_state();
            state.ctl = state.ctl.with(ctl::BranchEn{now.branch});
            state.status = state.status.with(status::TriggerEn{now.trigger},
                                             status::ContextEn{now.context},
                                             status::FilterEn{now.filter});
            good = good && access::enables_of(caps, state) == now;
        }
        return good;
    });
    CHECK_TWICE([](auto value) {  // without filtering by IP FilterEn counts as 1: GEN-025
        auto state = enabled_state();
        state.status = state.status.with(status::FilterEn{value(false)});
        return access::enables_of(cpu::preset::P_BDW, state).filter;
    });
}

TEST_CASE("FilterEn and TraceStop may be judged by different instructions, and the enables after a "
          "TraceStop lack only FilterEn (GEN-005, GEN-087, GEN-090)") {
    CHECK_TWICE([](auto value) {
        auto const at = [&](uint64_t filter, uint64_t stop) {
            return access::evaluate(caps, filter_and_stop(), {.ip = value(filter)}, value(stop));
        };
        return at(0x1000, 0xFFF).after.filter && !at(0x1000, 0xFFF).trace_stop &&
               at(0x1000, 0x2000).trace_stop &&
               at(0x1000, 0x2000).after == access::enables{true, true, false, true} &&
               at(0x10F0, 0x1000).after.filter && !at(0x10F0, 0x1000).trace_stop;
    });
}
