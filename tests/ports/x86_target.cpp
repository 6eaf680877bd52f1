// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/x86_target.hpp>
#include <ptspec/suite/snippets.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__

using namespace ptspec;

namespace {

/// What a program in ring 3 puts in place of ring 0: its handler of SIGSEGV executes WRMSR, CLI and
/// STI, which raise #GP.
struct ring_0 {
    static constexpr unsigned max_writes = 8;

    ports::snippet_fault fault{};
    uint32_t written_index[max_writes] = {};
    uint64_t written[max_writes] = {};
    unsigned writes = 0;
    unsigned faulting_write = max_writes;  ///< the WRMSR, by its number, that raises #GP
    unsigned cli = 0;
    unsigned sti = 0;
    bool is_unknown = false;
};
ring_0 now;

void handle(int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    auto const* const code = reinterpret_cast<uint8_t const*>(registers[REG_RIP]);
    if (code[0] == 0xFA || code[0] == 0xFB) {
        (code[0] == 0xFA ? now.cli : now.sti) += 1;
        registers[REG_RIP] += 1;
        return;
    }
    bool const is_wrmsr = code[0] == 0x0F && code[1] == 0x30;
    if (!is_wrmsr || now.writes == now.faulting_write) {
        if (!ports::end_faulted_snippet(now.fault, registers[REG_RIP], registers[REG_RSP])) {
            now.is_unknown = true;
            _exit(99);
        }
        return;
    }
    if (now.writes < ring_0::max_writes) {
        now.written_index[now.writes] = static_cast<uint32_t>(registers[REG_RCX]);
        now.written[now.writes++] = static_cast<uint64_t>(registers[REG_RDX]) << 32 |
                                    static_cast<uint32_t>(registers[REG_RAX]);
    }
    registers[REG_RIP] += 2;
}

/// The handler while it exists.
struct handling {
    struct sigaction before{};

    handling() {
        struct sigaction ours{};
        ours.sa_sigaction = handle;
        ours.sa_flags = SA_SIGINFO | SA_NODEFER;
        (void)sigaction(SIGSEGV, &ours, &before);
        now = {};
    }
    ~handling() { (void)sigaction(SIGSEGV, &before, nullptr); }
    handling(handling const&) = delete;
    auto operator=(handling const&) -> handling& = delete;
};

/// The system: a page that executes, and no MSRs but those of the snippets.
struct hosted_system {
    uint8_t* code = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uint8_t given[4096] = {};
    uint64_t nmi_count = 0;
    uint64_t smi_count = 0;
    unsigned counted = 0;    ///< calls of `nmis`
    bool nmi_comes = false;  ///< between two calls of `nmis`
    bool smi_comes = false;
    bool keeps_trace_en = false;  ///< WRMSR does not clear TraceEn
    uint64_t ctl = 0x2000;
    uint32_t last_index = 0;
    uint64_t last_value = 0;
    bool has_place = true;
    bool came = false;

    hosted_system() = default;
    ~hosted_system() { (void)munmap(code, 4096); }
    hosted_system(hosted_system const&) = delete;
    auto operator=(hosted_system const&) -> hosted_system& = delete;

    auto try_rdmsr(uint32_t index, uint64_t& value) -> bool {
        value = index == 0x570 ? ctl : smi_count;
        return index == 0x570 || index == 0x34;
    }
    auto try_wrmsr(uint32_t index, uint64_t value) -> bool {
        last_index = index;
        last_value = value;
        if (index == 0x570 && !keeps_trace_en) { ctl = value; }
        return index == 0x570;
    }
    auto memory() -> suite::given_memory { return {{0x1000}, given, 1}; }
    auto abilities() -> suite::ability_set {
        return suite::ability_set{}.with(suite::ability::execute);
    }
    auto place(suite::snippet const& one) -> uint64_t {
        std::memcpy(code, one.bytes, one.size);
        return has_place ? reinterpret_cast<uintptr_t>(code) : 0;
    }
    auto fault() -> ports::snippet_fault& { return now.fault; }
    auto nmis() -> uint64_t {
        smi_count += smi_comes && counted == 0 ? 1 : 0;
        return ++counted == 2 && nmi_comes ? 1 : 0;
    }
    auto pmi() -> bool { return came; }
    text noted{};
    void note(text name, access::msr_state const&) { noted = name; }
};
static_assert(suite::target<ports::x86_target<hosted_system>>);

constexpr uint64_t on = 0x1'0000'2005;
constexpr uint64_t off = 0x1'0000'2004;
constexpr auto const& code = suite::snippets::branches;

}  // namespace

TEST_CASE("a snippet executes between its two WRMSRs, with interrupts disabled") {
    hosted_system system;
    ports::x86_target target{system};
    handling const guard;
    auto const done = target.execute(code, on, off);
    CHECK(done.enabled.is_done);
    CHECK(done.disabled.is_done);
    CHECK_FALSE(done.is_disturbed);
    CHECK(done.tsc_passed() > 0);
    REQUIRE(now.writes == 2);
    CHECK(now.written_index[0] == 0x570);
    CHECK(now.written[0] == on);
    CHECK(now.written_index[1] == 0x570);
    CHECK(now.written[1] == off);
    CHECK(now.cli == 1);
    CHECK(now.sti == 1);
    CHECK(system.last_index == 0);
}

TEST_CASE("each snippet that needs no privilege executes to its end") {
    hosted_system system;
    ports::x86_target target{system};
    auto const executes = [&](suite::snippet const& one) {
        handling const guard;
        auto const done = target.execute(one, on, off);
        CHECK(done.enabled.is_done);
        CHECK(done.disabled.is_done);
        CHECK(now.writes == 2);
    };
    executes(suite::snippets::branches);
    executes(suite::snippets::many_conditionals);
    executes(suite::snippets::direct);
    executes(suite::snippets::indirect);
}

TEST_CASE("a #GP of the WRMSR that enables ends the snippet") {
    hosted_system system;
    ports::x86_target target{system};
    handling const guard;
    now.faulting_write = 0;
    auto const done = target.execute(code, on, off);
    CHECK(done.enabled.faulted());
    CHECK(done.enabled.vector == 13);
    CHECK(now.writes == 0);
    CHECK(system.last_index == 0);
    now.faulting_write = ring_0::max_writes;
    CHECK(target.execute(code, on, off).disabled.is_done);  // the next one executes
}

TEST_CASE("a #GP of the WRMSR that disables is a fault, and TraceEn is cleared") {
    hosted_system system;
    ports::x86_target target{system};
    handling const guard;
    now.faulting_write = 1;
    auto const done = target.execute(code, on, off);
    CHECK(done.enabled.is_done);
    CHECK(done.disabled.faulted());
    CHECK(system.last_index == 0x570);
    CHECK(system.last_value == (on & ~uint64_t{1}));
}

TEST_CASE("a fault of another instruction is no answer") {
    hosted_system system;
    ports::x86_target target{system};
    auto broken = code;
    broken.bytes[suite::snippet::body_at] = 0xF4;  // HLT, which raises #GP in ring 3
    handling const guard;
    auto const done = target.execute(broken, on, off);
    CHECK(done.enabled.is_done);
    CHECK_FALSE(done.disabled.is_asked);
    CHECK(system.last_value == (on & ~uint64_t{1}));
}

TEST_CASE("a fault outside a snippet is left to the system") {
    ports::snippet_fault fault{.first = 0x1000, .end = 0x1100, .ip = 7, .sp = 8};
    uint64_t ip = 0xFFF;
    uint64_t sp = 1;
    CHECK_FALSE(ports::end_faulted_snippet(fault, ip, sp));
    ip = 0x1100;
    CHECK_FALSE(ports::end_faulted_snippet(fault, ip, sp));
    CHECK(ip == 0x1100);
    CHECK(sp == 1);
    ip = 0x10FF;
    CHECK(ports::end_faulted_snippet(fault, ip, sp));
    CHECK(ip == 7);
    CHECK(sp == 8);
    CHECK(fault.faulted_at == 0x10FF);
    ip = 0x10FF;
    CHECK_FALSE(ports::end_faulted_snippet(fault, ip, sp));  // it has ended
}

TEST_CASE("the ports of a system") {
    hosted_system system;
    ports::x86_target target{system};
    CHECK(target.read(0x570).value == 0x2000);
    CHECK(target.read(0x571).faulted());
    CHECK(target.read(0x571).vector == 13);
    CHECK(target.write(0x570, 4).is_done);
    CHECK(system.last_value == 4);
    CHECK(target.write(0x571, 0).faulted());
    CHECK(target.query(0, 0).eax != 0);
    CHECK(target.memory().pages == 1);
    CHECK(target.abilities().has(suite::ability::execute));
    CHECK(target.address_of(code) == reinterpret_cast<uintptr_t>(system.code));
    CHECK_FALSE(target.pmi());
    system.came = true;
    CHECK(target.pmi());
    target.note("a", {});
    CHECK(system.noted == text{"a"});
    reg::xsave_pt_state image{};
    CHECK_FALSE(target.xsaves(image).is_asked);
    CHECK_FALSE(target.xrstors(image).is_asked);
    CHECK_FALSE(target.reset(suite::reset_kind::warm));

    handling const guard;
    system.has_place = false;
    CHECK_FALSE(target.execute(code, on, off).enabled.is_asked);
    CHECK(now.writes == 0);
    system.has_place = true;
}

TEST_CASE("an NMI or an SMI disturbs a snippet") {
    for (bool const is_nmi : {false, true}) {
        hosted_system system;
        ports::x86_target target{system};
        handling const guard;
        (is_nmi ? system.nmi_comes : system.smi_comes) = true;
        CHECK(target.execute(code, on, off).is_disturbed);
        CHECK_FALSE(target.execute(code, on, off).is_disturbed);
    }
}

TEST_CASE("TraceEn is cleared after the last check, or the target says that it stays 1") {
    hosted_system system;
    ports::x86_target target{system};
    CHECK(target.stop_tracing());
    CHECK(system.last_index == 0);  // it was 0
    system.ctl = 0x2001;
    CHECK(target.stop_tracing());
    CHECK(system.ctl == 0);
    system.ctl = 0x2001;
    system.keeps_trace_en = true;
    CHECK_FALSE(target.stop_tracing());
}

#endif
