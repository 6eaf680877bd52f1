// SPDX-License-Identifier: BSL-1.0

// A hypervisor that fuzzes a guest counts the guest's edges: in traces of the guest, and in traces
// of host and guest. It writes each execution to the start of one small region, so that most traces
// have no PSB, and reads a page of the guest's code when a trace needs it.

#include "standard_output.hpp"

#include <ptspec/flow.hpp>
#include <ptspec/model.hpp>
#include <ptspec/topa/table.hpp>
#include <ptspec/trace/write/synthetic_psb.hpp>
#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/usage.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;
using mask_ptrs = reg::ia32_rtit_output_mask_ptrs;
using bytes = std::vector<std::uint8_t>;

// The guest's program and the host's emulation of I/O are at the same linear addresses and, by
// chance, have the same CR3: only PIP.NR tells them apart.
enum side : std::uint32_t { host, guest };  // the address spaces
constexpr flow::ip_range traced{0x40'1000, 0x40'3FFF};
constexpr std::uint64_t cr3 = 0x5000, host_ip = 0x30'0000;
constexpr std::uint64_t table_address = 0x10'0000, region_address = 0x20'0000;
constexpr std::size_t page_size = flow::code_page_size, map_size = 65536;

// The program calls a handler for each byte of its input, 0 ('a') or 1 ('b'), until a 2.
bytes const program{0x0F, 0xB6, 0x07,           // 401000: MOVZX EAX, BYTE [RDI]
                    0x48, 0xFF, 0xC7,           // 401003: INC RDI
                    0x3C, 0x02, 0x74, 0x05,     // 401006: CMP AL, 2; 401008: JE 40100F
                    0xFF, 0x14, 0xC6,           // 40100A: CALL [RSI+RAX*8]
                    0xEB, 0xF1,                 // 40100D: JMP 401000
                    0x0F, 0x01, 0xC1};          // 40100F: VMCALL
bytes const handler_a{0x40, 0xF6, 0xC7, 0x01,   // 402000: TEST DIL, 1
                      0x75, 0x01, 0x90, 0xC3};  // 402004: JNE 402007; NOP; 402007: RET
bytes const handler_b{0xE6, 0x80, 0xC3};        // 403000: OUT 80H, AL; 403002: RET
bytes const emulation{0xFF, 0xC9, 0x75, 0xFC,   // 401000: DEC ECX; 401002: JNE 401000
                      0xC3};                    // 401004: RET
std::map<std::uint64_t, bytes> const guest_memory{
    {0x40'1000, program}, {0x40'2000, handler_a}, {0x40'3000, handler_b}};

void expect(bool right, char const* what) {
    if (!right) { std::exit((std::printf("not as expected: %s\n", what), 1)); }
}

/// A processor that executes the guest and the host. It traces the guest, or both.
struct machine {
    explicit machine(bool with_host) : traces_host{with_host} {
        using non_root = reg::vmcs_secondary_proc_ctls::ConcealVmxNonRootFromPT;
        using exits = reg::vmcs_vmexit_ctls::ConcealVmExitsFromPT;
        using entries = reg::vmcs_vmentry_ctls::ConcealVmEntriesFromPT;
        expect(static_cast<bool>(use), "a processor that traces in VMX operation");
        // `vm_only` conceals VM exits, whose PIP would be the last one before the TIP.PGE of the
        // next entry. It also conceals non-root operation, which makes NR 0; this program needs NR.
        use.set.secondary = use.set.secondary.with(non_root{false});
        cpu.conceal({.non_root = use.set.secondary.get<non_root>(),
                     .exits = use.set.vm_exit.get<exits>(),
                     .entries = use.set.vm_entry.get<entries>()});
        store_le64(table, topa::entry_for({.base = region_address, .stop = true}).raw);
        write(reg::ia32_rtit_output_base::address, table_address);
        write(0x580, traced.first);  // IA32_RTIT_ADDR0_A
        write(0x581, traced.last);   // IA32_RTIT_ADDR0_B
        (void)cpu.on(action::vmxon{host_ip, host_ip});
    }
    machine(machine const&) = delete;
    auto operator=(machine const&) -> machine& = delete;

    void write(std::uint32_t index, std::uint64_t value) {
        expect(cpu.write(index, value), "WRMSR");
    }
    /// Traces an execution to the start of the region. PSBs are as rare as in one long trace, since
    /// PacketByteCnt is not reset.
    auto trace(std::string const& input) -> byte_view {
        for (auto& counts : executed) { counts.assign(map_size, 0); }
        write(mask_ptrs::address, mask_ptrs::forced_1_mask());
        if (traces_host) { write(ctl::address, on.raw); }
        execute(input);
        if (traces_host) { write(ctl::address, 0); }
        auto const now = cpu.msrs();
        expect(!now.status.get<reg::ia32_rtit_status::Stopped>(), "room in the region");
        auto const size = now.output.mask_ptrs.get<mask_ptrs::OutputOffset>();
        return byte_view{region}.first(static_cast<std::size_t>(size));
    }

    /// What an MSR list with IA32_RTIT_CTL, or an empty one, loads.
    static auto load_of(vmx::stored_list const& list) -> action::ctl_load {
        return {list.count != 0, ctl{list.entries[0].value}};
    }
    void enter(std::uint64_t to) {
        engine::execution_context const after{.cr3 = cr3, .vmx_non_root = true};
        (void)cpu.on(action::vm_entry{host_ip, to, after, load_of(use.entry_load)});
    }
    void exit(std::uint64_t from) {
        (void)cpu.on(action::vm_exit{from, host_ip, {.cr3 = cr3}, load_of(use.exit_load)});
    }
    /// Executes a branch, and counts its edge as `flow::coverage` should.
    template <class Action>
    void take(side of, std::uint64_t from, Action const& branch) {
        static constexpr flow::coverage all{nullptr, map_size};
        ++executed[of][all.index_of({.from = from, .to = branch.to})];
        (void)cpu.on(branch);
    }
    void execute(std::string const& input) {
        enter(0x40'1000);
        for (std::size_t i = 0; i < input.size(); ++i) {
            take(guest, 0x40'1008, action::conditional{0x40'100A, false});
            if (input[i] == 'a') {
                bool const is_odd = i % 2 == 0;  // RDI, after INC
                std::uint64_t const next = is_odd ? 0x40'2007 : 0x40'2006;
                take(guest, 0x40'100A, action::indirect_call{0x40'100D, 0x40'2000});
                take(guest, 0x40'2004, action::conditional{next, is_odd});
                take(guest, 0x40'2007, action::near_return{0x40'100D});
            } else {
                take(guest, 0x40'100A, action::indirect_call{0x40'100D, 0x40'3000});
                exit(0x40'3000);
                emulate_out();
                enter(0x40'3002);
                take(guest, 0x40'3002, action::near_return{0x40'100D});
            }
            take(guest, 0x40'100D, action::direct_jump{0x40'1000});
        }
        take(guest, 0x40'1008, action::conditional{0x40'100F, true});
        exit(0x40'100F);
    }
    void emulate_out() {
        (void)cpu.on(action::indirect_call{host_ip, 0x40'1000});
        take(host, 0x40'1002, action::conditional{0x40'1000, true});
        take(host, 0x40'1002, action::conditional{0x40'1004, false});
        (void)cpu.on(action::near_return{host_ip});
    }

    static constexpr auto const& caps = cpu::preset::skylake_x;
    static constexpr ctl on = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true},
                                         ctl::ToPA{true}, ctl::BranchEn{true},
                                         ctl::ADDR0_CFG{reg::addr_cfg::filter});
    bool traces_host;
    vmx::usage use = traces_host ? vmx::system_wide(caps, {}) : vmx::vm_only(caps, {}, on);
    bytes executed[2]{};  // the counts of both sides of the last execution, traced or not
    std::uint8_t table[page_size] = {}, region[page_size] = {};
    host_region places[2] = {{table_address, table, page_size},
                             {region_address, region, page_size}};
    host_memory memory{places};
    simulate::fake_processor<host_memory> cpu{caps, memory, {.cr3 = cr3}, host_ip};
};

/// Code for a walker: the pages of each address space that were read.
struct code_pages {
    static constexpr auto changes = flow::space_changes::at_paging;

    std::map<std::uint64_t, bytes> of[2]{};

    auto code(std::uint64_t address, std::uint32_t space) const -> byte_view {
        auto const page = of[space].find(align_down(address, page_size));
        if (page == of[space].end()) { return {}; }
        auto const offset = address - page->first;
        return byte_view{page->second}.from(static_cast<std::size_t>(offset));
    }
    [[nodiscard]] auto space_of(flow::walk_state const& walked) const -> std::uint32_t {
        return walked.state.non_root && walked.state.cr3 == cr3 ? guest : host;
    }
    void add(side space, std::uint64_t address, bytes const& content) {
        auto& page = of[space][address] = content;
        page.resize(page_size);
    }
};

/// Options that count the edges of one side, without those of interrupts and VM exits.
constexpr auto edges_of(side which) -> flow::coverage_options {
    return {.filter = {.events = false,
                       .ranges = {traced},
                       .range_count = 1,
                       .has_space = true,
                       .space = which}};
}
/// Counts the edges of a trace. Returns the number of pages that it read from the guest.
auto count_edges(flow::walker<code_pages>& walker, code_pages& code, bytes const& trace,
                 flow::coverage& counts) -> unsigned {
    unsigned pages = 0;
    walker.next_input(trace);
    for (; walker.run(counts) == flow::walk_end::missing_code; ++pages) {
        auto const page = guest_memory.find(align_down(walker.missing(), page_size));
        expect(walker.space() == guest && page != guest_memory.end(), "code of the guest");
        code.add(guest, page->first, page->second);
    }
    return pages;
}

void fuzz(bool with_host) {
    using packet::pip;
    std::puts(with_host ? "traces of host and guest" : "traces of the guest");
    machine now{with_host};
    code_pages code;
    code.add(host, 0x40'1000, emulation);
    flow::block blocks[64];
    flow::run runs[64];
    flow::block_cache cache{blocks};
    flow::run_table known{runs};
    flow::walker walker{code, cache, {.missing = flow::on_missing_code::stop}};
    // The state where a trace begins: in the host or, if only the guest is traced, at VM entry.
    auto const psb = trace::synthetic_psb(
        {.status = {.pip = pip{}.with(pip::CR3{cr3}, pip::NR{!with_host})}});
    bytes seen(map_size);
    for (std::string const input : {"", "a", "aa", "b", "ab", "baab", "bbbb"}) {
        auto const region = now.trace(input);
        expect(trace::reader{borrowed_bytes{region}}.sync_first() == input.empty(),
               "a PSB in the first only");
        expect(!trace::needs_last_ip(region), "no IP that is compressed by that of another trace");
        bytes trace(psb.view().begin(), psb.view().end());
        trace.insert(trace.end(), region.begin(), region.end());

        bytes counts(map_size), host_counts(map_size);
        flow::coverage of_guest{counts.data(), map_size, &known, edges_of(guest)};
        flow::coverage of_host{host_counts.data(), map_size, nullptr, edges_of(host)};
        auto const pages = count_edges(walker, code, trace, of_guest);
        expect(counts == now.executed[guest], "each edge of the guest, and no other");
        expect(count_edges(walker, code, trace, of_host) == 0 &&
                   host_counts == (with_host ? now.executed[host] : bytes(map_size)),
               "edges of the host only if it is traced");

        unsigned edges[2] = {}, found = 0;
        for (std::size_t i = 0; i < map_size; ++i) {
            edges[guest] += counts[i];
            edges[host] += host_counts[i];
            found += counts[i] != 0 && seen[i]++ == 0;
        }
        std::printf(
            "%6s: %3zu bytes, %u pages read, edges: %2u of the guest, %u new, %u of the host\n",
            input.c_str(), trace.size(), pages, edges[guest], found, edges[host]);
    }
}

}  // namespace

auto main() -> int {
    fuzz(false);
    fuzz(true);
}
