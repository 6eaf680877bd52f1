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

template <class Value>
struct of_letter {
    char letter;
    Value value;
};
inline constexpr of_letter<opcode_form> form_rows[] = {
    {'.', {}},
    {'p', {.is_prefix = true}},
    {'m', {.has_modrm = true}},
    {'r', {.has_modrm = true, .is_register_only = true}},
    {'M', {immediate::bits_8, true}},
    {'Z', {immediate::operand, true}},
    {'t', {immediate::test_8, true}},
    {'T', {immediate::test, true}},
    {'b', {immediate::bits_8}},
    {'w', {immediate::bits_16}},
    {'e', {immediate::bits_24}},
    {'z', {immediate::operand}},
    {'v', {immediate::wide}},
    {'o', {immediate::address}},
    {'f', {immediate::pointer}},
    {'j', {immediate::relative_8}},
    {'J', {immediate::relative}},
    {'x', {.is_defined = false}},
};

struct class_rows {
    using enum instruction_class;
    static constexpr of_letter<opcode_class> all[] = {
        {'.', {}},
        {'?', {other, true, true}},
        {'x', {other, false}},
        {'c', {conditional}},
        {'d', {direct_jump}},
        {'k', {direct_call}},
        {'r', {near_return}},
        {'J', {far_jump, false}},
        {'K', {far_call, false}},
        {'R', {far_return}},
        {'I', {iret}},
        {'n', {software_interrupt}},
        {'o', {software_interrupt, false}},
        {'h', {hlt}},
        {'i', {interrupt_flag}},
        {'s', {syscall}},
        {'t', {sysret}},
        {'e', {sysenter}},
        {'q', {sysexit}},
        {'g', {getsec}},
        {'w', {wrmsr}},
        {'m', {rsm}},
    };
};

/// `opcode_form::bytes` by `immediate`.
inline constexpr uint8_t immediate_bytes[][3] = {
    {0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {4, 2, 4}, {4, 2, 8},
    {8, 8, 8}, {0, 0, 0}, {1, 1, 1}, {4, 4, 4}, {0, 0, 0}, {0, 0, 0}};

/// Sets the members for `decode_common`, of a defined opcode.
constexpr auto with_bytes(opcode_form form) noexcept -> opcode_form {
    for (unsigned i = 0; i < 3; ++i) { form.bytes[i] = immediate_bytes[underlying(form.rest)][i]; }
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
        for (auto const& [letter, form] : form_rows) {
            forms[letter - first_letter] = form.is_defined ? with_bytes(form) : form;
        }
        for (auto const& [letter, info] : class_rows::all) {
            classes[letter - first_letter] = with_common(info);
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
