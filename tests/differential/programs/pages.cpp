// SPDX-License-Identifier: BSL-1.0
// Instructions of every length at every place around a page boundary, blocks of 1 to 80 and of more
// than 512 instructions, and branches that cross a page.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 64;
unsigned char* code = nullptr;
std::size_t used = 0;
bool good = true;

using bytes = std::vector<unsigned char>;

/// A NOP of 1 to 15 bytes.
auto nop(unsigned length) -> bytes {
    static unsigned char const long_one[] = {0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00};
    bytes made;
    if (length == 1) { return {0x90}; }
    if (length == 2) { return {0x66, 0x90}; }
    if (length == 3) { return {0x0F, 0x1F, 0x00}; }
    if (length == 4) { return {0x0F, 0x1F, 0x40, 0x00}; }
    if (length < 8) {
        made.assign(length - 4, 0x66);
        for (auto const byte : {0x0F, 0x1F, 0x40, 0x00}) {
            made.push_back(static_cast<unsigned char>(byte));
        }
        return made;
    }
    made.assign(length - 8, 0x66);
    made.insert(made.end(), long_one, long_one + sizeof long_one);
    return made;
}
void put(bytes& to, bytes const& what) { to.insert(to.end(), what.begin(), what.end()); }
auto number(std::uint32_t value) -> bytes {
    bytes made(4);
    std::memcpy(made.data(), &value, 4);
    return made;
}

/// Copies a routine to new pages so that its byte `at` is the first of a page, and calls it.
/// It gets a number and must return the number plus `adds`.
void run(bytes const& routine, std::size_t at, unsigned adds) {
    auto const first = (used + at + page - 1) / page * page;
    auto const last = first - at + routine.size();
    if (last > pages * page) {  // again from the start
        used = 0;
        return run(routine, at, adds);
    }
    std::memcpy(code + first - at, routine.data(), routine.size());
    used = last;
    auto* const to = reinterpret_cast<std::uint32_t (*)(std::uint32_t)>(code + first - at);
    for (std::uint32_t i = 0; i < 3; ++i) { good = to(i) == i + adds && good; }
}

bytes const begin{0x89, 0xF8};      // mov eax, edi
bytes const increment{0xFF, 0xC0};  // inc eax
bytes const end{0xC3};              // ret

/// An instruction, and its bytes before the page boundary: all of them.
void run_split(bytes const& before, bytes const& one, bytes const& after, unsigned adds) {
    bytes routine = begin;
    put(routine, before);
    auto const start = routine.size();
    put(routine, one);
    put(routine, after);
    for (std::size_t at = 0; at <= one.size(); ++at) { run(routine, start + at, adds); }
}

}  // namespace

auto main() -> int {
    auto* const mapped = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) { return 1; }
    code = static_cast<unsigned char*>(mapped);

    bytes counted = increment;
    put(counted, end);
    for (unsigned length = 1; length <= 15; ++length) {
        run_split(increment, nop(length), counted, 2);
        bytes jump_after = {0x85, 0xC0, 0x74, 0x00};  // test eax, eax; jz to the next instruction
        put(jump_after, counted);
        run_split({}, nop(length), jump_after, 1);
    }
    // Branches: JZ rel8 and rel32, JMP rel8 and rel32, CALL rel32, JMP through memory, RET imm16.
    bytes skipped = {0x0F, 0x0B};  // ud2
    put(skipped, counted);
    run_split({0x39, 0xC0}, {0x74, 0x02}, skipped, 1);  // cmp eax, eax
    bytes jz{0x0F, 0x84};
    put(jz, number(2));
    run_split({0x39, 0xC0}, jz, skipped, 1);
    bytes not_taken{0x0F, 0x85};
    put(not_taken, number(2));
    run_split({0x39, 0xC0}, not_taken, counted, 1);
    run_split({}, {0xEB, 0x02}, skipped, 1);
    bytes jump{0xE9};
    put(jump, number(2));
    run_split({}, jump, skipped, 1);
    bytes call{0xE8};
    put(call, number(3));
    run_split({}, call, {0xFF, 0xC0, 0xC3, 0xFF, 0xC0, 0xC3}, 2);  // the callee is after the RET
    bytes through_register{0x48, 0x8D, 0x15};                      // lea rdx, [rip + 2]
    put(through_register, number(2));
    run_split(through_register, {0xFF, 0xE2}, counted, 1);  // jmp rdx
    bytes pushes{0x5A, 0x6A, 0x00, 0x52};                   // pop rdx; push 0; push rdx
    put(pushes, increment);
    run_split(pushes, {0xC2, 0x08, 0x00}, {}, 1);
    run_split(increment, end, {}, 1);
    run_split(increment, {0xF3, 0xC3}, {}, 1);

    // Blocks of every length, with a branch in front of them and after them.
    auto const run_block = [&](unsigned count, unsigned length, std::size_t at) {
        bytes routine = begin;
        put(routine, {0x85, 0xC0, 0x74, 0x00});
        for (unsigned i = 0; i < count; ++i) { put(routine, nop(length)); }
        put(routine, {0x85, 0xC0, 0x75, 0x00});
        put(routine, counted);
        run(routine, at < routine.size() ? at : 0, 1);
    };
    for (unsigned count = 1; count <= 80; ++count) {
        for (unsigned const length : {1U, 3U, 7U, 15U}) { run_block(count, length, count * 3); }
    }
    for (unsigned const count :
         {500U, 509U, 510U, 511U, 512U, 513U, 514U, 600U, 1023U, 1024U, 1025U, 3000U}) {
        for (unsigned const length : {1U, 2U, 4U, 9U}) {
            run_block(count, length, 0);
            run_block(count, length, count);
        }
    }
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
