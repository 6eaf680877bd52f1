// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/generator_system.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>

using namespace ptspec;
using test::traced;
namespace event = engine::event;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

namespace {

auto packets(traced const& on) -> std::string {
    auto const all = on.packets();
    return {all.characters, all.length};
}
constexpr auto host(traced const& on, std::uint64_t cr3 = 0x2000) -> engine::running {
    auto code = on.runs();
    code.vmx_non_root = false;
    code.cpl = 0;
    code.cr3 = cr3;
    return code;
}
constexpr auto guest(traced const& on, std::uint64_t cr3 = 0x8000) -> engine::running {
    auto code = on.runs();
    code.vmx_non_root = true;
    code.cpl = 0;
    code.cr3 = cr3;
    return code;
}
constexpr auto trace_en(traced const& on, bool value) -> event::ctl_load {
    return {true, on.msrs().ctl.with(ctl::TraceEn{value})};
}

}  // namespace

TEST_CASE("a VM exit and a VM entry tell the other side's CR3, unless concealed") {
    // GEN-271, GEN-272, GEN-278
    auto const both = [](std::string_view setup) {
        traced on{setup};
        on.does(event::vm_exit{.from = 0x4321, .to = 0x5000, .after = host(on)});
        on.does(event::vm_entry{.at = 0x5010, .to = 0x4321, .after = guest(on)});
        return packets(on);
    };
    CHECK(both("VMX=nonroot, CPL=0") ==
          "FUP(4321), PIP(2000,NR=0), TIP(5000), PIP(8000,NR=1), TIP(4321)");
    CHECK(both("VMX=nonroot, CPL=0, conceal=all") == "FUP(4321), TIP(5000), TIP(4321)");
    CHECK(both("VMX=nonroot, OS=0") == "FUP(4321), TIP.PGD()");
    CHECK(both("VMX=nonroot, BranchEn=0") == "PIP(2000,NR=0), PIP(8000,NR=1)");
    traced on{"VMX=nonroot, CPL=0"};
    on.conceal({.non_root = true});
    CHECK(on.conceals() == engine::concealed{true, false, false});
    on.does(event::vm_entry{.at = 0x5010, .to = 0x4321, .after = guest(on)});
    CHECK(packets(on) == "PIP(8000,NR=0), TIP(4321)");
}

TEST_CASE("a VM exit ends a transaction") {  // GEN-258
    traced on{"VMX=nonroot, CPL=0"};
    on.does(event::transaction_begin{0x100, 0x105});
    on.does(event::vm_exit{.from = 0x110, .to = 0x5000, .after = host(on, 0x1000)});
    on.does(event::transaction_begin{0x5000, 0x5005});
    CHECK(packets(on) == "MODE.TSX(InTX=1,TXAbort=0), FUP(100), FUP(110), PIP(1000,NR=0), "
                         "TIP(5000), MODE.TSX(InTX=1,TXAbort=0), FUP(5000)");
}

TEST_CASE("a VM transition that ends tracing tells the PIP first, and no IP") {  // GEN-273
    traced exits{"VMX=nonroot, CPL=0"};
    exits.does(event::vm_exit{
        .from = 0x4321, .to = 0x5000, .after = host(exits), .loads = trace_en(exits, false)});
    CHECK(packets(exits) == "FUP(4321), PIP(2000,NR=0), TIP.PGD()");
    CHECK(exits.outcome_of_load());
    CHECK(!exits.msrs().ctl.get<ctl::TraceEn>());
    CHECK(exits.ip() == 0x5000);
    traced enters{"VMX=root, CPL=0"};
    enters.does(event::vm_entry{
        .at = 0x5010, .to = 0x4321, .after = guest(enters), .loads = {true, ctl{}}});
    CHECK(packets(enters) == "PIP(8000,NR=1), TIP.PGD()");
    CHECK(enters.msrs().ctl.raw == 0);
    traced hides{"VMX=root, CPL=0, conceal=all"};
    hides.does(
        event::vm_entry{.at = 0x5010, .to = 0x4321, .after = guest(hides), .loads = {true, ctl{}}});
    CHECK(packets(hides) == "TIP.PGD()");
    // A host that is not traced has no PIP.
    traced match{"VMX=nonroot, CPL=0, CR3Filter=1, CR3_MATCH=1000"};
    match.does(event::vm_exit{
        .from = 0x4321, .to = 0x5000, .after = host(match), .loads = trace_en(match, false)});
    CHECK(packets(match) == "FUP(4321), TIP.PGD()");
}

TEST_CASE("a VM transition that starts tracing writes what enabling writes") {  // GEN-274, GEN-275
    traced on{"VMX=nonroot, CPL=0, TraceEn=0, PacketByteCnt=5"};
    on.does(event::vm_exit{
        .from = 0x4321, .to = 0x5000, .after = host(on), .loads = trace_en(on, true)});
    CHECK(packets(on) == "CBR, MODE.Exec(64), TIP.PGE(5000)");
    traced fresh{"VMX=root, CPL=0, TraceEn=0"};
    fresh.does(event::vm_entry{
        .at = 0x5010, .to = 0x4321, .after = guest(fresh), .loads = trace_en(fresh, true)});
    CHECK(packets(fresh) == "PSB, CBR, PIP(8000,NR=1), VMCS(FFFFFFFFFF000), PSBEND, "
                            "MODE.Exec(64), TIP.PGE(4321)");
}

TEST_CASE("a value that an MSR list may not load is not loaded") {  // REG-010
    traced on{"VMX=root, CPL=0, TraceEn=0"};
    on.does(event::vm_entry{.at = 0x5010,
                            .to = 0x4321,
                            .after = guest(on),
                            .loads = {true, ctl{0x8000'0000'0000'0001}}});
    CHECK(on.outcome_of_load().how == access::refusal::vm_entry_fails);
    CHECK(packets(on) == "none");
    CHECK(!on.msrs().ctl.get<ctl::TraceEn>());
    on.does(event::vm_exit{.from = 0x4321,
                           .to = 0x5000,
                           .after = host(on),
                           .loads = {true, ctl{0x8000'0000'0000'0001}}});
    CHECK(on.outcome_of_load().how == access::refusal::vmx_abort);
    on.does(event::vm_exit{.from = 0x4321, .to = 0x5000, .after = host(on)});
    CHECK(on.outcome_of_load());
    // One that leaves tracing off is loaded all the same.
    on.does(event::vm_exit{.from = 0x4321,
                           .to = 0x5000,
                           .after = host(on),
                           .loads = {true, ctl{}.with(ctl::DisRETC{true})}});
    CHECK(on.msrs().ctl == ctl{}.with(ctl::DisRETC{true}));
}

TEST_CASE("Event Trace tells VM transitions, unless they are concealed") {  // GEN-301, GEN-302
    auto const told = [](std::string_view setup, bool vectored) {
        traced on{setup};
        on.does(event::vm_exit{.from = 0x4321,
                               .to = 0x5000,
                               .after = host(on),
                               .qualification = 0x11,
                               .reason = 0x22,
                               .is_vectored = vectored,
                               .vector = 0x33});
        on.does(event::vm_entry{.at = 0x5010, .to = 0x4321, .after = guest(on)});
        return packets(on);
    };
    CHECK(told("VMX=nonroot, CPL=0, EventEn=1", false) ==
          "EVD(VMXQ:11), EVD(VMXR:22), CFE(VMEXIT,IP=0), FUP(4321), PIP(2000,NR=0), TIP(5000), "
          "CFE(VMENTRY,IP=1), FUP(5010), PIP(8000,NR=1), TIP(4321)");
    CHECK(told("VMX=nonroot, CPL=0, EventEn=1", true) ==
          "EVD(VMXQ:11), EVD(VMXR:22), CFE(VMEXIT_INTR:33,IP=0), FUP(4321), PIP(2000,NR=0), "
          "TIP(5000), CFE(VMENTRY,IP=1), FUP(5010), PIP(8000,NR=1), TIP(4321)");
    CHECK(told("VMX=nonroot, CPL=0, EventEn=1, conceal=all", true) ==
          "FUP(4321), TIP(5000), TIP(4321)");
}

TEST_CASE("VMPTRLD tells the VMCS; the SMM monitor's transitions do, too") {  // GEN-244, GEN-245
    traced on{"VMX=root, CPL=0"};
    on.does(event::vmptrld{0x1003, 0x7FFE'0000}).does(event::psb_due{});
    on.does(event::vmclear{0x1006}).does(event::psb_due{});
    CHECK(packets(on) == "VMCS(7FFE0000), PSB, CBR, PIP(1000,NR=0), VMCS(7FFE0000), "
                         "MODE.Exec(64), FUP(1003), PSBEND, PSB, CBR, PIP(1000,NR=0), "
                         "VMCS(FFFFFFFFFF000), MODE.Exec(64), FUP(1006), PSBEND");
    traced none{"CPL=0, OS=0, VMX=root"};
    none.does(event::vmptrld{0x1003, 0x7FFE'0000});
    CHECK(packets(none) == "none");
    auto from = traced::started("CPL=0, VMX=root");
    from.of.vmx_misc = {0};
    CHECK(packets(traced{from}.does(event::vmptrld{0x1003, 0x7FFE'0000})) == "none");

    auto const monitor = [](bool vmcs_first, std::string_view setup) {
        auto start = traced::started(setup);
        start.how.vmcs_before_pip = vmcs_first;
        traced to{start};
        to.does(event::vm_exit{
            .from = 0x10, .to = 0x20, .after = host(to), .to_stm = true, .vmcs = 0x9000});
        to.does(event::vm_entry{
            .at = 0x30, .to = 0x40, .after = guest(to), .from_stm = true, .vmcs = 0xA000});
        return packets(to);
    };
    CHECK(monitor(false, "VMX=nonroot, CPL=0") ==
          "FUP(10), PIP(2000,NR=0), VMCS(9000), TIP(20), PIP(8000,NR=1), VMCS(A000), TIP(40)");
    CHECK(monitor(true, "VMX=nonroot, CPL=0") ==
          "FUP(10), VMCS(9000), PIP(2000,NR=0), TIP(20), VMCS(A000), PIP(8000,NR=1), TIP(40)");
    CHECK(monitor(false, "VMX=nonroot, CPL=0, conceal=all") == "FUP(10), TIP(20), TIP(40)");
    // Neither clears TraceEn: GEN-264
    traced to{"VMX=nonroot, CPL=0"};
    to.does(event::vm_exit{.from = 0x10, .to = 0x20, .after = host(to), .to_stm = true});
    CHECK(to.msrs().ctl.get<ctl::TraceEn>());
}

TEST_CASE("a VM entry that fails goes on behind it, or where the host's state leads") {  // GEN-276
    traced early{"VMX=root, CPL=0"};
    early.does(event::vm_entry_failure{.to = 0x1003, .after = guest(early)});
    CHECK(packets(early) == "TIP(1003)");
    CHECK(!early.runs().vmx_non_root);
    traced late{"VMX=root, CPL=0"};
    late.does(
        event::vm_entry_failure{.to = 0x5000, .after = host(late), .loaded_host_state = true});
    CHECK(packets(late) == "PIP(2000,NR=0), TIP(5000)");
    traced hidden{"VMX=root, CPL=0, conceal=all"};
    hidden.does(
        event::vm_entry_failure{.to = 0x5000, .after = host(hidden), .loaded_host_state = true});
    CHECK(packets(hidden) == "TIP(5000)");
}

TEST_CASE("VMXON ends tracing where there is no Intel PT in VMX operation") {  // GEN-270
    auto from = traced::started("CPL=0");
    traced with{from};
    with.does(event::vmxon{0x1000, 0x1004});
    CHECK(packets(with) == "none");
    CHECK(with.msrs().in_vmx_operation);
    with.does(event::vmptrld{0x1008, 0x5000}).does(event::vmxoff{0x100C});
    CHECK(!with.msrs().in_vmx_operation);
    CHECK(with.ip() == 0x100C);
    from.of.vmx_misc = {0};
    traced without{from};
    without.does(event::vmxon{0x1000, 0x1004});
    CHECK(packets(without) == "FUP(1000), TIP.PGD()");
    CHECK(!without.msrs().ctl.get<ctl::TraceEn>());
}

TEST_CASE("an SMI ends tracing, and RSM brings it back") {  // GEN-260..262, GEN-113
    traced on{"PacketByteCnt=40, EventEn=1"};
    auto const before = on.runs();
    auto handler = before;
    handler.cpl = 0;
    handler.cr3 = 0xABC000;
    handler.width = engine::code_width::bits_16;
    on.does(event::smi{0x1555, 0x8000, handler}).does(event::indirect_jump{0x8010});
    CHECK(on.msrs().in_smm);
    on.does(event::smi{0x1, 0x2, handler});  // waits
    on.does(event::rsm{0x1555, before});
    CHECK(packets(on) == "CFE(SMI,IP=0), FUP(1555), TIP.PGD(), CBR, CFE(RSM,IP=0), "
                         "MODE.Exec(64,IF=0), TIP.PGE(1555)");
    CHECK(on.why_shut_down() == rule::none);
    on.does(event::rsm{0x1, before});  // #UD
    CHECK(on.ip() == 0x1555);

    traced off{"TraceEn=0"};
    off.does(event::smi{0x1555, 0x8000, handler}).does(event::rsm{0x1555, before});
    CHECK(packets(off) == "none");
    CHECK(!off.msrs().in_smm);

    traced shut{"SMM=1, CPL=0"};
    shut.does(event::rsm{0x1555, before});
    CHECK(shut.why_shut_down() == rule::REG_102);
    CHECK(packets(shut) == "none");
}

TEST_CASE("a measured launch ends tracing, a code module only interrupts it") {
    // GEN-287, GEN-288
    traced launched{""};
    launched.does(event::measured_launch{}).does(event::indirect_jump{0x2000});
    CHECK(packets(launched) == "TIP.PGD()");
    CHECK(!launched.msrs().ctl.get<ctl::TraceEn>());

    traced on{"TSCEn=1"};
    on.does(event::conditional{0x1000, true}).does(event::acm_begin{});
    on.does(event::indirect_jump{0x9000}).does(event::acm_begin{});
    on.does(event::acm_end{0x1010}).does(event::acm_end{0x1}).does(event::indirect_jump{0x2000});
    CHECK(packets(on) == "TNT(1), TSC, CBR, TIP(2000)");
}
