// SPDX-License-Identifier: BSL-1.0
// More calls than a return stack holds, and RETs that match no CALL: recursion over 100000 levels,
// retpolines, PUSH and RET, RET with an operand, CALL of the next instruction, longjmp over many
// frames, and coroutines.

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>

namespace {

/// The statement after the call prevents a loop.
[[gnu::noinline, gnu::optimize("no-optimize-sibling-calls")]] auto descend(unsigned level)
    -> unsigned {
    unsigned below = 0;
    if (level != 0) { below = descend(level - 1); }
    asm volatile("" : "+r"(below));
    return below + 1;
}

[[gnu::noinline]] auto odd(unsigned n) -> bool;
[[gnu::noinline, gnu::optimize("no-optimize-sibling-calls")]] auto even(unsigned n) -> bool {
    bool const is = n == 0 || odd(n - 1);
    asm volatile("" ::: "memory");
    return is;
}
[[gnu::noinline, gnu::optimize("no-optimize-sibling-calls")]] auto odd(unsigned n) -> bool {
    bool const is = n != 0 && even(n - 1);
    asm volatile("" ::: "memory");
    return is;
}

auto three(unsigned a) -> unsigned { return a + 3; }
auto five(unsigned a) -> unsigned { return a + 5; }

/// A retpoline calls a function through RET.
[[gnu::noinline]] auto by_retpoline(unsigned (*to)(unsigned), unsigned a) -> unsigned {
    unsigned made = 0;
    asm volatile("subq $136, %%rsp\n\t"  // beyond the red zone, with the stack aligned
                 "pushq %%rbp\n\t"
                 "movq %%rsp, %%rbp\n\t"
                 "andq $-16, %%rsp\n\t"
                 "call 3f\n\t"
                 "jmp 4f\n"
                 "3:\tcall 2f\n"
                 "1:\tpause\n\t"
                 "lfence\n\t"
                 "jmp 1b\n"
                 "2:\tmovq %%rdx, (%%rsp)\n\t"
                 "ret\n"
                 "4:\tmovq %%rbp, %%rsp\n\t"
                 "popq %%rbp\n\t"
                 "addq $136, %%rsp"
                 : "=a"(made), "+D"(a), "+d"(to)
                 :
                 : "rcx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return made;
}

/// PUSH and RET as a jump, CALL of the next instruction, and a RET that drops arguments.
[[gnu::noinline]] auto odd_returns(unsigned a) -> unsigned {
    asm volatile("subq $128, %%rsp\n\t"
                 "leaq 1f(%%rip), %%rdx\n\t"
                 "pushq %%rdx\n\t"
                 "ret\n\t"
                 "ud2\n"
                 "1:\tincl %0\n\t"
                 "call 2f\n"  // the next instruction
                 "2:\tpopq %%rdx\n\t"
                 "incl %0\n\t"
                 "pushq $1\n\t"
                 "pushq $2\n\t"
                 "call 3f\n\t"
                 "incl %0\n\t"
                 "jmp 4f\n"
                 "3:\tincl %0\n\t"
                 "ret $16\n"
                 "4:\tcall 5f\n"  // whose frame the callee drops
                 "\tud2\n"
                 "5:\taddq $8, %%rsp\n\t"
                 "call 6f\n\t"  // which returns to another place
                 "ud2\n"
                 "6:\tleaq 7f(%%rip), %%rdx\n\t"
                 "movq %%rdx, (%%rsp)\n\t"
                 "rep ret\n\t"
                 "ud2\n"
                 "7:\tincl %0\n\t"
                 "addq $128, %%rsp"
                 : "+r"(a)
                 :
                 : "rdx", "memory", "cc");
    return a;
}

jmp_buf back;
void (*volatile leave)() = [] { longjmp(back, 1); };
[[gnu::noinline, gnu::optimize("no-optimize-sibling-calls")]] auto leave_at(unsigned level)
    -> unsigned {
    if (level == 0) {
        leave();
        return 0;
    }
    unsigned const below = leave_at(level - 1);
    asm volatile("" ::: "memory");
    return below + 1;
}

[[gnu::noinline]] auto jump_from(unsigned level) -> unsigned {
    if (setjmp(back) == 0) { (void)leave_at(level); }
    return 1;
}

// Three coroutines, which switch in the middle of nested calls.
ucontext_t main_context;
ucontext_t contexts[3];
unsigned steps[3];
constexpr unsigned rounds = 400;

[[gnu::noinline, gnu::optimize("no-optimize-sibling-calls")]] auto switch_at(unsigned level,
                                                                             unsigned from)
    -> unsigned {
    if (level == 0) {
        auto const next = (from + 1) % 3;
        (void)swapcontext(&contexts[from], &contexts[next]);
        return 1;
    }
    unsigned const below = switch_at(level - 1, from);
    asm volatile("" ::: "memory");
    return below + 1;
}
void coroutine(int number) {
    auto const self = static_cast<unsigned>(number);
    for (unsigned i = 0; i < rounds; ++i) { steps[self] += switch_at(i % (5 + self), self); }
    (void)setcontext(self == 2 ? &main_context : &contexts[self + 1]);
}

}  // namespace

auto main() -> int {
    bool good = descend(100'000) == 100'001;
    for (unsigned depth = 60; depth < 70; ++depth) { good = descend(depth) == depth + 1 && good; }
    good = good && even(5000) && !odd(5000);

    unsigned sum = 0;
    for (unsigned i = 0; i < 2000; ++i) {
        auto* const to = i % 3 == 0 ? three : five;
        sum += by_retpoline(to, i) - i;
        sum += odd_returns(i) - i;
    }
    good = good && sum == 667 * 3 + 1333 * 5 + 2000 * 5;

    unsigned jumps = 0;
    for (unsigned i = 0; i < 500; ++i) { jumps += jump_from(i % 90); }
    good = good && jumps == 500;

    static char stacks[3][64 * 1024];
    for (int i = 0; i < 3; ++i) {
        if (getcontext(&contexts[i]) != 0) { return 1; }
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        makecontext(&contexts[i], reinterpret_cast<void (*)()>(coroutine), 1, i);
    }
    if (swapcontext(&main_context, &contexts[0]) != 0) { return 1; }
    for (unsigned i = 0; i < 3; ++i) {
        unsigned want = 0;
        for (unsigned j = 0; j < rounds; ++j) { want += j % (5 + i) + 1; }
        good = good && steps[i] == want;
    }
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
