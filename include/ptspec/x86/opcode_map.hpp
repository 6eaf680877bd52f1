// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/x86/instruction.hpp>

/// The bytes that follow an opcode, and its class, for each opcode of the first two maps.
namespace ptspec::x86 {

/// The bytes after the opcode and its ModRM.
enum class immediate : uint8_t {
    none,
    bits_8,
    bits_16,
    bits_24,  ///< ENTER
    bits_32,
    operand,  ///< 2 or 4 bytes, by the operand size
    wide,     ///< 2, 4 or 8 bytes: MOV of an immediate to a register
    address,  ///< 2, 4 or 8 bytes, by the address size
    pointer,  ///< a selector and an offset
    relative_8,
    relative,  ///< 2 or 4 bytes; 4 in 64-bit code
    test_8,    ///< 1 byte if ModRM.reg is 0 or 1
    test,      ///< as `operand` if ModRM.reg is 0 or 1
};

/// The bytes that follow an opcode.
struct opcode_form {
    immediate rest = immediate::none;
    bool has_modrm = false;
    bool is_register_only = false;  ///< ModRM.mod is ignored
    bool is_prefix = false;
    bool is_defined = true;
    // For `decode_common`, in 64-bit code.
    bool is_common = false;         ///< only ModRM and `bytes` bytes follow
    bool has_displacement = false;  ///< these bytes are a displacement
    uint8_t bytes[3] = {};          ///< the number without 66 and REX.W, with 66, with REX.W
};

/// The class of an opcode.
struct opcode_class {
    instruction_class kind = instruction_class::other;
    bool is_in_64_bit = true;  ///< it is defined in 64-bit code
    bool needs_modrm = false;  ///< the class depends on ModRM or on a prefix
    bool is_common = false;    ///< for `decode_common`: no other property is needed
};

namespace detail {

constexpr auto form_of(char letter) noexcept -> opcode_form {
    switch (letter) {
        case '.': return {};
        case 'p': return {.is_prefix = true};
        case 'm': return {.has_modrm = true};
        case 'r': return {.has_modrm = true, .is_register_only = true};
        case 'M': return {immediate::bits_8, true};
        case 'Z': return {immediate::operand, true};
        case 't': return {immediate::test_8, true};
        case 'T': return {immediate::test, true};
        case 'b': return {immediate::bits_8};
        case 'w': return {immediate::bits_16};
        case 'e': return {immediate::bits_24};
        case 'z': return {immediate::operand};
        case 'v': return {immediate::wide};
        case 'o': return {immediate::address};
        case 'f': return {immediate::pointer};
        case 'j': return {immediate::relative_8};
        case 'J': return {immediate::relative};
        default: return {.is_defined = false};
    }
}

constexpr auto class_of(char letter) noexcept -> opcode_class {
    using enum instruction_class;
    switch (letter) {
        case '?': return {other, true, true};
        case 'x': return {other, false};
        case 'c': return {conditional};
        case 'd': return {direct_jump};
        case 'k': return {direct_call};
        case 'r': return {near_return};
        case 'J': return {far_jump, false};
        case 'K': return {far_call, false};
        case 'R': return {far_return};
        case 'I': return {iret};
        case 'n': return {software_interrupt};
        case 'o': return {software_interrupt, false};
        case 'h': return {hlt};
        case 'i': return {interrupt_flag};
        case 's': return {syscall};
        case 't': return {sysret};
        case 'e': return {sysenter};
        case 'q': return {sysexit};
        case 'g': return {getsec};
        case 'w': return {wrmsr};
        case 'm': return {rsm};
        default: return {};
    }
}

/// Sets the members for `decode_common`, of a defined opcode.
constexpr auto with_bytes(opcode_form form) noexcept -> opcode_form {
    struct sizes {
        uint8_t bytes[3];
    };
    constexpr sizes by_rest[] = {{{0, 0, 0}}, {{1, 1, 1}}, {{2, 2, 2}}, {{3, 3, 3}}, {{4, 4, 4}},
                                 {{4, 2, 4}}, {{4, 2, 8}}, {{8, 8, 8}}, {{0, 0, 0}}, {{1, 1, 1}},
                                 {{4, 4, 4}}, {{0, 0, 0}}, {{0, 0, 0}}};
    for (unsigned i = 0; i < 3; ++i) { form.bytes[i] = by_rest[underlying(form.rest)].bytes[i]; }
    form.has_displacement = form.rest == immediate::relative_8 || form.rest == immediate::relative;
    bool const is_other = form.rest == immediate::address || form.rest == immediate::pointer ||
                          form.rest == immediate::test_8 || form.rest == immediate::test;
    form.is_common = !form.is_prefix && !form.is_register_only && !is_other;
    return form;
}
constexpr auto with_common(opcode_class info) noexcept -> opcode_class {
    using enum instruction_class;
    info.is_common = info.is_in_64_bit && !info.needs_modrm &&
                     (info.kind == other || info.kind == conditional || info.kind == direct_jump ||
                      info.kind == direct_call || info.kind == near_return);
    return info;
}

inline constexpr char first_letter = '.';
inline constexpr unsigned letter_count = 'z' - first_letter + 1;

/// Forms and classes by their letter.
struct letter_tables {
    opcode_form forms[letter_count] = {};
    opcode_class classes[letter_count] = {};

    constexpr letter_tables() noexcept {
        for (unsigned i = 0; i < letter_count; ++i) {
            auto const letter = static_cast<char>(first_letter + i);
            auto const form = form_of(letter);
            forms[i] = form.is_defined ? with_bytes(form) : form;
            classes[i] = with_common(class_of(letter));
        }
    }
};
inline constexpr letter_tables by_letter;

}  // namespace detail

/// The forms and the classes of 256 opcodes, with a letter for each.
struct opcode_map {
    char const* forms;
    char const* classes;

    [[nodiscard]] constexpr auto form(uint8_t opcode) const noexcept -> opcode_form const& {
        return detail::by_letter.forms[forms[opcode] - detail::first_letter];
    }
    [[nodiscard]] constexpr auto class_of(uint8_t opcode) const noexcept -> opcode_class const& {
        return detail::by_letter.classes[classes[opcode] - detail::first_letter];
    }
};

inline constexpr opcode_map one_byte = {"mmmmbz..mmmmbz.x"  // 0F: the two-byte opcodes
                                        "mmmmbz..mmmmbz.."
                                        "mmmmbzp.mmmmbzp."
                                        "mmmmbzp.mmmmbzp."
                                        "................"  // in 64-bit code REX
                                        "................"
                                        "..mmppppzZbM...."
                                        "jjjjjjjjjjjjjjjj"
                                        "MZMMmmmmmmmmmmmm"
                                        "..........f....."
                                        "oooo....bz......"
                                        "bbbbbbbbvvvvvvvv"
                                        "MMw.mmMZe.w..b.."
                                        "mmmmbb..mmmmmmmm"
                                        "jjjjbbbbJJfj...."
                                        "p.pp..tT......mm",
                                        "......xx......xx"
                                        "......xx......xx"
                                        ".......x.......x"
                                        ".......x.......x"
                                        "xxxxxxxxxxxxxxxx"
                                        "................"
                                        "xxx............."
                                        "cccccccccccccccc"
                                        "..x............?"
                                        "..........K..i.."
                                        "................"
                                        "................"
                                        "..rrxx??..RRnnoI"
                                        "....xxx........."
                                        "cccc....kdJd...."
                                        ".n..h.....ii..??"};

/// The opcodes after 0F.
inline constexpr opcode_map two_byte = {"mmmmx.....x.xm.M"  // 0F 0E and 0F 0F: 3DNow!
                                        "mmmmmmmmmmmmmmmm"
                                        "rrrrxxxxmmmmmmmm"
                                        "......x.xxxxxxxx"  // 38 and 3A: the three-byte opcodes
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "MMMMmmm.mmxxmmmm"
                                        "JJJJJJJJJJJJJJJJ"
                                        "mmmmmmmmmmmmmmmm"
                                        "...mMmmm...mMmmm"
                                        "mmmmmmmmmmMmmmmm"
                                        "mmMmMMMm........"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm",
                                        ".?...s.t........"
                                        "................"
                                        "..?............."
                                        "w...eq.g........"
                                        "................"
                                        "................"
                                        "................"
                                        "........?......."
                                        "cccccccccccccccc"
                                        "................"
                                        "..........m...?."
                                        "................"
                                        ".......?........"
                                        "................"
                                        "................"
                                        "................"};

}  // namespace ptspec::x86
