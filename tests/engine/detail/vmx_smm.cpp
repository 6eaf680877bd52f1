// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/scenarios.cpp.
#include <ptspec/engine/detail/vmx_smm.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstdint>
#include <string>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

namespace {

constexpr auto host(traced const& on, std::uint64_t cr3 = 0x2000) -> engine::execution_context {
    auto code = on.state().code;
    code.vmx_non_root = false;
    code.cpl = 0;
    code.cr3 = cr3;
    return code;
}
constexpr auto guest(traced const& on, std::uint64_t cr3 = 0x8000) -> engine::execution_context {
    auto code = on.state().code;
    code.vmx_non_root = true;
    code.cpl = 0;
    code.cr3 = cr3;
    return code;
}
constexpr auto trace_en(traced const& on, bool value) -> action::ctl_load {
    return {true, on.msrs().ctl.with(ctl::TraceEn{value})};
}

}  // namespace

TEST_CASE("the NR bit of a PIP can be concealed alone") {  // GEN-278
    traced on{"VMX=nonroot, CPL=0"};
    on.conceal({.non_root = true});
    CHECK(on.state().concealment == engine::vmx_concealment{true, false, false});
    on.does(action::vm_entry{.at = 0x5010, .to = 0x4321, .after = guest(on)});
    CHECK(packets(on) == "PIP(8000,NR=0), TIP(4321)");
}

TEST_CASE("a VM exit ends a transaction") {  // GEN-258
    traced on{"VMX=nonroot, CPL=0"};
    on.does(action::transaction_begin{0x100, 0x105});
    on.does(action::vm_exit{.from = 0x110, .to = 0x5000, .after = host(on, 0x1000)});
    on.does(action::transaction_begin{0x5000, 0x5005});
    CHECK(packets(on) == "MODE.TSX(InTX=1,TXAbort=0), FUP(100), FUP(110), PIP(1000,NR=0), "
                         "TIP(5000), MODE.TSX(InTX=1,TXAbort=0), FUP(5000)");
}

TEST_CASE("a VM transition that ends tracing writes the PIP first, and no IP") {  // GEN-273
    traced exits{"VMX=nonroot, CPL=0"};
    exits.does(action::vm_exit{
        .from = 0x4321, .to = 0x5000, .after = host(exits), .loads = trace_en(exits, false)});
    CHECK(packets(exits) == "FUP(4321), PIP(2000,NR=0), TIP.PGD()");
    CHECK(exits.state().ctl_load_verdict);
    CHECK(!exits.msrs().ctl.get<ctl::TraceEn>());
    CHECK(exits.ip() == 0x5000);
    traced enters{"VMX=root, CPL=0"};
    enters.does(action::vm_entry{
        .at = 0x5010, .to = 0x4321, .after = guest(enters), .loads = {true, ctl{}}});
    CHECK(packets(enters) == "PIP(8000,NR=1), TIP.PGD()");
    CHECK(enters.msrs().ctl.raw == 0);
    // No PIP for a host that is not traced.
    traced match{"VMX=nonroot, CPL=0, CR3Filter=1, CR3_MATCH=1000"};
    match.does(action::vm_exit{
        .from = 0x4321, .to = 0x5000, .after = host(match), .loads = trace_en(match, false)});
    CHECK(packets(match) == "FUP(4321), TIP.PGD()");
}

TEST_CASE("a value that an MSR-load list must not load is not loaded") {  // REG-010
    traced on{"VMX=root, CPL=0, TraceEn=0"};
    on.does(action::vm_entry{.at = 0x5010,
                             .to = 0x4321,
                             .after = guest(on),
                             .loads = {true, ctl{0x8000'0000'0000'0001}}});
    CHECK(on.state().ctl_load_verdict.refusal == access::refusal::vm_entry_fails);
    CHECK(packets(on) == "none");
    CHECK(!on.msrs().ctl.get<ctl::TraceEn>());
    on.does(action::vm_exit{.from = 0x4321,
                            .to = 0x5000,
                            .after = host(on),
                            .loads = {true, ctl{0x8000'0000'0000'0001}}});
    CHECK(on.state().ctl_load_verdict.refusal == access::refusal::vmx_abort);
    on.does(action::vm_exit{.from = 0x4321, .to = 0x5000, .after = host(on)});
    CHECK(on.state().ctl_load_verdict);
    // A value that leaves TraceEn 0 is loaded.
    on.does(action::vm_exit{.from = 0x4321,
                            .to = 0x5000,
                            .after = host(on),
                            .loads = {true, ctl{}.with(ctl::DisRETC{true})}});
    CHECK(on.msrs().ctl == ctl{}.with(ctl::DisRETC{true}));
}

TEST_CASE("Event Trace reports VM transitions, unless they are concealed") {  // GEN-301, GEN-302
    auto const told = [](std::string_view setup, bool vectored) {
        traced on{setup};
        on.does(action::vm_exit{.from = 0x4321,
                                .to = 0x5000,
                                .after = host(on),
                                .qualification = 0x11,
                                .reason = 0x22,
                                .is_vectored = vectored,
                                .vector = 0x33});
        on.does(action::vm_entry{.at = 0x5010, .to = 0x4321, .after = guest(on)});
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

TEST_CASE("VMPTRLD and SMM monitor transitions write a VMCS packet") {  // GEN-244, GEN-245
    traced on{"VMX=root, CPL=0"};
    on.does(action::vmptrld{0x1003, 0x7FFE'0000}).does(action::psb_due{});
    on.does(action::vmclear{0x1006}).does(action::psb_due{});
    CHECK(packets(on) == "VMCS(7FFE0000), PSB, CBR, PIP(1000,NR=0), VMCS(7FFE0000), "
                         "MODE.Exec(64), FUP(1003), PSBEND, PSB, CBR, PIP(1000,NR=0), "
                         "VMCS(FFFFFFFFFF000), MODE.Exec(64), FUP(1006), PSBEND");
    traced none{"CPL=0, OS=0, VMX=root"};
    none.does(action::vmptrld{0x1003, 0x7FFE'0000});
    CHECK(packets(none) == "none");
    auto from = traced::started("CPL=0, VMX=root");
    from.of.vmx_misc = {0};
    CHECK(packets(traced{from}.does(action::vmptrld{0x1003, 0x7FFE'0000})) == "none");

    auto const monitor = [](bool vmcs_first, std::string_view setup) {
        auto start = traced::started(setup);
        start.how.vmcs_before_pip = vmcs_first;
        traced to{start};
        to.does(action::vm_exit{
            .from = 0x10, .to = 0x20, .after = host(to), .to_stm = true, .vmcs = 0x9000});
        to.does(action::vm_entry{
            .at = 0x30, .to = 0x40, .after = guest(to), .from_stm = true, .vmcs = 0xA000});
        return packets(to);
    };
    CHECK(monitor(false, "VMX=nonroot, CPL=0") ==
          "FUP(10), PIP(2000,NR=0), VMCS(9000), TIP(20), PIP(8000,NR=1), VMCS(A000), TIP(40)");
    CHECK(monitor(true, "VMX=nonroot, CPL=0") ==
          "FUP(10), VMCS(9000), PIP(2000,NR=0), TIP(20), VMCS(A000), PIP(8000,NR=1), TIP(40)");
    CHECK(monitor(false, "VMX=nonroot, CPL=0, conceal=all") == "FUP(10), TIP(20), TIP(40)");
    // An SMM monitor transition does not clear TraceEn: GEN-264.
    traced to{"VMX=nonroot, CPL=0"};
    to.does(action::vm_exit{.from = 0x10, .to = 0x20, .after = host(to), .to_stm = true});
    CHECK(to.msrs().ctl.get<ctl::TraceEn>());
}

TEST_CASE("a failed VM entry continues after it, or at the host-state IP") {  // GEN-276
    traced early{"VMX=root, CPL=0"};
    early.does(action::vm_entry_failure{.to = 0x1003, .after = guest(early)});
    CHECK(packets(early) == "TIP(1003)");
    CHECK(!early.state().code.vmx_non_root);
    traced late{"VMX=root, CPL=0"};
    late.does(
        action::vm_entry_failure{.to = 0x5000, .after = host(late), .loaded_host_state = true});
    CHECK(packets(late) == "PIP(2000,NR=0), TIP(5000)");
    traced hidden{"VMX=root, CPL=0, conceal=all"};
    hidden.does(
        action::vm_entry_failure{.to = 0x5000, .after = host(hidden), .loaded_host_state = true});
    CHECK(packets(hidden) == "TIP(5000)");
}

TEST_CASE("VMXON ends tracing if Intel PT is not supported in VMX operation") {  // GEN-270
    auto from = traced::started("CPL=0");
    traced with{from};
    with.does(action::vmxon{0x1000, 0x1004});
    CHECK(packets(with) == "none");
    CHECK(with.msrs().in_vmx_operation);
    with.does(action::vmptrld{0x1008, 0x5000}).does(action::vmxoff{0x100C});
    CHECK(!with.msrs().in_vmx_operation);
    CHECK(with.ip() == 0x100C);
    from.of.vmx_misc = {0};
    traced without{from};
    without.does(action::vmxon{0x1000, 0x1004});
    CHECK(packets(without) == "FUP(1000), TIP.PGD()");
    CHECK(!without.msrs().ctl.get<ctl::TraceEn>());
}

TEST_CASE("an SMI ends tracing, and RSM resumes it") {  // GEN-260..262, GEN-113
    traced on{"PacketByteCnt=40, EventEn=1"};
    auto const before = on.state().code;
    auto handler = before;
    handler.cpl = 0;
    handler.cr3 = 0xABC000;
    handler.width = engine::code_width::bits_16;
    on.does(action::smi{0x1555, 0x8000, handler}).does(action::indirect_jump{0x8010});
    CHECK(on.msrs().in_smm);
    on.does(action::smi{0x1, 0x2, handler});  // blocked in SMM
    on.does(action::rsm{0x1555, before});
    CHECK(packets(on) == "CFE(SMI,IP=0), FUP(1555), TIP.PGD(), CBR, CFE(RSM,IP=0), "
                         "MODE.Exec(64,IF=0), TIP.PGE(1555)");
    CHECK(on.state().shutdown_by == rule::none);
    on.does(action::rsm{0x1, before});  // #UD
    CHECK(on.ip() == 0x1555);

    traced off{"TraceEn=0"};
    off.does(action::smi{0x1555, 0x8000, handler}).does(action::rsm{0x1555, before});
    CHECK(packets(off) == "none");
    CHECK(!off.msrs().in_smm);

    traced shut{"SMM=1, CPL=0"};
    shut.does(action::rsm{0x1555, before});
    CHECK(shut.state().shutdown_by == rule::REG_102);
    CHECK(packets(shut) == "none");
}

TEST_CASE("a measured launch ends tracing, an authenticated code module suspends it") {
    // GEN-287, GEN-288
    traced launched{""};
    launched.does(action::measured_launch{}).does(action::indirect_jump{0x2000});
    CHECK(packets(launched) == "TIP.PGD()");
    CHECK(!launched.msrs().ctl.get<ctl::TraceEn>());

    traced on{"TSCEn=1"};
    on.does(action::conditional{0x1000, true}).does(action::acm_begin{});
    on.does(action::indirect_jump{0x9000}).does(action::acm_begin{});
    on.does(action::acm_end{0x1010}).does(action::acm_end{0x1}).does(action::indirect_jump{0x2000});
    CHECK(packets(on) == "TNT(1), TSC, CBR, TIP(2000)");
}

namespace {

/// The vector byte of the first CFE.
auto vector_told(traced const& on) -> int {
    trace::reader from{on.bytes.written(), {.sync = false}};
    for (auto item = from.next(); item; item = from.next()) {
        if (item.packet.is<packet::cfe>()) {
            return static_cast<int>(item.packet.as<packet::cfe>().get<packet::cfe::vector>());
        }
    }
    return -1;
}
/// True when the packets contain a PSB.
auto has_psb(traced const& on) -> bool { return packets(on).find("PSB,") != std::string::npos; }
/// One byte before the end of the PSB period.
auto nearly_due(std::string_view setup) -> trace_script::start {
    auto from = traced::started(setup);
    from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2047});
    return from;
}

}  // namespace

TEST_CASE("the CFE of a VM exit has a vector if a vectored event causes it") {  // PKT-220, GEN-301
    traced plain{"VMX=nonroot, CPL=0, EventEn=1"};
    plain.does(action::vm_exit{.from = 0x10, .to = 0x20, .after = host(plain), .vector = 7});
    CHECK(vector_told(plain) == 0);
    traced vectored{"VMX=nonroot, CPL=0, EventEn=1"};
    vectored.does(action::vm_exit{
        .from = 0x10, .to = 0x20, .after = host(vectored), .is_vectored = true, .vector = 7});
    CHECK(vector_told(vectored) == 7);
    traced enters{"VMX=root, CPL=0, EventEn=1"};
    enters.does(action::vm_entry{.at = 0x10, .to = 0x20, .after = guest(enters)});
    CHECK(vector_told(enters) == 0);
    traced resumes{"CPL=0, EventEn=1, PacketByteCnt=1"};
    resumes.does(action::smi{0x1555, 0x8000, resumes.state().code});
    resumes.bytes = byte_buffer{resumes.room};
    resumes.does(action::rsm{0x1555, resumes.state().code});
    CHECK(vector_told(resumes) == 0);
}

TEST_CASE("SMM monitor transitions and VMPTRLD set the current VMCS, VMXOFF clears it") {
    // GEN-244, GEN-264
    traced on{"VMX=nonroot, CPL=0"};
    on.does(action::vm_exit{
        .from = 0x10, .to = 0x20, .after = host(on), .to_stm = true, .vmcs = 0x9000});
    on.bytes = byte_buffer{on.room};
    on.does(action::psb_due{});
    CHECK(packets(on).find("VMCS(9000)") != std::string::npos);
    on.does(action::vm_entry{
        .at = 0x30, .to = 0x40, .after = guest(on), .from_stm = true, .vmcs = 0xA000});
    on.bytes = byte_buffer{on.room};
    on.does(action::psb_due{});
    CHECK(packets(on).find("VMCS(A000)") != std::string::npos);
    // Other transitions do not change it.
    on.does(action::vm_exit{.from = 0x10, .to = 0x20, .after = host(on), .vmcs = 0x5000});
    on.does(action::vm_entry{.at = 0x30, .to = 0x40, .after = guest(on), .vmcs = 0x6000});
    on.bytes = byte_buffer{on.room};
    on.does(action::psb_due{});
    CHECK(packets(on).find("VMCS(A000)") != std::string::npos);
    // VMXOFF clears it.
    traced root{"VMX=root, CPL=0"};
    root.does(action::vmptrld{0x1003, 0x7000}).does(action::vmxoff{0x1006});
    root.does(action::vmxon{0x1006, 0x1009}).does(action::psb_due{});
    CHECK(packets(root).find("VMCS(FFFFFFFFFF000)") != std::string::npos);
}

TEST_CASE("only RSM writes CFE(RSM), and only with EventEn") {  // GEN-261, GEN-301
    auto const resumed = [](std::string_view setup) {
        traced on{setup};
        on.does(action::smi{0x1555, 0x8000, on.state().code});
        on.bytes = byte_buffer{on.room};
        return packets(on.does(action::rsm{0x1555, on.state().code}));
    };
    CHECK(resumed("CPL=0, PacketByteCnt=1") == "CBR, MODE.Exec(64), TIP.PGE(1555)");
    traced on{"VMX=nonroot, CPL=0, TraceEn=0, EventEn=1"};
    on.does(
        action::vm_exit{.from = 0x10, .to = 0x20, .after = host(on), .loads = trace_en(on, true)});
    CHECK(packets(on).find("CFE") == std::string::npos);
    CHECK(packets(on).find("TIP.PGE(20)") != std::string::npos);
}

TEST_CASE("SMI, RSM, VMX instructions and code modules continue at the given IP") {
    traced managed{"CPL=0"};
    auto handler = managed.state().code;
    handler.cr3 = 0xABC000;
    managed.does(action::transaction_begin{0x100, 0x105});
    managed.does(action::smi{0x1555, 0x8000, handler});
    CHECK(managed.ip() == 0x8000);
    CHECK(managed.state().code.cr3 == 0xABC000);
    managed.does(action::rsm{0x1555, handler});
    managed.bytes = byte_buffer{managed.room};
    managed.does(action::transaction_begin{0x200, 0x205});  // the SMI aborted the first: GEN-258
    CHECK(packets(managed) == "MODE.TSX(InTX=1,TXAbort=0), FUP(200)");

    traced root{"VMX=root, CPL=0"};
    CHECK(root.does(action::vmptrld{0x1003, 0x7000}).ip() == 0x1003);
    CHECK(root.does(action::vmclear{0x1006}).ip() == 0x1006);
    CHECK(root.does(action::vmxoff{0x1009}).ip() == 0x1009);
    CHECK(root.does(action::vmxon{0x1009, 0x100C}).ip() == 0x100C);

    traced measured{"CPL=0, PacketByteCnt=5"};
    measured.does(action::indirect_jump{0x7000}).does(action::acm_begin{});
    CHECK(measured.msrs().status.get<status::PacketByteCnt>() == 12);  // GEN-161
    CHECK(measured.does(action::acm_end{0x1234}).ip() == 0x1234);
}

TEST_CASE("after a VM exit that ends tracing branches are not buffered") {  // GEN-273
    traced on{"VMX=nonroot, CPL=0"};
    on.does(
        action::vm_exit{.from = 0x10, .to = 0x20, .after = host(on), .loads = trace_en(on, false)});
    on.does(action::conditional{0x30, true});
    CHECK(on.state().writer.tnt.count == 0);
}

TEST_CASE("a PSB+ that is due follows VMPTRLD, RSM and a code module") {  // GEN-006, GEN-163
    traced root{nearly_due("VMX=root, CPL=0")};
    CHECK(has_psb(root.does(action::vmptrld{0x1003, 0x7000})));
    traced managed{nearly_due("CPL=0, OS=0")};
    managed.does(action::smi{0x1555, 0x8000, managed.state().code});
    CHECK(!has_psb(managed));
    CHECK(has_psb(managed.does(action::rsm{0x1555, managed.state().code})));
    traced measured{nearly_due("CPL=0, TSCEn=1")};
    CHECK(!has_psb(measured.does(action::acm_begin{})));
    CHECK(has_psb(measured.does(action::acm_end{0x1234})));
}
