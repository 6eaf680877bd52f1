// SPDX-License-Identifier: BSL-1.0
#include <ptspec/x86/instruction.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using x86::code_width;
using x86::instruction;
using x86::instruction_class;

TEST_CASE("the target of a direct branch") {
    CHECK_TWICE([](auto value) {
        auto const to = [&](unsigned length, int64_t displacement, uint64_t ip, code_width width,
                            bool is_16_bits = false) {
            instruction const jump{.length = static_cast<uint8_t>(length),
                                   .kind = instruction_class::direct_jump,
                                   .has_displacement = true,
                                   .target_is_16_bits = is_16_bits,
                                   .displacement = displacement};
            return x86::target_of(jump, value(ip), width);
        };
        using enum code_width;
        return to(2, -2, 0x1000, bits_64) == 0x1000 && to(2, 0x10, 0x1000, bits_64) == 0x1012 &&
               to(5, -0x8000'0000LL, 0x1000, bits_64) == 0xFFFF'FFFF'8000'1005 &&
               to(5, -0x8000'0000LL, 0x1000, bits_32) == 0x8000'1005 &&
               to(2, -2, 0xFFFF'FFFF, bits_32) == 0xFFFF'FFFF &&
               to(4, 0, 0x12'FFFE, bits_32, true) == 2 && to(2, 0x10, 0xFFF0, bits_16, true) == 2 &&
               to(6, 0x1'0000, 0x1000, bits_16) == 0x1'1006;
    });
}

TEST_CASE("the target of JMPABS is in the instruction") {
    CHECK_TWICE([](auto value) {
        instruction const jump{.length = 11,
                               .kind = instruction_class::absolute_jump,
                               .displacement = value(int64_t{0x1122'3344'5566'7788})};
        return x86::target_of(jump, 0x1000) == 0x1122'3344'5566'7788 && x86::is_direct(jump);
    });
}

TEST_CASE("direct branches have their target in the instruction") {
    CHECK_TWICE([](auto value) {
        instruction const jump{.kind = instruction_class::conditional,
                               .has_displacement = value(true)};
        return x86::is_direct(jump) && !x86::is_direct(instruction{});
    });
}
