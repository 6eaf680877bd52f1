// SPDX-License-Identifier: BSL-1.0
// Loops, direct and indirect calls, switches and recursion. Linked with -static it has no dynamic
// loader.

#include <cstdint>
#include <cstdio>

namespace {

constexpr unsigned count = 4000;
std::uint32_t numbers[count];

auto random_number() -> std::uint32_t {
    static std::uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

[[gnu::noinline]] void sort(std::uint32_t* first, std::uint32_t* last) {
    if (last - first < 2) { return; }
    auto const middle = first[(last - first) / 2];
    auto* low = first;
    auto* high = last - 1;
    while (low <= high) {
        while (*low < middle) { ++low; }
        while (*high > middle) { --high; }
        if (low <= high) {
            auto const kept = *low;
            *low++ = *high;
            *high-- = kept;
        }
    }
    sort(first, high + 1);
    sort(low, last);
}

[[gnu::noinline]] auto primes_below(unsigned limit) -> unsigned {
    static bool is_composite[20000];
    unsigned found = 0;
    for (unsigned i = 2; i < limit; ++i) {
        if (is_composite[i]) { continue; }
        ++found;
        for (unsigned j = 2 * i; j < limit; j += i) { is_composite[j] = true; }
    }
    return found;
}

using operation = std::uint32_t (*)(std::uint32_t, std::uint32_t);
[[gnu::noinline]] auto add(std::uint32_t a, std::uint32_t b) -> std::uint32_t { return a + b; }
[[gnu::noinline]] auto subtract(std::uint32_t a, std::uint32_t b) -> std::uint32_t { return a - b; }
[[gnu::noinline]] auto exclusive(std::uint32_t a, std::uint32_t b) -> std::uint32_t {
    return a ^ b;
}
operation volatile operations[] = {add, subtract, exclusive};

[[gnu::noinline]] auto by_switch(unsigned which, std::uint32_t a) -> std::uint32_t {
    switch (which) {
        case 0: return a * 3;
        case 1: return a / 7;
        case 2: return ~a;
        case 3: return a << 5 | a >> 27;
        case 4: return a + 77;
        case 5: return a & 0xFFFF;
        case 6: return a % 1013;
        default: return 0;
    }
}

[[gnu::noinline]] auto fibonacci(unsigned n) -> unsigned {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

}  // namespace

auto main() -> int {
    for (auto& one : numbers) { one = random_number(); }
    sort(numbers, numbers + count);
    bool good = true;
    for (unsigned i = 1; i < count; ++i) { good = good && numbers[i - 1] <= numbers[i]; }
    good = good && primes_below(20000) == 2262 && fibonacci(20) == 6765;

    std::uint32_t a = 1;
    std::uint32_t b = 1;
    for (unsigned i = 0; i < 30000; ++i) {
        auto const which = random_number();
        a = operations[which % 3](a, which);
        b ^= by_switch(which % 9, a);
    }
    good = good && add(subtract(a, 5), 5) == a && exclusive(exclusive(a, b), b) == a;
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
