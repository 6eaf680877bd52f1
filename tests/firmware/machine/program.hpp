// SPDX-License-Identifier: BSL-1.0
#pragma once

// The program of the bootable machines: it finds no Intel PT, and traces a modelled processor into
// physical memory. How the machine was started is the platform's matter. `expected.txt` is what it
// prints; ids in there and here are rows of the rule catalogue.

#include <ptspec/ptspec.hpp>

#include <ptspec/ports/x86.hpp>

#include <stdint.h>

namespace machine {

using namespace ptspec;
namespace action = engine::action;

/// The surroundings of the program: a console, and physical memory. `claim` returns null if the
/// memory is absent or in use.
template <class Platform>
concept platform = requires(Platform& on, text words, uint64_t address, uint64_t bytes) {
    on.print(words);
    { on.claim(address, bytes) } -> same_as<uint8_t*>;
};

// ------------------------------------------------------------------------------------ the buffer

// The buffer of PC-12: a table at 10000000H, three regions of 64 KB, and END. The regions are not
// in the order of their addresses, so that packets continue elsewhere in memory.
inline constexpr uint64_t memory_at = 0x1000'0000;
inline constexpr uint64_t memory_bytes = 0x4'0000;
inline constexpr topa::region regions[] = {{0x1002'0000, topa::region_size::size_64K},
                                           {0x1001'0000, topa::region_size::size_64K},
                                           {0x1003'0000, topa::region_size::size_64K}};
inline constexpr auto const& modelled = cpu::preset::P_SKL;
inline constexpr auto table = topa::ring(topa::table_site{memory_at, topa::limits::of(modelled)},
                                         regions[0], regions[1], regions[2]);

static_assert(table.size() == 4);
static_assert(table.entries[0].raw == 0x1002'0100 && table.entries[1].raw == 0x1001'0100);
static_assert(table.entries[2].raw == 0x1003'0100 && table.entries[3].raw == 0x1000'0001);

/// The buffer as a driver holds it, with a copy of the table that is built at run time.
struct buffer {
    topa::entry entries[table.size()]{};
    driver::table_page page{memory_at, entries};
    driver::ring ring = driver::build_ring(driver::buffer_recipe::circular, regions, 3, &page, 1,
                                           topa::limits::of(modelled))
                            .ring;
};

// ------------------------------------------------------------------------------------ execution

inline constexpr access::msr_state plan{.ctl = {0x250D},  // the base configuration of the PC rows
                                        .output = driver::in_topa({.table = memory_at})};
inline constexpr uint64_t trace_bytes = 0x2'1234;  // of PC-12
inline constexpr uint64_t last_bytes = 8;          // of `execute_last`, and of disabling

inline constexpr uint64_t enable_ip = 0xFFFF'BC9A'1234'5670;  // of the first of four WRMSRs
inline constexpr uint64_t branches_ip = 0xFFFF'BC9A'1234'5678;
inline constexpr uint64_t function_ip = 0xFFFF'BC9A'1234'3412;
inline constexpr uint64_t handler_ip = 0xFFFF'8000'0000'0000;
inline constexpr uint64_t last_ip = 0xFFFF'8000'0000'3412;
inline constexpr uint64_t first_tsc = 0x07'0605'0403'0201;

/// A modelled processor of the kind `manual`, at CPL 0, and what it has executed.
template <class Memory>
class program_run {
public:
    constexpr explicit program_run(Memory& memory)
        : cpu_{modelled, memory, tap_, {}, enable_ip, engine::model_options{}} {
        on(action::elapsed{.tsc = first_tsc});
    }
    program_run(program_run const&) = delete;  // the processor refers to the member `tap_`
    auto operator=(program_run const&) -> program_run& = delete;

    [[nodiscard]] constexpr auto cpu() -> auto& { return cpu_; }
    [[nodiscard]] constexpr auto stored() const -> uint64_t { return cpu_.unit().total().stored; }
    [[nodiscard]] constexpr auto branches() const -> uint64_t { return branches_; }
    [[nodiscard]] constexpr auto ok() const -> bool { return ok_; }

    /// TNT, PIP, TIP, FUP, TIP.
    constexpr void execute_first() {
        six_branches(branches_ip);
        on(action::mov_cr3{.at = branches_ip, .next = branches_ip + 3, .cr3 = 0xFE0});
        on(action::indirect_jump{function_ip});
        on(action::exception{.at = function_ip,
                             .to = handler_ip,
                             .after = {.cr3 = 0xFE0},
                             .vector = action::exception::page_fault});
    }
    /// TNTs, and a PSB+ every 2 KB.
    constexpr void execute_until(uint64_t bytes) {
        while (ok_ && stored() < bytes) { six_branches(handler_ip); }
    }
    /// TIP, and two branches that are pending when TraceEn is cleared: TNT, FUP, TIP.PGD.
    constexpr void execute_last() {
        on(action::indirect_jump{last_ip});
        branch(true, last_ip);
        branch(false, last_ip);
    }

private:
    constexpr void on(auto const& e) { ok_ = !cpu_.on(e).happened && ok_; }
    constexpr void branch(bool taken, uint64_t to) {
        ++branches_;
        on(action::conditional{to, taken});
    }
    constexpr void six_branches(uint64_t to) {
        constexpr bool taken[] = {false, true, false, false, true, true};
        for (bool const one : taken) { branch(one, to); }
    }

    simulate::no_tap tap_{};
    simulate::fake_processor<Memory> cpu_;
    uint64_t branches_ = 0;
    bool ok_ = true;
};

/// The first bytes of the trace, as the compiler computes them.
struct first_bytes {
    byte_array<128> bytes{};
    size_t count = 0;
};
constexpr auto made_while_compiling() -> first_bytes {
    first_bytes result;
    uint8_t page[sizeof table] = {};
    for (size_t i = 0; i < table.size(); ++i) { store_le64(page + 8 * i, table.entries[i].raw); }
    host_region const all[] = {
        {memory_at, page, sizeof page},
        {regions[0].base, result.bytes.bytes, sizeof result.bytes},
    };
    host_memory memory{all};
    program_run run{memory};
    if (!driver::enable(run.cpu(), plan)) { return {}; }
    run.execute_first();
    result.count = run.ok() ? static_cast<size_t>(run.stored()) : 0;
    return result;
}
inline constexpr auto expected_first = made_while_compiling();
static_assert(expected_first.count != 0);

// ------------------------------------------------------------------------------------ the report

/// Prints, and remembers whether every check passed.
template <platform Platform>
class report {
public:
    explicit report(Platform& on) : on_{on} {}

    void line(auto const&... pieces) {
        (put(pieces), ...);
        on_.print("\n");
    }
    /// Prints the name of a check that failed.
    void check(text what, bool passed) {
        all_passed_ = all_passed_ && passed;
        if (!passed) { line("FAILED: ", what); }
    }
    [[nodiscard]] auto all_passed() const -> bool { return all_passed_; }

    void put(text piece) { on_.print(piece); }
    template <callable<report&> Prints>
    void put(Prints const& prints) {
        prints(*this);
    }
    void operator()(text piece) { on_.print(piece); }  // as a text_sink

private:
    Platform& on_;
    bool all_passed_ = true;
};

/// The accesses of a log as the catalogue writes them, without the value of IA32_RTIT_STATUS.
void print_log(auto const& log, auto& out) {
    for (auto const& one : log) {
        bool const is_status = one.what == simulate::logged_access::kind::read &&
                               one.index == reg::ia32_rtit_status::address;
        out.put("  ");
        if (is_status) {
            out.put("RDMSR(571)");
        } else {
            simulate::print_access(one, out);
        }
        out.line();
    }
}

// ------------------------------------------------------------------------------------ the program

/// This processor: it has no Intel PT, and an MSR access that faults is an answer.
void look_at_processor(auto& out) {
    ports::x86_cpuid cpuid;
    ports::x86_msrs<ports::skipping_access> msrs;
    simulate::recording_port<decltype(msrs)> log{msrs};
    auto const found = driver::detect(cpuid, log);
    out.line(
        "PC-01: Intel PT: ", found.caps.has_pt() ? text{"present"} : text{"absent"}, ", ",
        [&](auto& to) { print::decimal(log.count(), to); }, " MSR accesses");
    // Some emulators answer with 0 where a processor raises #GP.
    (void)log.read(reg::ia32_rtit_ctl::address);
    out.line("stray RDMSR(570): the program continues");

    // Bit 32 of IA32_PKRS is reserved where this MSR exists.
    constexpr uint32_t pkrs = 0x6E1;
    log.clear();
    out.check("a #GP is reported", !log.write(pkrs, uint64_t{1} << 32));
    out.line("reported faults:");
    print_log(log, out);
}

/// Reads the trace where it lies. Returns the number of branches in TNTs.
auto print_trace(auto& out, buffer const& from, driver::ring_part part, host_memory& memory)
    -> uint64_t {
    uint64_t branches = 0;
    uint64_t not_printed = 0;
    auto const show = [&](trace::item const& one) {
        out.check("every item is a packet",
                  one.what == trace::item_type::packet || one.what == trace::item_type::synced);
        if (one.what != trace::item_type::packet) { return; }
        packet::visit(
            [&](auto const& p) {
                if constexpr (requires { p.taken().count; }) { branches += p.taken().count; }
            },
            one.packet);
        bool const is_last = one.offset >= part.count - last_bytes;
        if (one.offset >= expected_first.count && !is_last) {
            ++not_printed;
            return;
        }
        if (is_last && not_printed != 0) {
            out.line("  ..");
            not_printed = 0;
        }
        out.put("  ");
        for (size_t i = 0; i < one.length; ++i) {
            auto const at = driver::region_at(from.ring, one.offset + i);
            uint8_t const* const byte =
                memory.window((regions[at.region].base + at.offset).value).first;
            print::hex(*byte, out, 2);
        }
        out.put(" ");
        print::packet(one.packet, out, print::style{.zeros = true, .meanings = false});
        packet::visit(
            [&](auto const& p) {
                if constexpr (requires { p.has_ip(); }) {
                    if (!p.has_ip()) { return; }
                    out.put(" IP=");
                    print::hex(one.ip, out);
                }
            },
            one.packet);
        out.line();
    };
    trace::reader<> reader;
    driver::for_each_span(from.ring, part, [&](phys_addr base, uint64_t bytes) {
        auto const here = memory.window(base.value);
        out.check("the trace is in memory", here.size >= bytes);
        out.check("the reader has consumed a chunk",
                  reader.feed(byte_view{here.first, static_cast<size_t>(bytes)}));
        for (auto it = reader.next(); it; it = reader.next()) { show(it); }
    });
    reader.finish();
    for (auto it = reader.next(); it; it = reader.next()) { show(it); }
    return branches;
}

/// Traces a modelled processor into physical memory.
void trace_into(auto& out, uint8_t* bytes) {
    host_region const all[] = {{memory_at, bytes, memory_bytes}};
    host_memory memory{all};
    out.put("table:");
    for (size_t i = 0; i < table.size(); ++i) {
        store_le64(bytes + 8 * i, table.entries[i].raw);
        out.put(" ");
        print::hex(table.entries[i].raw, out);
    }
    out.line();

    program_run run{memory};
    simulate::recording_port log{run.cpu()};
    out.check("TraceEn is set", static_cast<bool>(driver::enable(log, plan)));
    out.line("PC-02:");
    print_log(log, out);
    run.execute_first();
    byte_view const first{memory.window(regions[0].base.value).first, expected_first.count};
    out.check("the first bytes are those of the compiler",
              run.stored() == first.size() &&
                  first == byte_view{expected_first.bytes}.first(expected_first.count));
    run.execute_until(trace_bytes - last_bytes);
    run.execute_last();
    log.clear();
    auto const stopped = driver::disable(log);
    out.check("the processor has executed everything", run.ok());

    buffer const in;
    for (size_t i = 0; i < table.size(); ++i) {
        out.check("the table is the same at run time", in.entries[i] == table.entries[i]);
    }
    auto const found = driver::snapshot(in.ring, stopped, false);
    out.check("the position is in the ring", found && found.part.from == 0);
    out.line("PC-12:");
    print_log(log, out);
    out.line("  pos=", [&](auto& to) { print::hex(found.part.count, to); });
    out.line("packets:");
    uint64_t const branches = print_trace(out, in, found.part, memory);
    out.check("all branches are in the trace", branches == run.branches() && branches != 0);
}

/// True if every check passed.
template <platform Platform>
[[nodiscard]] auto run(Platform& on) -> bool {
    report<Platform> out{on};
    out.line("ptspec machine");
    look_at_processor(out);
    uint8_t* const bytes = on.claim(memory_at, memory_bytes);
    out.check("the memory at 10000000H is free", bytes != nullptr);
    if (bytes != nullptr) { trace_into(out, bytes); }
    if (out.all_passed()) { out.line("all checks passed"); }
    return out.all_passed();
}

}  // namespace machine
