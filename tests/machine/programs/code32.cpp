// SPDX-License-Identifier: BSL-1.0

// 32-bit code, without a library: loops, calls, indirect jumps, and system calls by INT 80H.

namespace {

int volatile sum = 0;

[[gnu::noinline]] auto call(int number, int argument) -> int {
    int result = number;
    asm volatile("int $0x80" : "+a"(result) : "b"(argument) : "memory");
    return result;
}
[[gnu::noinline]] void add(int value) { sum = sum + value; }
[[gnu::noinline]] void subtract(int value) { sum = sum - value; }

}  // namespace

extern "C" [[noreturn]] void _start() {
    constexpr int exit = 1, getpid = 20;
    void (*volatile all[])(int) = {add, subtract, add};
    for (int i = 0; i < 300; ++i) {
        all[i % 3](i);
        if (i % 10 == 0) { sum = sum + (call(getpid, 0) > 1 ? 1 : 0); }
    }
    for (;;) { call(exit, sum == 0 ? 1 : 0); }
}
