// SPDX-License-Identifier: BSL-1.0
// Code that is written, called and rewritten at the same address, thousands of times: routines of
// several lengths, a routine that rewrites a later instruction of itself, changed branches, and
// other pages at the same address.

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr std::size_t page = 4096;
using routine = std::uint32_t (*)(std::uint32_t);

std::uint32_t state = 1;
auto random_number() -> std::uint32_t {
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/// Writes x86 code.
class writer {
public:
    explicit writer(unsigned char* at) : at_{at} {}
    template <class... Bytes>
    void bytes(Bytes... values) {
        ((*at_++ = static_cast<unsigned char>(values)), ...);
    }
    void number(std::uint32_t value) {
        std::memcpy(at_, &value, 4);
        at_ += 4;
    }
    [[nodiscard]] auto at() const -> unsigned char* { return at_; }

private:
    unsigned char* at_;
};

/// Writes a random routine of up to about 100 bytes. Returns a function of the same result.
auto write_routine(unsigned char* to, std::uint32_t argument) -> std::uint32_t {
    writer out{to};
    auto want = argument;
    out.bytes(0x89, 0xF8);  // mov eax, edi
    for (auto count = random_number() % 10; count != 0; --count) {
        auto const value = random_number();
        switch (random_number() % 6) {
            case 0:
                out.bytes(0x05);  // add eax, value
                out.number(value);
                want += value;
                break;
            case 1:
                out.bytes(0x35);  // xor eax, value
                out.number(value);
                want ^= value;
                break;
            case 2: out.bytes(0x90); break;
            case 3: out.bytes(0x0F, 0x1F, 0x44, 0x00, 0x00); break;
            case 4:  // test al, 1; jz over; inc eax
                out.bytes(0xA8, 0x01);
                out.bytes(0x74, 0x02);
                out.bytes(0xFF, 0xC0);
                want += want & 1;
                break;
            default:  // mov ecx, n; again: add eax, ecx; dec ecx; jnz again
                out.bytes(0xB9);
                out.number(value % 5 + 1);
                out.bytes(0x01, 0xC8, 0xFF, 0xC9, 0x75, 0xFA);
                for (auto n = value % 5 + 1; n != 0; --n) { want += n; }
        }
    }
    out.bytes(0xC3);
    return want;
}

}  // namespace

auto main() -> int {
    auto* const code = static_cast<unsigned char*>(mmap(
        nullptr, 4 * page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (code == MAP_FAILED) { return 1; }
    bool good = true;

    // A routine at one address, which crosses a page, through a pointer.
    auto* const place = code + page - 20;
    for (unsigned i = 0; i < 3000; ++i) {
        auto const want = write_routine(place, i);
        for (auto calls = random_number() % 3 + 1; calls != 0; --calls) {
            good = reinterpret_cast<routine>(place)(i) == want && good;
        }
    }
    // The same through a direct call: no packet has the address.
    auto* const caller = code + 3 * page;
    writer out{caller};
    out.bytes(0xE8);
    out.number(static_cast<std::uint32_t>(place - (caller + 5)));
    out.bytes(0xC3);
    for (unsigned i = 0; i < 1500; ++i) {
        auto const want = write_routine(place, i);
        good = reinterpret_cast<routine>(caller)(i) == want && good;
    }
    // One branch changes between taken and not taken, JZ and JNZ.
    writer test{code};
    test.bytes(0x85, 0xFF, 0x74, 0x03, 0x31, 0xC0, 0xC3, 0xB8);  // test edi, edi; jz; xor; ret
    test.number(1);
    test.bytes(0xC3);  // mov eax, 1; ret
    for (unsigned i = 0; i < 1000; ++i) {
        bool const is_jz = random_number() % 2 == 0;
        auto const argument = random_number() % 2;
        code[2] = is_jz ? 0x74 : 0x75;
        auto const want = (argument == 0) == is_jz ? 1U : 0U;
        good = reinterpret_cast<routine>(code)(argument) == want && good;
    }
    // A routine that writes the constant of its next instruction.
    writer own{code};
    own.bytes(0x89, 0x3D);  // mov [rip + 1], edi
    own.number(1);
    own.bytes(0xB8);  // mov eax, constant
    own.number(0);
    own.bytes(0xC3);
    for (unsigned i = 0; i < 500; ++i) { good = reinterpret_cast<routine>(code)(i) == i && good; }
    // Another page at the same address.
    for (unsigned i = 0; i < 300; ++i) {
        if (mmap(code, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) != code) {
            return 1;
        }
        auto const want = write_routine(place, i);
        if (mprotect(code, 4 * page, PROT_READ | PROT_EXEC) != 0) { return 1; }
        good = reinterpret_cast<routine>(place)(i) == want && good;
    }
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
