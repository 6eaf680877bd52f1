// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/detail/time.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;

TEST_CASE("the cycle counter runs while TriggerEn is 1 and the clock is on") {
    // GEN-210, GEN-219, PRG-133
    traced on{"CYCEn=1, CPL=0"};
    on.does(action::cycles{10}).does(action::indirect_jump{0x2000});
    on.does(action::indirect_jump{0x3000});  // in the same cycle: no CYC, GEN-211
    on.does(action::cycles{5}).does(action::halt{0x800, 0x801}).does(action::cycles{1000});
    on.does(action::wake{1, 1}).does(action::cycles{2}).does(action::indirect_jump{0x4000});
    CHECK(packets(on) == "CYC(10), TIP(2000), TIP(3000), CBR, CYC(7), TIP(4000)");
    traced off{"CYCEn=1, CPL=0, TraceEn=0, PacketByteCnt=1"};
    off.does(action::cycles{10});
    off.writes(0x570, off.msrs().ctl.raw | 1, 0, 0x2000);
    off.does(action::cycles{3}).does(action::indirect_jump{0x4000});
    CHECK(packets(off) == "CBR, MODE.Exec(64), TIP.PGE(2000), CYC(3), TIP(4000)");
    traced none{"CPL=0"};
    none.does(action::cycles{10}).does(action::indirect_jump{0x2000}).does(action::cycle_guard{});
    CHECK(packets(none) == "TIP(2000)");
}

TEST_CASE("after a stop of the counter a CYC precedes TSC only if it counts cycles") {
    // GEN-211, GEN-219
    auto const resumed = [](unsigned cycles) {
        traced on{"CYCEn=1, TSCEn=1, MTCEn=1, CPL=0"};
        on.does(action::cycles{10}).does(action::indirect_jump{0x2000});
        if (cycles != 0) { on.does(action::cycles{cycles}); }
        on.does(action::clock_stop{}).does(action::cycles{1000}).does(action::clock_resume{});
        return packets(on);
    };
    CHECK(resumed(5) == "CYC(10), TIP(2000), CYC(5), TSC, TMA, CBR");
    CHECK(resumed(0) == "CYC(10), TIP(2000), TSC, TMA, CBR");
}

TEST_CASE("with CycThresh a CYC is written after that many cycles") {  // GEN-212, GEN-221, PRG-130
    // The threshold table of the manual: PRG-131.
    auto const timed = [](std::string_view setup) {
        traced on{setup};
        on.does(action::cycles{1'000'000});
        std::uint64_t now = 0;
        std::string marks;
        for (std::uint64_t const at : {0U, 9U, 15U, 30U, 38U, 46U, 64U, 71U}) {
            auto const before = packets(on);
            on.does(action::cycles{at - now});
            now = at;
            if (at == 38) {
                on.does(action::mov_cr3{0x1000, 0x1003, 0x5000});
            } else {
                on.does(action::indirect_jump{0x2000});
            }
            marks += packets(on).find("CYC", before == "none" ? 0 : before.size()) ==
                             std::string::npos
                         ? '-'
                         : 'C';
        }
        return marks;
    };
    CHECK(timed("CPL=0, CYCEn=1") == "CCCCCCCC");
    CHECK(timed("CPL=0, CYCEn=1, CycThresh=5") == "C--C-CC-");
    CHECK(timed("CPL=0, CYCEn=1, CycThresh=6") == "C---C--C");
    CHECK(timed("CPL=0, CYCEn=1, CycThresh=7") == "C-----C-");
}

TEST_CASE("a CYC precedes only packets of the CYC-eligible kinds") {  // GEN-213, GEN-214
    auto const begins = [](auto const& e, std::string const& with) {
        traced on{"CYCEn=PTWEn=PwrEvtEn=EventEn=TSCEn=MTCEn=1, CPL=0, TSX=1"};
        on.does(action::cycles{7}).does(e).does(action::cycle_guard{});
        return packets(on).substr(0, with.size()) == with;
    };
    CHECK(begins(action::ptwrite{}, "CYC(7), PTW(IP=0,4B,0)"));
    CHECK(begins(action::mwait{.thread = {1, 0}}, "CYC(7), MWAIT(0,0)"));
    CHECK(begins(action::halt{}, "PWRE(C1), CYC(7), EXSTOP(IP=1)"));
    CHECK(begins(action::transaction_begin{}, "CYC(7), MODE.TSX(InTX=1,TXAbort=0)"));
    CHECK(begins(action::mov_cr3{}, "CYC(7), PIP(0,NR=0)"));
    CHECK(begins(action::ratio{}, "CBR, CYC(7)"));
    CHECK(begins(action::pebs_record{.count = 0}, "CYC(7)"));
    traced later{"CYCEn=1"};
    later.does(action::cycles{7}).does(action::conditional{0, true}).does(action::cycles{9});
    later.does(action::conditional{0, true}).does(action::indirect_jump{0x2000});
    CHECK(packets(later) == "CYC(7), TNT(11), CYC(9), TIP(2000)");
}

TEST_CASE("before the cycle counter wraps a CYC reports its value") {  // GEN-217, GEN-220
    auto from = traced::started("CYCEn=1");
    from.how.cycle_counter_bits = 12;
    traced on{from};
    on.does(action::cycles{4000}).does(action::cycles{94}).does(action::cycles{1});
    on.does(action::cycles{5}).does(action::indirect_jump{0x2000});
    CHECK(packets(on) == "CYC(4095), CYC(5), TIP(2000)");
    traced lost{from};
    lost.does(action::overflow{}).does(action::cycles{5000}).does(action::overflow_end{0x1000});
    CHECK(packets(lost) == "CYC(904), OVF, FUP(1000)");
    traced wide{"CYCEn=1"};
    wide.does(action::cycles{5}).does(action::cycle_guard{}).does(action::cycle_guard{});
    CHECK(packets(wide) == "CYC(5)");
}

TEST_CASE("MTCs do not depend on ContextEn") {  // GEN-203, GEN-204, GEN-123
    auto const told = [](std::string_view setup) {
        traced on{setup};
        on.does(action::conditional{0x1000, true}).does(action::elapsed{0, 0x118, 0});
        return packets(on);
    };
    CHECK(told("MTCEn=1, MTCFreq=3, ART=100") == "TNT(1), MTC(21), MTC(22), MTC(23)");
    CHECK(told("MTCEn=1, MTCFreq=3, ART=100, User=0") == "MTC(21), MTC(22), MTC(23)");
    CHECK(told("MTCFreq=3, ART=100") == "none");
    CHECK(told("MTCEn=1, MTCFreq=3, ART=100, TraceEn=0") == "none");
    // TSC scaling affects TSC packets, not MTCs: GEN-209.
    traced scaled{"MTCEn=TSCEn=1, MTCFreq=3, ART=100"};
    scaled.does(action::elapsed{0, 0x110, 0xFFFF'0000'1234});
    CHECK(packets(scaled) == "MTC(21), MTC(22)");
    traced asleep{"MTCEn=TSCEn=1, MTCFreq=3, ART=100"};
    asleep.does(action::halt{0x800, 0x801}).does(action::elapsed{0, 0x118, 0x500});
    asleep.does(action::wake{1, 1}).does(action::elapsed{0, 0x120, 0x600});
    CHECK(packets(asleep) == "TSC, TMA, CBR, MTC(24)");
    CHECK(asleep.state().clocks.art == 0x120);
    CHECK(asleep.state().clocks.tsc == 0x600);
    // An MTC in the cycle in which a TNT begins shares its CYC: GEN-219.
    traced cycle{"CYCEn=MTCEn=1, ART=100"};
    cycle.does(action::elapsed{4, 0x101, 0}).does(action::conditional{0x1000, true});
    cycle.does(action::cycles{3}).does(action::indirect_jump{0x2000});
    CHECK(packets(cycle) == "CYC(4), MTC(1), TNT(1), CYC(3), TIP(2000)");
}

TEST_CASE("CBR never has ratio 0, even after a reset") {  // GEN-202, PKT-106
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (std::uint64_t const own : {0x0000U, 0x2400U}) {
            auto from = traced::started("CPL=0, OS=0");
            from.of.platform_info.raw = value(own);
            traced on{from};
            on.does(action::ratio{0x30}).does(action::ratio{0}).does(action::psb_due{});
            on.warm_reset(on.state().code, 0x1000);
            on.set_clocks({.art = 5});
            on.writes(0x570, 0x210D, 0x1000, 0x1002);
            uint8_t const wanted = own == 0 ? 24 : 0x24;
            // CBR, CBR; PSB, CBR, PSBEND; CBR
            good = good && on.bytes.size() >= 34 && on.room[2] == 0x30 && on.room[6] == wanted &&
                   on.room[24 + 1] == 0x03 && on.room[24 + 2] == wanted &&
                   on.room[30 + 1] == 0x03 && on.room[30 + 2] == wanted;
        }
        return good;
    });
}

TEST_CASE("a ratio change writes a CBR at once") {  // GEN-202
    CHECK_TWICE([](auto value) {
        traced on;
        on.does(action::ratio{value(std::uint8_t{0x18})});
        auto const bytes = on.bytes.written();
        return on.packets() == text{"CBR"} && bytes[2] == 0x18 &&
               on.state().clocks.core_to_bus == 0x18;
    });
    CHECK(packets(traced{"TraceEn=0"}.does(action::ratio{0x18})) == "none");
}

namespace {

/// The values of the timing packets of a trace, in order.
struct told_times {
    std::vector<std::uint64_t> tsc, tma, mtc, cyc;
    std::uint64_t cbr = 0;

    explicit told_times(byte_view bytes) { test::read(bytes, *this); }
    void operator()(packet::tsc const& p) { tsc.push_back(p.get<packet::tsc::TSC>()); }
    void operator()(packet::tma const& p) { tma.push_back(p.get<packet::tma::CTC>()); }
    void operator()(packet::mtc const& p) { mtc.push_back(p.get<packet::mtc::CTC>()); }
    void operator()(packet::cyc const& p) { cyc.push_back(p.value()); }
    void operator()(packet::cbr const& p) { cbr = p.get<packet::cbr::CoreBusRatio>(); }
};

}  // namespace

TEST_CASE("the crystal ticks between two packets are the difference of their values") {  // GEN-206
    for (unsigned const n : {0U, 3U, 6U, 9U}) {
        CAPTURE(n);
        std::uint64_t const art = 0x1'2345;
        traced on{"MTCEn=TSCEn=1, ART=12345, MTCFreq=" + std::to_string(n)};
        on.does(action::psb_due{});
        std::uint64_t const first = ((art >> n) + 1) << n;
        std::uint64_t const second = first + (std::uint64_t{37} << n);
        on.does(action::elapsed{0, first, 0});
        std::size_t const at = on.bytes.size();
        on.does(action::elapsed{0, second, 0});
        told_times const all{on.bytes.written()};
        told_times const later{on.bytes.written().from(at)};
        REQUIRE(all.tma.size() == 1);
        REQUIRE(later.mtc.size() == 37);
        // Known bits of ART: 15:0 from TMA, and N+7:N from MTC.
        unsigned const known = n < 8 ? n + 8 : 16;
        CHECK((((all.mtc[0] << n) - all.tma[0]) & low_bits(known)) == first - art);
        auto const delta = ((later.mtc.back() - all.mtc[0]) & 0xFF) << n;
        CHECK(delta == second - first);
    }
}

TEST_CASE("a PSB+ between the MTCs of one event has their time") {  // GEN-203, GEN-206
    traced on{"MTCEn=TSCEn=1, MTCFreq=3, PacketByteCnt=700"};
    on.does(action::elapsed{0, 1600, 50 * 1600});  // 200 MTCs, 400 bytes
    told_times const all{on.bytes.written()};
    REQUIRE(all.tma.size() == 1);
    CHECK(all.tma[0] == 8 * 128);  // after 2048 bytes
    CHECK(all.tsc[0] == 50 * all.tma[0]);
    CHECK(all.mtc.size() == 200);
    std::size_t const at = on.bytes.size();
    on.does(action::elapsed{0, 1604, 50 * 1604}).does(action::psb_due{});
    CHECK(told_times{on.bytes.written().from(at)}.tsc[0] == 50 * 1604);
}

TEST_CASE("above MTCFreq 8 an MTC gives an ART bit that TMA lacks") {  // GEN-207
    auto const begun_at = [](std::string_view art, std::uint64_t next) {
        traced on{"MTCEn=TSCEn=1, MTCFreq=9, ART=" + std::string{art}};
        on.does(action::psb_due{}).does(action::elapsed{0, next, 0});
        return told_times{on.bytes.written()};
    };
    auto const low = begun_at("FFFF", 0x1'0000);
    auto const high = begun_at("1FFFF", 0x2'0000);
    CHECK(low.tma == high.tma);
    CHECK(low.mtc == std::vector<std::uint64_t>{0x80});
    CHECK(high.mtc == std::vector<std::uint64_t>{0x00});
}

TEST_CASE("core cycles are time-stamp ticks in the ratio of P1 to CBR") {  // GEN-208
    // P1 is 36, CBR is 24: the TSC counts 3600 in 2400 core cycles.
    traced on{"CYCEn=TSCEn=1"};
    on.does(action::ratio{24}).does(action::elapsed{0, 0, 10'000}).does(action::psb_due{});
    std::size_t const at = on.bytes.size();
    on.does(action::elapsed{2400, 100, 13'600}).does(action::psb_due{});
    told_times const all{on.bytes.written()};
    told_times const later{on.bytes.written().from(at)};
    REQUIRE(all.tsc.size() == 2);
    REQUIRE(!later.cyc.empty());
    CHECK(later.cyc[0] * 36 / later.cbr == all.tsc[1] - all.tsc[0]);
}
