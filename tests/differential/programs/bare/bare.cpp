// SPDX-License-Identifier: BSL-1.0
// A program without a C library: it executes the same instructions on every processor and in every
// emulator. Branches, calls through a table, recursion, string instructions, system calls.

namespace {

using word = unsigned long;

auto system_call(word number, word a, word b = 0, word c = 0) -> word {
    word result = number;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

[[gnu::noinline]] auto fibonacci(word n) -> word {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
[[gnu::noinline]] auto collatz(word n) -> word {
    word steps = 0;
    for (; n != 1; ++steps) { n = n % 2 == 0 ? n / 2 : 3 * n + 1; }
    return steps;
}
[[gnu::noinline]] auto filled(word n) -> word {
    static unsigned char bytes[512];
    void* to = bytes;
    word count = n % sizeof bytes;
    asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(n) : "memory");
    return bytes[0];
}

using function = word (*)(word);
function volatile table[] = {fibonacci, collatz, filled};

}  // namespace

extern "C" [[noreturn]] void run() {
    word sum = 0;
    for (word i = 1; i < 600; ++i) { sum += table[i % 3](i % 12 + i / 100); }
    (void)system_call(1, 1, reinterpret_cast<word>("ok\n"), 3);
    (void)system_call(60, sum == 0);
    __builtin_unreachable();
}

asm(R"(
    .globl _start
_start:
    xorl %ebp, %ebp
    andq $-16, %rsp
    call run
)");
