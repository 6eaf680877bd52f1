// SPDX-License-Identifier: BSL-1.0
#include <ptspec/x86/opcode_map.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using x86::immediate;
using x86::instruction_class;
using x86::one_byte;
using x86::two_byte;

TEST_CASE("what follows a one-byte opcode") {
    CHECK_TWICE([](auto value) {
        auto const rest = [&](uint8_t opcode) { return one_byte.form(value(opcode)).rest; };
        return rest(0x04) == immediate::bits_8 && rest(0x05) == immediate::operand &&
               rest(0x69) == immediate::operand && rest(0xA0) == immediate::address &&
               rest(0xB8) == immediate::wide && rest(0xC2) == immediate::bits_16 &&
               rest(0xC8) == immediate::bits_24 && rest(0xEA) == immediate::pointer &&
               rest(0xEB) == immediate::relative_8 && rest(0xE8) == immediate::relative &&
               rest(0xF6) == immediate::test_8 && rest(0xF7) == immediate::test &&
               rest(0x90) == immediate::none && one_byte.form(0x69).has_modrm &&
               !one_byte.form(0x68).has_modrm;
    });
}

TEST_CASE("prefixes, escapes and opcodes that 64-bit code does not have") {
    CHECK_TWICE([](auto value) {
        unsigned prefixes = 0;
        unsigned undefined = 0;
        unsigned not_in_64_bit = 0;
        for (unsigned i = 0; i < 256; ++i) {
            auto const opcode = static_cast<uint8_t>(value(i));
            prefixes += one_byte.form(opcode).is_prefix;
            undefined += !one_byte.form(opcode).is_defined;
            not_in_64_bit += !one_byte.class_of(opcode).is_in_64_bit;
        }
        // INC and DEC (REX), BOUND (EVEX), LES and LDS (VEX), AAD (REX2), the escape 0F, and 19.
        return prefixes == 11 && undefined == 1 && not_in_64_bit == 16 + 1 + 2 + 1 + 1 + 19 &&
               one_byte.form(0xF3).is_prefix && !one_byte.form(0x0F).is_defined &&
               two_byte.form(0x0B).is_defined && !two_byte.form(0x04).is_defined;
    });
}

TEST_CASE("the class of an opcode (GEN-110)") {
    CHECK_TWICE([](auto value) {
        using enum instruction_class;
        return one_byte.class_of(value(uint8_t{0x74})).kind == conditional &&
               one_byte.class_of(0xE3).kind == conditional &&
               one_byte.class_of(0xC3).kind == near_return &&
               one_byte.class_of(0xCF).kind == iret && two_byte.class_of(0x05).kind == syscall &&
               two_byte.class_of(0x8F).kind == conditional &&
               two_byte.form(0x22).is_register_only && one_byte.class_of(0xFF).needs_modrm &&
               one_byte.class_of(0x90).kind == other;
    });
}
