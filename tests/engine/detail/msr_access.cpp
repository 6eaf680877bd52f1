// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/scenarios.cpp.
#include <ptspec/engine/detail/msr_access.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>
#include <utility>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

namespace {

constexpr auto with_trace_en(traced const& on, bool value) -> std::uint64_t {
    return on.msrs().ctl.with(ctl::TraceEn{value}).raw;
}
auto enabled(trace_script::start const& from) -> std::string {
    traced on{from};
    on.writes(ctl::address, with_trace_en(on, true), 0x1FF0, 0x2000);
    return packets(on);
}

}  // namespace

TEST_CASE("without CPSB_CAM, or as an option, each enable writes a PSB+") {
    // GEN-162, GEN-180..182
    auto from = traced::started("TraceEn=0, CPL=0, PacketByteCnt=1");
    from.how.psb_on_every_enable = true;
    CHECK(enabled(from) == "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(2000)");
    from = traced::started("TraceEn=0, CPL=0, PacketByteCnt=1");
    from.of.leaf_14_0_ebx = from.of.leaf_14_0_ebx.with(reg::cpuid_14h_0_ebx::CPSB_CAM{false});
    CHECK(enabled(from) == "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(2000)");
    from = traced::started("TraceEn=0, CPL=0, OS=0");
    from.how.psb_after_pge = true;
    CHECK(enabled(from) == "PSB, CBR, PSBEND");
}

TEST_CASE("the FUP of the PSB+ of an enable does not compress TIP.PGE (GEN-011)") {
    for (auto const& [kind, bytes] :
         {std::pair{"kind=icelake", 9U}, std::pair{"kind=skylake", 7U}}) {
        traced on{traced::started(std::string{kind} + ", TraceEn=0, CPL=0")};
        on.writes(ctl::address, with_trace_en(on, true), 0x1FF0, 0x2000);
        byte_view const all = on.bytes.written();
        auto const last = packet::decode_as<packet::tip_pge>(all.from(all.size() - bytes));
        CHECK(last);
        CHECK(last.length == bytes);
    }
}

TEST_CASE("enabling while Stopped or Error is set never writes a packet") {  // GEN-020, GEN-021
    for (auto const* setup : {"TraceEn=0, CPL=0, Stopped=1", "TraceEn=0, CPL=0, Error=1"}) {
        traced on{setup};
        on.writes(ctl::address, with_trace_en(on, true), 0, 0x2000);
        on.does(action::indirect_jump{0x3000}).does(action::psb_due{});
        CHECK(packets(on) == "none");
        CHECK(on.msrs().ctl.get<ctl::TraceEn>());
        CHECK(!on.state().enables().trigger);
    }
}

TEST_CASE("a disable writes the buffered branches, and later branches write nothing") {
    // GEN-106, GEN-124, GEN-183, GEN-185
    traced on{"CPL=0"};
    on.does(action::conditional{0x1000, true}).does(action::conditional{0x1000, false});
    on.writes(ctl::address, with_trace_en(on, false), 0x7000, 0x7002);
    CHECK(on.ip() == 0x7002);
    on.does(action::indirect_jump{0x3000});
    CHECK(packets(on) == "TNT(10), FUP(7000), TIP.PGD()");
}

TEST_CASE("the first IP after another enable is a full IP") {  // GEN-229
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0, PacketByteCnt=10"};
        on.does(action::indirect_jump{0x2000});
        on.writes(ctl::address, on.msrs().ctl.with(ctl::TraceEn{value(false)}).raw, 0x2000, 0x2002);
        auto const before = on.bytes.size();
        on.writes(ctl::address, on.msrs().ctl.with(ctl::TraceEn{true}).raw, 0x2002, 0x2004);
        // CBR 4, MODE.Exec 2, TIP.PGE with 48 bits 7
        return on.bytes.size() - before == 13;
    });
}

TEST_CASE("a write that faults changes nothing, and returns the rule") {  // REG-004, GEN-027
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0"};
        on.writes(reg::ia32_rtit_cr3_match::address, value(std::uint64_t{0}), 0x1000, 0x2000);
        return on.answer.broken == rule::REG_004 && on.ip() == 0x1000 &&
               on.packets() == text{"none"};
    });
    CHECK_TWICE([](auto value) {  // at CPL 3
        traced on{};
        on.writes(ctl::address, value(std::uint64_t{0}), 0x1000, 0x2000);
        return !on.answer && on.rdmsr(ctl::address).verdict == on.answer &&
               on.state().enables().trigger;
    });
    CHECK_TWICE([](auto value) {
        traced on{"TraceEn=0, CPL=0"};
        on.writes(reg::ia32_rtit_cr3_match::address, value(std::uint64_t{0x5000}), 0x1000, 0x1002);
        return on.answer && on.rdmsr(reg::ia32_rtit_cr3_match::address).value == 0x5000 &&
               on.ip() == 0x1002;
    });
}

TEST_CASE("after a re-enable without a PSB IPs decode with the last IP") {  // GEN-107, GEN-181
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (bool const shortest : {true, false}) {
            auto from = traced::started("CPL=0, PacketByteCnt=5");
            from.how.ips = shortest ? trace::ip_choice::shortest : trace::ip_choice::as_processors;
            traced on{from};
            on.does(action::indirect_jump{value(std::uint64_t{0xFFFF'8000'0000'1000})});
            on.writes(0x570, on.msrs().ctl.raw & ~std::uint64_t{1}, on.ip(), 0x2000);
            on.writes(0x570, on.msrs().ctl.raw | 1, 0x2000, 0x3000);
            good = good && on.packets() == text{"TIP(FFFF800000001000), FUP(FFFF800000001000), "
                                                "TIP.PGD(), CBR, MODE.Exec(64), TIP.PGE(3000)"};
        }
        return good;
    });
}

TEST_CASE("MOV CR3 of the same value writes a PIP by option, and ignores bit 63 of its operand") {
    // GEN-240, GEN-241
    auto from = traced::started("CPL=0");
    from.how.pip_for_same_cr3 = false;
    CHECK(packets(traced{from}.does(action::mov_cr3{0x1000, 0x1003, 0x1000})) == "none");
    CHECK(packets(traced{from}.does(action::mov_cr3{0x1000, 0x1003, 0x2000})) == "PIP(2000,NR=0)");
    // Bit 63 of the operand is not stored in CR3.
    constexpr auto keep = std::uint64_t{1} << 63;
    CHECK(packets(traced{from}.does(action::mov_cr3{0x1000, 0x1003, keep | 0x1000})) == "none");
    CHECK(traced{from}.does(action::mov_cr3{0x1000, 0x1003, keep | 0x2001}).state().code.cr3 ==
          0x2001);
    CHECK(packets(traced{"CPL=0, CR3Filter=1, CR3_MATCH=2000"}.does(
              action::mov_cr3{0x1000, 0x1003, keep | 0x2801})) == "PIP(2800,NR=0), TIP.PGE(1003)");
}

TEST_CASE("MOV CR3 stops tracing if it, or the next instruction, is in a TraceStop range") {
    // GEN-087: a model option.
    auto const moved = [](std::string_view setup, bool at_next) {
        auto from = traced::started(setup);
        from.how.mov_cr3_stops_at_next = at_next;
        traced on{from};
        on.does(action::mov_cr3{0x1000, 0x1003, 0x5000});
        return packets(on);
    };
    constexpr auto both = "PIP(5000,NR=0), TIP.PGD(1003), TraceStop";
    CHECK(moved("CPL=0, ADDR0=[1000,1000] stop", false) == both);
    CHECK(moved("CPL=0, ADDR0=[1003,1003] stop", false) == "PIP(5000,NR=0)");
    CHECK(moved("CPL=0, ADDR0=[1000,1000] stop", true) == "PIP(5000,NR=0)");
    CHECK(moved("CPL=0, ADDR0=[1003,1003] stop", true) == both);
    CHECK(moved("CPL=0, ADDR0=[1000,1000] stop, BranchEn=0", false) == "PIP(5000,NR=0), TraceStop");
    traced on{"CPL=0, ADDR0=[1000,1000] stop"};
    on.does(action::overflow{}).does(action::mov_cr3{0x1000, 0x1003, 0x5000});
    on.does(action::overflow_end{0x1003});
    CHECK(packets(on) == "OVF, TraceStop");
}

TEST_CASE("Event Trace reports a change of RFLAGS.IF if control flow is traced") {  // GEN-305
    auto const changed = [](std::string_view setup) {
        traced on{setup};
        on.does(action::interrupt_flag{0x101, true}).does(action::interrupt_flag{0x102, true});
        return packets(on);
    };
    CHECK(changed("EventEn=1") == "MODE.Exec(64,IF=1), FUP(101)");
    CHECK(changed("") == "none");
    CHECK(changed("EventEn=1, BranchEn=0") == "none");
    CHECK(changed("EventEn=1, IF=1") == "none");
    traced on{"EventEn=1, ADDR0=[1000,1FFF] filter, FilterEn=0, IP=3000"};
    on.does(action::interrupt_flag{0x3001, true}).does(action::direct_jump{0x1000});
    CHECK(packets(on) == "MODE.Exec(64,IF=1), TIP.PGE(1000)");
}

TEST_CASE("XRSTORS enables as WRMSR does") {  // GEN-184, REG-143..146
    auto const loaded = [](std::uint64_t word, bool initial) {
        traced on{"TraceEn=0, CPL=0"};
        using area = access::xsave_pt_state;
        auto const image = area{}.with(
            area::IA32_RTIT_CTL{ctl{word}},
            area::IA32_RTIT_OUTPUT_MASK_PTRS{reg::ia32_rtit_output_mask_ptrs{0x7F}},
            area::IA32_RTIT_STATUS{status{}.with(status::PacketByteCnt{5})});
        auto const done = initial ? on.xrstors_init(0x2000)
                                  : on.xrstors(image, 0x1FF0, 0x2000, on.bytes);
        return packets(on) + (done ? "" : " fault") + (on.ip() == 0x2000 ? "" : " here");
    };
    CHECK(loaded(0x2105, false) == "CBR, MODE.Exec(64), TIP.PGE(2000)");
    CHECK(loaded(0x2104, false) == "none");
    CHECK(loaded(0x8000'0000'0000'0000, false) == "none fault here");
    CHECK(loaded(0, true) == "none");
    traced on{"CPL=0"};
    CHECK(!on.xrstors_init(0x2000));
    CHECK(!on.xrstors({}, 0x1FF0, 0x2000, on.bytes));
    CHECK(on.state().enables().trigger);
    CHECK(on.ip() == 0x1000);
}

TEST_CASE("a reset writes no packet; a warm reset keeps the MSRs") {  // GEN-291, REG-090..093
    traced on{"CPL=0, MTCFreq=3"};
    on.does(action::conditional{0x1000, true}).does(action::overflow{});
    on.warm_reset({}, 0xFFFF'FFF0);
    CHECK(packets(on) == "none");
    CHECK(on.msrs().ctl.get<ctl::MTCFreq>() == 3);
    CHECK(!on.msrs().ctl.get<ctl::TraceEn>());
    CHECK(!on.state().in_overflow);
    on.cold_reset({}, 0xFFFF'FFF0);
    CHECK(on.msrs() == access::msr_state{});
    CHECK(on.state().code == engine::execution_context{});
}

namespace {

/// The number of PSBs.
auto psbs_in(traced const& on) -> unsigned {
    auto const all = packets(on);
    unsigned count = 0;
    for (auto at = all.find("PSB,"); at != std::string::npos; at = all.find("PSB,", at + 1)) {
        ++count;
    }
    return count;
}
/// One byte before the end of the PSB period.
auto nearly_due(std::string_view setup) -> trace_script::start {
    auto from = traced::started(setup);
    from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2047});
    return from;
}

}  // namespace

TEST_CASE("a reset clears transactions, VMCS, shutdown, stopped clocks and enables") {  // GEN-291
    auto const begins = [](traced& on) {
        on.writes(ctl::address, ctl{0x2004}.with(ctl::TraceEn{true}, ctl::TSCEn{true}).raw, 0x10,
                  0x12);
    };
    auto const cpl_0 = [](traced const& on) {
        auto code = on.state().code;
        code.cpl = 0;
        return code;
    };
    traced nested{"CPL=0"};  // transactions
    nested.does(action::transaction_begin{0x100, 0x105})
        .does(action::transaction_begin{0x105, 0x10A});
    nested.cold_reset(cpl_0(nested), 0x1000);
    begins(nested);
    auto const so_far = packets(nested);
    nested.does(action::transaction_begin{0x200, 0x205})
        .does(action::transaction_end{0x205, 0x208});
    CHECK(packets(nested) == so_far + ", MODE.TSX(InTX=1,TXAbort=0), FUP(200), "
                                      "MODE.TSX(InTX=0,TXAbort=0), FUP(205)");

    traced root{"CPL=0, VMX=root"};  // the current VMCS
    root.does(action::vmptrld{0x1003, 0x7FFE'0000});
    root.warm_reset(cpl_0(root), 0x1000);
    root.does(action::vmxon{0x1000, 0x1003});
    begins(root);
    CHECK(packets(root.does(action::psb_due{})).find("VMCS(FFFFFFFFFF000)") != std::string::npos);

    traced shut{"SMM=1, CPL=0"};  // a shutdown
    shut.does(action::rsm{0x1555, shut.state().code});
    CHECK(shut.state().shutdown_by == rule::REG_102);
    shut.warm_reset(shut.state().code, 0x1000);
    CHECK(shut.state().shutdown_by == rule::none);

    traced asleep{"CPL=0, TSCEn=1, MTCEn=1, art=0"};  // clocks that stand still
    asleep.does(action::halt{0x1000, 0x1001});
    CHECK(asleep.state().clocks.are_off);
    asleep.warm_reset(asleep.state().code, 0x1000);
    CHECK(!asleep.state().clocks.are_off);

    traced unbuffered{"CPL=0"};  // branches are not buffered
    unbuffered.warm_reset(unbuffered.state().code, 0x1000);
    unbuffered.does(action::conditional{0x1010, true}).does(action::indirect_jump{0x2000});
    CHECK(unbuffered.state().writer.tnt.count == 0);
    CHECK(packets(unbuffered) == "none");
}

TEST_CASE("a warm reset keeps PacketByteCnt") {  // REG-091, GEN-161
    CHECK_TWICE([](auto value) {
        traced on{"CPL=0, PacketByteCnt=5"};
        on.does(action::indirect_jump{value(std::uint64_t{0x7000})});  // 7 bytes
        auto const before = status{on.rdmsr(status::address).value}.get<status::PacketByteCnt>();
        on.does(action::indirect_jump{0x7001});  // 3
        on.warm_reset(on.state().code, 0);
        return before == 12 && on.msrs().status.get<status::PacketByteCnt>() == 15;
    });
}

TEST_CASE("tracing that WRMSR starts uses the new IA32_RTIT_CTL") {  // GEN-182, GEN-212
    traced on{"TraceEn=0, CPL=0"};
    on.writes(ctl::address,
              on.msrs().ctl.with(ctl::TraceEn{true}, ctl::CYCEn{true}, ctl::BranchEn{true}).raw,
              0x1000, 0x1002);
    on.does(action::cycles{3}).does(action::indirect_jump{0x2000});
    CHECK(packets(on) == "PSB, CBR, PIP(1000,NR=0), PSBEND, MODE.Exec(64), TIP.PGE(1002), CYC(3), "
                         "TIP(2000)");
    // No CFE is written without an event: GEN-301.
    traced told{"TraceEn=0, CPL=0, EventEn=1"};
    told.writes(ctl::address, with_trace_en(told, true), 0x1000, 0x1002);
    CHECK(packets(told).find("CFE") == std::string::npos);
    CHECK(packets(told).find("TIP.PGE(1002)") != std::string::npos);
}

TEST_CASE("an overflow brings no PSB+ for a transaction begun before tracing") {  // GEN-227
    auto const lost = [](unsigned depth) {
        auto from = traced::started("TraceEn=0, CPL=0, TSX=1, PacketByteCnt=1");
        from.how.has_tsx = true;
        traced on{from};
        for (unsigned i = 0; i < depth; ++i) { on.does(action::transaction_begin{0x100, 0x105}); }
        on.writes(ctl::address, with_trace_en(on, true), 0x1000, 0x1002);
        on.does(action::overflow{}).does(action::overflow_end{0x1002});
        return psbs_in(on) != 0;
    };
    CHECK(!lost(0));
    CHECK(!lost(1));
    CHECK(!lost(2));
    auto from = traced::started("TSX=1");
    from.how.has_tsx = true;
    traced outside{from};
    outside.does(action::overflow{}).does(action::overflow_end{0x1002});
    CHECK(packets(outside) == "OVF, FUP(1002)");
}

TEST_CASE("a register write continues at the next instruction and can bring a PSB+") {
    // GEN-006, GEN-163
    traced on{nearly_due("CPL=0")};
    on.does(action::mov_cr3{0x1000, 0x1003, 0x5000});
    CHECK(on.ip() == 0x1003);
    CHECK(psbs_in(on) == 1);
    traced flags{nearly_due("CPL=0, EventEn=1, IF=0")};
    flags.does(action::interrupt_flag{0x1003, true});
    CHECK(flags.ip() == 0x1003);
    CHECK(psbs_in(flags) == 1);
}

TEST_CASE("disabling during an overflow discards the overflow") {
    // GEN-225, GEN-227
    traced on{"CPL=0, PacketByteCnt=1"};
    on.does(action::overflow{});
    on.writes(ctl::address, with_trace_en(on, false), 0x1000, 0x1002);
    on.writes(ctl::address, with_trace_en(on, true), 0x1002, 0x1004);
    CHECK(!on.state().in_overflow);
    CHECK(packets(on) == "CBR, MODE.Exec(64), TIP.PGE(1004)");
    on.does(action::overflow{}).does(action::overflow_end{0x1006});
    CHECK(packets(on) == "CBR, MODE.Exec(64), TIP.PGE(1004), OVF, FUP(1006)");
}
