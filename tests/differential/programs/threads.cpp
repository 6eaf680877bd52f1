// SPDX-License-Identifier: BSL-1.0
// Four threads with a mutex, condition variables and atomics; then short threads, one after the
// other.

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

namespace {

constexpr unsigned items = 3000;
constexpr unsigned capacity = 8;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
unsigned queue[capacity];
unsigned filled = 0;
unsigned written = 0;
unsigned taken = 0;
std::uint64_t total = 0;
std::atomic<unsigned> spins{0};

auto work(unsigned on) -> std::uint64_t {
    std::uint64_t made = on;
    for (unsigned i = 0; i < on % 50; ++i) { made = made * 31 + i; }
    return made;
}

auto produce(void*) -> void* {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (filled == capacity && written < items) { pthread_cond_wait(&not_full, &lock); }
        if (written == items) { break; }
        queue[filled++] = written++;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
        ++spins;
    }
    pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&lock);
    return nullptr;
}

auto consume(void*) -> void* {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (filled == 0 && taken < items) { pthread_cond_wait(&not_empty, &lock); }
        if (taken == items) { break; }
        auto const one = queue[--filled];
        ++taken;
        pthread_cond_broadcast(&not_full);
        pthread_mutex_unlock(&lock);
        auto const made = work(one);
        pthread_mutex_lock(&lock);
        total += made;
        pthread_mutex_unlock(&lock);
    }
    pthread_cond_broadcast(&not_empty);
    pthread_cond_broadcast(&not_full);
    pthread_mutex_unlock(&lock);
    return nullptr;
}

auto square(void* of) -> void* {
    auto& number = *static_cast<unsigned*>(of);
    number *= number;
    return of;
}

}  // namespace

auto main() -> int {
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; ++i) {
        if (pthread_create(&threads[i], nullptr, i < 2 ? produce : consume, nullptr) != 0) {
            return 1;
        }
    }
    for (auto const thread : threads) { pthread_join(thread, nullptr); }
    std::uint64_t want = 0;
    for (unsigned i = 0; i < items; ++i) { want += work(i); }
    bool good = total == want && spins == items && filled == 0;

    for (unsigned i = 1; i < 40; ++i) {
        unsigned number = i;
        pthread_t thread;
        void* result = nullptr;
        if (pthread_create(&thread, nullptr, square, &number) != 0) { return 1; }
        pthread_join(thread, &result);
        good = good && result == &number && number == i * i;
    }
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
