// SPDX-License-Identifier: BSL-1.0
#include <tools/machine/processor.hpp>

#include <ptspec/trace/reader.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace ptspec;
using machine::processor;

namespace {

/// An emulator of one processor, as far as `machine_hooks.h` sees it.
struct emulator {
    std::uint64_t eip = 0x1000, eflags = 2, cs_base = 0, cr0 = 1, cr2 = 0, cr3 = 0x5000, cr4 = 0,
                  efer = 0, rax = 0;
    std::uint32_t hflags = 1U << 15;  // 64-bit code, CPL 0
    std::uint32_t unused = 0;
    std::uint8_t memory[0x10000] = {};
    std::uint64_t tsc = 0, tsc_step = 10;
    unsigned pmis = 0;
};
emulator now;
machine_layout const layout{.eip = offsetof(emulator, eip),
                            .eflags = offsetof(emulator, eflags),
                            .hflags = offsetof(emulator, hflags),
                            .cs_base = offsetof(emulator, cs_base),
                            .cr0 = offsetof(emulator, cr0),
                            .cr2 = offsetof(emulator, cr2),
                            .cr3 = offsetof(emulator, cr3),
                            .cr4 = offsetof(emulator, cr4),
                            .efer = offsetof(emulator, efer),
                            .rax = offsetof(emulator, rax)};

auto block(std::uint64_t first, std::vector<std::uint8_t> const& code) -> machine::code_block {
    return emulated::block_of<emulated::no_notes>({code.data(), code.size()}, first, {});
}

using instruction_bytes = std::vector<std::uint8_t>;

/// The packets in memory from `from` on that show the flow, with their IPs; a TIP.PGD has none.
auto flow_at(std::uint64_t from, std::size_t size) -> std::string {
    std::string all;
    trace::reader in{byte_view{now.memory + from, size}};
    for (auto one = in.next(); one.what == trace::item_type::packet; one = in.next()) {
        auto const kind = one.packet.kind();
        auto const put = [&](char const* name) {
            char text[64];
            std::snprintf(text, sizeof text, "%s %llx, ", name,
                          static_cast<unsigned long long>(one.ip));
            all += text;
        };
        if (kind == packet::kind::tip_pge) { put("TIP.PGE"); }
        if (kind == packet::kind::tip_pgd) { all += "TIP.PGD, "; }  // without IP
        if (kind == packet::kind::tip) { put("TIP"); }
        if (kind == packet::kind::fup) { put("FUP"); }
        if (kind == packet::kind::tnt_short) {
            all += "TNT " + std::to_string(one.packet.raw().low) + ", ";
        }
    }
    return all;
}

constexpr std::uint32_t ctl = 0x570, status = 0x571, base = 0x560, mask_ptrs = 0x561;
// TraceEn, OS, User, BranchEn.
constexpr std::uint64_t on = 1 | 1U << 2 | 1U << 3 | 1U << 13;

/// Writes the MSRs: output to 2000H..2FFFH, and TraceEn.
void start(processor& one, std::uint64_t more_of_ctl = 0) {
    CHECK(one.wrmsr(base, 0x2000) == MACHINE_DONE);
    CHECK(one.wrmsr(mask_ptrs, 0xFFF) == MACHINE_DONE);
    CHECK(one.wrmsr(ctl, on | more_of_ctl) == MACHINE_DONE);
}

auto settings() -> machine::settings {
    char preset[] = "preset=Skylake-X", kind[] = "kind=manual";
    char* arguments[] = {preset, kind};
    return machine::settings_of(2, arguments);
}

}  // namespace

/// The translation of a block: its instructions, and the linear address of the first one.
struct qemu_plugin_insn {
    std::uint64_t linear;
    instruction_bytes bytes;
};
struct qemu_plugin_tb {
    std::vector<qemu_plugin_insn> all;
};

namespace {

/// The block that the emulator translates at EIP, in the present segment.
auto translated(std::vector<instruction_bytes> const& code)
    -> std::unique_ptr<machine::code_block> {
    machine::guest_state const guest{0};
    qemu_plugin_tb made;
    std::uint64_t linear = guest.linear_ip();
    for (auto const& one : code) {
        made.all.push_back({linear, one});
        linear += one.size();
    }
    return machine::block_of(&made, guest.width(), guest.code_base());
}

}  // namespace

extern "C" {
auto qemu_plugin_tb_n_insns(qemu_plugin_tb const* of) -> std::size_t { return of->all.size(); }
auto qemu_plugin_tb_vaddr(qemu_plugin_tb const* of) -> std::uint64_t { return of->all[0].linear; }
auto qemu_plugin_tb_get_insn(qemu_plugin_tb const* of, std::size_t i) -> qemu_plugin_insn* {
    return const_cast<qemu_plugin_insn*>(&of->all[i]);
}
auto qemu_plugin_insn_data(qemu_plugin_insn const* of) -> void const* { return of->bytes.data(); }
auto qemu_plugin_insn_size(qemu_plugin_insn const* of) -> std::size_t { return of->bytes.size(); }
auto qemu_plugin_insn_vaddr(qemu_plugin_insn const* of) -> std::uint64_t { return of->linear; }

auto machine_state_layout() -> machine_layout const* { return &layout; }
auto machine_state(unsigned) -> void const* { return &now; }
auto machine_memory(unsigned, std::uint64_t at, void* bytes, std::size_t size, int is_write)
    -> int {
    if (at > sizeof now.memory || sizeof now.memory - at < size) { return 0; }
    if (is_write != 0) {
        std::memcpy(now.memory + at, bytes, size);
    } else {
        std::memcpy(bytes, now.memory + at, size);
    }
    return 1;
}
auto machine_code(unsigned, std::uint64_t at, void* bytes, std::size_t size) -> int {
    if (at + size > sizeof now.memory) { return 0; }
    std::memcpy(bytes, now.memory + at, size);
    return 1;
}
auto machine_tsc(unsigned) -> std::uint64_t { return now.tsc += now.tsc_step; }
void machine_pmi(unsigned) { ++now.pmis; }
void machine_set_traced(unsigned, int is_traced) {
    now.hflags = (now.hflags & ~MACHINE_TRACED) | (is_traced != 0 ? MACHINE_TRACED : 0);
}
}

TEST_CASE("an access that the rules refuse faults, and the emulator has the other MSRs") {
    now = {};
    auto const how = settings();
    REQUIRE(how.error.empty());
    processor one{0, how};
    std::uint64_t value = 0;
    CHECK(one.rdmsr(0x1B, value) == MACHINE_NOT_OURS);
    CHECK(one.wrmsr(0x1B, 0) == MACHINE_NOT_OURS);
    CHECK(one.rdmsr(ctl, value) == MACHINE_DONE);
    CHECK(value == 0);
    CHECK(one.wrmsr(ctl, std::uint64_t{1} << 40) == MACHINE_FAULT);  // reserved
    CHECK(one.wrmsr(base, 0x1001) == MACHINE_FAULT);                 // not aligned
    CHECK(one.wrmsr(base, 0x2000) == MACHINE_DONE);
    CHECK(one.rdmsr(base, value) == MACHINE_DONE);
    CHECK(value == 0x2000);
}

TEST_CASE("blocks are watched while TraceEn is 1, and become packets in the guest's memory") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    now.eip = 0x1000;
    start(one);
    CHECK((now.hflags & MACHINE_TRACED) != 0);

    auto const branch = block(0x1002, {0x90, 0x74, 0x10});         // NOP; JZ 1015H
    auto const call = block(0x1015, {0xFF, 0xD0});                 // CALL RAX
    auto const divides = block(0x3000, {0x90, 0xF7, 0xF1, 0xC3});  // NOP; DIV ECX; RET
    now.eip = 0x1002;
    one.enter(branch);
    now.eip = 0x1015;
    one.enter(call);  // taken
    now.eip = 0x3000;
    one.enter(divides);
    now.eip = 0x3001;
    one.interrupt(0, false, false);  // #DE at the DIV
    now.eip = 0x4000;
    auto const handler = block(0x4000, {0x90, 0x48, 0xCF});  // NOP; IRETQ
    one.enter(handler);
    now.eip = 0x3003;
    auto const after = block(0x3003, {0xC3});
    one.enter(after);
    now.eip = 0x1017;
    one.interrupt(0x20, false, true);  // after the RET
    now.eip = 0x5000;
    auto const writes = block(0x5000, {0x0F, 0x30});  // WRMSR
    one.enter(writes);
    CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
    CHECK((now.hflags & MACHINE_TRACED) == 0);
    // The RET is compressed: its CALL is in the trace, and #DE changed nothing of it.
    CHECK(flow_at(0x2000, 0x400) ==
          "TIP.PGE 1002, TNT 6, TIP 3000, FUP 3001, TIP 4000, TIP 3003, TNT 6, FUP 1017, "
          "TIP 5000, FUP 5000, TIP.PGD, ");
}

TEST_CASE("near branches of real mode, in a segment with a base, are no interrupts") {
    now = {};
    now.hflags = 0;  // 16-bit code
    now.cr0 = 0;
    now.cs_base = 0x2'0000;
    auto const how = settings();
    processor one{0, how};
    now.eip = 0x1A;
    start(one, 1U << 11);  // DisRETC
    machine::live_blocks blocks;
    auto const enter = [&](std::uint64_t at, std::vector<instruction_bytes> const& code) {
        now.eip = at;
        one.enter(*blocks.add(translated(code)));
    };
    for (unsigned i = 0; i < 2; ++i) {
        enter(0x1C, {{0xE8, 0x0E, 0x00}});    // CALL 2DH
        enter(0x2D, {{0x40}, {0xC3}});        // INC AX; RET
        enter(0x1F, {{0x49}, {0x75, 0xFA}});  // DEC CX; JNZ 1CH
    }
    enter(0x22, {{0xEB, 0x01}});    // JMP 25H
    enter(0x25, {{0xEB, 0xC9}});    // JMP FFF0H, before the beginning of the segment
    enter(0xFFF0, {{0x0F, 0x30}});  // WRMSR
    CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
    CHECK(flow_at(0x2000, 0x400) ==
          "TIP.PGE 1c, TIP 1f, TNT 6, TIP 1f, TNT 4, FUP fff0, TIP.PGD, ");
}

TEST_CASE("an interrupt on a full region reaches the local APIC") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    std::uint64_t const int_4k = 0x2000 | 1U << 2, end = 0x1000 | 1;  // INT; END of the table
    std::memcpy(now.memory + 0x1000, &int_4k, 8);
    std::memcpy(now.memory + 0x1008, &end, 8);
    CHECK(one.wrmsr(base, 0x1000) == MACHINE_DONE);
    CHECK(one.wrmsr(ctl, on | 1U << 8) == MACHINE_DONE);  // ToPA
    auto const call = block(0x1015, {0xFF, 0xD0});
    for (unsigned i = 0; i < 4000 && now.pmis == 0; ++i) {
        now.eip = 0x1015;
        one.enter(call);
    }
    CHECK(now.pmis == 1);
    std::uint64_t value = 0;
    CHECK(one.rdmsr(0x38E, value) == MACHINE_DONE);
    CHECK(value == std::uint64_t{1} << 55);  // Trace_ToPA_PMI
    CHECK(one.wrmsr(0x390, value) == MACHINE_DONE);
    CHECK(one.rdmsr(0x38E, value) == MACHINE_DONE);
    CHECK(value == 0);
}

TEST_CASE("a counter of instructions overflows, and its interrupt reaches the local APIC") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    CHECK(one.wrmsr(0x4C1, 0xFFFF'FFFF'FFFE) == MACHINE_DONE);
    CHECK(one.wrmsr(0x186, 0xC0 | 3U << 16 | 1U << 20 | 1U << 22) == MACHINE_DONE);
    CHECK((now.hflags & MACHINE_TRACED) == 0);
    CHECK(one.wrmsr(0x38F, 1) == MACHINE_DONE);
    CHECK((now.hflags & MACHINE_TRACED) != 0);
    auto const three = block(0x1000, {0x90, 0x90, 0xEB, 0xFC});  // NOP; NOP; JMP 1000H
    one.enter(three);
    CHECK(now.pmis == 0);
    one.enter(three);
    CHECK(now.pmis == 1);
    std::uint64_t value = 0;
    unsigned length = 0;
    std::uint8_t const rex_rdpmc[] = {0x48, 0x0F, 0x33};
    now.eip = 0x6000;
    std::memcpy(now.memory + 0x6000, rex_rdpmc, sizeof rex_rdpmc);
    CHECK(one.rdpmc(0, value, length) == MACHINE_DONE);
    CHECK(length == 3);
    CHECK(value == 1);
    CHECK(one.rdmsr(0x38E, value) == MACHINE_DONE);
    CHECK(value == 1);  // Ovf_PMC0
}

TEST_CASE("a counter overflows in user code that is traced") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    CHECK(one.wrmsr(0xC1, 0xFFFF'FFFE) == MACHINE_DONE);
    CHECK(one.wrmsr(0x186, 0xC5 | 3U << 16 | 1U << 20 | 1U << 22) == MACHINE_DONE);
    CHECK(one.wrmsr(0x38F, 1) == MACHINE_DONE);
    start(one);
    now.hflags |= 3;                                 // CPL
    auto const jumps = block(0x1000, {0xEB, 0xFE});  // JMP 1000H
    for (unsigned i = 0; i < 1000 && now.pmis == 0; ++i) {
        now.eip = 0x1000;
        one.enter(jumps);
    }
    CHECK(now.pmis == 1);
    std::uint64_t value = 0;
    CHECK(one.rdmsr(0x38E, value) == MACHINE_DONE);
    CHECK(value == 1);  // Ovf_PMC0
}

TEST_CASE("the core clock is that of CBR, and stands still while the processor is halted") {
    now = {};
    auto const how = settings();
    now.tsc_step = 0;
    CHECK(how.tsc_hz == 3'504'000'000);
    processor one{0, how};
    start(one, 1U << 1);                        // CYCEn
    std::vector<std::uint8_t> code(300, 0x90);  // the clock is read within 256
    code.insert(code.end(), {0xFF, 0xE0});      // JMP RAX
    auto const jumps = block(0x1000, code);
    now.eip = 0x1000;
    one.enter(jumps);
    now.tsc += 3504;  // a microsecond
    one.enter(jumps);
    auto const halts = block(0x2000, {0xF4});
    now.eip = 0x2000;
    now.tsc += 3504;
    one.enter(halts);
    now.eip = 0x2001;
    one.interrupt(0x20, false, true);
    now.tsc += 35'040'000;
    now.eip = 0x1000;
    one.enter(jumps);
    std::uint64_t cycles = 0;
    unsigned ratio = 0;
    trace::reader in{byte_view{now.memory + 0x2000, 0x400}};
    for (auto read = in.next(); read.what == trace::item_type::packet; read = in.next()) {
        if (read.packet.is<packet::cyc>()) { cycles += read.packet.as<packet::cyc>().value(); }
        if (read.packet.is<packet::cbr>()) {
            auto const cbr = read.packet.as<packet::cbr>();
            ratio = static_cast<unsigned>(cbr.get<packet::cbr::CoreBusRatio>());
        }
    }
    CHECK(ratio == 20);  // 2 GHz
    CHECK(cycles == 4000);
}

TEST_CASE("a block that the emulator leaves and continues is no interrupt") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    now.eip = 0x1000;
    start(one);
    auto const reads = block(0x1002, {0xEC, 0x90, 0xFF, 0xE0});  // IN AL, DX; NOP; JMP RAX
    auto const rest = block(0x1003, {0x90, 0xFF, 0xE0});
    now.eip = 0x1002;
    one.enter(reads);
    one.event(MACHINE_LEFT_BLOCK);
    now.eip = 0x1003;  // the IN has executed alone
    one.enter(rest);
    now.eip = 0x1002;
    one.enter(reads);
    one.event(MACHINE_LEFT_BLOCK);
    now.eip = 0x1003;
    one.interrupt(0x20, false, true);
    auto const writes = block(0x5000, {0x0F, 0x30});  // WRMSR
    now.eip = 0x5000;
    one.enter(writes);
    CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
    CHECK(flow_at(0x2000, 0x400) ==
          "TIP.PGE 1002, TIP 1002, FUP 1003, TIP 5000, FUP 5000, TIP.PGD, ");
}

TEST_CASE("SMM is not traced, and RSM resumes the trace") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    now.eip = 0x1000;
    start(one);
    auto const jumps = block(0x1002, {0xFF, 0xE0});          // JMP RAX
    auto const handler = block(0x8000, {0x90, 0x0F, 0xAA});  // NOP; RSM
    auto const rest = block(0x5000, {0x90, 0xEB, 0xFD});     // NOP; JMP 5000H
    now.eip = 0x1002;
    one.enter(jumps);
    now.eip = 0x5000;
    one.event(MACHINE_SMI);
    now.eip = 0x8000;
    one.enter(handler);
    CHECK(!one.is_tracing());
    CHECK((now.hflags & MACHINE_TRACED) == 0);
    now.eip = 0x8001;
    one.event(MACHINE_RSM);
    CHECK((now.hflags & MACHINE_TRACED) != 0);
    now.eip = 0x5000;
    one.enter(rest);
    CHECK(one.is_tracing());
    auto const writes = block(0x5000, {0x0F, 0x30});  // WRMSR
    one.enter(writes);
    CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
    CHECK(flow_at(0x2000, 0x400) ==
          "TIP.PGE 1002, TIP 5000, FUP 5000, TIP.PGD, TIP.PGE 5000, FUP 5000, TIP.PGD, ");
}

TEST_CASE("INIT keeps TraceEn, and the trace continues at the reset vector or after the SIPI") {
    for (bool const waits_for_sipi : {false, true}) {
        now = {};
        auto const how = settings();
        processor one{0, how};
        now.eip = 0x1000;
        start(one);
        auto const jumps = block(0x1002, {0xEB, 0xFE});  // JMP 1002H
        now.eip = 0x1002;
        one.enter(jumps);
        one.event(MACHINE_INIT);
        now.hflags = 0;
        now.cr0 = now.cr3 = 0;
        now.cs_base = 0xFFFF'0000;
        now.eip = 0xFFF0;
        one.event(MACHINE_POWER_ON);  // as QEMU resets the state for INIT
        CHECK(one.is_tracing());
        CHECK((now.hflags & MACHINE_TRACED) != 0);
        if (waits_for_sipi) {
            now.cs_base = 0x9'A000;
            now.eip = 0;
            one.event(MACHINE_SIPI);
        }
        auto const writes = block(now.eip, {0x0F, 0x30});  // WRMSR
        one.enter(writes);
        CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
        CHECK(flow_at(0x2000, 0x400) ==
              (waits_for_sipi ? "TIP.PGE 1002, FUP 1002, TIP 0, FUP 0, TIP.PGD, "
                              : "TIP.PGE 1002, FUP 1002, TIP fff0, FUP fff0, TIP.PGD, "));
        one.event(MACHINE_POWER_ON);
        CHECK(!one.is_tracing());
        std::uint64_t value = 1;
        CHECK(one.rdmsr(ctl, value) == MACHINE_DONE);
        CHECK((value & 1) == 0);
    }
}

TEST_CASE("a hidden capability hides what says more about it") {
    auto const caps_without = [](std::string hidden) {
        hidden.insert(0, "hide=");
        std::string preset = "preset=AlderLake-N";
        char* arguments[] = {preset.data(), hidden.data()};
        auto const made = machine::settings_of(2, arguments);
        CHECK(made.error == "");
        return made.caps;
    };
    auto const without_ranges = caps_without("IPFILT_WRSTPRSV");
    CHECK(without_ranges.leaf_14_1_eax.get<reg::cpuid_14h_1_eax::RANGECNT>() == 0);
    CHECK(without_ranges.leaf_14_1_eax.get<reg::cpuid_14h_1_eax::MTC_PERIODS>() != 0);
    CHECK(caps_without("MTC").leaf_14_1_eax.get<reg::cpuid_14h_1_eax::MTC_PERIODS>() == 0);
    CHECK(caps_without("CPSB_CAM").leaf_14_1_ebx.raw == 0);
    auto const without_topa = caps_without("TOPAOUT").leaf_14_0_ecx;
    CHECK(!without_topa.get<reg::cpuid_14h_0_ecx::MENTRY>());
    CHECK(without_topa.get<reg::cpuid_14h_0_ecx::SNGLRNGOUT>());
}

TEST_CASE("a processor that waits for its turn loses no MTC") {
    now = {};
    char preset[] = "preset=Skylake-X", kind[] = "kind=broadwell";
    char* arguments[] = {preset, kind};
    auto const how = machine::settings_of(2, arguments);
    now.tsc_step = 0;
    processor one{0, how};
    CHECK(one.wrmsr(base, 0x8000) == MACHINE_DONE);
    CHECK(one.wrmsr(mask_ptrs, 0x7FFF) == MACHINE_DONE);
    CHECK(one.wrmsr(ctl, on | 1U << 9 | 3U << 14) == MACHINE_DONE);  // MTCEn, MTCFreq
    auto const jumps = block(0x1000, {0xFF, 0xE0});                  // JMP RAX
    now.eip = 0x1000;
    one.enter(jumps);
    constexpr unsigned periods = 1000;
    now.tsc += periods * 8 * how.caps.leaf_15_ebx.raw / how.caps.leaf_15_eax.raw;
    CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
    unsigned mtcs = 0, overflows = 0;
    trace::reader in{byte_view{now.memory + 0x8000, 0x8000}};
    for (auto read = in.next(); read.what == trace::item_type::packet; read = in.next()) {
        mtcs += read.packet.is<packet::mtc>() ? 1 : 0;
        overflows += read.packet.is<packet::ovf>() ? 1 : 0;
    }
    CHECK(mtcs == periods);
    CHECK(overflows == 0);
}

TEST_CASE("a transfer without a known cause is counted, and traced as an interrupt") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    now.eip = 0x1000;
    start(one);
    auto const moves = block(0x1002, {0x90});  // NOP
    auto const other = block(0x7000, {0x90});
    one.enter(moves);
    CHECK(one.unexplained() == 0);
    one.enter(other);
    CHECK(one.unexplained() == 1);
    now.eip = 0x7001;  // the WRMSR
    CHECK(one.wrmsr(ctl, 0) == MACHINE_DONE);
    CHECK(flow_at(0x2000, 0x400) == "TIP.PGE 1002, FUP 1003, TIP 7000, FUP 7001, TIP.PGD, ");
}

TEST_CASE("a reset clears the overflow bits of counters") {
    now = {};
    auto const how = settings();
    processor one{0, how};
    CHECK(one.wrmsr(0x4C1, 0xFFFF'FFFF'FFFF) == MACHINE_DONE);
    CHECK(one.wrmsr(0x186, 0xC0 | 3U << 16 | 1U << 22) == MACHINE_DONE);
    CHECK(one.wrmsr(0x38F, 1) == MACHINE_DONE);
    auto const jumps = block(0x1000, {0xEB, 0xFE});
    one.enter(jumps);
    one.enter(jumps);
    std::uint64_t value = 0;
    CHECK(one.rdmsr(0x38E, value) == MACHINE_DONE);
    CHECK(value == 1);
    one.event(MACHINE_POWER_ON);
    CHECK(one.rdmsr(0x38E, value) == MACHINE_DONE);
    CHECK(value == 0);
}
