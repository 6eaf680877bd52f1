// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/state.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>

using namespace ptspec;
using test::traced;
namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

TEST_CASE("a generator starts in the state that it is constructed with") {  // GEN-003
    CHECK_TWICE([](auto value) {
        auto from = traced::started("CPL=0, IP=7000, CR3=9000");
        from.ip = value(from.ip);
        traced const on{from};
        return on.ip() == 0x7000 && on.state().code == from.code && on.state().code.cr3 == 0x9000 &&
               on.msrs() == from.msrs && on.state().caps == from.of &&
               on.state().enables().packet() && on.state().writer.tnt.count == 0 &&
               on.state().calls.size() == 0 && !on.state().in_overflow &&
               !on.state().ctl<reg::ia32_rtit_ctl::EventEn>() &&
               on.state().options.tnt_capacity == 6;
    });
    CHECK_TWICE([](auto value) {
        return traced{value(true) ? "EventEn=1" : ""}.state().ctl<reg::ia32_rtit_ctl::EventEn>();
    });
}

TEST_CASE("a direct branch moves the IP; a conditional branch adds a TNT bit") {
    // GEN-110, GEN-112
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0"};
        on.does(action::conditional{value(std::uint64_t{0x2000}), true});
        bool const taken = on.ip() == 0x2000 && on.state().writer.tnt == packet::branches{1, 1};
        on.does(action::conditional{0x2002, false});
        bool const not_taken = on.ip() == 0x2002 && on.state().writer.tnt == packet::branches{2, 2};
        on.does(action::direct_jump{value(std::uint64_t{0x3000})});
        return taken && not_taken && on.ip() == 0x3000 &&
               on.state().writer.tnt == packet::branches{2, 2} && on.packets() == text{"none"};
    });
    CHECK_TWICE([](auto value) {  // a call is pushed, except one to the next instruction
        traced on{"CPL=0"};
        on.does(action::direct_call{.next = 0x1005, .to = value(std::uint64_t{0x2000})});
        bool const call = on.ip() == 0x2000 && on.state().calls.size() == 1;
        on.does(action::direct_call{.next = 0x2005, .to = 0x2005});
        return call && on.ip() == 0x2005 && on.state().calls.size() == 1 &&
               on.packets() == text{"none"};
    });
    CHECK_TWICE([](auto value) {  // with PacketEn 0 nothing is buffered or pushed
        traced on{"CPL=0, OS=0"};
        on.does(action::direct_call{.next = 0x1005, .to = value(std::uint64_t{0x2000})});
        bool const call = on.ip() == 0x2000 && on.state().calls.size() == 0;
        on.does(action::direct_jump{0x3000});
        bool const jump = on.ip() == 0x3000;
        on.does(action::conditional{0x4000, true});
        return call && jump && on.ip() == 0x4000 && on.state().writer.tnt.count == 0 &&
               on.packets() == text{"none"};
    });
}

TEST_CASE("the CYC of a TNT is that of its first branch; six branches fill it") {
    // GEN-120, GEN-216
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0, CYCEn=1"};
        auto const branch = [&] {
            on.does(action::cycles{value(std::uint64_t{5})})
                .does(action::conditional{0x2000, true});
        };
        branch();
        bool const first = on.packets() == text{"CYC(5)"} && on.state().writer.tnt.count == 1;
        for (int i = 0; i < 4; ++i) { branch(); }
        bool const others = on.packets() == text{"CYC(5)"} && on.state().writer.tnt.count == 5;
        branch();
        return first && others && on.packets() == text{"CYC(5), TNT(111111)"} &&
               on.state().writer.tnt.count == 0;
    });
}

TEST_CASE("PacketByteCnt counts bytes since the last PSB, including those of the PSB+") {
    // GEN-161, GEN-165, REG-064
    CHECK_TWICE([](auto value) {
        traced on{"PacketByteCnt=100, CPL=0"};
        on.does(action::indirect_jump{value(std::uint64_t{0x2000})});  // 7 bytes: 48 bits of IP
        auto const before = status{on.rdmsr(status::address).value};
        on.does(action::psb_due{});
        auto const after = status{on.rdmsr(status::address).value};
        // PSB 16, CBR 4, PIP 8, MODE.Exec 2, FUP 7, PSBEND 2
        return before.template get<status::PacketByteCnt>() == 0x107 &&
               after.template get<status::PacketByteCnt>() == 39;
    });
    CHECK_TWICE([](auto value) {  // excluding them, as an option
        auto from = traced::started("PacketByteCnt=100, CPL=0");
        from.how.psb_counts_itself = value(false);
        traced on{from};
        on.does(action::psb_due{}).does(action::indirect_jump{0x1000});  // the FUP's IP: 2 bytes
        return status{on.rdmsr(status::address).value}.template get<status::PacketByteCnt>() == 3;
    });
}

TEST_CASE("without a configurable PSB period PacketByteCnt reads 0") {  // REG-055, GEN-161
    CHECK_TWICE([](auto value) {
        auto from = traced::started("CPL=0");
        from.of = cpu::preset::broadwell;
        traced on{from};
        on.does(action::indirect_jump{value(std::uint64_t{0x2000})});
        auto const while_on = status{on.rdmsr(status::address).value};
        on.writes(ctl::address, 0x210C, 0x3000, 0x3002);
        return on.packets() == text{"TIP(2000), FUP(3000), TIP.PGD()"} &&
               while_on.template get<status::PacketByteCnt>() == 0 &&
               on.msrs().status.template get<status::PacketByteCnt>() == 0;
    });
}

TEST_CASE("a PSB+ comes after the operation that ends its period") {  // GEN-160, GEN-163, GEN-006
    CHECK_TWICE([](auto value) {
        traced on{"PacketByteCnt=7F7, CPL=0"};
        on.does(action::indirect_jump{value(std::uint64_t{0x2000})});
        bool const early = on.packets() == text{"TIP(2000)"};
        on.does(action::exception{.at = 0x2000, .to = 0x3000, .after = on.state().code});
        return early && on.packets() == text{"TIP(2000), FUP(2000), TIP(3000), PSB, CBR, "
                                             "PIP(1000,NR=0), MODE.Exec(64), FUP(3000), PSBEND"};
    });
    CHECK_TWICE([](auto value) {  // a period of 4 KB
        traced on{value(true) ? "PacketByteCnt=FFC, PSBFreq=1, OS=0" : ""};
        on.does(action::indirect_jump{0x2000});
        return on.packets() == text{"TIP(2000), PSB, CBR, MODE.Exec(64), FUP(2000), PSBEND"};
    });
    CHECK_TWICE([](auto value) {  // also after a TNT
        traced on{value(true) ? "PacketByteCnt=7FF, OS=0" : ""};
        for (int i = 0; i < 6; ++i) { on.does(action::conditional{0x1000, true}); }
        return on.packets() == text{"TNT(111111), PSB, CBR, MODE.Exec(64), FUP(1000), PSBEND"};
    });
}

TEST_CASE("during an overflow nothing is written or counted") {  // GEN-166, GEN-225, OUT-132
    CHECK_TWICE([](auto value) {
        traced on{"PacketByteCnt=100, CPL=0"};
        on.does(action::conditional{0x1000, true});
        on.does(action::overflow{});
        on.does(action::indirect_jump{value(std::uint64_t{0x2000})}).does(action::psb_due{});
        auto const now = status{on.rdmsr(status::address).value};
        return on.state().in_overflow && on.packets() == text{"none"} &&
               on.state().writer.tnt.count == 0 &&
               now.template get<status::PacketByteCnt>() == 0x100;
    });
    CHECK_TWICE([](auto value) {  // it begins when the buffer is full
        traced on{};
        bool begun = false;
        for (unsigned i = 0; i < value(600U) && !begun; ++i) {
            begun = on.does(action::indirect_jump{std::uint64_t{i} << 32}).state().in_overflow;
        }
        auto const size = on.bytes.size();
        on.does(action::indirect_jump{0x2000});
        return begun && on.bytes.size() == size && size > 2048 - 7;
    });
}

TEST_CASE("an overflow of a full buffer ends when the buffer has room") {  // GEN-227
    CHECK_TWICE([](auto value) {
        traced on{};
        std::uint8_t few[8] = {};
        byte_buffer small{few};
        on.on(action::indirect_jump{value(std::uint64_t{0x2000})}, small);
        on.on(action::indirect_jump{0x3000}, small);
        bool const lost = on.state().in_overflow;
        on.end_overflow(on.bytes);
        return lost && !on.state().in_overflow && on.packets() == text{"OVF, FUP(3000)"};
    });
}

TEST_CASE("a PSB+ for which the buffer has no room stays pending") {  // GEN-163, GEN-225
    CHECK_TWICE([](auto value) {
        traced on{"OS=0, PacketByteCnt=7FF"};
        std::uint8_t few[8] = {};
        byte_buffer small{few};
        on.on(action::indirect_jump{value(std::uint64_t{0x2000})}, small);
        bool const lost = on.state().in_overflow && small.size() == 7;
        on.end_overflow(on.bytes);
        return lost && on.packets() == text{"OVF, FUP(2000), PSB, CBR, MODE.Exec(64), FUP(2000), "
                                            "PSBEND"};
    });
}

TEST_CASE("PendPSB reports a pending PSB+ if InjectPsbPmiOnEnable is 1") {  // REG-065, REG-067
    CHECK_TWICE([](auto value) {
        traced on{"InjectPsbPmiOnEnable=1, CPL=0"};
        on.does(action::overflow{}).does(action::psb_due{});
        bool const pending =
            status{on.rdmsr(status::address).value}.template get<status::PendPSB>();
        on.writes(ctl::address, on.msrs().ctl.with(ctl::TraceEn{value(false)}).raw, 0, 0);
        bool const stays = on.msrs().status.get<status::PendPSB>();
        on.writes(ctl::address, on.msrs().ctl.with(ctl::TraceEn{true}).raw, 0, 0x2000);
        return pending && stays && !on.msrs().status.get<status::PendPSB>() &&
               on.packets() == text{"PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), "
                                    "TIP.PGE(2000)"};
    });
    CHECK_TWICE([](auto value) {
        traced on{value(true) ? "CPL=0" : ""};
        on.does(action::overflow{}).does(action::psb_due{});
        return !status{on.rdmsr(status::address).value}.template get<status::PendPSB>();
    });
}

TEST_CASE("PacketEn 0 clears the call stack, TriggerEn 0 the TNT buffer") {  // GEN-135, GEN-020
    CHECK_TWICE([](auto value) {
        traced on{"ADDR0=[1000,1FFF] filter"};
        on.does(action::direct_call{value(std::uint64_t{0x1005}), 0x1100});
        bool const known = on.state().calls.size() == 1;
        on.does(action::direct_jump{0x3000});
        return known && on.state().calls.size() == 0;
    });
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0"};
        on.does(action::conditional{0x1000, value(true)});
        on.warm_reset({}, 0xFFFF'FFF0);
        return on.state().writer.tnt.count == 0 && on.ip() == 0xFFFF'FFF0 &&
               !on.state().enables().trigger;
    });
}

TEST_CASE("an overflow clears the call stack") {  // GEN-135
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        on.does(action::direct_call{value(std::uint64_t{0x1005}), 0x2000});
        bool const pushed = on.state().calls.size() == 1;
        return pushed && on.does(action::overflow{}).state().calls.size() == 0;
    });
}
