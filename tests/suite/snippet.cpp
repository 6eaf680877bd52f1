// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/snippet.hpp>

#include <support/check_twice.hpp>

namespace {

using namespace ptspec;
using suite::assembler;
using suite::snippet;

constexpr auto loop_of(uint8_t times) -> snippet {
    assembler a;
    auto const again = a.make_label();
    a.clear_r8();
    a.bind(again);
    a.mark();
    a.nops(1);
    a.count_r8(times);
    a.jnz(again);
    return a.finish();
}

constexpr auto one_nop = [] {
    assembler a;
    a.nops(1);
    return a.finish();
}();

constexpr auto jump_over_five = [] {
    assembler a;
    auto const there = a.make_label();
    a.jmp(there);
    a.traps(5);
    a.bind(there);
    return a.finish();
}();

constexpr auto loop_of_two = loop_of(2);
constexpr auto loop_of_three = loop_of(3);

}  // namespace

// The bytes are those that the GNU assembler makes of the instructions in the comment of `snippet`.
TEST_CASE("a snippet begins and ends with the WRMSR of IA32_RTIT_CTL") {
    CHECK_TWICE([](auto value) {
        uint8_t const wanted[] = {0x89, 0xF8, 0x48, 0x89, 0xFA, 0x48, 0xC1, 0xEA, 0x20,
                                  0xB9, 0x70, 0x05, 0x00, 0x00, 0x0F, 0x30, 0x90, 0x89,
                                  0xF0, 0x48, 0x89, 0xF2, 0x48, 0xC1, 0xEA, 0x20, 0xB9,
                                  0x70, 0x05, 0x00, 0x00, 0x0F, 0x30, 0xC3};
        for (size_t i = 0; i < sizeof wanted; ++i) {
            if (one_nop.bytes[i] != value(wanted[i])) { return false; }
        }
        return one_nop.size == sizeof wanted && one_nop.disable_at == 31 && one_nop.step_count == 0;
    });
}

TEST_CASE("a loop has a step for each time that its branch executes") {
    CHECK_TWICE([](auto value) {
        auto const& made = loop_of_three;
        return made.step_count == value(3) && made.steps[0].to == made.marks[0] &&
               made.steps[1].to == made.marks[0] && made.steps[2].to == made.disable_at - 14;
    });
}

TEST_CASE("a displacement counts from the next instruction, forward and back") {
    CHECK_TWICE([](auto value) {
        // JMP rel32, and JNZ rel32 after XOR, NOP, INC and CMP, back by 14 bytes.
        uint8_t const forward[] = {0xE9, 0x05, 0x00, 0x00, 0x00};
        uint8_t const back[] = {0x0F, 0x85, 0xF2, 0xFF, 0xFF, 0xFF};
        bool is_right = true;
        for (size_t i = 0; i < sizeof forward; ++i) {
            is_right = is_right && jump_over_five.bytes[16 + i] == value(forward[i]);
        }
        for (size_t i = 0; i < sizeof back; ++i) {
            is_right = is_right && loop_of_two.bytes[16 + 3 + 1 + 7 + i] == value(back[i]);
        }
        return is_right;
    });
}
