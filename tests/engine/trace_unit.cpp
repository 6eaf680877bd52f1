// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/engine/output/explain.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>
#include <support/unit_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

using namespace ptspec;
using engine::trace_unit;
using test::disable;
using test::enable;
using test::INT;
using test::is_done;
using test::machine_memory;
using test::machine_memory_in_place;
using test::off;
using test::STOP;
using test::table;
using test::traced;
namespace action = engine::action;
using access::ia32_rtit_ctl;
using access::ia32_rtit_status;
using topa::entry;
using ctl = ia32_rtit_ctl;
using status = ia32_rtit_status;

static_assert(sizeof(trace_unit<1024>) - sizeof(engine::byte_queue<1024>) <= 2048);
static_assert(__is_trivially_copyable(trace_unit<1024>));

namespace {

constexpr auto packets(machine_memory const& memory, std::uint64_t count) -> test::packets_text {
    return test::packets_in(byte_view{memory.trace.bytes}.first(static_cast<std::size_t>(count)));
}
/// Fills regions with TIPs of 9 bytes.
constexpr void fill(trace_unit<>& unit, machine_memory& memory, unsigned tips) {
    for (std::uint64_t i = 0; i < tips; ++i) {
        (void)unit.on(action::indirect_jump{0x1234'5678'9ABC'DEF0 + (i << 48)}, memory);
    }
}

}  // namespace

TEST_CASE("packets between enabling and disabling are in memory") {  // GEN-183
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0, OS=1");
        bool good = is_done(enable(unit, memory)) && unit.state().enables().packet();
        good = good &&
               !unit.on(action::conditional{value(std::uint64_t{0x1010}), true}, memory).happened &&
               !unit.on(action::indirect_jump{0x2000}, memory).happened &&
               is_done(disable(unit, memory));
        auto const count = unit.total().stored;
        auto const& now = unit.msrs();
        // The output MSRs are exact.
        return good && unit.buffered().empty() && unit.total().lost == 0 &&
               now.output.base.raw == table && now.output.mask_ptrs.raw == (count << 32 | 0x7F) &&
               !now.status.template get<status::TriggerEn>() &&
               packets(memory, count) == text{"PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), "
                                              "TIP.PGE(1002), TNT(1), TIP(2000), FUP(1100), "
                                              "TIP.PGD()"};
    });
}

TEST_CASE("tracing enabled in a TraceStop range stops at once, and its packets are stored") {
    // GEN-088, GEN-090
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0, ADDR0=[1002,1002] stop");
        bool const on = is_done(enable(unit, memory));
        (void)unit.on(action::indirect_jump{value(std::uint64_t{0x2000})}, memory);
        return on && unit.msrs().status.template get<status::Stopped>() &&
               !unit.state().enables().trigger && unit.total().lost == 0 &&
               packets(memory, unit.total().stored) ==
                   text{"PSB, CBR, PIP(1000,NR=0), PSBEND, TraceStop"};
    });
}

TEST_CASE("a unit constructed with TraceEn = 1 outputs from its first operation on") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto from = traced::started("CPL=0, PacketByteCnt=5");
        from.msrs.output.base = {table};
        trace_unit<> unit{from.of, from.msrs, from.code, from.ip, from.how};
        bool const done = is_done(unit.wrmsr(
            {.index = ctl::address, .value = value(std::uint64_t{0}), .at = 0x1100, .next = 0x1102},
            memory));
        return done && unit.total().lost == 0 &&
               packets(memory, unit.total().stored) == text{"FUP(1100), TIP.PGD()"};
    });
}

TEST_CASE("a unit constructed with TraceEn = 1 starts output only once") {  // OUT-133
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto from = traced::started("CPL=0");
        from.msrs.output.base = {table};
        trace_unit<> unit{from.of, from.msrs, from.code, from.ip, from.how};
        bool failed = unit.on(action::indirect_jump{value(std::uint64_t{0x2000})}, memory).happened;
        auto const first = unit.total().stored;
        failed = failed || unit.on(action::indirect_jump{0x3000}, memory).happened;
        auto const second = unit.total().stored;
        return !failed && first == 7 && second == 10 && unit.total().lost == 0 &&
               packets(memory, second) == text{"TIP(2000), TIP(3000)"};
    });
}

TEST_CASE("a unit constructed with TraceEn = 1 starts output at any branch") {  // OUT-133
    CHECK_TWICE([](auto value) {
        machine_memory memory{entry{value(std::uint64_t{2})}};  // a reserved bit
        auto from = traced::started("CPL=0");
        from.msrs.output.base = {table};
        trace_unit<> unit{from.of, from.msrs, from.code, from.ip, from.how};
        bool const done = !unit.on(action::conditional{0x2000, true}, memory).happened;
        return done && unit.msrs().status.template get<status::Error>() &&
               unit.ended_by() == rule::OUT_060 && unit.state().writer.tnt.count == 0;
    });
}

TEST_CASE("a unit that starts tracing between two instructions outputs as after a WRMSR") {
    // GEN-162, GEN-180, GEN-183
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=3, OS=0");
        bool const refused = !is_done(unit.start(ctl{std::uint64_t{1} << 63}, memory));
        bool good = refused && is_done(unit.start(unit.msrs().ctl, memory));
        good = good && unit.state().ctl<ctl::TraceEn>() &&
               !unit.on(action::conditional{value(std::uint64_t{0x1010}), true}, memory).happened &&
               !unit.on(action::kernel_visit{.at = 0x1010, .to = 0x1012}, memory).happened &&
               !unit.stop(memory).happened;
        auto const stored = unit.total().stored;
        auto const all = packets(memory, stored);
        return good && unit.buffered().empty() && !unit.state().ctl<ctl::TraceEn>() &&
               std::string_view{all.characters, all.length}.ends_with(
                   "TIP.PGE(1000), TNT(1), TIP.PGD(), TIP.PGE(1012), FUP(1012), TIP.PGD()") &&
               !unit.stop(memory).happened && unit.total().stored == stored;
    });
}

TEST_CASE("a copy of a unit is independent") {  // GEN-004
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        auto other_memory = memory;
        auto other = unit;
        (void)unit.on(action::indirect_jump{0x2000}, memory);
        (void)other.on(action::indirect_jump{value(std::uint64_t{0x3000})}, other_memory);
        return unit.total() == other.total() && unit.ip() == 0x2000 && other.ip() == 0x3000 &&
               !(memory.trace.bytes == other_memory.trace.bytes);
    });
}

TEST_CASE("a full region with INT raises an interrupt; tracing continues") {  // OUT-083, OUT-085
    CHECK_TWICE([](auto value) {
        machine_memory memory{INT};
        auto unit = off("CPL=0, InjectPsbPmiOnEnable=1, PSBFreq=5");
        (void)enable(unit, memory);
        fill(unit, memory, value(440U));
        bool const early = memory.interrupts == 0;
        fill(unit, memory, 40);
        using global = reg::ia32_perf_global_status;
        auto const& now = unit.msrs();
        return early && memory.interrupts == 1 && unit.total().pmis == 1 &&
               now.perf_global_status.template get<global::Trace_ToPA_PMI>() &&
               now.status.template get<status::PendToPAPMI>() && unit.state().enables().packet() &&
               unit.total().lost == 0;
    });
}

TEST_CASE("a region with STOP ends tracing at its last byte, and later bytes are lost") {
    // GEN-022, GEN-101, GEN-232
    CHECK_TWICE([](auto value) {
        machine_memory memory{STOP};
        auto unit = off("CPL=0, PSBFreq=5");
        (void)enable(unit, memory);
        fill(unit, memory, value(500U));
        auto const& now = unit.msrs();
        bool const stopped = now.status.template get<status::Stopped>() &&
                             !now.status.template get<status::TriggerEn>() &&
                             !now.status.template get<status::Error>() &&
                             unit.ended_by() == rule::OUT_080;
        auto const lost = unit.total().lost;
        fill(unit, memory, 5);
        (void)disable(unit, memory);
        return stopped && unit.total().stored == 0x1000 && lost < 9 && lost == unit.total().lost &&
               memory.trace.bytes[0x1000] == 0 && unit.state().writer.tnt.count == 0;
    });
}

TEST_CASE("an invalid entry is an operational error when output reaches it") {  // GEN-231, GEN-022
    CHECK_TWICE([](auto value) {
        machine_memory memory{{}, entry{value(std::uint64_t{2})}};  // a reserved bit
        auto unit = off("CPL=0, PSBFreq=5");
        bool const fine = is_done(enable(unit, memory)) && unit.state().enables().packet();
        fill(unit, memory, 500);
        auto const& now = unit.msrs();
        return fine && now.status.template get<status::Error>() &&
               !now.status.template get<status::TriggerEn>() && unit.ended_by() == rule::OUT_060 &&
               unit.total().stored == 0x1000;
    });
    CHECK_TWICE([](auto value) {  // when enabling
        machine_memory memory{entry{value(std::uint64_t{2})}};
        auto unit = off("CPL=0");
        bool const done = is_done(enable(unit, memory));
        auto const& now = unit.msrs();
        return done && now.status.template get<status::Error>() &&
               !unit.state().enables().packet() && unit.total().stored == 0 &&
               unit.total().lost != 0 && now.ctl.template get<ctl::TraceEn>();
    });
}

TEST_CASE("a buffer that is not drained overflows, and recovers when drained") {
    // GEN-225, GEN-227, GEN-230
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        engine::model_options how;
        how.drained_at_once = value(std::size_t{0});
        auto unit = off("CPL=0, PSBFreq=5", how);
        (void)enable(unit, memory);
        bool const waits = unit.total().stored == 0 && !unit.buffered().empty();
        fill(unit, memory, 120);
        bool const loses = unit.state().in_overflow && unit.buffered().size() <= 1024 &&
                           unit.buffered().size() > 1024 - 9;
        auto const before = unit.buffered().size();
        bool const partly = !unit.drain(memory, 100).happened && unit.state().in_overflow &&
                            unit.total().stored == 100;
        bool const all = !unit.drain(memory).happened && !unit.state().in_overflow;
        // OVF 2, FUP 9
        return waits && loses && partly && all && unit.total().stored == before + 11 &&
               unit.total().lost == 0;
    });
    CHECK_TWICE([](auto value) {  // overflow_ends_at: once few enough bytes remain
        machine_memory memory;
        engine::model_options how;
        how.drained_at_once = 0;
        how.overflow_ends_at = value(std::size_t{900});
        auto unit = off("CPL=0, PSBFreq=5", how);
        (void)enable(unit, memory);
        fill(unit, memory, 120);
        (void)unit.drain(memory, 100);
        bool const still = unit.state().in_overflow;
        (void)unit.drain(memory, 50);
        return still && !unit.state().in_overflow;
    });
}

TEST_CASE("lost packets are reported even if tracing ends during the overflow") {  // GEN-225
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        engine::model_options how;
        how.drained_at_once = value(std::size_t{0});
        auto unit = off("CPL=0, PSBFreq=5", how);
        (void)enable(unit, memory);
        fill(unit, memory, 120);
        auto const held = unit.buffered().size();
        bool const done = unit.state().in_overflow && is_done(disable(unit, memory));
        return done && !unit.state().in_overflow && unit.total().stored == held + 2 &&
               memory.trace.bytes[held] == 0x02 && memory.trace.bytes[held + 1] == 0xF3;
    });
    CHECK_TWICE([](auto value) {  // a requested overflow
        machine_memory memory;
        auto unit = off("CPL=0, PacketByteCnt=5");
        (void)enable(unit, memory);
        (void)unit.on(action::overflow{}, memory);
        (void)unit.on(action::indirect_jump{value(std::uint64_t{0x2000})}, memory);
        return is_done(disable(unit, memory)) && packets(memory, unit.total().stored) ==
                                                     text{"CBR, MODE.Exec(64), TIP.PGE(1002), OVF"};
    });
    CHECK_TWICE([](auto value) {  // a TraceStop during the overflow is reported: GEN-230
        machine_memory memory;
        auto unit = off("CPL=0, PacketByteCnt=5, ADDR0=[5000,5000] stop");
        (void)enable(unit, memory);
        (void)unit.on(action::overflow{}, memory);
        (void)unit.on(action::indirect_jump{value(std::uint64_t{0x5000})}, memory);
        return unit.msrs().status.template get<status::Stopped>() &&
               is_done(disable(unit, memory)) &&
               packets(memory, unit.total().stored) ==
                   text{"CBR, MODE.Exec(64), TIP.PGE(1002), OVF, TraceStop"};
    });
}

TEST_CASE("set_last_ip() sets the IP by which the first one is compressed") {  // GEN-011
    CHECK_TWICE([](auto value) {
        // CBR 4, MODE.Exec 2, TIP.PGE 3 in the form of 16 bits or 7; FUP 3, TIP.PGD 1.
        engine::model_options how;
        how.ips = trace::ip_choice::shortest;
        auto const stored = [&](std::uint64_t last_ip) {
            machine_memory memory;
            auto unit = off("CPL=0, PacketByteCnt=5", how);
            unit.set_last_ip(last_ip);
            (void)enable(unit, memory);
            (void)disable(unit, memory);
            return unit.total().stored;
        };
        return stored(value(std::uint64_t{0x1000})) == 13 && stored(0x7000'0000'0000) == 17;
    });
}

TEST_CASE("a call lost in an overflow compresses no return") {  // GEN-130, GEN-135, GEN-225
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        engine::model_options how;
        how.drained_at_once = value(std::size_t{0});
        auto unit = off<400>("CPL=0, PSBFreq=5", how);
        (void)enable(unit, memory);
        for (std::uint64_t i = 0; i < 60 && !unit.state().in_overflow; ++i) {
            (void)unit.on(action::indirect_jump{0x1234'5678'9ABC'DEF0 + (i << 48)}, memory);
        }
        bool const lost = unit.state().in_overflow;
        auto const held = unit.buffered().size();
        (void)unit.on(action::direct_call{0x1005, 0x2000}, memory);
        (void)unit.drain(memory);
        (void)unit.on(action::direct_call{0x2005, 0x3000}, memory);
        (void)unit.on(action::near_return{0x2005}, memory);
        (void)unit.on(action::near_return{0x1005}, memory);
        (void)unit.on(action::indirect_jump{0x9000}, memory);
        (void)unit.drain(memory);
        byte_view const all{memory.trace.bytes};
        auto const rest = all.from(held).first(static_cast<std::size_t>(unit.total().stored) -
                                               held);
        return lost && !unit.state().in_overflow &&
               test::packets_in(rest) == text{"OVF, FUP(2000), TNT(1), TIP(1005), TIP(9000)"};
    });
}

TEST_CASE("drained_at_once limits the bytes that leave the buffer per operation") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        engine::model_options how;
        how.drained_at_once = value(std::size_t{4});
        auto unit = off("CPL=0, PSBFreq=5", how);
        (void)enable(unit, memory);
        bool good = unit.total().stored == 4;
        fill(unit, memory, 10);
        good = good && unit.total().stored == 44;
        auto const left = unit.buffered().size();
        (void)disable(unit, memory);  // flushes FUP 9, TIP.PGD 1
        return good && unit.buffered().empty() && unit.total().stored == 44 + left + 10 - 2;
    });
}

namespace {

/// True if storing in place and storing through a port have the same result.
constexpr auto store_alike(std::size_t at_once) -> bool {
    machine_memory through_port;
    machine_memory_in_place in_place;
    engine::model_options how;
    how.drained_at_once = at_once;
    auto one = off<512>("CPL=0, PSBFreq=5", how);
    auto other = one;
    bool same = is_done(enable(one, through_port)) && is_done(enable(other, in_place));
    auto const both = [&](auto const& e) {
        same = same && !one.on(e, through_port).happened && !other.on(e, in_place).happened &&
               one.total() == other.total() && one.state().writer.tnt == other.state().writer.tnt &&
               one.buffered().size() == other.buffered().size() &&
               one.state().in_overflow == other.state().in_overflow;
    };
    for (std::uint64_t i = 0; i < 60; ++i) {
        both(action::conditional{0x2000 + i, i % 3 == 0});
        both(action::direct_jump{0x2100});
        if (i % 4 == 1) { both(action::indirect_jump{0x1234'5678'0000 + (i << 32)}); }
        if (i == 30) { both(action::overflow{}); }
        if (i == 33) { both(action::overflow_end{0x3000}); }
    }
    same = same && is_done(disable(one, through_port)) && is_done(disable(other, in_place));
    return same && one.total() == other.total() && one.total().stored > 150 &&
           through_port.trace.bytes == in_place.trace.bytes;
}

}  // namespace

TEST_CASE("storing in place and storing through a port give the same bytes") {  // OUT-151
    CHECK_TWICE([](auto value) { return store_alike(value(std::size_t{1})); });
    CHECK_TWICE([](auto value) { return store_alike(value(std::size_t{2})); });
    CHECK_TWICE([](auto value) { return store_alike(value(std::size_t{9})); });
    CHECK_TWICE([](auto value) { return store_alike(value(std::size_t{100})); });
    CHECK_TWICE([](auto value) { return store_alike(value(~std::size_t{0})); });
}

TEST_CASE("a failing port loses no byte, and a flush ends when all bytes are stored") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        memory.fails = value(true);
        bool good = unit.on(action::indirect_jump{0x2000}, memory).happened &&
                    unit.on(action::conditional{0x2002, true}, memory).happened;
        auto const done = disable(unit, memory);
        using outcome = engine::access_outcome;
        good = good && done.what == outcome::done_but_port_failed && done.fault.happened &&
               !unit.msrs().ctl.template get<ctl::TraceEn>();
        // Events and accesses have no effect until all bytes are stored.
        good = good && unit.is_flushing() &&
               unit.on(action::mov_cr3{.cr3 = 0x9000}, memory).happened &&
               unit.state().code.cr3 == 0x1000 &&
               enable(unit, memory).what == outcome::not_done_port_failed &&
               unit.drain(memory).happened;
        // Now all bytes are stored.
        memory.fails = false;
        good = good && !unit.on(action::mov_cr3{.cr3 = 0x9000}, memory).happened &&
               unit.state().code.cr3 == 0x9000;
        return good && !unit.is_flushing() && unit.total().lost == 0 && unit.buffered().empty() &&
               packets(memory, unit.total().stored) ==
                   text{"PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(1002), "
                        "TIP(2000), TNT(1), FUP(1100), TIP.PGD()"};
    });
}

TEST_CASE("a flush completes even if only time passes") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        memory.fails = value(true);
        bool good = unit.on(action::indirect_jump{0x2000}, memory).happened &&
                    disable(unit, memory).fault.happened &&
                    unit.on(action::cycles{5}, memory).happened && unit.is_flushing();
        memory.fails = false;
        good = good && !unit.on(action::cycles{5}, memory).happened;
        return good && !unit.is_flushing() && unit.buffered().empty();
    });
}

TEST_CASE("XRSTORS restores the context that XSAVES stored") {  // GEN-184, REG-142, PRG-110
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0, InjectPsbPmiOnEnable=1");
        (void)enable(unit, memory);
        (void)unit.on(action::conditional{0x1010, true}, memory);
        auto const saved = unit.xsaves(0x1100, 0x1104, memory);
        auto const count = unit.total().stored;
        using area = access::xsave_pt_state;
        bool good = is_done(saved) && !unit.msrs().ctl.template get<ctl::TraceEn>() &&
                    saved.image.template get<area::IA32_RTIT_CTL>().template get<ctl::TraceEn>() &&
                    saved.image.template get<area::IA32_RTIT_OUTPUT_MASK_PTRS>().raw ==
                        (count << 32 | 0x7F) &&
                    saved.image.template get<area::IA32_RTIT_STATUS>()
                            .template get<status::PacketByteCnt>() == count;
        // Another context, without tracing, then the first one again.
        using outcome = engine::access_outcome;
        good = good && is_done(unit.xrstors_init(value(std::uint64_t{0x5000}), memory)) &&
               unit.msrs().output.base.raw == 0 &&
               is_done(unit.xrstors(saved.image, 0x6000, 0x6004, memory)) &&
               unit.state().enables().packet() &&
               unit.xrstors_init(0x7000, memory).what == outcome::general_protection &&
               unit.xrstors(saved.image, 0, 0, memory).what == outcome::general_protection;
        (void)unit.on(action::indirect_jump{0x2000}, memory);
        return good && packets(memory, unit.total().stored) ==
                           text{"PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(1002), "
                                "TNT(1), FUP(1100), TIP.PGD(), CBR, MODE.Exec(64), TIP.PGE(6004), "
                                "TIP(2000)"};
    });
    CHECK_TWICE([](auto value) {  // XSAVES that faults: TraceEn is as before (PRG-111)
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        (void)unit.on(action::conditional{0x1010, value(true)}, memory);
        auto const before = unit.msrs();
        bool const faulted = is_done(unit.xsaves_that_faults(0x1100, memory)) &&
                             unit.ip() == 0x1100 && unit.msrs().ctl == before.ctl &&
                             unit.state().enables().packet();
        (void)unit.on(action::exception{0x1100, 0x9000, {}, action::exception::page_fault}, memory);
        bool const same = packets(memory, unit.total().stored) ==
                          text{"PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(1002), "
                               "TNT(1), FUP(1100), TIP.PGD(), CBR, MODE.Exec(64), TIP.PGE(1100), "
                               "FUP(1100), PIP(0,NR=0), TIP(9000)"};
        // With TraceEn 0 nothing happens.
        machine_memory other_memory;
        auto other = off("CPL=0");
        auto const untouched = other.msrs();
        return faulted && same && is_done(other.xsaves_that_faults(0x1100, other_memory)) &&
               other.msrs() == untouched && other.total().stored == 0;
    });
    CHECK_TWICE([](auto value) {  // the same after a port fault
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        auto twin = unit;
        auto twin_memory = memory;
        (void)twin.xsaves_that_faults(0x1100, twin_memory);
        memory.fails = value(true);
        bool const failed = unit.xsaves_that_faults(0x1100, memory).what ==
                                engine::access_outcome::not_done_port_failed &&
                            !unit.msrs().ctl.template get<ctl::TraceEn>();
        memory.fails = false;
        return failed && is_done(unit.xsaves_that_faults(0x1100, memory)) &&
               unit.msrs() == twin.msrs() && memory.trace.bytes == twin_memory.trace.bytes;
    });
    CHECK_TWICE([](auto value) {  // a trace that STOP ended stays ended
        machine_memory memory{STOP};
        auto unit = off("CPL=0, PSBFreq=5");
        (void)enable(unit, memory);
        fill(unit, memory, value(500U));
        (void)unit.xsaves_that_faults(0x1100, memory);
        auto const now = unit.msrs();
        return now.ctl.template get<ctl::TraceEn>() && now.status.template get<status::Stopped>() &&
               !now.status.template get<status::TriggerEn>();
    });
    CHECK_TWICE([](auto value) {  // repeated after a port fault, it stores the same image
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        auto twin = unit;
        auto twin_memory = memory;
        auto const at_once = twin.xsaves(0x1100, 0x1104, twin_memory);
        memory.fails = value(true);
        bool failed = true;
        for (int i = 0; i < 2; ++i) {
            failed = failed && unit.xsaves(0x1100, 0x1104, memory).what ==
                                   engine::access_outcome::not_done_port_failed;
        }
        memory.fails = false;
        auto const again = unit.xsaves(0x1100, 0x1104, memory);
        return failed && is_done(again) && is_done(at_once) && again.image == at_once.image &&
               memory.trace.bytes == twin_memory.trace.bytes;
    });
}

TEST_CASE("without ToPA output PendToPAPMI raises no interrupt (REG-066, REG-204)") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto caps = ptspec::cpu::preset::P_FUT;
        caps.leaf_14_0_ecx.raw &= ~3U;
        trace_unit<> unit{caps, {}, 0x1000};
        bool const pends = is_done(unit.wrmsr({0x571, 0x80, {0x1000}, {0x1002}}, memory));
        (void)unit.wrmsr({0x570, value(uint64_t{1} << 56 | 0x2005), {0x1002}, {0x1004}}, memory);
        return pends && unit.msrs().ctl.template get<ctl::TraceEn>() && memory.interrupts == 0 &&
               unit.total().pmis == 0 && unit.msrs().perf_global_status.raw == 0;
    });
}

TEST_CASE("Stopped and PendToPAPMI survive a context switch and a warm reset; restoring raises the "
          "interrupt again") {
    // REG-061, REG-091, OUT-086, OUT-089
    CHECK_TWICE([](auto value) {
        machine_memory memory{INT, STOP};
        auto unit = off("CPL=0, InjectPsbPmiOnEnable=1, PSBFreq=5");
        (void)enable(unit, memory);
        fill(unit, memory, value(1000U));
        auto const saved = unit.xsaves(0x1100, 0x1104, memory);
        (void)unit.xrstors_init(0x2000, memory);
        bool const other = unit.msrs().status.raw == 0;
        auto const before = memory.interrupts;
        auto const back = unit.xrstors(saved.image, 0x3000, 0x3004, memory);
        auto const now = unit.msrs().status;
        bool const came_back = is_done(back) && now.template get<status::Stopped>() &&
                               now.template get<status::PendToPAPMI>() &&
                               !now.template get<status::TriggerEn>() &&
                               unit.msrs().ctl.template get<ctl::TraceEn>();
        auto const after = memory.interrupts;
        unit.warm_reset({}, 0xFFFF'FFF0);
        auto const reset = unit.msrs();
        return other && came_back && before == 1 && after == 2 && unit.total().pmis == 2 &&
               reset.status.template get<status::Stopped>() &&
               reset.status.template get<status::PendToPAPMI>() &&
               !reset.ctl.template get<ctl::TraceEn>() && unit.ip() == 0xFFFF'FFF0;
    });
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        memory.fails = value(true);
        (void)unit.on(action::indirect_jump{0x2000}, memory);
        unit.cold_reset({}, 0);
        return unit.msrs() == access::msr_state{} && unit.buffered().empty() &&
               unit.total().lost == 3;
    });
}

TEST_CASE("after a reset output starts at the position in the MSRs") {  // GEN-291, REG-091
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        (void)unit.on(action::indirect_jump{0x2000}, memory);
        auto const count = unit.total().stored;
        auto const cpl_0 = unit.state().code;
        unit.warm_reset(cpl_0, 0x1000);
        bool good = unit.msrs().output.mask_ptrs.raw == (count << 32 | 0x7F);
        // Enable again, in the second region.
        good =
            good &&
            is_done(unit.wrmsr(
                {.index = 0x561, .value = value(std::uint64_t{0xFF}), .at = 0x1000, .next = 0x1002},
                memory)) &&
            is_done(unit.wrmsr({.index = status::address, .value = 0, .at = 0x1002, .next = 0x1004},
                               memory)) &&
            is_done(unit.wrmsr(
                {.index = ctl::address, .value = 0x2105, .at = 0x1004, .next = 0x1006}, memory));
        (void)unit.on(action::indirect_jump{0x3000}, memory);
        auto const more = static_cast<std::size_t>(unit.total().stored - count);
        return good && more == 16 + 4 + 8 + 2 + 2 + 7 + 3 &&
               test::packets_in(byte_view{memory.trace.bytes}.from(0x1000).first(more)) ==
                   text{"PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(1006), "
                        "TIP(3000)"};
    });
    CHECK_TWICE([](auto value) {  // even if a flush was pending
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        auto const count = unit.total().stored;
        memory.fails = value(true);
        (void)unit.on(action::indirect_jump{0x2000}, memory);
        (void)disable(unit, memory);
        auto const kept = unit.buffered().size();
        bool good = unit.is_flushing() && kept != 0;
        unit.warm_reset(unit.state().code, 0x1000);
        good = good && !unit.is_flushing() && unit.buffered().empty() &&
               unit.total().lost == kept && unit.total().stored == count;
        // No byte is pending.
        return good && !unit.on(action::indirect_jump{0x3000}, memory).happened &&
               unit.ip() == 0x3000;
    });
}

TEST_CASE("after an error at the first entry no branch is buffered") {  // GEN-022, OUT-052
    CHECK_TWICE([](auto value) {
        machine_memory memory{topa::entry{value(std::uint64_t{2})}};  // a reserved bit
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        (void)unit.on(action::conditional{0x1010, true}, memory);
        return unit.msrs().status.template get<status::Error>() &&
               unit.state().writer.tnt.count == 0 && unit.total().stored == 0;
    });
}

TEST_CASE("the registers can be read during tracing") {  // GEN-161
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        (void)unit.on(action::indirect_jump{value(std::uint64_t{0x2000})}, memory);
        auto const count = unit.total().stored;
        return unit.rdmsr(0x561).value == (count << 32 | 0x7F) &&
               status{unit.rdmsr(status::address).value}.template get<status::PacketByteCnt>() ==
                   count &&
               !unit.rdmsr(0x10);
    });
    CHECK_TWICE([](auto value) {  // msrs() returns the same values
        machine_memory memory;
        auto unit = off("CPL=0");
        (void)enable(unit, memory);
        (void)unit.on(action::indirect_jump{value(std::uint64_t{0x2000})}, memory);
        auto const count = unit.total().stored;
        auto const& now = unit.msrs();
        return now.output.mask_ptrs.raw == (count << 32 | 0x7F) &&
               now.status.template get<status::PacketByteCnt>() == count;
    });
}

namespace {

constexpr engine::model_options lagging{.msrs_lag = true};

constexpr auto counted(std::uint64_t word) -> std::uint64_t {
    return status{word}.get<status::PacketByteCnt>();
}

}  // namespace

TEST_CASE("with msrs_lag registers read as at the start of tracing until TraceEn is 0") {
    // REG-011, PRG-034, PRG-083, PRG-103, PRG-111
    using area = access::xsave_pt_state;
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        auto unit = off("CPL=0, PSBFreq=5", lagging);
        (void)enable(unit, memory);
        fill(unit, memory, value(500U));  // into the second region
        auto const stored = unit.total().stored;
        bool good = unit.rdmsr(0x560).value == table && unit.rdmsr(0x561).value == 0x7F &&
                    counted(unit.rdmsr(0x571).value) == 0 &&
                    unit.rdmsr(ctl::address).value == unit.msrs().ctl.raw &&
                    status{unit.rdmsr(0x571).value}.template get<status::TriggerEn>();
        // msrs() is exact, and calling it does not change what RDMSR reads.
        good = good && stored > 0x1000 &&
               unit.msrs().output.mask_ptrs.raw == ((stored - 0x1000) << 32 | 0xFF) &&
               counted(unit.msrs().status.raw) == stored && unit.rdmsr(0x561).value == 0x7F &&
               counted(unit.rdmsr(0x571).value) == 0;
        (void)disable(unit, memory);
        auto const at_end = (unit.total().stored - 0x1000) << 32 | 0xFF;
        good = good && unit.rdmsr(0x561).value == at_end &&
               counted(unit.rdmsr(0x571).value) == unit.total().stored;
        (void)enable(unit, memory);
        fill(unit, memory, 3);
        return good && unit.total().stored > stored && unit.rdmsr(0x561).value == at_end;
    });
    CHECK_TWICE([](auto value) {  // XSAVES makes them exact
        machine_memory memory;
        auto unit = off("CPL=0, PSBFreq=5", lagging);
        (void)enable(unit, memory);
        fill(unit, memory, value(20U));
        bool const lags = unit.rdmsr(0x561).value == 0x7F;
        auto const image = unit.xsaves(0x1100, 0x1104, memory).image;
        auto const stored = unit.total().stored;
        return lags &&
               image.template get<area::IA32_RTIT_OUTPUT_MASK_PTRS>().raw ==
                   (stored << 32 | 0x7F) &&
               counted(image.template get<area::IA32_RTIT_STATUS>().raw) == stored;
    });
    CHECK_TWICE([](auto value) {  // a WRMSR that cannot flush all bytes does, too
        machine_memory memory;
        auto unit = off("CPL=0", lagging);
        (void)enable(unit, memory);
        auto const stored = unit.total().stored;
        memory.fails = value(true);
        (void)disable(unit, memory);
        return unit.is_flushing() && unit.rdmsr(0x561).value == (stored << 32 | 0x7F);
    });
    CHECK_TWICE([](auto value) {  // a STOP or an error is visible at once: REG-056
        machine_memory memory{STOP};
        auto unit = off("CPL=0, PSBFreq=5", lagging);
        (void)enable(unit, memory);
        fill(unit, memory, value(500U));
        auto const now = status{unit.rdmsr(0x571).value};
        return now.template get<status::Stopped>() && !now.template get<status::TriggerEn>();
    });
}

TEST_CASE("STATUS can be written back as it was read, with and without PacketByteCnt") {
    // REG-055
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (auto const& of : {cpu::preset::broadwell, cpu::preset::skylake_x}) {
            machine_memory memory;
            trace_unit<> unit{of, {.cr3 = 0x1000}, 0x1000};
            auto const set = [&](std::uint32_t index, std::uint64_t to) {
                return is_done(unit.wrmsr(
                    {.index = index, .value = value(to), .at = 0x1000, .next = 0x1002}, memory));
            };
            good = good && set(0x560, table) && set(0x570, 0x210D);
            (void)unit.on(action::indirect_jump{0x2000}, memory);
            bool const counts = of == cpu::preset::skylake_x;
            good = good && set(0x570, 0x210C) &&
                   (status{unit.rdmsr(0x571).value}.template get<status::PacketByteCnt>() != 0) ==
                       counts &&
                   set(0x571, unit.rdmsr(0x571).value);
        }
        return good;
    });
}

TEST_CASE("a PSB follows every 2 KB even if PacketByteCnt reads 0") {  // GEN-160, GEN-161, REG-055
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        trace_unit<> unit{cpu::preset::broadwell,
                          {.cr3 = 0x1000},
                          0x1000,
                          engine::options_of(engine::model_kind::manual)};
        (void)unit.wrmsr({.index = 0x560, .value = table, .at = 0x1000, .next = 0x1002}, memory);
        (void)unit.wrmsr(
            {.index = 0x570, .value = value(std::uint64_t{0x2105}), .at = 0x1000, .next = 0x1002},
            memory);
        // PSB 16, CBR 4, PIP 8, PSBEND 2, MODE.Exec 2, TIP.PGE 7; then TIPs of 7 bytes
        std::uint64_t const at_first = unit.total().stored;
        for (std::uint64_t i = 0; i < 286; ++i) {
            (void)unit.on(action::indirect_jump{(i + 1) << 32}, memory);
        }
        std::uint64_t const before = unit.total().stored;
        (void)unit.on(action::indirect_jump{0x2000}, memory);
        auto const& bytes = memory.trace.bytes;
        auto const now = status{unit.rdmsr(0x571).value};
        return now.template get<status::PacketByteCnt>() == 0 && at_first == 39 &&
               before == 0x800 - 7 && bytes[0x800] == 0x02 && bytes[0x801] == 0x82 &&
               unit.total().stored > before + 16;
    });
}

TEST_CASE("a unit traces nothing after a cold reset") {
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        trace_unit<> unit{cpu::preset::P_FUT, {.cpl = value(std::uint8_t{0})}, 0x1000};
        return !unit.on(action::indirect_jump{0x2000}, memory).happened &&
               !unit.state().enables().trigger && unit.total() == engine::totals{} &&
               unit.msrs() == access::msr_state{} && unit.ended_by() == rule::none &&
               !unit.state().in_overflow && trace_unit<>{cpu::preset::P_FUT}.ip() == 0 &&
               unit.state().caps == cpu::preset::P_FUT &&
               unit.state().options.drained_at_once != 0 && unit.state().calls.size() == 0 &&
               unit.state().shutdown_by == rule::none && unit.state().ctl_load_verdict &&
               !unit.state().ctl<reg::ia32_rtit_ctl::EventEn>() &&
               unit.state().clocks == engine::clocks{} &&
               unit.state().concealment == engine::vmx_concealment{} && unit.state().code.cpl == 0;
    });
}

TEST_CASE("memory covered by SMRR is not written, not even in SMM") {  // GEN-263, OUT-110
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        engine::model_options how;
        how.output.restricted = {.smrr_physbase = {test::regions},
                                 .smrr_physmask = {0xFFFF'F000 | 0x800}};
        auto unit = off("CPL=0, PSBFreq=5", how);
        (void)enable(unit, memory);
        (void)unit.on(action::smi{.next = 0x1000, .to = 0x8'0000}, memory);
        auto const word = unit.msrs().ctl.with(ctl::TraceEn{value(true)});
        // The SMI handler enables tracing.
        bool const on = is_done(unit.wrmsr(
            {.index = ctl::address, .value = word.raw, .at = 0x8'0000, .next = 0x8'0002}, memory));
        fill(unit, memory, 500);
        bool nothing = true;
        for (std::size_t i = 0; i < 0x1000; ++i) {
            nothing = nothing && memory.trace.bytes[i] == 0;
        }
        // Output continues after the protected range.
        return on && unit.msrs().in_smm && nothing && unit.total().lost == 0x1000 &&
               unit.total().stored != 0 && memory.trace.bytes[0x1000] != 0;
    });
}

TEST_CASE("SMRRs that change while TraceEn is 1 take effect when it rises again") {  // OUT-115
    CHECK_TWICE([](auto value) {
        machine_memory memory;
        topa::restricted_memory const smrr{.smrr_physbase = {test::regions},
                                           .smrr_physmask = {0xFFFF'F000 | 0x800}};
        auto unit = off("CPL=0, PSBFreq=5");
        (void)enable(unit, memory);
        unit.change_restricted(value(smrr));
        fill(unit, memory, 50);
        bool const before = unit.total().lost == 0 && unit.total().stored != 0;
        auto const now = unit.msrs().ctl;
        (void)unit.wrmsr({.index = ctl::address,
                          .value = now.with(ctl::TraceEn{false}).raw,
                          .at = 0x1000,
                          .next = 0x1002},
                         memory);
        (void)unit.wrmsr({.index = ctl::address, .value = now.raw, .at = 0x1002, .next = 0x1004},
                         memory);
        fill(unit, memory, 50);
        return before && unit.total().lost != 0;
    });
}

TEST_CASE("packets do not depend on addresses: the port translates guest-physical ones") {
    // GEN-279, PRG-180
    struct translated {
        using ignores_pmis = translated;

        machine_memory& host;
        std::uint64_t distance;

        constexpr auto load(std::uint64_t address) const noexcept -> port_value {
            return host.load(address - distance);
        }
        constexpr auto store(std::uint64_t address, byte_view from) noexcept -> std::size_t {
            return host.store(address - distance, from);
        }
    };
    CHECK_TWICE([](auto value) {
        machine_memory plain;
        auto unit = off("CPL=0");
        (void)enable(unit, plain);
        (void)unit.on(action::indirect_jump{0x2000}, plain);
        // The same table and regions, at higher addresses for the guest.
        machine_memory host;
        std::uint64_t const distance = value(std::uint64_t{0x1'0000'0000});
        host.put(0, entry{test::regions + distance});
        translated guest{host, distance};
        auto other = off("CPL=0");
        bool const moved = is_done(other.wrmsr(
            {.index = 0x560, .value = table + distance, .at = 0x1000, .next = 0x1000}, guest));
        auto const word = other.msrs().ctl.with(ctl::TraceEn{true});
        bool const on = is_done(other.wrmsr(
            {.index = ctl::address, .value = word.raw, .at = 0x1000, .next = 0x1002}, guest));
        (void)other.on(action::indirect_jump{0x2000}, guest);
        return moved && on && unit.total() == other.total() && unit.total().stored != 0 &&
               plain.trace.bytes == host.trace.bytes;
    });
}
