// SPDX-License-Identifier: BSL-1.0
// Functions for the self-test of ir.py: each kind of instruction, and what must be refused.
#include <stdint.h>

namespace {

constexpr uint16_t primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
struct row {
    uint8_t a;
    uint32_t b;
    int16_t c[3];
};
constexpr row rows[4] = {{1, 2, {3, 4, 5}}, {6, 7, {-8, 9, 10}}, {11, 0xFFFFFFFF, {0, 1, 2}}, {}};
constexpr char digits[] = "0123456789ABCDEF";

struct pair {
    uint64_t low, high;
};
struct triple {
    uint64_t a, b, c;
};

[[gnu::noinline]] auto made_pair(uint64_t a, uint64_t b) -> pair { return {a ^ b, a + b}; }
[[gnu::noinline]] auto made_triple(uint64_t a, uint64_t b) -> triple { return {a, b, a & b}; }
[[gnu::noinline]] void add_to(uint32_t& to, uint32_t more) { to += more * (more > 7 ? 3U : 5U); }

[[gnu::noinline]] void call_twice(auto const& call, uint32_t a) {
    call(a);
    call(a * 3);
}

}  // namespace

uint32_t volatile volatile_number;
uint32_t variable = 1;
extern "C" auto unknown_function(uint32_t) -> uint32_t;
extern "C" {

auto arithmetic(uint64_t a, uint64_t b, uint32_t c) -> uint64_t {
    return (a + b) * c - (a & ~b) + (a | c) + (b ^ c) + (a << (c & 63)) + (b >> (c >> 7 & 63));
}
auto division(uint32_t a, uint32_t b, uint64_t c) -> uint64_t {
    return b == 0 ? c : a / b + c % b + (a % b) * c / (b | 1);
}
auto signed_numbers(int32_t a, int64_t b, int8_t c) -> int64_t {
    return (a < b ? b >> (c & 63) : a >> (c & 15)) + (c <= a) - (c > b) + (b >= c ? c : a);
}
auto narrow(uint64_t a) -> uint64_t {
    return static_cast<uint8_t>(a) + static_cast<uint64_t>(static_cast<int16_t>(a >> 8)) +
           static_cast<uint64_t>(static_cast<int64_t>(a << 20) >> 20);
}
auto counts(uint64_t a, uint32_t b, uint8_t c) -> uint32_t {
    uint32_t const zeros = a == 0 ? 64 : static_cast<uint32_t>(__builtin_ctzll(a));
    uint32_t const leading = b == 0 ? 32 : static_cast<uint32_t>(__builtin_clz(b));
    return zeros + 100 * leading + 10'000 * static_cast<uint32_t>(__builtin_popcount(c)) +
           1'000'000 * static_cast<uint32_t>(__builtin_popcountll(a));
}
auto swapped(uint64_t a, uint32_t b) -> uint64_t {
    return __builtin_bswap64(a) ^ __builtin_bswap32(b);
}
auto rotated(uint64_t a, uint32_t b, uint32_t by) -> uint64_t {
    return (a << (by & 63) | a >> (-by & 63)) + (b >> (by & 31) | b << (-by & 31));
}
auto least_and_most(uint32_t a, uint32_t b, int16_t c, int16_t d) -> uint32_t {
    return (a < b ? a : b) ^ (a > b ? a : b) << 3 ^
           static_cast<uint32_t>((c < d ? c : d) + 7 * (c > d ? c : d));
}
auto saturated(uint32_t a, uint32_t b, uint64_t c) -> uint64_t {
    uint32_t const sum = a + b < a ? ~0U : a + b;
    return sum + (c > b ? c - b : 0);
}
auto magnitude(int32_t a, int64_t b) -> uint64_t {
    return static_cast<uint64_t>(a < 0 ? -static_cast<int64_t>(a) : a) +
           static_cast<uint64_t>(b < 0 ? -b : b);
}
auto overflows(uint64_t a, uint64_t b, int32_t c, int32_t d) -> uint32_t {
    uint64_t sum = 0;
    uint64_t product = 0;
    int32_t both = 0;
    uint32_t found = __builtin_add_overflow(a, b, &sum) ? 1 : 0;
    found |= __builtin_mul_overflow(a, b, &product) ? 2 : 0;
    found |= __builtin_add_overflow(c, d, &both) ? 4 : 0;
    return found | static_cast<uint32_t>(both) << 3 | static_cast<uint32_t>(sum ^ product) << 17;
}
auto signed_sum(int32_t a, int32_t b) -> int32_t { return a + b; }  // undefined on overflow
auto branches(uint32_t a, uint32_t b, bool c) -> uint32_t {
    if (a > b) {
        if (c) { return a / (b + 1); }
        b = a * 3;
    } else if ((a ^ b) & 1 && !c) {
        a = b / 7;
    }
    return a * b + 1;
}
auto cases(uint32_t a, uint32_t b) -> uint32_t {
    switch (a % 9) {
        case 0: return b + 1;
        case 1: return b * b;
        case 2: b ^= a; [[fallthrough]];
        case 3: return ~b;
        case 5: return b == 0 ? 77 : a / b;
        case 7: return b << (a & 3);
        default: return a;
    }
}
auto impossible(uint32_t a) -> uint32_t {  // undefined for a > 3
    switch (a) {
        case 0: return 17;
        case 1: return 4711;
        case 2: return 5;
        case 3: return 12;
        default: __builtin_unreachable();
    }
}
auto table(uint32_t index, uint32_t which) -> uint32_t {
    return primes[index & 15] + rows[which & 3].b + rows[which & 3].a +
           static_cast<uint32_t>(rows[which >> 2 & 3].c[index % 3]) +
           static_cast<uint32_t>(digits[index >> 4 & 15]);
}
auto entry(uint32_t index) -> uint32_t { return primes[index]; }  // undefined above 15
auto switched_table(uint8_t index) -> uint32_t {
    switch (index) {
        case 0: return 100;
        case 1: return 7;
        case 2: return 1'000'000;
        case 3: return 3;
        case 4: return 42;
        case 5: return 6;
        default: return 0;
    }
}
auto bytes(uint8_t const (&from)[16], uint32_t at) -> uint64_t {
    uint64_t value = 0;
    __builtin_memcpy(&value, from + 4, 8);
    return value + from[at & 15];
}
void copies(uint8_t const (&from)[16], uint8_t (&to)[24], uint32_t at) {
    __builtin_memcpy(to, from, 12);
    __builtin_memset(to + 20, 0x5A, 4);
    to[at % 24] = from[15];
}
void conditional_stores(uint32_t (&to)[4], uint32_t a, bool b) {
    if (a > 100) {
        to[0] = a;
        if (b) { to[1] += to[0]; }
    } else {
        to[b ? 2 : 3] = to[a & 3];
    }
}
auto pairs(uint64_t a, uint64_t b) -> uint64_t {
    auto const two = made_pair(a, b);
    auto const three = made_triple(two.high, a > b ? two.low : b);
    return two.low ^ three.a ^ three.b << 1 ^ three.c << 2;
}
auto locals(uint32_t a, uint32_t b) -> uint32_t {
    uint32_t all[3] = {a, b, a ^ b};
    add_to(all[b % 3], a);
    return all[0] + 2 * all[1] + 3 * all[2];
}
auto captured(uint32_t a, uint32_t b) -> uint32_t {  // a pointer in memory
    uint32_t sum = 0;
    auto const add = [&sum, &b](uint32_t more) { sum += more ^ b; };
    call_twice(add, a);
    return sum + b;
}
auto short_loop(uint64_t a) -> uint64_t {  // the compiler unrolls it
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) { value = value << 8 | (a >> 8 * i & 0xFF); }
    return value + a;
}

// --- refused

auto has_a_loop(uint64_t a) -> uint64_t {
    uint64_t steps = 0;
    for (; a > 1; ++steps) { a = a % 2 == 0 ? a / 2 : 3 * a + 1; }
    return steps;
}
[[gnu::noinline]] auto calls_itself(uint64_t a, uint64_t b) -> uint64_t {
    return a < 2 ? b : 7 / (calls_itself(a / 2, b) | 1);
}
auto adds_floating_point(uint32_t a) -> uint32_t { return static_cast<uint32_t>(a * 0.7 + 1); }
void has_an_unknown_instruction(uint32_t (&a)[1]) { __atomic_fetch_add(&a[0], 1, 0); }
auto calls_another(uint32_t a) -> uint32_t { return unknown_function(a) + 1; }
auto calls_through_a_pointer(uint64_t a) -> uint32_t {
    return reinterpret_cast<uint32_t (*)(uint32_t)>(a)(1) + 1;
}
void stores_a_pointer(uint32_t (&a)[2], void* (&to)[1]) { to[0] = &a[1]; }
auto reads_a_variable(uint32_t a) -> uint32_t { return variable + a; }

}  // extern "C"
