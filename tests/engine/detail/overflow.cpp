// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/detail/overflow.hpp>

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

TEST_CASE("a requested overflow ends at overflow_end, another when the buffer has room") {
    // GEN-225..227
    traced asked;
    asked.does(action::overflow{});
    asked.end_overflow(asked.bytes);
    CHECK(asked.state().in_overflow);
    asked.does(action::overflow_end{0x5000});
    CHECK(packets(asked) == "OVF, FUP(5000)");
    asked.does(action::overflow_end{0x6000});
    CHECK(packets(asked) == "OVF, FUP(5000)");
    CHECK(!traced{"TraceEn=0"}.does(action::overflow{}).state().in_overflow);

    traced full;
    std::uint8_t few[20] = {};
    byte_buffer no_room{few};
    for (std::uint64_t i = 1; i < 9; ++i) { full.on(action::indirect_jump{i << 40}, no_room); }
    CHECK(full.state().in_overflow);
    full.end_overflow(full.bytes);
    CHECK(packets(full) == "OVF, FUP(80000000000)");
}

TEST_CASE("after an overflow a FUP gives the IP where tracing resumes, if PacketEn is 1") {
    // GEN-227, GEN-229
    auto const resolved = [](std::string_view setup) {
        return traced{setup}
            .does(action::overflow{})
            .does(action::indirect_jump{0x9000})
            .does(action::overflow_end{0x5000})
            .does(action::indirect_jump{0x5004})
            .packets();
    };
    CHECK(resolved("") == text{"OVF, FUP(5000), TIP(5004)"});
    CHECK(resolved("BranchEn=0") == text{"OVF"});
    CHECK(resolved("ADDR0=[1000,1FFF] filter") == text{"OVF"});
    CHECK(resolved("CPL=0, OS=0") == text{"OVF"});
    CHECK(resolved("TraceEn=0") == text{"none"});
    // The first IP has 48 bits, whatever the last IP was.
    traced on{};
    on.does(action::indirect_jump{0x5000})
        .does(action::overflow{})
        .does(action::overflow_end{0x5000});
    CHECK(on.bytes.size() == 7 + 2 + 7);
}

TEST_CASE("an overflow discards buffered branches and deferred TIPs") {
    // GEN-166, GEN-225
    CHECK_TWICE([](auto value) {
        auto from = traced::started("OS=0");
        from.how.defers_tips = true;
        traced on{from};
        on.does(action::conditional{0x2000, true})
            .does(action::indirect_jump{value(std::uint64_t{0x7000})});
        on.does(action::overflow{}).does(action::overflow_end{0x5000});
        on.does(action::conditional{0x2000, false})
            .does(action::indirect_jump{0x8000})
            .does(action::psb_due{});
        return on.packets() == text{"OVF, FUP(5000), TNT(0), TIP(8000), PSB, CBR, MODE.Exec(64), "
                                    "FUP(8000), PSBEND"};
    });
}

TEST_CASE("a call before an overflow does not compress a return") {  // GEN-135
    CHECK_TWICE([](auto value) {
        traced on;
        on.does(action::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        bool const was_there = on.state().calls.size() == 1;
        on.does(action::overflow{}).does(action::overflow_end{0x2000});
        on.does(action::near_return{0x1005});
        return was_there && on.packets() == text{"OVF, FUP(2000), TIP(1005)"};
    });
}

TEST_CASE("a call during an overflow does not compress a return") {  // GEN-130, GEN-135
    CHECK_TWICE([](auto value) {
        traced on;
        on.does(action::overflow{}).does(action::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        on.does(action::indirect_call{0x2002, 0x3000});
        bool const none_is_known = on.state().calls.size() == 0;
        on.does(action::near_return{0x2002}).does(action::overflow_end{0x2002});
        on.does(action::direct_call{0x2007, 0x4000}).does(action::near_return{0x2007});
        on.does(action::near_return{0x1005}).does(action::indirect_jump{0x9000});
        return none_is_known &&
               on.packets() == text{"OVF, FUP(2002), TNT(1), TIP(1005), TIP(9000)"};
    });
}

TEST_CASE("an overflow that lost a MODE or a PIP brings a PSB+") {  // GEN-228
    auto const lost = [](std::string_view setup, engine::psb_after_ovf how, auto const& what) {
        auto from = traced::started(setup);
        from.how.psb_after_overflow = how;
        traced on{from};
        on.does(action::psb_due{}).does(action::overflow{});
        on.does(what(on));
        on.does(action::overflow_end{0x5000});
        std::string const all{on.packets().characters, on.packets().length};
        return all.substr(all.find("OVF"));
    };
    auto const nothing = [](traced&) { return action::sequential{0}; };
    auto const narrower = [](traced& on) {
        auto code = on.state().code;
        code.width = engine::code_width::bits_32;
        return action::far_transfer{.after = code};
    };
    auto const other_cr3 = [](traced&) { return action::mov_cr3{.cr3 = 0x7000}; };
    auto const begins = [](traced&) { return action::transaction_begin{}; };
    using engine::psb_after_ovf;
    constexpr auto needed = psb_after_ovf::where_needed;
    CHECK(lost("CPL=0", needed, nothing) == "OVF, FUP(5000)");
    CHECK(lost("CPL=0", needed, narrower) == "OVF, FUP(5000), PSB, CBR, PIP(1000,NR=0), "
                                             "MODE.Exec(32), FUP(5000), PSBEND");
    CHECK(lost("CPL=0", needed, other_cr3) == "OVF, FUP(5000), PSB, CBR, PIP(7000,NR=0), "
                                              "MODE.Exec(64), FUP(5000), PSBEND");
    CHECK(lost("OS=0, TSX=1", needed, begins) ==
          "OVF, FUP(5000), PSB, CBR, MODE.TSX(InTX=1,TXAbort=0), MODE.Exec(64), FUP(5000), "
          "PSBEND");
    CHECK(lost("OS=0", needed, begins) == "OVF, FUP(5000)");
    CHECK(lost("CPL=0", psb_after_ovf::never, narrower) == "OVF, FUP(5000)");
    CHECK(lost("OS=0", psb_after_ovf::always, nothing) ==
          "OVF, FUP(5000), PSB, CBR, MODE.Exec(64), FUP(5000), PSBEND");
}

TEST_CASE("a PSB+ follows the FUP of an overflow, or the OVF if PacketEn is 0") {
    // GEN-227, GEN-228
    auto const with_psb = [](std::string_view setup, bool psb_first) {
        auto from = traced::started(setup);
        from.how.psb_after_overflow = engine::psb_after_ovf::always;
        from.how.psb_before_ovf_fup = psb_first;
        traced on{from};
        on.does(action::overflow{}).does(action::overflow_end{0x5000});
        return on.does(action::indirect_jump{0x1234}).packets();
    };
    constexpr auto filtered = "OS=0, ADDR0=[1000,1FFF] filter, IP=3000, FilterEn=0";
    CHECK(with_psb("OS=0", false) ==
          text{"OVF, FUP(5000), PSB, CBR, MODE.Exec(64), FUP(5000), PSBEND, TIP(1234)"});
    CHECK(with_psb("OS=0", true) ==
          text{"OVF, PSB, CBR, MODE.Exec(64), FUP(5000), PSBEND, FUP(5000), TIP(1234)"});
    // As in recorded traces.
    constexpr text wanted{"OVF, PSB, CBR, PSBEND, MODE.Exec(64), TIP.PGE(1234)"};
    CHECK(with_psb(filtered, false) == wanted);
    CHECK(with_psb(filtered, true) == wanted);
    CHECK_TWICE([](auto value) {  // also a PSB+ that is due
        traced on{"OS=0"};
        on.does(action::overflow{}).does(action::psb_due{});
        on.does(action::overflow_end{value(std::uint64_t{0x5000})});
        return on.packets() == text{"OVF, FUP(5000), PSB, CBR, MODE.Exec(64), FUP(5000), PSBEND"};
    });
}

TEST_CASE("a TraceStop during an overflow is written after it, and tracing stays stopped") {
    // GEN-230, OUT-132
    using status = reg::ia32_rtit_status;
    CHECK_TWICE([](auto value) {
        traced on{"ADDR0=[4000,4FFF] stop"};
        on.does(action::overflow{}).does(action::direct_jump{value(std::uint64_t{0x4000})});
        bool const stopped = on.msrs().status.template get<status::Stopped>() &&
                             !on.state().enables().trigger;
        on.does(action::overflow_end{0x5000}).does(action::indirect_jump{0x6000});
        return stopped && on.packets() == text{"OVF, TraceStop"} &&
               on.state().deferred_ovf == engine::deferred_ovf::none;
    });
    CHECK_TWICE([](auto value) {  // the cycle counter stopped: GEN-210
        traced on{"ADDR0=[4000,4FFF] stop, CYCEn=1"};
        on.does(action::overflow{}).does(action::cycles{value(std::uint64_t{100})});
        on.does(action::direct_jump{0x4000}).does(action::cycles{7});
        on.does(action::overflow_end{0x5000});
        return on.packets() == text{"OVF, TraceStop"};
    });
    CHECK_TWICE([](auto value) {
        auto from = traced::started("ADDR0=[4000,4FFF] stop");
        from.how.trace_stop_in_overflow = value(engine::stop_in_overflow::without_packet);
        traced on{from};
        on.does(action::overflow{}).does(action::direct_jump{0x4000});
        on.does(action::overflow_end{0x5000});
        return on.packets() == text{"none"} && on.msrs().status.template get<status::Stopped>();
    });
}

TEST_CASE("an overflow that loses no state change brings no PSB+") {  // GEN-228
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0, TSX=1"};
        on.does(action::psb_due{})
            .does(action::mov_cr3{0x1000, 0x1003, value(std::uint64_t{0x7000})});
        on.does(action::overflow{}).does(action::overflow_end{0x5000});
        auto const packets = on.packets();
        std::string_view const all{packets.characters, packets.length};
        return all.substr(all.find("PSBEND")) == "PSBEND, PIP(7000,NR=0), OVF, FUP(5000)";
    });
    CHECK_TWICE([](auto value) {
        traced on{"OS=0, TSX=1"};
        on.does(action::transaction_begin{value(std::uint64_t{0x1000}), 0x1003});
        on.does(action::overflow{}).does(action::overflow_end{0x5000});
        return on.packets() == text{"MODE.TSX(InTX=1,TXAbort=0), FUP(1000), OVF, FUP(5000)"};
    });
}
