// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/ports/x86.hpp>

#include <doctest/doctest.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <initializer_list>

#include <cpuid.h>
#include <sched.h>
#include <ucontext.h>

using namespace ptspec;

namespace {

constexpr uint32_t ctl_address = 0x570;

/// Runs on one processor: CPUID differs between them.
struct pinned {
    cpu_set_t before{};

    pinned() {
        (void)sched_getaffinity(0, sizeof before, &before);
        int const here = sched_getcpu();
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(here < 0 ? 0 : here), &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
    ~pinned() { (void)sched_setaffinity(0, sizeof before, &before); }
};

/// The faults of the program. The handler receives the #GP of a privileged instruction.
struct fault_handler {
    struct sigaction before{};

    explicit fault_handler(void (*handler)(int, siginfo_t*, void*)) {
        struct sigaction ours{};
        ours.sa_sigaction = handler;
        ours.sa_flags = SA_SIGINFO | SA_NODEFER;
        (void)sigaction(SIGSEGV, &ours, &before);
    }
    ~fault_handler() { (void)sigaction(SIGSEGV, &before, nullptr); }
};

#ifdef __x86_64__
constexpr int ip_register = REG_RIP;
#else
constexpr int ip_register = REG_EIP;
#endif

volatile std::sig_atomic_t faults = 0;

/// A handler as that of firmware.
void skip(int, siginfo_t*, void* context) {
    auto& saved = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    faults = faults + 1;
    if (!ports::skip_faulted_access(saved[ip_register], saved[REG_EFL])) { std::abort(); }
}

sigjmp_buf recovery;

void jump_back(int, siginfo_t*, void*) { siglongjmp(recovery, 1); }

/// An access of the caller's own, which leaves the instruction by a jump.
struct jumping_access {
    static auto try_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool {
        if (sigsetjmp(recovery, 1) != 0) { return false; }
        value = ports::rdmsr(index);
        return true;
    }
    static auto try_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
        if (sigsetjmp(recovery, 1) != 0) { return false; }
        ports::wrmsr(index, value);
        return true;
    }
};

/// An access with state: it refuses one MSR.
struct refusing_access {
    uint32_t refused = 0;

    auto try_rdmsr(uint32_t index, uint64_t& value) const noexcept -> bool {
        value = index + 1;
        return index != refused;
    }
    auto try_wrmsr(uint32_t index, uint64_t) const noexcept -> bool { return index != refused; }
};

static_assert(ports::msr_access<jumping_access> && ports::msr_access<refusing_access>);
static_assert(!ports::msr_access<int>);
static_assert(sizeof(ports::x86_msrs<>) == 1 && sizeof(ports::x86_msrs<refusing_access>) == 4);

}  // namespace

TEST_CASE("query() executes CPUID with the leaf and the subleaf") {
    pinned const here;
    ports::x86_cpuid cpuid;
    for (uint32_t const leaf : {0x0U, 0x1U, 0x7U, 0xAU, 0xDU, 0x14U, 0x15U, 0x8000'0008U}) {
        for (uint32_t const subleaf : {0U, 1U, 8U}) {
            cpuid_registers expected;
            __cpuid_count(leaf, subleaf, expected.eax, expected.ebx, expected.ecx, expected.edx);
            CHECK(cpuid.query(leaf, subleaf) == expected);
        }
    }
    CHECK(cpuid.query(0, 0).eax == __get_cpuid_max(0, nullptr));
}

TEST_CASE("a faulting access that the handler skips is a failed access") {
    fault_handler const handler{skip};
    ports::x86_msrs<ports::skipping_access> msrs;
    faults = 0;
    CHECK(msrs.read(ctl_address) == port_value{});
    CHECK(faults == 1);
    CHECK_FALSE(msrs.write(ctl_address, 0x2109));
    CHECK(faults == 2);
    CHECK_FALSE(msrs.read(ctl_address));
    CHECK(faults == 3);
    msrs.fence();
}

TEST_CASE("a caller's own access reports the fault") {
    fault_handler const handler{jump_back};
    ports::x86_msrs<jumping_access> msrs;
    CHECK_FALSE(msrs.read(ctl_address));
    CHECK_FALSE(msrs.write(ctl_address, 0x2109));
}

TEST_CASE("without a check the fault goes to the handler of the system") {
    fault_handler const handler{jump_back};
    ports::x86_msrs<> msrs;
    bool volatile returned = false;
    if (sigsetjmp(recovery, 1) == 0) {
        (void)msrs.read(ctl_address);
        returned = true;
    } else if (sigsetjmp(recovery, 1) == 0) {
        (void)msrs.write(ctl_address, 0);
        returned = true;
    }
    CHECK_FALSE(returned);
}

TEST_CASE("an access may have state") {
    ports::x86_msrs msrs{refusing_access{0x571}};
    CHECK(msrs.read(0x570) == port_value{true, 0x571});
    CHECK_FALSE(msrs.read(0x571));
    CHECK(msrs.write(0x570, 0));
    CHECK_FALSE(msrs.write(0x571, 0));
}

TEST_CASE("only the accesses of skipping_access are skipped") {
    auto const skipped = [](uint8_t before, uint8_t first, uint8_t second) {
        uint8_t const code[] = {0x90, before, first, second, 0x90};
        auto ip = reinterpret_cast<uintptr_t>(code + 2);
        uintptr_t flags = 0x202;
        bool const done = ports::skip_faulted_access(ip, flags);
        CHECK(ip == reinterpret_cast<uintptr_t>(code + (done ? 4 : 2)));
        CHECK(flags == (done ? 0x203U : 0x202U));
        return done;
    };
    CHECK(skipped(0xF8, 0x0F, 0x32));        // CLC, RDMSR
    CHECK(skipped(0xF8, 0x0F, 0x30));        // CLC, WRMSR
    CHECK_FALSE(skipped(0x90, 0x0F, 0x32));  // an RDMSR of others
    CHECK_FALSE(skipped(0xF9, 0x0F, 0x30));
    CHECK_FALSE(skipped(0xF8, 0x0F, 0x31));  // RDTSC
    CHECK_FALSE(skipped(0xF8, 0x0F, 0x33));  // RDPMC
    CHECK_FALSE(skipped(0xF8, 0xF3, 0x32));
}

TEST_CASE("detection works through CPUID of this processor") {
    pinned const here;
    fault_handler const handler{skip};
    ports::x86_cpuid cpuid;
    ports::x86_msrs<ports::skipping_access> msrs;
    auto const found = driver::detect(cpuid, msrs);
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint32_t d = 0;
    bool const has_pt = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 25 & 1) != 0;
    CHECK(found.caps.has_pt() == has_pt);
    CHECK_FALSE(found.is_in_use());
    if (has_pt) { CHECK(found.fault.index == ctl_address); }  // user mode cannot read the MSR
}
