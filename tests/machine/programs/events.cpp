// SPDX-License-Identifier: BSL-1.0

// Signals, faults that a handler ends, INT3 and INT 80H, and longjmp out of them.

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>

namespace {

sigjmp_buf place;
int volatile seen = 0;

void count(int) { seen = seen + 1; }
void leave(int) { siglongjmp(place, 1); }

}  // namespace

auto main() -> int {
    for (int one : {SIGUSR1, SIGTRAP}) { signal(one, count); }
    for (int one : {SIGSEGV, SIGILL, SIGFPE}) { signal(one, leave); }
    for (int i = 0; i < 20; ++i) { raise(SIGUSR1); }
    for (int i = 0; i < 5; ++i) {
        if (sigsetjmp(place, 1) == 0) { *reinterpret_cast<int volatile*>(std::uintptr_t{16}) = 1; }
        if (sigsetjmp(place, 1) == 0) { asm volatile("ud2"); }
        if (sigsetjmp(place, 1) == 0) {
            asm volatile("xor %%ecx, %%ecx; mov $1, %%eax; cdq; idiv %%ecx" ::
                             : "eax", "ecx", "edx");
        }
        asm volatile("int3");
    }
    long result = 20;  // getpid, of 32 bits
    asm volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
    char text[5000] = {};
    auto* to = text;
    std::uint64_t length = sizeof text;
    asm volatile("rep stosb" : "+D"(to), "+c"(length) : "a"(1) : "memory");
    return seen == 25 ? 0 : 1;
}
