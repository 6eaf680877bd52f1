// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/detail/psb.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>
#include <string_view>

using namespace ptspec;
using test::traced;
namespace action = engine::action;

namespace {

constexpr auto psb_of(std::string_view setup) -> test::packets_text {
    return traced{setup}.does(action::psb_due{}).packets();
}

}  // namespace

TEST_CASE("a PSB+ has the status packets that the trace configuration selects") {
    // GEN-164, GEN-170, GEN-171, GEN-173
    CHECK(psb_of("CPL=0") == text{"PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("OS=0") == text{"PSB, CBR, MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("TSCEn=1, OS=0") == text{"PSB, TSC, CBR, MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("TSCEn=MTCEn=1, OS=0") ==
          text{"PSB, TSC, TMA, CBR, MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("MTCEn=1, OS=0") == text{"PSB, CBR, MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("CPL=0, BranchEn=0") == text{"PSB, CBR, PIP(1000,NR=0), PSBEND"});
    CHECK(psb_of("CPL=0, OS=0") == text{"PSB, CBR, PSBEND"});
    CHECK(psb_of("CPL=0, ADDR0=[1,2] filter, FilterEn=0") ==
          text{"PSB, CBR, PIP(1000,NR=0), PSBEND"});
    CHECK(psb_of("OS=0, TSX=1") == text{"PSB, CBR, MODE.TSX(InTX=0,TXAbort=0), MODE.Exec(64), "
                                        "FUP(1000), PSBEND"});
    CHECK(psb_of("OS=0, TSX=1, BranchEn=0") == text{"PSB, CBR, PSBEND"});
    CHECK(psb_of("TraceEn=0") == text{"none"});
    static_assert(psb_of("OS=0, mode=32, EventEn=1, IF=1") ==
                  text{"PSB, CBR, MODE.Exec(32,IF=1), FUP(1000), PSBEND"});
}

TEST_CASE("a PSB+ in VMX operation has the VMCS and NR, unless they are concealed") {
    // GEN-170, GEN-241, GEN-244, GEN-278
    CHECK(psb_of("VMX=root, CPL=0") == text{"PSB, CBR, PIP(1000,NR=0), VMCS(FFFFFFFFFF000), "
                                            "MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("VMX=nonroot, CPL=0") == text{"PSB, CBR, PIP(1000,NR=1), VMCS(FFFFFFFFFF000), "
                                               "MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("VMX=nonroot, CPL=0, conceal=all") ==
          text{"PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("VMX=root, CPL=0, OS=0") == text{"PSB, CBR, PSBEND"});
    auto from = traced::started("VMX=root, CPL=0, OS=0");
    from.how.vmcs_needs_context = false;
    CHECK(traced{from}.does(action::psb_due{}).packets() ==
          text{"PSB, CBR, VMCS(FFFFFFFFFF000), PSBEND"});
    from = traced::started("VMX=root, OS=0");
    from.of.vmx_misc = {0};
    CHECK(traced{from}.does(action::psb_due{}).packets() ==
          text{"PSB, CBR, MODE.Exec(64), FUP(1000), PSBEND"});
}

TEST_CASE("a PSB+ contains no TNT, but can contain CYCs") {  // GEN-125, GEN-172
    traced on{"OS=0, CYCEn=TSCEn=1"};
    on.does(action::cycles{3}).does(action::conditional{0x1000, true}).does(action::cycles{4});
    on.does(action::psb_due{});
    CHECK(on.state().writer.tnt.count == 0);
    CHECK(on.packets() == text{"CYC(3), TNT(1), PSB, CYC(4), TSC, CBR, MODE.Exec(64), FUP(1000), "
                               "PSBEND"});
}

TEST_CASE("after a PSB the first IP is full, and the call stack is empty") {  // GEN-174, GEN-135
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        on.does(action::direct_call{0x1005, value(std::uint64_t{0x2000})});
        on.does(action::psb_due{}).does(action::near_return{0x1005});
        // PSB 16, CBR 4, MODE.Exec 2, FUP with 48 bits 7, PSBEND 2, TIP with 16 bits 3
        return on.bytes.size() == 34 &&
               on.packets() == text{"PSB, CBR, MODE.Exec(64), FUP(2000), PSBEND, TIP(1005)"};
    });
}

TEST_CASE("after a PSB+ without MODE.Exec the next TIP.PGE has one") {  // GEN-176, GEN-236
    CHECK_TWICE([](auto value) {
        traced on{"ADDR0=[1000,1FFF] filter, FilterEn=0, IP=3000, OS=0"};
        on.does(action::psb_due{}).does(action::direct_jump{value(std::uint64_t{0x1000})});
        on.does(action::direct_jump{0x3000}).does(action::direct_jump{0x1000});
        return on.packets() == text{"PSB, CBR, PSBEND, MODE.Exec(64), TIP.PGE(1000), "
                                    "TIP.PGD(3000), TIP.PGE(1000)"};
    });
}

TEST_CASE("a PIP has bits 51:5 of CR3, including PCID bits") {  // GEN-241, PKT-080
    CHECK(psb_of("CPL=0, CR3=12345FFF") ==
          text{"PSB, CBR, PIP(12345FE0,NR=0), MODE.Exec(64), FUP(1000), PSBEND"});
    CHECK(psb_of("CPL=0, CR3=12345FFF, PAE=1") ==
          text{"PSB, CBR, PIP(12345FE0,NR=0), MODE.Exec(64), FUP(1000), PSBEND"});
    // From a recorded trace: 06_4E, 64-bit Linux.
    CHECK(traced{"CPL=0"}.does(action::mov_cr3{0x1000, 0x1003, 0x3'FD43'5800}).packets() ==
          text{"PIP(3FD435800,NR=0)"});
}

TEST_CASE("a PSB+ that is due while the clocks are off waits for the wake") {  // GEN-006
    CHECK_TWICE([](auto value) {  // due before the sleep, and during it
        bool good = true;
        for (bool const before : {true, false}) {
            auto from = traced::started("OS=0, PwrEvtEn=1");
            using status = reg::ia32_rtit_status;
            if (before) { from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2045}); }
            traced on{from};
            on.does(action::mwait{0x1000, value(std::uint64_t{0x1003}), 0x20, 0, {3, 0}});
            if (!before) { on.does(action::psb_due{}); }
            on.does(action::wake{3, 3, action::wake_reason::store});
            good = good && on.packets() ==
                               text{"MWAIT(20,0), PWRE(C3), EXSTOP(IP=1), FUP(1000), CBR, "
                                    "PWRX(C3,C3,4), PSB, CBR, MODE.Exec(64), FUP(1003), PSBEND"};
        }
        return good;
    });
    CHECK_TWICE([](auto value) {  // a clock that stops in C0
        traced on{"OS=0, PwrEvtEn=1"};
        on.does(action::clock_stop{value(std::uint64_t{0x1000})}).does(action::psb_due{});
        on.does(action::ratio{24}).does(action::clock_resume{});
        return on.packets() == text{"EXSTOP(IP=1), FUP(1000), CBR, PSB, CBR, MODE.Exec(64), "
                                    "FUP(1000), PSBEND"};
    });
    CHECK_TWICE([](auto value) {  // an overflow that lost a MODE ends during the sleep
        traced on{"OS=0, PwrEvtEn=1"};
        on.does(action::overflow{});
        auto code = on.state().code;
        code.width = engine::code_width::bits_32;
        on.does(action::far_transfer{.to = value(std::uint64_t{0x1000}), .after = code});
        on.does(action::mwait{.at = 0x1000, .next = 0x1003, .thread = {3, 0}});
        on.does(action::overflow_end{0x1003}).does(action::wake{3, 3});
        return on.packets() == text{"OVF, FUP(1003), CBR, PWRX(C3,C3,0), PSB, CBR, MODE.Exec(32), "
                                    "FUP(1003), PSBEND"};
    });
}

TEST_CASE("a PSB+ that is due follows a transfer, and is not written while Stopped") {
    // GEN-163, GEN-166
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0, OS=1, PacketByteCnt=7FE"};
        on.does(action::far_transfer{
            .at = 0x1000, .to = value(std::uint64_t{0x2000}), .after = on.state().code});
        return on.packets() == text{"TIP(2000), PSB, CBR, PIP(1000,NR=0), MODE.Exec(64), "
                                    "FUP(2000), PSBEND"};
    });
    CHECK_TWICE([](auto value) {
        traced on{"PacketByteCnt=7FE, ADDR0=[4000,4FFF] stop"};
        on.does(action::direct_jump{value(std::uint64_t{0x4000})})
            .does(action::indirect_jump{0x6000});
        on.does(action::conditional{0x6010, true}).does(action::psb_due{});
        return on.packets() == text{"TIP.PGD(4000), TraceStop"};
    });
}

TEST_CASE("the branches before a PSB+ count towards the preceding period") {  // GEN-165
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        on.does(action::conditional{0x1010, value(true)}).does(action::psb_due{});
        (void)on.rdmsr(0x571);
        using status = reg::ia32_rtit_status;
        // TNT 1; PSB 16, CBR 4, MODE.Exec 2, FUP 7, PSBEND 2
        return on.bytes.size() == 32 &&
               on.msrs().status.template get<status::PacketByteCnt>() == 31;
    });
}

TEST_CASE("the timing packets are TSC with TSCEn, TMA with TSCEn and MTCEn, and CBR") {
    // GEN-181, GEN-201, GEN-205
    auto const woken = [](std::string_view setup) {
        return traced{setup}
            .does(action::mwait{.thread = {6, 0}})
            .does(action::wake{6, 6})
            .packets();
    };
    CHECK(woken("TSCEn=MTCEn=1") == text{"TSC, TMA, CBR"});
    CHECK(woken("TSCEn=1") == text{"TSC, CBR"});
    CHECK(woken("MTCEn=1") == text{"CBR"});
    CHECK(woken("") == text{"CBR"});
}
