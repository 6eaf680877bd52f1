// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/scenarios.cpp.
#include <ptspec/engine/detail/transfer.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;

TEST_CASE("INIT that waits for SIPI writes a FUP without a TIP") {  // GEN-113, GEN-290
    auto const reset = [](traced const& on) {
        auto code = on.state().code;
        code.cr3 = 0;
        code.cpl = 0;
        code.width = engine::code_width::bits_16;
        code.real_mode = true;
        return code;
    };
    traced waits{"CPL=0"};
    waits.does(action::init{0x1000, 0, reset(waits), true});
    CHECK(packets(waits) == "FUP(1000), PIP(0,NR=0)");
    CHECK(waits.state().code == reset(waits));
    CHECK(waits.state().code.real_mode);
    waits.does(action::sipi{0x9'A000, reset(waits), 0x9A});
    CHECK(packets(waits) == "FUP(1000), PIP(0,NR=0), MODE.Exec(16), TIP(9A000)");
    CHECK(waits.state().enables().trigger);
    traced told{"CPL=0, EventEn=1"};
    told.does(action::init{0x1000, 0, reset(told), true})
        .does(action::sipi{0x9'A000, reset(told), 0x9A});
    CHECK(packets(told) == "CFE(INIT,IP=0), FUP(1000), PIP(0,NR=0), CFE(SIPI:9A,IP=0), "
                           "MODE.Exec(16,IF=0), TIP(9A000)");
}

TEST_CASE("swintr_events selects separate CFE types for INT n and SYSCALL") {
    // GEN-111, GEN-301, GEN-304
    auto const told = [](bool known) {
        auto from = traced::started("EventEn=1");
        from.how.swintr_events = known;
        traced on{from};
        on.does(action::software_interrupt{
            .at = 0x1000, .to = 0x2000, .after = on.state().code, .vector = 0x80});
        on.does(action::far_transfer{.at = 0x2000,
                                     .to = 0x3000,
                                     .after = on.state().code,
                                     .kind = action::far_kind::syscall});
        on.does(action::user_interrupt{0x3000, 0x4000, 5});
        on.does(action::far_transfer{
            .at = 0x4000, .to = 0x3000, .after = on.state().code, .kind = action::far_kind::uiret});
        return packets(on);
    };
    CHECK(told(false) == "CFE(INTR:80,IP=0), FUP(1000), TIP(2000), TIP(3000), CFE(UINTR:5,IP=0), "
                         "FUP(3000), TIP(4000), CFE(UIRET,IP=0), TIP(3000)");
    CHECK(told(true) == "CFE(SWINTR:80,IP=0), FUP(1000), TIP(2000), CFE(SYSCALL,IP=1), FUP(2000), "
                        "TIP(3000), CFE(UINTR:5,IP=0), FUP(3000), TIP(4000), CFE(UIRET,IP=0), "
                        "TIP(3000)");
}

TEST_CASE("iret_at_all_returns selects a CFE of IRET for SYSRET, SYSEXIT, ERETU and ERETS") {
    // GEN-301, GEN-304
    auto const told = [](bool at_all, action::far_kind kind, std::string_view setup) {
        auto from = traced::started(setup);
        from.how.iret_at_all_returns = at_all;
        traced on{from};
        on.does(action::far_transfer{
            .at = 0x1000, .to = 0x3000, .after = on.state().code, .kind = kind});
        return packets(on);
    };
    for (auto const kind : {action::far_kind::sysret, action::far_kind::eret}) {
        CHECK(told(false, kind, "EventEn=1") == "TIP(3000)");
        CHECK(told(true, kind, "EventEn=1") == "CFE(IRET,IP=0), TIP(3000)");
        CHECK(told(true, kind, "") == "TIP(3000)");
    }
    for (bool const at_all : {false, true}) {
        CHECK(told(at_all, action::far_kind::iret, "EventEn=1") == "CFE(IRET,IP=0), TIP(3000)");
        CHECK(told(at_all, action::far_kind::plain, "EventEn=1") == "TIP(3000)");
    }
}

TEST_CASE("the CFE of SYSCALL has vector 0") {  // PKT-220, PV-250
    auto from = traced::started("EventEn=1");
    from.how.swintr_events = true;
    traced on{from};
    on.does(action::far_transfer{
        .at = 0x2000, .to = 0x3000, .after = on.state().code, .kind = action::far_kind::syscall});
    CHECK(on.bytes.written()[3] == 0);
}

TEST_CASE("INIT ends all nested transactions") {  // GEN-290
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        on.does(action::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
        on.does(action::transaction_begin{0x1003, 0x1006});
        on.does(action::init{.next = 0x1006, .to = 0x1003, .after = on.state().code});
        bool const ended = on.state().tx_depth == 0;
        std::size_t const before = on.bytes.size();
        on.does(action::transaction_begin{0x1003, 0x1006});
        return ended && on.bytes.size() > before;
    });
}

TEST_CASE("a visit to the kernel is traced as with OS = 0") {  // GEN-020, GEN-051, GEN-110, GEN-113
    using action::kernel_visit;
    using enum kernel_visit::reason;
    for (std::string const setup : {"CPL=3, OS=0", "CPL=3, OS=1"}) {
        traced on{setup};
        on.does(action::conditional{0x1010, true});
        on.does(kernel_visit{.at = 0x1010, .to = 0x1012});
        on.does(kernel_visit{.at = 0x1020, .to = 0x7000, .cause = exception, .vector = 14});
        on.does(kernel_visit{.at = 0x7008, .to = 0x1024, .cause = interrupt, .vector = 0x20});
        CHECK(packets(on) == "TNT(1), TIP.PGD(), TIP.PGE(1012), FUP(1020), TIP.PGD(), "
                             "TIP.PGE(7000), FUP(7008), TIP.PGD(), TIP.PGE(1024)");
        CHECK(on.ip() == 0x1024);
        CHECK(on.state().code.cpl == 3);
        CHECK(on.state().ctl<reg::ia32_rtit_ctl::OS>() == (setup == "CPL=3, OS=1"));
        // The fast path works as before.
        on.does(action::conditional{0x1030, true}).does(action::indirect_jump{0x1040});
        CHECK(packets(on).ends_with("TIP.PGE(1024), TNT(1), TIP(1040)"));
    }
}

TEST_CASE("a visit to the kernel that does not return ends the trace of the code") {  // GEN-020
    traced on{"CPL=3, OS=0"};
    on.does(action::conditional{0x1010, false});
    on.does(action::kernel_visit{.at = 0x1010, .to = 0x1012, .returns = false});
    CHECK(packets(on) == "TNT(0), TIP.PGD()");
    CHECK_FALSE(on.state().enables().context);
}

TEST_CASE("a visit to the kernel is recorded by Event Trace") {  // GEN-301, GEN-302
    using action::kernel_visit;
    traced on{"CPL=3, OS=0, EventEn=1"};
    on.does(kernel_visit{.at = 0x1010,
                         .to = 0x7000,
                         .cause = kernel_visit::reason::exception,
                         .vector = 14,
                         .cr2 = 0x123});
    auto const all = packets(on);
    CHECK(all.find("EVD(PFA:123)") != std::string::npos);
    CHECK(all.find("CFE(INTR:E,IP=0)") != std::string::npos);
    CHECK(all.find("CFE(IRET") != std::string::npos);
}
