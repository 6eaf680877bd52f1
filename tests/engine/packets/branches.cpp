// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/packets/branches.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>

using namespace ptspec;
using test::traced;
namespace event = engine::event;

namespace {

auto packets(traced const& on) -> std::string {
    auto const all = on.packets();
    return {all.characters, all.length};
}
constexpr auto deferring(std::string_view setup = "") -> pt_model::start {
    auto from = traced::started(setup);
    from.how.defers_tips = true;
    return from;
}

}  // namespace

TEST_CASE("branches are gathered until a TNT is full") {  // GEN-120..122
    traced on;
    for (unsigned i = 0; i < 8; ++i) { on.does(event::conditional{0x1000, i % 3 == 0}); }
    CHECK(packets(on) == "TNT(100100)");
    CHECK(on.pending() == packet::branches{2, 0b10});
    auto from = traced::started("");
    from.how.long_tnt = true;
    traced more{from};
    for (unsigned i = 0; i < 46; ++i) { more.does(event::conditional{0x1000, true}); }
    CHECK(packets(more) == "none");
    more.does(event::conditional{0x1000, false});
    CHECK(packets(more) == "TNT(" + std::string(46, '1') + "0)");
    for (unsigned i = 0; i < 9; ++i) { more.does(event::conditional{0x1000, true}); }
    more.does(event::indirect_jump{0x2000});
    CHECK(packets(more) ==
          "TNT(" + std::string(46, '1') + "0), TNT(" + std::string(9, '1') + "), TIP(2000)");
}

TEST_CASE("what is quick writes what is not") {
    // A branch from one range to another has to ask where it goes.
    auto const one = [](std::string_view setup) {
        traced on{setup};
        std::uint64_t seed = 1;
        std::uint64_t stack[8] = {};
        unsigned depth = 0;
        for (unsigned i = 0; i < 900; ++i) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            std::uint64_t const to = 0x1000 +
                                     (seed >> 33) % 0x100'0000 * (i % 7 == 0 ? 0x10001 : 1);
            switch (seed >> 60) {
                case 0: on.does(event::indirect_jump{to}); break;
                case 1: on.does(event::indirect_call{to + 3, to}); break;
                case 2:
                    if (depth < 8) { stack[depth++] = to + 9; }
                    on.does(event::direct_call{to + 9, to});
                    break;
                case 3: on.does(event::near_return{depth != 0 ? stack[--depth] : to}); break;
                case 4: on.does(event::direct_jump{to}); break;
                default: on.does(event::conditional{to, (seed >> 40 & 1) != 0}); break;
            }
        }
        return packets(on);
    };
    auto const quick = one("");
    CHECK(quick.size() > 2000);
    CHECK(quick == one("ADDR0=[0,FFFFFFFFFFFFFFFF] filter"));
    CHECK(quick == one("ADDR0=[0,0] stop"));
    CHECK(quick == one("ADDR0=[0,7FFFFF] filter, ADDR1=[800000,FFFFFFFFFFFFFFFF] filter"));
    CHECK(quick == one("ADDR0=[0,4FFFFF] filter, ADDR1=[500000,8FFFFF] filter, "
                       "ADDR2=[900000,BFFFFF] filter, ADDR3=[C00000,FFFFFFFFFFFFFFFF] filter"));
    // A branch in front of a range that begins low, and is long, leaves it.
    traced on{"ADDR0=[100,FFFF] filter"};
    on.does(event::conditional{0x1000, true}).does(event::conditional{0x10, true});
    CHECK(packets(on) == "TNT(1), TIP.PGD()");
}

TEST_CASE("a return takes one bit where a call was traced that leads there") {  // GEN-130, GEN-138
    CHECK_TWICE([](auto value) {
        traced on;
        on.does(event::indirect_jump{0x7000});
        on.does(event::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        on.does(event::near_return{0x1005}).does(event::indirect_jump{0x7004});
        // The last IP is still 7000H: 16 bits are enough.
        return on.packets() == text{"TIP(7000), TNT(1), TIP(7004)"} && on.bytes.size() == 7 + 1 + 3;
    });
    CHECK_TWICE([](auto value) {  // with DisRETC none does: GEN-139
        traced on{"DisRETC=1"};
        on.does(event::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        on.does(event::near_return{0x1005});
        return on.packets() == text{"TIP(1005)"} && on.calls().size() == 0;
    });
}

TEST_CASE("a call is remembered where it is traced before and behind it") {  // GEN-132, GEN-135
    auto const called = [](std::string_view setup, auto const& e) {
        return traced{setup}.does(e).calls().size();
    };
    constexpr std::string_view ranges = "ADDR0=[1000,1FFF] filter";
    CHECK(called("", event::direct_call{0x1005, 0x2000}) == 1);
    CHECK(called("", event::direct_call{0x1005, 0x1005}) == 0);
    CHECK(called("", event::indirect_call{0x1002, 0x1002}) == 1);
    CHECK(called("BranchEn=0", event::direct_call{0x1005, 0x2000}) == 0);
    CHECK(called(ranges, event::direct_call{0x1005, 0x1800}) == 1);
    CHECK(called(ranges, event::direct_call{0x1005, 0x1005}) == 0);
    CHECK(called(ranges, event::indirect_call{0x1005, 0x1005}) == 1);
    CHECK(called(ranges, event::direct_call{0x1005, 0x2000}) == 0);
    CHECK(called("ADDR0=[1000,1FFF] filter, FilterEn=0, IP=3000",
                 event::direct_call{0x3005, 0x1000}) == 0);
    // far ones are not: GEN-136
    traced on;
    on.does(event::direct_call{0x1005, 0x2000});
    on.does(event::far_transfer{.to = 0x3000, .after = on.runs()});
    on.does(event::interrupt{.next = 0x3000, .to = 0x4000, .after = on.runs()});
    CHECK(on.calls().size() == 1);
}

TEST_CASE("a return in narrower code compares the bits that it pops") {  // GEN-137
    auto const back = [](engine::code_width width, std::uint64_t to) {
        traced on{"LIP=0"};
        on.does(event::direct_call{0x1'0001'1005, 0x2000});
        auto code = on.runs();
        code.width = width;
        on.does(event::far_transfer{.to = 0x3000, .after = code}).does(event::near_return{to});
        on.does(event::indirect_jump{0x9000});
        return packets(on);
    };
    using engine::code_width;
    CHECK(back(code_width::bits_32, 0x1'1005) == "MODE.Exec(32), TIP(3000), TNT(1), TIP(9000)");
    CHECK(back(code_width::bits_32, 0x1005) == "MODE.Exec(32), TIP(3000), TIP(1005), TIP(9000)");
    CHECK(back(code_width::bits_16, 0x1005) == "MODE.Exec(16), TIP(3000), TNT(1), TIP(9000)");
    CHECK(back(code_width::bits_64, 0x1'1005) == "TIP(3000), TIP(11005), TIP(9000)");
    // All of them, and the highest, too
    auto const matches = [](engine::code_width width, std::uint64_t bit) {
        traced on{"LIP=0"};
        auto code = on.runs();
        code.width = width;
        on.does(event::far_transfer{.to = 0x3000, .after = code});
        on.does(event::direct_call{0x1005, 0x2000}).does(event::near_return{0x1005 ^ bit});
        return on.pending().count == 1;
    };
    for (unsigned bit = 0; bit < 64; ++bit) {
        std::uint64_t const other = std::uint64_t{1} << bit;
        CHECK(matches(code_width::bits_16, other) == (bit >= 16));
        CHECK(matches(code_width::bits_32, other) == (bit >= 32));
        CHECK(!matches(code_width::bits_64, other));
    }
}

TEST_CASE("TIPs wait for the TNT that is being filled, where they are deferred") {
    // GEN-145..147
    traced on{deferring()};
    on.does(event::conditional{0x1000, false}).does(event::indirect_jump{0x1308});
    on.does(event::conditional{0x1000, true}).does(event::indirect_jump{0x1100});
    CHECK(packets(on) == "none");
    on.does(event::interrupt{.next = 0x110C, .to = 0xCC00, .after = on.runs()});
    CHECK(packets(on) == "TNT(01), TIP(1308), TIP(1100), FUP(110C), TIP(CC00)");
    traced full{deferring()};
    full.does(event::conditional{0x1000, false}).does(event::indirect_jump{0x1308});
    for (unsigned i = 0; i < 5; ++i) { full.does(event::conditional{0x1000, true}); }
    CHECK(packets(full) == "TNT(011111), TIP(1308)");
    // An uncompressed return lets all of them go, a TIP without TNT is not deferred.
    traced back{deferring()};
    back.does(event::indirect_jump{0x1200}).does(event::conditional{0x1000, true});
    back.does(event::indirect_jump{0x1300}).does(event::near_return{0x1400});
    CHECK(packets(back) == "TIP(1200), TNT(1), TIP(1300), TIP(1400)");
}

TEST_CASE("with DisTNT branches leave nothing") {  // GEN-325
    traced on{"DisTNT=1, ADDR0=[1000,1FFF] filter"};
    for (unsigned i = 0; i < 7; ++i) { on.does(event::conditional{0x1000, i % 2 == 0}); }
    on.does(event::direct_call{0x1005, 0x1100}).does(event::near_return{0x1005});
    on.does(event::near_return{0x1300}).does(event::conditional{0x5000, true});
    CHECK(packets(on) == "TIP(1300), TIP.PGD()");
    CHECK(on.pending().count == 0);
}

TEST_CASE("code that goes straight on changes no enable") {  // GEN-083, GEN-084
    traced on{"ADDR0=[1000,10FF] filter, IP=10F0"};
    on.does(event::sequential{0x1100}).does(event::conditional{0x1102, false});
    on.does(event::conditional{0x1108, false});
    CHECK(on.ip() == 0x1108);
    CHECK(on.pending().count == 2);
    on.does(event::conditional{0x1110, true});
    CHECK(packets(on) == "TNT(00), TIP.PGD()");
}

TEST_CASE("a transaction tells its begin, its end and its abort, the outermost one") {
    // GEN-007, GEN-250..255, GEN-258
    traced on{"TSX=1"};
    on.does(event::transaction_begin{0x100, 0x105}).does(event::transaction_begin{0x110, 0x115});
    on.does(event::transaction_end{0x120, 0x123}).does(event::transaction_end{0x130, 0x133});
    on.does(event::transaction_end{0x140, 0x143});  // of none
    CHECK(packets(on) == "MODE.TSX(InTX=1,TXAbort=0), FUP(100), MODE.TSX(InTX=0,TXAbort=0), "
                         "FUP(130)");
    CHECK(on.ip() == 0x143);
    traced aborted{"TSX=1"};
    aborted.does(event::transaction_begin{0x100, 0x105});
    aborted.does(event::conditional{0x200, true});
    aborted.does(event::transaction_abort{0x200, 0x900});
    aborted.does(event::transaction_begin{0x300, 0x305});
    CHECK(packets(aborted) ==
          "MODE.TSX(InTX=1,TXAbort=0), FUP(100), TNT(1), MODE.TSX(InTX=0,TXAbort=1), FUP(200), "
          "TIP(900), MODE.TSX(InTX=1,TXAbort=0), FUP(300)");
    traced off{"TSX=1, BranchEn=0"};
    off.does(event::transaction_begin{0x100, 0x105}).does(event::transaction_abort{0x110, 0x900});
    CHECK(packets(off) == "none");
    traced outside{"TSX=1, ADDR0=[1000,1FFF] filter, IP=3000, FilterEn=0"};
    outside.does(event::transaction_begin{0x3000, 0x3005});
    outside.does(event::transaction_abort{0x3010, 0x1900});
    CHECK(packets(outside) ==
          "MODE.TSX(InTX=1,TXAbort=0), MODE.TSX(InTX=0,TXAbort=1), TIP.PGE(1900)");  // GEN-257
    traced leaves{"TSX=1, ADDR0=[1000,1FFF] filter"};
    leaves.does(event::transaction_begin{0x1000, 0x1005});
    leaves.does(event::transaction_abort{0x1010, 0x3000});
    CHECK(packets(leaves) == "MODE.TSX(InTX=1,TXAbort=0), FUP(1000), "
                             "MODE.TSX(InTX=0,TXAbort=1), FUP(1010), TIP.PGD(3000)");  // GEN-256
}

TEST_CASE("INIT and SIPI: who waits in between has an unbound FUP") {  // GEN-113, GEN-290
    auto const reset = [](traced const& on) {
        auto code = on.runs();
        code.cr3 = 0;
        code.cpl = 0;
        code.width = engine::code_width::bits_16;
        code.real_mode = true;
        return code;
    };
    traced boots{"CPL=0"};
    boots.does(event::init{0x1000, 0xFFFF'FFF0, reset(boots)});
    CHECK(packets(boots) == "FUP(1000), PIP(0,NR=0), MODE.Exec(16), TIP(FFFFFFF0)");
    traced waits{"CPL=0"};
    waits.does(event::init{0x1000, 0, reset(waits), true});
    CHECK(packets(waits) == "FUP(1000), PIP(0,NR=0)");
    CHECK(waits.runs() == reset(waits));
    CHECK(waits.runs().real_mode);
    waits.does(event::sipi{0x9'A000, reset(waits), 0x9A});
    CHECK(packets(waits) == "FUP(1000), PIP(0,NR=0), MODE.Exec(16), TIP(9A000)");
    CHECK(waits.enables_now().trigger);
    traced told{"CPL=0, EventEn=1"};
    told.does(event::init{0x1000, 0, reset(told), true})
        .does(event::sipi{0x9'A000, reset(told), 0x9A});
    CHECK(packets(told) == "CFE(INIT,IP=0), FUP(1000), PIP(0,NR=0), CFE(SIPI:9A,IP=0), "
                           "MODE.Exec(16,IF=0), TIP(9A000)");
}

TEST_CASE("a production enclave is not traced, a debug enclave is") {  // GEN-285, GEN-286, GEN-113
    auto const into = [](std::string_view setup, engine::enclave kind) {
        traced on{setup};
        auto code = on.runs();
        code.inside = kind;
        on.does(event::enclave_transfer{0x1000, 0x7000, code});
        on.does(event::conditional{0x7002, true});
        code.inside = engine::enclave::none;
        on.does(event::enclave_transfer{0x7100, 0x2000, code});
        return packets(on);
    };
    CHECK(into("", engine::enclave::production) == "FUP(1000), TIP.PGD(), TIP.PGE(2000)");
    CHECK(into("", engine::enclave::debug) == "FUP(1000), TIP(7000), TNT(1), FUP(7100), TIP(2000)");
    CHECK(into("ADDR0=[1000,2FFF] filter", engine::enclave::debug) ==
          "FUP(1000), TIP.PGD(7000), TIP.PGE(2000)");
}

TEST_CASE("software interrupts, SYSCALL and user interrupts have types of their own, if known") {
    // GEN-111, GEN-301, GEN-304
    auto const told = [](bool known) {
        auto from = traced::started("EventEn=1");
        from.how.swintr_events = known;
        traced on{from};
        on.does(event::software_interrupt{
            .at = 0x1000, .to = 0x2000, .after = on.runs(), .vector = 0x80});
        on.does(event::far_transfer{
            .at = 0x2000, .to = 0x3000, .after = on.runs(), .kind = event::far_kind::syscall});
        on.does(event::user_interrupt{0x3000, 0x4000, 5});
        on.does(event::far_transfer{
            .at = 0x4000, .to = 0x3000, .after = on.runs(), .kind = event::far_kind::uiret});
        return packets(on);
    };
    CHECK(told(false) == "CFE(INTR:80,IP=0), FUP(1000), TIP(2000), TIP(3000), CFE(UINTR:5,IP=0), "
                         "FUP(3000), TIP(4000), CFE(UIRET,IP=0), TIP(3000)");
    CHECK(told(true) == "CFE(SWINTR:80,IP=0), FUP(1000), TIP(2000), CFE(SYSCALL,IP=1), FUP(2000), "
                        "TIP(3000), CFE(UINTR:5,IP=0), FUP(3000), TIP(4000), CFE(UIRET,IP=0), "
                        "TIP(3000)");
}

TEST_CASE("an exception tells the instruction, an interrupt the one behind, an INT itself") {
    // GEN-113, GEN-289
    auto const from = [](auto const& e) { return packets(traced{}.does(e)); };
    engine::running const code = traced{}.runs();
    CHECK(from(event::exception{.at = 0x1000, .to = 0x2000, .after = code, .vector = 5}) ==
          "FUP(1000), TIP(2000)");
    CHECK(from(event::interrupt{.next = 0x1003, .to = 0x2000, .after = code}) ==
          "FUP(1003), TIP(2000)");
    CHECK(from(event::software_interrupt{.at = 0x1000, .to = 0x2000, .after = code}) ==
          "FUP(1000), TIP(2000)");
}

TEST_CASE("the width of code is told as 16, 32 or 64 bits") {  // GEN-235
    auto const into = [](engine::code_width width) {
        traced on{"mode=" + std::string{width == engine::code_width::bits_64 ? "32" : "64"}};
        auto code = on.runs();
        code.width = width;
        on.does(event::far_transfer{.to = 0x2000, .after = code});
        return packets(on);
    };
    CHECK(into(engine::code_width::bits_16) == "MODE.Exec(16), TIP(2000)");
    CHECK(into(engine::code_width::bits_32) == "MODE.Exec(32), TIP(2000)");
    CHECK(into(engine::code_width::bits_64) == "MODE.Exec(64), TIP(2000)");
}

TEST_CASE("where branches go is asked for linear addresses, where packets have them") {
    // GEN-080, GEN-091
    CHECK_TWICE([](auto value) {
        auto from = traced::started(
            "mode=32, LIP=1, ADDR0=[21000,21010] filter, ADDR1=[11000,11FFF] filter, IP=11000");
        from.code.cs_base = value(std::uint64_t{0x1'0000});
        traced on{from};
        on.does(event::conditional{0x1'1008, true}).does(event::conditional{0x1'1800, true});
        on.does(event::indirect_jump{0x1000}).does(event::indirect_jump{0x1800});
        return on.packets() == text{"TNT(1), TIP.PGD(), TIP.PGE(11000), TIP(11800)"};
    });
}

TEST_CASE(
    "branches inside a range are quick, and those that leave it are told") {  // GEN-082, GEN-101
    CHECK_TWICE([](auto value) {
        traced on{"ADDR0=[1000,1FFF] filter, ADDR1=[1800,18FF] stop, CYCEn=1"};
        on.does(event::cycles{3}).does(event::conditional{0x1100, true});
        on.does(event::cycles{4}).does(event::conditional{0x1102, false});
        on.does(event::direct_jump{0x17FF}).does(event::conditional{0x2000, value(true)});
        on.does(event::cycles{5}).does(event::indirect_jump{0x1FFF});
        on.does(event::conditional{0x1900, true}).does(event::direct_jump{0x18FF});
        return on.packets() == text{"CYC(3), TNT(10), CYC(4), TIP.PGD(), CYC(5), TIP.PGE(1FFF), "
                                    "TNT(1), TIP.PGD(18FF), TraceStop"};
    });
}

namespace {

/// Does one thing, and says where the processor is then.
template <class Event>
constexpr auto ip_behind(std::string_view setup, Event const& e) -> std::uint64_t {
    return traced{setup}.does(e).ip();
}
/// A byte before a PSB+ is due: does something, and says whether it came at once.
template <class Event>
constexpr auto brings_psb(std::string_view setup, Event const& e, unsigned branches = 0,
                          engine::clocks const& now = {}) -> bool {
    auto from = traced::started(setup);
    using status = reg::ia32_rtit_status;
    from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2047});
    traced on{from};
    on.set_clocks(now);
    for (unsigned i = 0; i < branches; ++i) { on.does(event::conditional{0x1000, true}); }
    on.does(e);
    auto const all = on.packets();
    return std::string_view{all.characters, all.length}.find("PSB,") != std::string_view::npos;
}

}  // namespace

TEST_CASE("whatever happens, the next instruction is known") {
    CHECK_TWICE([](auto value) {
        std::uint64_t const to = value(std::uint64_t{0x2345});
        bool good = true;
        // Quick, with CYCs, and with care
        for (std::string_view const setup : {"", "CYCEn=1", "DisTNT=1", "TraceEn=0"}) {
            good = good && ip_behind(setup, event::conditional{to, true}) == to &&
                   ip_behind(setup, event::conditional{to, false}) == to &&
                   ip_behind(setup, event::direct_jump{to}) == to &&
                   ip_behind(setup, event::direct_call{0x1005, to}) == to &&
                   ip_behind(setup, event::indirect_jump{to}) == to &&
                   ip_behind(setup, event::indirect_call{0x1005, to}) == to &&
                   ip_behind(setup, event::near_return{to}) == to &&
                   ip_behind(setup, event::sequential{to}) == to &&
                   ip_behind(setup, event::transaction_begin{0x1000, to}) == to &&
                   ip_behind(setup, event::transaction_end{0x1000, to}) == to &&
                   ip_behind(setup, event::transaction_abort{0x1000, to}) == to &&
                   ip_behind(setup, event::init{.next = 0x1000, .to = to}) == to &&
                   ip_behind(setup, event::init{0x1000, to, {}, true}) == to;
        }
        return good;
    });
}

TEST_CASE(
    "what a mismatching RET leaves of the call stack is a model option") {  // GEN-133, GEN-134
    using engine::ret_mismatch;
    auto const returned = [](ret_mismatch how) {
        auto from = traced::started("OS=0");
        from.how.on_ret_mismatch = how;
        traced on{from};
        on.does(event::direct_call{0x1005, 0x2000}).does(event::direct_call{0x2005, 0x3000});
        on.does(event::near_return{0x4000}).does(event::near_return{0x1005});
        return on.does(event::near_return{0x2005}).does(event::indirect_jump{0x9000}).packets();
    };
    static_assert(returned(ret_mismatch::pops_top) ==
                  text{"TIP(4000), TNT(1), TIP(2005), TIP(9000)"});
    CHECK(returned(ret_mismatch::pops_top) == text{"TIP(4000), TNT(1), TIP(2005), TIP(9000)"});
    CHECK(returned(ret_mismatch::keeps_stack) == text{"TIP(4000), TIP(1005), TNT(1), TIP(9000)"});
    CHECK(returned(ret_mismatch::clears_stack) ==
          text{"TIP(4000), TIP(1005), TIP(2005), TIP(9000)"});
}

TEST_CASE("a PSB+ that is due comes at once behind whatever writes a packet") {  // GEN-006, GEN-163
    CHECK_TWICE([](auto value) {
        std::uint64_t const to = value(std::uint64_t{0x2345});
        bool good = true;
        for (std::string_view const setup : {"", "CYCEn=1", "DisRETC=1", "ADDR0=[0,FFFF] filter"}) {
            good = good && brings_psb(setup, event::indirect_jump{to}) &&
                   brings_psb(setup, event::indirect_call{0x1005, to}) &&
                   brings_psb(setup, event::near_return{to}) &&
                   brings_psb(setup, event::transaction_begin{0x1000, 0x1003}) &&
                   brings_psb(setup, event::far_transfer{.at = 0x1000, .to = to}) &&
                   brings_psb(setup, event::interrupt{.next = 0x1000, .to = to}) &&
                   brings_psb(setup, event::init{0x1000, to, {}, true});
        }
        // The one whose packets begin a TNT has to wait for it.
        good = good && !brings_psb("", event::conditional{to, true}) &&
               brings_psb("", event::conditional{to, true}, 5) &&
               brings_psb("", event::conditional{to, false}, 5) &&
               !brings_psb("", event::direct_call{0x1005, to}) &&
               brings_psb("deferral=1, DisRETC=1", event::indirect_call{0x1005, to});
        return good;
    });
    CHECK_TWICE([](auto value) {
        std::uint64_t const to = value(std::uint64_t{0x2345});
        engine::clocks stopped;
        stopped.are_off = true;
        return brings_psb("PTWEn=1", event::ptwrite{0x1000, to, 7}) &&
               brings_psb("TSCEn=1", event::clock_resume{}, 0, stopped) &&
               brings_psb("TSCEn=1", event::wake{}, 0, stopped) &&
               brings_psb("CYCEn=1", event::cycles{~std::uint64_t{0}}) &&
               !brings_psb("PwrEvtEn=1", event::halt{0x1000, to}) &&
               brings_psb("MTCEn=1", event::time{0, 0x1000, 0x3000}) &&
               brings_psb("", event::ratio{24});
    });
}

TEST_CASE("a CYC in front of branches, and the end of a transaction, may bring a PSB+, too") {
    // GEN-006, GEN-163
    CHECK_TWICE([](auto value) {
        bool good = true;
        using status = reg::ia32_rtit_status;
        for (bool const ends : {true, false}) {
            auto from = traced::started("CYCEn=1, OS=0");
            from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2038});
            traced on{from};
            // MODE.TSX, FUP
            on.does(event::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
            std::size_t const begun = on.bytes.size();
            if (ends) {
                on.does(event::transaction_end{0x1003, 0x1006});
            } else {
                on.does(event::cycles{3}).does(event::conditional{0x1006, true});
            }
            good = good && on.bytes.size() - begun >= 16;
        }
        return good;
    });
}

TEST_CASE("a TIP with all bytes of its IP stands whole behind branches") {  // PKT-052
    CHECK_TWICE([](auto value) {
        traced on{};
        on.does(event::conditional{0x1010, true}).does(event::conditional{0x1020, false});
        on.does(event::indirect_jump{value(std::uint64_t{0x1234'5678'9ABC'DEF0})});
        constexpr std::uint8_t expected[] = {0x0C, 0xCD, 0xF0, 0xDE, 0xBC,
                                             0x9A, 0x78, 0x56, 0x34, 0x12};
        return on.bytes.written() == byte_view{expected};
    });
}

TEST_CASE("INIT and an abort end all that is nested") {  // GEN-252, GEN-290
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (bool const aborts : {true, false}) {
            traced on{"OS=0"};
            on.does(event::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
            on.does(event::transaction_begin{0x1003, 0x1006});
            if (aborts) {
                on.does(event::transaction_abort{0x1006, 0x1003});
            } else {
                on.does(event::init{.next = 0x1006, .to = 0x1003, .after = on.runs()});
            }
            std::size_t const ended = on.bytes.size();
            on.does(event::transaction_begin{0x1003, 0x1006});
            std::size_t const begun = on.bytes.size();
            on.does(event::transaction_end{0x1006, 0x1009});
            good = good && begun > ended && on.bytes.size() > begun;
        }
        return good;
    });
}

TEST_CASE("SYSCALL has no vector") {  // PKT-220, PV-250
    auto from = traced::started("EventEn=1");
    from.how.swintr_events = true;
    traced on{from};
    on.does(event::far_transfer{
        .at = 0x2000, .to = 0x3000, .after = on.runs(), .kind = event::far_kind::syscall});
    CHECK(on.bytes.written()[3] == 0);
}

TEST_CASE("a transaction may be nested as deep as code can make it") {  // GEN-253
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        for (unsigned i = 0; i < 300; ++i) {
            on.does(event::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
        }
        std::size_t const begun = on.bytes.size();
        // As many as are counted end nothing.
        for (unsigned i = 0; i < 254; ++i) { on.does(event::transaction_end{0x1000, 0x1003}); }
        bool const open = on.bytes.size() == begun;
        on.does(event::transaction_end{0x1000, 0x1003});
        return open && on.bytes.size() > begun;
    });
}

TEST_CASE("branches for which there is no room are lost as all packets are") {  // GEN-225
    CHECK_TWICE([](auto value) {
        traced on{};
        on.bytes = byte_buffer{on.room, 0};
        for (unsigned i = 0; i < value(5U); ++i) { on.does(event::conditional{0x1010, true}); }
        bool const gathers = on.pending().count == 5 && !on.overflows();
        on.does(event::conditional{0x1010, true});
        return gathers && on.overflows() && on.pending().count == 0;
    });
}
