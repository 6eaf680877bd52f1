// SPDX-License-Identifier: BSL-1.0
// Two threads send signals to each other at a high rate, until each has handled enough. Handlers
// are interrupted by other handlers, and main code is interrupted at any instruction.

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

namespace {

constexpr unsigned wanted = 1000;

std::atomic<unsigned> handled[2];
std::atomic<unsigned> nested{0};
std::atomic<bool> is_wrong{false};
std::atomic<bool> is_ready[2];
pthread_t threads[2];
thread_local unsigned volatile depth = 0;
thread_local unsigned self = 0;

[[gnu::noinline]] auto chain(unsigned steps) -> std::uint32_t {
    std::uint32_t value = 1;
    for (unsigned i = 0; i < steps; ++i) {
        value = value * 69069 + 1;
        if ((value & 0x8000'0000) != 0) { value ^= i; }
    }
    return value;
}
std::uint32_t want_short = 0;
std::uint32_t want_long = 0;

/// SIGUSR1 may be interrupted by SIGUSR2, and SIGUSR2 by SIGUSR1 and by itself.
void on_signal(int number) {
    ++handled[self];
    depth = depth + 1;
    if (depth > 1) { ++nested; }
    if (number == SIGUSR1 && depth < 4 && handled[self] % 3 == 0) { (void)raise(SIGUSR2); }
    if (chain(50) != want_short) { is_wrong = true; }
    depth = depth - 1;
}

auto run(void* which) -> void* {
    self = *static_cast<unsigned*>(which);
    unsigned const other = 1 - self;
    is_ready[self] = true;
    while (!is_ready[other]) { sched_yield(); }
    for (unsigned i = 0; handled[other] < wanted || handled[self] < wanted; ++i) {
        auto const before = handled[other].load();
        (void)pthread_kill(threads[other], i % 2 == 0 ? SIGUSR1 : SIGUSR2);
        if (chain(500) != want_long) { is_wrong = true; }
        // Signals that are pending twice are delivered once: wait for some.
        for (unsigned j = 0; j < 100 && handled[other] == before; ++j) { sched_yield(); }
    }
    return nullptr;
}

}  // namespace

auto main() -> int {
    want_short = chain(50);
    want_long = chain(500);
    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    if (sigaction(SIGUSR1, &action, nullptr) != 0) { return 1; }
    action.sa_flags = SA_RESTART | SA_NODEFER;
    if (sigaction(SIGUSR2, &action, nullptr) != 0) { return 1; }

    // Each waits until the other is ready: then `threads` is complete.
    unsigned numbers[] = {0, 1};
    threads[0] = pthread_self();
    if (pthread_create(&threads[1], nullptr, run, &numbers[1]) != 0) { return 1; }
    (void)run(&numbers[0]);
    (void)pthread_join(threads[1], nullptr);
    bool const good = !is_wrong && nested > 0 && handled[0] >= wanted && handled[1] >= wanted;
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
