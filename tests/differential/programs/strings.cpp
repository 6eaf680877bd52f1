// SPDX-License-Identifier: BSL-1.0
// String instructions with and without REP: counts 0, 1 and larger, both directions, over page
// boundaries, and scans and comparisons that end early.

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr std::size_t page = 4096;
alignas(page) unsigned char a[8 * page];
alignas(page) unsigned char b[8 * page];
alignas(page) unsigned char c[8 * page];

constexpr std::size_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 255, 256, 1000, 4096, 5000};
constexpr std::size_t offsets[] = {0, 1, page - 1, page - 8, page / 2, page};

template <unsigned Width>
void move(unsigned char* to, unsigned char const* from, std::size_t count) {
    if constexpr (Width == 1) {
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    } else if constexpr (Width == 2) {
        asm volatile("rep movsw" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    } else if constexpr (Width == 4) {
        asm volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    } else {
        asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    }
}
template <unsigned Width>
void store(unsigned char* to, std::uint64_t value, std::size_t count) {
    if constexpr (Width == 1) {
        asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    } else {
        asm volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    }
}
void move_down(unsigned char* to, unsigned char const* from, std::size_t count) {
    asm volatile("std; rep movsb; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory", "cc");
}
/// The number of bytes before the first `value`.
auto scan_until(unsigned char const* in, unsigned char value, std::size_t count) -> std::size_t {
    auto left = count;
    unsigned char found = 0;
    // With a count of 0 the flags stay: `found` says nothing.
    asm volatile("repne scasb; sete %b2"
                 : "+D"(in), "+c"(left), "=&r"(found)
                 : "a"(value)
                 : "memory", "cc");
    return found != 0 && count != 0 ? count - left - 1 : count;
}
/// The number of equal bytes at the start.
auto equal_bytes(unsigned char const* one, unsigned char const* two, std::size_t count)
    -> std::size_t {
    auto left = count;
    unsigned char is_equal = 0;
    asm volatile("cmp %%eax, %%eax; repe cmpsb; sete %b3"
                 : "+D"(one), "+S"(two), "+c"(left), "=&r"(is_equal)
                 :
                 : "memory", "cc");
    return is_equal != 0 ? count : count - left - 1;
}
auto load_sum(unsigned char const* from, std::size_t count) -> unsigned {
    unsigned sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        unsigned char one = 0;
        asm volatile("lodsb" : "+S"(from), "=a"(one) : : "memory");
        sum += one;
    }
    return sum;
}
/// REP LODS: only the last byte is left.
auto last_loaded(unsigned char const* from, std::size_t count) -> unsigned char {
    unsigned char one = 99;
    asm volatile("rep lodsb" : "+S"(from), "+c"(count), "+a"(one) : : "memory");
    return one;
}

bool good = true;
void check(bool holds) { good = good && holds; }

template <unsigned Width>
void check_moves() {
    for (auto const count : counts) {
        for (auto const from : offsets) {
            for (auto const to : offsets) {
                if (count * Width > 4 * page) { continue; }
                std::memset(b, 0xEE, sizeof b);
                std::memset(c, 0xEE, sizeof c);
                std::memcpy(c + to, a + from, count * Width);
                move<Width>(b + to, a + from, count);
                check(std::memcmp(b, c, sizeof b) == 0);
            }
        }
    }
}

}  // namespace

auto main() -> int {
    std::uint32_t state = 1;
    for (auto& one : a) {
        state = state * 1664525 + 1013904223;
        one = static_cast<unsigned char>(state >> 24);
        if (one == 77) { one = 78; }
    }
    check_moves<1>();
    check_moves<8>();
    move<2>(b, a, 100);
    check(std::memcmp(a, b, 200) == 0);
    move<4>(b + page - 6, a, 100);
    check(std::memcmp(a, b + page - 6, 400) == 0);

    for (auto const count : counts) {
        for (auto const at : offsets) {
            std::memset(b, 0, sizeof b);
            std::memset(c, 0, sizeof c);
            std::memset(c + at, 0x5A, count);
            store<1>(b + at, 0x5A, count);
            check(std::memcmp(b, c, sizeof b) == 0);
            if (count <= 256) {
                std::memset(c + at, 0x5A, 8 * count);
                store<8>(b + at, 0x5A5A'5A5A'5A5A'5A5A, count);
                check(std::memcmp(b, c, sizeof b) == 0);
            }
            // Down, with overlap.
            std::memcpy(b, a, sizeof b);
            std::memcpy(c, a, sizeof c);
            std::memmove(c + at + 5, c + at, count);
            if (count != 0) { move_down(b + at + 5 + count - 1, b + at + count - 1, count); }
            check(std::memcmp(b, c, sizeof b) == 0);

            check(scan_until(a + at, 77, count) == count);
            std::memcpy(b, a, sizeof b);
            check(equal_bytes(a + at, b + at, count) == count);
            if (count > 2) {
                b[at + count / 2] = 77;
                check(scan_until(b + at, 77, count) == count / 2);
                check(equal_bytes(a + at, b + at, count) == count / 2);
            }
            unsigned sum = 0;
            for (std::size_t i = 0; i < count; ++i) { sum += a[at + i]; }
            check(load_sum(a + at, count) == sum);
            check(last_loaded(a + at, count) == (count == 0 ? 99 : a[at + count - 1]));
        }
    }
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
