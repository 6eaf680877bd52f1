// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/packets/generator.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using test::traced;
namespace event = engine::event;

namespace {

auto packets(traced const& on) -> std::string {
    auto const all = on.packets();
    return {all.characters, all.length};
}

}  // namespace

TEST_CASE("PTWRITE needs PTWEn, ContextEn and FilterEn, and no BranchEn") {  // GEN-300, GEN-028
    auto const written = [](std::string_view setup, event::ptwrite const& e) {
        return packets(traced{setup}.does(e));
    };
    event::ptwrite const wide{0x700, 0x705, 0x1122'3345'D566'7788, true};
    event::ptwrite const narrow{0x700, 0x705, 0x1122'3345'D566'7788, false};
    CHECK(written("PTWEn=1", wide) == "PTW(IP=0,8B,11223345D5667788)");
    CHECK(written("PTWEn=1", narrow) == "PTW(IP=0,4B,D5667788)");
    CHECK(written("PTWEn=1, FUPonPTW=1", wide) == "PTW(IP=1,8B,11223345D5667788), FUP(700)");
    CHECK(written("PTWEn=1, FUPonPTW=1, BranchEn=0", narrow) == "PTW(IP=1,4B,D5667788), FUP(700)");
    CHECK(written("", wide) == "none");
    CHECK(written("PTWEn=1, User=0", wide) == "none");
    CHECK(written("PTWEn=1, ADDR0=[1,2] filter, FilterEn=0", wide) == "none");
    CHECK(written("PTWEn=1, TraceEn=0", wide) == "none");
    CHECK(traced{"PTWEn=1"}.does(wide).ip() == 0x705);
}

TEST_CASE("a PEBS record is groups of items, and an end") {  // GEN-320..322
    traced on{};
    event::pebs_item const registers[] = {{0, 0x1111}, {1, 0xFFFF'FFFF'FFFF'FFFF}};
    event::pebs_item const basics[] = {{4, 0x1'A345'6789}};
    event::pebs_group const groups[] = {{1, false, registers, 2}, {4, true, basics, 1}};
    on.does(event::conditional{0x1000, true}).does(event::pebs_record{0x1234, groups, 2});
    CHECK(packets(on) == "TNT(1), BBP(0,1), BIP(0:1111), BIP(1:FFFFFFFFFFFFFFFF), BBP(1,4), "
                         "BIP(4:A3456789), BEP(IP=1), FUP(1234)");
    traced hidden{"User=0"};
    hidden.does(event::pebs_record{0x1234, groups, 2});
    CHECK(packets(hidden) == "BBP(0,1), BIP(0:1111), BIP(1:FFFFFFFFFFFFFFFF), BBP(1,4), "
                             "BIP(4:A3456789), BEP(IP=0)");
    CHECK(packets(traced{"TraceEn=0"}.does(event::pebs_record{0x1234, groups, 2})) == "none");
    CHECK(packets(traced{}.does(event::pebs_record{0x1234, nullptr, 0})) == "none");
    // Many items, and no PSB+ between them: GEN-006.
    std::vector<event::pebs_item> many(96);
    for (std::size_t i = 0; i < many.size(); ++i) {
        many[i] = {static_cast<std::uint8_t>(i % 32), i};
    }
    event::pebs_group const one{8, false, many.data(), 90};
    traced more{"PacketByteCnt=7FF, OS=0"};
    more.does(event::pebs_record{0x1234, &one, 1});
    auto const all = packets(more);
    std::size_t items = 0;
    for (auto at = all.find("BIP"); at != std::string::npos; at = all.find("BIP", at + 1)) {
        ++items;
    }
    CHECK(items == 90);
    CHECK(all.find("PSB") > all.find("BEP"));
    CHECK(all.find("PSB") != std::string::npos);
}

TEST_CASE("MWAIT tells what was asked for, what was resolved, and where the clock stops") {
    // GEN-310, GEN-312, GEN-317
    auto const waits = [](std::string_view setup, event::mwait const& e) {
        return packets(traced{setup}.does(e));
    };
    event::mwait const deep{.at = 0x600, .next = 0x603, .hints = 0x20, .ext = 1, .thread = {3, 1}};
    CHECK(waits("PwrEvtEn=1", deep) == "MWAIT(20,1), PWRE(C3.1), EXSTOP(IP=1), FUP(600)");
    CHECK(waits("PwrEvtEn=1, User=0", deep) == "PWRE(C3.1), EXSTOP(IP=0)");
    CHECK(waits("PwrEvtEn=1, BranchEn=0, ADDR0=[1,2] filter, FilterEn=0", deep) ==
          "MWAIT(20,1), PWRE(C3.1), EXSTOP(IP=1), FUP(600)");
    CHECK(waits("", deep) == "none");
    CHECK(waits("PwrEvtEn=1, TraceEn=0", deep) == "none");
    CHECK(waits("PwrEvtEn=1", {.at = 0x600, .next = 0x603, .hints = 0x20}) == "none");
    CHECK(waits("PwrEvtEn=1", {.thread = {0, 1}}) ==
          "MWAIT(0,0), PWRE(C0.1), EXSTOP(IP=1), FUP(0)");
    CHECK(waits("PwrEvtEn=1", {.thread = {1, 0}, .is_io = true}) ==
          "PWRE(C1), EXSTOP(IP=1), FUP(0)");
    CHECK(waits("PwrEvtEn=1", {.thread = {1, 0}, .is_pending = true}) ==
          "PWRE(C1), EXSTOP(IP=1), FUP(0)");  // GEN-314
}

TEST_CASE("HLT and its like come to C1; a shutdown is told by Event Trace") {  // GEN-311, GEN-301
    CHECK(packets(traced{"PwrEvtEn=1"}.does(event::halt{0x800, 0x801})) ==
          "PWRE(C1), EXSTOP(IP=1), FUP(800)");
    CHECK(packets(traced{"PwrEvtEn=1, User=0"}.does(event::halt{0x800, 0x801})) ==
          "PWRE(C1), EXSTOP(IP=0)");
    CHECK(packets(traced{"EventEn=1"}.does(event::halt{0x800, 0x801, true})) ==
          "CFE(SHUTDOWN,IP=1), FUP(800)");
    CHECK(packets(traced{"EventEn=1"}.does(event::halt{0x800, 0x801})) == "none");
    CHECK(traced{}.does(event::halt{0x800, 0x801}).ip() == 0x801);
    // A shutdown has no vector: PKT-220.
    traced shut{"EventEn=1"};
    shut.does(event::halt{0x800, 0x801, true});
    byte_view const all = shut.bytes.written();
    CHECK((all.size() > 4 && all[0] == 0x02 && all[1] == 0x13 && all[3] == 0));
}

TEST_CASE("a wake tells the clocks, then why") {  // GEN-200, GEN-205, GEN-313, GEN-318
    auto const woken = [](std::string_view setup, event::wake_reason why) {
        traced on{setup};
        on.does(event::mwait{.thread = {6, 0}}).does(event::wake{6, 7, why});
        on.does(event::wake{1, 1, why});  // of nothing
        auto const all = packets(on);
        auto const begin = all.find("CBR");
        return all.substr(begin == std::string::npos ? 0 : begin);
    };
    CHECK(woken("PwrEvtEn=1", event::wake_reason::store) == "CBR, PWRX(C6,C7,4)");
    CHECK(woken("PwrEvtEn=1", event::wake_reason::other) == "CBR, PWRX(C6,C7,0)");
    CHECK(woken("", event::wake_reason::store) == "CBR");
    CHECK(woken("TraceEn=0", event::wake_reason::store) == "none");
    traced on{"PwrEvtEn=TSCEn=MTCEn=1, User=0"};
    on.does(event::duty_cycle{0x900}).does(event::wake{6, 6, event::wake_reason::hardware});
    CHECK(packets(on) == "PWRE(C6,HW), EXSTOP(IP=0), TSC, TMA, CBR, PWRX(C6,C6,8)");  // GEN-315
    traced seen{"PwrEvtEn=1"};
    seen.does(event::duty_cycle{0x900});
    CHECK(packets(seen) == "PWRE(C6,HW), EXSTOP(IP=1), FUP(900)");
}

TEST_CASE("a clock that stops in C0 is told, and so is that it goes on") {  // GEN-316, GEN-312
    auto const stopped = [](std::string_view setup) {
        traced on{setup};
        on.does(event::clock_stop{0x900}).does(event::clock_stop{0x900});
        on.does(event::clock_resume{}).does(event::clock_resume{});
        return packets(on);
    };
    CHECK(stopped("PwrEvtEn=1") == "EXSTOP(IP=1), FUP(900), CBR");
    CHECK(stopped("PwrEvtEn=1, User=0, TSCEn=1") == "EXSTOP(IP=0), TSC, CBR");
    CHECK(stopped("") == "CBR");
    traced asleep{"PwrEvtEn=1"};
    asleep.does(event::halt{0x800, 0x801}).does(event::clock_stop{0x900});
    CHECK(packets(asleep) == "PWRE(C1), EXSTOP(IP=1), FUP(800)");
}

TEST_CASE("the cycle counter runs while TriggerEn is 1 and the clock is on") {  // GEN-210, GEN-219
    traced on{"CYCEn=1, CPL=0"};
    on.does(event::cycles{10}).does(event::indirect_jump{0x2000});
    on.does(event::indirect_jump{0x3000});  // in the same cycle: GEN-211
    on.does(event::cycles{5}).does(event::halt{0x800, 0x801}).does(event::cycles{1000});
    on.does(event::wake{1, 1}).does(event::cycles{2}).does(event::indirect_jump{0x4000});
    CHECK(packets(on) == "CYC(10), TIP(2000), TIP(3000), CBR, CYC(7), TIP(4000)");
    traced off{"CYCEn=1, CPL=0, TraceEn=0, PacketByteCnt=1"};
    off.does(event::cycles{10});
    off.writes(0x570, off.msrs().ctl.raw | 1, 0, 0x2000);
    off.does(event::cycles{3}).does(event::indirect_jump{0x4000});
    CHECK(packets(off) == "CBR, MODE.Exec(64), TIP.PGE(2000), CYC(3), TIP(4000)");
    traced none{"CPL=0"};
    none.does(event::cycles{10}).does(event::indirect_jump{0x2000}).does(event::cycle_guard{});
    CHECK(packets(none) == "TIP(2000)");
}

TEST_CASE(
    "with a threshold a CYC comes where as many cycles have passed") {  // GEN-212, GEN-221, PRG-130
    // The threshold table of the manual: PRG-131.
    auto const timed = [](std::string_view setup) {
        traced on{setup};
        on.does(event::cycles{1'000'000});
        std::uint64_t now = 0;
        std::string marks;
        for (std::uint64_t const at : {0U, 9U, 15U, 30U, 38U, 46U, 64U, 71U}) {
            auto const before = packets(on);
            on.does(event::cycles{at - now});
            now = at;
            if (at == 38) {
                on.does(event::mov_cr3{0x1000, 0x1003, 0x5000});
            } else {
                on.does(event::indirect_jump{0x2000});
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

TEST_CASE("a CYC stands in front of what may have one, and of nothing else") {  // GEN-213, GEN-214
    auto const begins = [](auto const& e, std::string const& with) {
        traced on{"CYCEn=PTWEn=PwrEvtEn=EventEn=TSCEn=MTCEn=1, CPL=0, TSX=1"};
        on.does(event::cycles{7}).does(e).does(event::cycle_guard{});
        return packets(on).substr(0, with.size()) == with;
    };
    CHECK(begins(event::ptwrite{}, "CYC(7), PTW(IP=0,4B,0)"));
    CHECK(begins(event::mwait{.thread = {1, 0}}, "CYC(7), MWAIT(0,0)"));
    CHECK(begins(event::halt{}, "PWRE(C1), CYC(7), EXSTOP(IP=1)"));
    CHECK(begins(event::transaction_begin{}, "CYC(7), MODE.TSX(InTX=1,TXAbort=0)"));
    CHECK(begins(event::mov_cr3{}, "CYC(7), PIP(0,NR=0)"));
    CHECK(begins(event::ratio{}, "CBR, CYC(7)"));
    CHECK(begins(event::pebs_record{.count = 0}, "CYC(7)"));
    traced later{"CYCEn=1"};
    later.does(event::cycles{7}).does(event::conditional{0, true}).does(event::cycles{9});
    later.does(event::conditional{0, true}).does(event::indirect_jump{0x2000});
    CHECK(packets(later) == "CYC(7), TNT(11), CYC(9), TIP(2000)");
}

TEST_CASE("before the counter wraps a CYC takes all of it") {  // GEN-217, GEN-220
    auto from = traced::started("CYCEn=1");
    from.how.cycle_counter_bits = 12;
    traced on{from};
    on.does(event::cycles{4000}).does(event::cycles{94}).does(event::cycles{1});
    on.does(event::cycles{5}).does(event::indirect_jump{0x2000});
    CHECK(packets(on) == "CYC(4095), CYC(5), TIP(2000)");
    traced lost{from};
    lost.does(event::overflow{}).does(event::cycles{5000}).does(event::overflow_end{0x1000});
    CHECK(packets(lost) == "CYC(904), OVF, FUP(1000)");
    traced wide{"CYCEn=1"};
    wide.does(event::cycles{5}).does(event::cycle_guard{}).does(event::cycle_guard{});
    CHECK(packets(wide) == "CYC(5)");
}

TEST_CASE("MTCs tell the crystal counter, whatever is traced") {  // GEN-203, GEN-204, GEN-123
    auto const told = [](std::string_view setup) {
        traced on{setup};
        on.does(event::conditional{0x1000, true}).does(event::time{0, 0x118, 0});
        return packets(on);
    };
    CHECK(told("MTCEn=1, MTCFreq=3, ART=100") == "TNT(1), MTC(21), MTC(22), MTC(23)");
    CHECK(told("MTCEn=1, MTCFreq=3, ART=100, User=0") == "MTC(21), MTC(22), MTC(23)");
    CHECK(told("MTCFreq=3, ART=100") == "none");
    CHECK(told("MTCEn=1, MTCFreq=3, ART=100, TraceEn=0") == "none");
    // Scaling changes what TSC tells, and no MTC: GEN-209
    traced scaled{"MTCEn=TSCEn=1, MTCFreq=3, ART=100"};
    scaled.does(event::time{0, 0x110, 0xFFFF'0000'1234});
    CHECK(packets(scaled) == "MTC(21), MTC(22)");
    traced asleep{"MTCEn=TSCEn=1, MTCFreq=3, ART=100"};
    asleep.does(event::halt{0x800, 0x801}).does(event::time{0, 0x118, 0x500});
    asleep.does(event::wake{1, 1}).does(event::time{0, 0x120, 0x600});
    CHECK(packets(asleep) == "TSC, TMA, CBR, MTC(24)");
    CHECK(asleep.clocks_now().art == 0x120);
    CHECK(asleep.clocks_now().tsc == 0x600);
    // In the cycle in which a TNT begins: it has the CYC of both. GEN-219
    traced cycle{"CYCEn=MTCEn=1, ART=100"};
    cycle.does(event::time{4, 0x101, 0}).does(event::conditional{0x1000, true});
    cycle.does(event::cycles{3}).does(event::indirect_jump{0x2000});
    CHECK(packets(cycle) == "CYC(4), MTC(1), TNT(1), CYC(3), TIP(2000)");
}

TEST_CASE("no CBR has the ratio 0, also not after a reset") {  // GEN-202, PKT-106
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (std::uint64_t const own : {0x0000U, 0x2400U}) {
            auto from = traced::started("CPL=0, OS=0");
            from.of.platform_info.raw = value(own);
            traced on{from};
            on.does(event::ratio{0x30}).does(event::ratio{0}).does(event::psb_due{});
            on.warm_reset(on.runs(), 0x1000);
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

TEST_CASE("a new ratio is told at once") {  // GEN-202
    CHECK_TWICE([](auto value) {
        traced on;
        on.does(event::ratio{value(std::uint8_t{0x18})});
        auto const bytes = on.bytes.written();
        return on.packets() == text{"CBR"} && bytes[2] == 0x18 &&
               on.clocks_now().core_to_bus == 0x18;
    });
    CHECK(packets(traced{"TraceEn=0"}.does(event::ratio{0x18})) == "none");
}

TEST_CASE("an overflow that was asked for ends where it is said, another where there is room") {
    // GEN-225..227
    traced asked;
    asked.does(event::overflow{});
    asked.end_overflow(asked.bytes);
    CHECK(asked.overflows());
    asked.does(event::overflow_end{0x5000});
    CHECK(packets(asked) == "OVF, FUP(5000)");
    asked.does(event::overflow_end{0x6000});
    CHECK(packets(asked) == "OVF, FUP(5000)");
    CHECK(!traced{"TraceEn=0"}.does(event::overflow{}).overflows());

    traced full;
    std::uint8_t few[20] = {};
    byte_buffer no_room{few};
    for (std::uint64_t i = 1; i < 9; ++i) { full.on(event::indirect_jump{i << 40}, no_room); }
    CHECK(full.overflows());
    full.end_overflow(full.bytes);
    CHECK(packets(full) == "OVF, FUP(80000000000)");
}

TEST_CASE("a scenario of 240 events is a constant") {
    static_assert([] {
        traced on{"CPL=0, CYCEn=MTCEn=TSCEn=PTWEn=PwrEvtEn=1, MTCFreq=3"};
        for (std::uint64_t i = 0; i < 20; ++i) {
            on.does(event::conditional{0x1000, i % 3 == 0});
            on.does(event::direct_call{0x1005, 0x2000}).does(event::cycles{i});
            on.does(event::near_return{0x1005}).does(event::indirect_jump{0x3000 + i});
            on.does(event::interrupt{.next = 0x3000, .to = 0x4000, .after = on.runs()});
            on.does(event::far_transfer{.at = 0x4000, .to = 0x3000, .after = on.runs()});
            on.does(event::ptwrite{0x3000, 0x3004, i, true}).does(event::time{5, 8 * i, 100 * i});
            on.does(event::mwait{.thread = {6, 0}}).does(event::wake{6, 6});
            on.does(event::mov_cr3{0x3000, 0x3003, i << 12});
        }
        return !on.overflows() && on.bytes.size() > 900;
    }());
    CHECK(true);
}

namespace {

/// Calls `visitor` for the packets that it takes.
void read(byte_view bytes, auto&& visitor) {
    trace::reader from{bytes, {.sync = false}};
    for (auto it = from.next(); it; it = from.next()) {
        packet::visit(
            [&](auto const& which) {
                if constexpr (requires { visitor(which); }) { visitor(which); }
            },
            it.packet);
    }
}

/// The numbers of the timing packets of a trace, in their order.
struct told_times {
    std::vector<std::uint64_t> tsc, tma, mtc, cyc;
    std::uint64_t cbr = 0;

    explicit told_times(byte_view bytes) { read(bytes, *this); }
    void operator()(packet::tsc const& p) { tsc.push_back(p.get<packet::tsc::TSC>()); }
    void operator()(packet::tma const& p) { tma.push_back(p.get<packet::tma::CTC>()); }
    void operator()(packet::mtc const& p) { mtc.push_back(p.get<packet::mtc::CTC>()); }
    void operator()(packet::cyc const& p) { cyc.push_back(p.value()); }
    void operator()(packet::cbr const& p) { cbr = p.get<packet::cbr::CoreBusRatio>(); }
};

}  // namespace

TEST_CASE("the crystal ticks between two packets follow from what they tell") {  // GEN-206
    for (unsigned const n : {0U, 3U, 6U, 9U}) {
        CAPTURE(n);
        std::uint64_t const art = 0x1'2345;
        traced on{"MTCEn=TSCEn=1, ART=12345, MTCFreq=" + std::to_string(n)};
        on.does(event::psb_due{});
        std::uint64_t const first = ((art >> n) + 1) << n;
        std::uint64_t const second = first + (std::uint64_t{37} << n);
        on.does(event::time{0, first, 0});
        std::size_t const at = on.bytes.size();
        on.does(event::time{0, second, 0});
        told_times const all{on.bytes.written()};
        told_times const later{on.bytes.written().from(at)};
        REQUIRE(all.tma.size() == 1);
        REQUIRE(later.mtc.size() == 37);
        // What is known of the crystal: 16 bits of TMA, and of an MTC eight from bit N on.
        unsigned const known = n < 8 ? n + 8 : 16;
        CHECK((((all.mtc[0] << n) - all.tma[0]) & low_bits(known)) == first - art);
        auto const delta = ((later.mtc.back() - all.mtc[0]) & 0xFF) << n;
        CHECK(delta == second - first);
    }
}

TEST_CASE("above MTCFreq 8 a TMA leaves open a bit that the next MTC tells") {  // GEN-207
    auto const begun_at = [](std::string_view art, std::uint64_t next) {
        traced on{"MTCEn=TSCEn=1, MTCFreq=9, ART=" + std::string{art}};
        on.does(event::psb_due{}).does(event::time{0, next, 0});
        return told_times{on.bytes.written()};
    };
    auto const low = begun_at("FFFF", 0x1'0000);
    auto const high = begun_at("1FFFF", 0x2'0000);
    CHECK(low.tma == high.tma);
    CHECK(low.mtc == std::vector<std::uint64_t>{0x80});
    CHECK(high.mtc == std::vector<std::uint64_t>{0x00});
}

TEST_CASE("core cycles are time-stamp ticks in the ratio of P1 to CBR") {  // GEN-208
    // P1 is 36, the core runs at 24: in 2400 cycles the time-stamp counter counts 3600.
    traced on{"CYCEn=TSCEn=1"};
    on.does(event::ratio{24}).does(event::time{0, 0, 10'000}).does(event::psb_due{});
    std::size_t const at = on.bytes.size();
    on.does(event::time{2400, 100, 13'600}).does(event::psb_due{});
    told_times const all{on.bytes.written()};
    told_times const later{on.bytes.written().from(at)};
    REQUIRE(all.tsc.size() == 2);
    REQUIRE(!later.cyc.empty());
    CHECK(later.cyc[0] * 36 / later.cbr == all.tsc[1] - all.tsc[0]);
}

TEST_CASE("to what a PIP belongs follows from the packets around it") {  // GEN-246
    // What a consumer does: a PIP behind a FUP of its own counts at the TIP, any other one at the
    // next MOV CR3 or far branch.
    struct consumer {
        std::string told{};
        std::uint64_t cr3 = 0;
        bool has_pip = false, is_asynchronous = false;

        void operator()(packet::fup const&) { is_asynchronous = true; }
        void operator()(packet::pip const& p) {
            cr3 = p.get<packet::pip::CR3>();
            has_pip = true;
            if (!is_asynchronous) { told += "code:" + std::to_string(cr3 >> 12) + " "; }
        }
        void operator()(packet::tip const&) {
            told += is_asynchronous ? "event:" : "branch:";
            told += has_pip && is_asynchronous ? std::to_string(cr3 >> 12) + " " : "- ";
            has_pip = is_asynchronous = false;
        }
    };
    traced on{"CPL=0, OS=1"};
    auto other = on.runs();
    other.cr3 = 0x5000;
    on.does(event::interrupt{.next = 0x1000, .to = 0x2000, .after = other});
    on.does(event::mov_cr3{0x2000, 0x2003, 0x6000}).does(event::indirect_jump{0x2100});
    other.cr3 = 0x7000;
    on.does(event::far_transfer{.at = 0x2100, .to = 0x3000, .after = other});
    consumer reads;
    read(on.bytes.written(), reads);
    CHECK(reads.told == "event:5 code:6 branch:- code:7 branch:- ");
}
