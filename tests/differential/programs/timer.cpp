// SPDX-License-Identifier: BSL-1.0
// A timer interrupts a computation every millisecond. Handlers compute, too, and are themselves
// interrupted.

#include <signal.h>
#include <sys/time.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

sig_atomic_t volatile ticks = 0;
sig_atomic_t volatile nested = 0;
sig_atomic_t volatile depth = 0;
sig_atomic_t volatile wrong = 0;

/// A sum that needs every step.
[[gnu::noinline]] auto chain(unsigned steps) -> std::uint32_t {
    std::uint32_t value = 1;
    for (unsigned i = 0; i < steps; ++i) {
        value = value * 69069 + 1;
        if ((value & 0x8000'0000) != 0) { value ^= i; }
    }
    return value;
}

std::uint32_t want_short = 0;

void on_tick(int) {
    ticks = ticks + 1;
    depth = depth + 1;
    if (depth > 1) { nested = nested + 1; }
    if (depth == 1 && ticks % 4 == 0) { (void)raise(SIGUSR1); }
    if (chain(2000) != want_short) { wrong = 1; }
    depth = depth - 1;
}

/// A string instruction, which a signal can interrupt.
[[gnu::noinline]] void copy(char* to, char const* from, std::size_t size) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

char from[20000];
char to[20000];

}  // namespace

auto main() -> int {
    want_short = chain(2000);
    auto const want_long = chain(20000);
    std::memset(from, 'x', sizeof from);

    struct sigaction action{};
    action.sa_handler = on_tick;
    action.sa_flags = SA_NODEFER | SA_RESTART;
    if (sigaction(SIGALRM, &action, nullptr) != 0 || sigaction(SIGUSR1, &action, nullptr) != 0) {
        return 1;
    }
    itimerval every{{0, 1000}, {0, 1000}};
    if (setitimer(ITIMER_REAL, &every, nullptr) != 0) { return 1; }
    bool good = true;
    while (ticks < 150 && good) {
        good = chain(20000) == want_long;
        std::memset(to, 0, sizeof to);
        copy(to, from, sizeof to);
        good = good && std::memcmp(to, from, sizeof to) == 0;
    }
    itimerval const never{};
    (void)setitimer(ITIMER_REAL, &never, nullptr);
    good = good && wrong == 0 && nested > 0 && depth == 0;
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
