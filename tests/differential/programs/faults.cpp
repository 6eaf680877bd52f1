// SPDX-License-Identifier: BSL-1.0
// Faults in the middle of straight-line code. The handler leaves with siglongjmp, skips the
// instruction, or removes the cause and returns to the same instruction. The instructions before a
// fault must have been executed, those after it not.

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ucontext.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>

namespace {

constexpr unsigned repetitions = 300;

enum class answer { jump, skip, repair };

sigjmp_buf back;
answer volatile what = answer::jump;
unsigned volatile skipped_bytes = 0;
int volatile last_signal = 0;
unsigned char* guarded = nullptr;
constexpr std::size_t page = 4096;

void on_fault(int number, siginfo_t*, void* context) {
    last_signal = number;
    if (what == answer::jump) { siglongjmp(back, 1); }
    if (what == answer::repair) {
        (void)mprotect(guarded, page, PROT_READ | PROT_WRITE);
        return;
    }
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += skipped_bytes;
}

// Each adds 1 before the fault and 16 after it.
[[gnu::noinline]] void load(unsigned* count, void const* from) {
    asm volatile("incl %0\n\t"
                 "incl %0\n\t"
                 "nopw 0x100(%%rax)\n\t"
                 "movb (%1), %%al\n\t"  // two bytes
                 "addl $16, %0\n\t"
                 "addl $16, %0"
                 : "+m"(*count)
                 : "c"(from)
                 : "rax", "memory", "cc");
}
[[gnu::noinline]] void store(unsigned* count, void* to) {
    asm volatile("incl %0\n\t"
                 "incl %0\n\t"
                 "movb $5, (%1)\n\t"  // three bytes
                 "addl $16, %0\n\t"
                 "addl $16, %0"
                 : "+m"(*count)
                 : "c"(to)
                 : "memory", "cc");
}
[[gnu::noinline]] void divide(unsigned* count, unsigned by) {
    asm volatile("incl %0\n\t"
                 "incl %0\n\t"
                 "movl $7, %%eax\n\t"
                 "xorl %%edx, %%edx\n\t"
                 "divl %1\n\t"  // two bytes
                 "addl $16, %0\n\t"
                 "addl $16, %0"
                 : "+m"(*count)
                 : "c"(by)
                 : "rax", "rdx", "memory", "cc");
}
[[gnu::noinline]] void undefined(unsigned* count) {
    asm volatile("incl %0\n\t"
                 "incl %0\n\t"
                 "ud2\n\t"  // two bytes
                 "addl $16, %0\n\t"
                 "addl $16, %0"
                 : "+m"(*count)
                 :
                 : "memory", "cc");
}
/// INT3 is a trap: the saved address is that of the next instruction.
[[gnu::noinline]] void breakpoint(unsigned* count) {
    asm volatile("incl %0\n\t"
                 "incl %0\n\t"
                 "int3\n\t"
                 "addl $16, %0\n\t"
                 "addl $16, %0"
                 : "+m"(*count)
                 :
                 : "memory", "cc");
}
/// A call of an address without code: the fault is at the target.
[[gnu::noinline]] void call(unsigned* count, void* to) {
    *count += 2;
    reinterpret_cast<void (*)()>(to)();
    *count += 32;
}
/// A fault in a string instruction, after some of its iterations.
[[gnu::noinline]] void fill(unsigned* count, unsigned char* to, std::size_t size) {
    *count += 2;
    asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(1) : "memory");
    *count += 32;
}

unsigned failures = 0;

/// Code that faults, and the answers that are possible.
struct fault {
    char const* name;
    int signal;
    unsigned length;  ///< of the instruction; 0: it cannot be skipped
    bool can_repair;
    void (*code)(unsigned* count);
};

void check(fault const& one, bool holds) {
    if (!holds && ++failures < 10) { std::printf("%s: wrong\n", one.name); }
}
unsigned count = 0;
void begin(answer how) {
    count = 0;
    last_signal = 0;
    what = how;
}
[[gnu::noinline]] void run_and_jump(fault const& one) {
    begin(answer::jump);
    if (sigsetjmp(back, 1) == 0) {
        one.code(&count);
        check(one, false);
    }
    check(one, count == 2 && last_signal == one.signal);
}
[[gnu::noinline]] void run_and_return(fault const& one, answer how) {
    begin(how);
    skipped_bytes = one.signal == SIGTRAP ? 0 : one.length;
    one.code(&count);
    check(one, count == 34 && last_signal == one.signal);
}
void run(fault const& one) {
    for (unsigned i = 0; i < repetitions; ++i) {
        run_and_jump(one);
        if (one.length != 0) { run_and_return(one, answer::skip); }
        if (one.can_repair) {
            run_and_return(one, answer::repair);
            (void)mprotect(guarded, page, PROT_NONE);
        }
    }
}

}  // namespace

auto main() -> int {
    static unsigned char signal_stack[64 * 1024];
    stack_t const stack{signal_stack, 0, sizeof signal_stack};
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    if (sigaltstack(&stack, nullptr) != 0) { return 1; }
    for (int const number : {SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGBUS}) {
        if (sigaction(number, &action, nullptr) != 0) { return 1; }
    }
    // A page that can be read, and one that cannot.
    auto* const pages = static_cast<unsigned char*>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) { return 1; }
    guarded = pages + page;

    fault const all[] = {
        {"load", SIGSEGV, 2, true, [](unsigned* n) { load(n, guarded); }},
        {"store", SIGSEGV, 3, true, [](unsigned* n) { store(n, guarded); }},
        {"load of address 8", SIGSEGV, 2, false,
         [](unsigned* n) { load(n, reinterpret_cast<void*>(std::uintptr_t{8})); }},
        {"divide", SIGFPE, 2, false, [](unsigned* n) { divide(n, 0); }},
        {"ud2", SIGILL, 2, false, undefined},
        {"int3", SIGTRAP, 1, false, breakpoint},
        {"call", SIGSEGV, 0, false, [](unsigned* n) { call(n, guarded); }},
        {"rep stos", SIGSEGV, 2, true, [](unsigned* n) { fill(n, guarded - 20, 40); }},
    };
    for (auto const& one : all) { run(one); }
    std::puts(failures == 0 ? "ok" : "wrong");
    return failures == 0 ? 0 : 1;
}
