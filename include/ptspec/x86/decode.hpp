// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/x86/opcode_map.hpp>

/// Decodes the length and the class of an instruction.
namespace ptspec::x86 {

enum class decode_error : uint8_t {
    none,
    truncated,  ///< the bytes end within the instruction
    undefined,  ///< no processor executes it, or it is longer than 15 bytes
};

/// An instruction, or the reason why there is none.
struct decoded {
    x86::instruction instruction{};
    decode_error error = decode_error::none;

    [[nodiscard]] constexpr explicit operator bool() const noexcept {
        return error == decode_error::none;
    }
};

namespace detail {

using namespace ptspec::detail;

/// Reads one instruction.
///
/// A template, so that only programs that use it compile its functions.
template <same_as<code_width> Width = code_width>
class instruction_reader {
public:
    constexpr instruction_reader(byte_view code, code_width width) noexcept
        : bytes_{code.data()},
          size_{code.size() < instruction::max_bytes ? static_cast<unsigned>(code.size())
                                                     : instruction::max_bytes},
          is_64_bit_{width == code_width::bits_64},
          is_16_bit_{width == code_width::bits_16} {}

    constexpr auto read() noexcept -> decoded {
        uint8_t opcode = 0;
        for (;;) {
            opcode = next();
            if (is_64_bit_ && (opcode & 0xF0) == 0x40) {
                rex_ = opcode;
            } else if (one_byte.form(opcode).is_prefix && at_ <= size_) {
                rex_ = 0;  // only directly before the opcode
                add_prefix(opcode);
            } else {
                break;
            }
        }
        if (opcode == 0x0F) {
            read_two_byte();
        } else if (opcode == 0xD5 && is_64_bit_) {
            read_rex2();
        } else if (is_vector(opcode)) {
            read_vector(opcode);
        } else {
            read_one_byte(opcode);
        }
        return result();
    }

private:
    /// The next byte, or 0 after the last one.
    constexpr auto next() noexcept -> uint8_t {
        uint8_t const byte = at_ < size_ ? bytes_[at_] : uint8_t{0};
        ++at_;
        return byte;
    }
    [[nodiscard]] constexpr auto peek() const noexcept -> uint8_t {
        return at_ < size_ ? bytes_[at_] : uint8_t{0};
    }
    constexpr void is_undefined() noexcept { is_defined_ = false; }

    [[nodiscard]] constexpr auto result() const noexcept -> decoded {
        if (at_ > size_) {
            return {{},
                    size_ < instruction::max_bytes ? decode_error::truncated
                                                   : decode_error::undefined};
        }
        if (!is_defined_) { return {{}, decode_error::undefined}; }
        decoded done{made_, decode_error::none};
        done.instruction.length = static_cast<uint8_t>(at_);
        return done;
    }

    constexpr void add_prefix(uint8_t prefix) noexcept {
        switch (prefix) {
            case 0x66: has_66_ = true; break;
            case 0x67: has_67_ = true; break;
            case 0xF0: has_lock_ = true; break;
            case 0xF2:
            case 0xF3: repeat_ = prefix; break;
            default: break;  // a segment
        }
    }
    [[nodiscard]] constexpr auto operand_bytes() const noexcept -> unsigned {
        if ((rex_ & 8) != 0) { return 4; }
        return has_66_ != is_16_bit_ ? 2 : 4;
    }
    [[nodiscard]] constexpr auto address_bytes() const noexcept -> unsigned {
        if (is_64_bit_) { return has_67_ ? 4 : 8; }
        return has_67_ != is_16_bit_ ? 2 : 4;
    }

    // -------------------------------------------------------------------------------- the parts

    constexpr void read_modrm(bool is_register_only) noexcept {
        modrm_ = next();
        unsigned const mod = modrm_ >> 6U;
        unsigned const rm = modrm_ & 7U;
        if (mod == 3 || is_register_only) { return; }
        if (address_bytes() == 2) {
            at_ += mod == 0 ? (rm == 6 ? 2 : 0) : mod;
            return;
        }
        unsigned const base = rm == 4 ? next() & 7U : rm;
        at_ += mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
    }
    constexpr void read_displacement(unsigned count) noexcept {
        uint64_t value = 0;
        for (unsigned i = 0; i < count; ++i) { value |= uint64_t{next()} << 8 * i; }
        unsigned const unused = 64 - 8 * count;
        made_.displacement = static_cast<int64_t>(value << unused) >> unused;
    }
    constexpr void read_branch(unsigned count) noexcept {
        read_displacement(count);
        made_.has_displacement = true;
        made_.target_is_16_bits = !is_64_bit_ && operand_bytes() == 2;
    }
    constexpr void read_immediate(immediate rest) noexcept {
        unsigned const operand = operand_bytes();
        bool const is_test = (modrm_ >> 3 & 7) < 2;
        switch (rest) {
            case immediate::none: break;
            case immediate::bits_8: immediate_ = next(); break;
            case immediate::bits_16: at_ += 2; break;
            case immediate::bits_24: at_ += 3; break;
            case immediate::bits_32: at_ += 4; break;
            case immediate::operand: at_ += operand; break;
            case immediate::wide: at_ += (rex_ & 8) != 0 ? 8 : operand; break;
            case immediate::address: at_ += address_bytes(); break;
            case immediate::pointer: at_ += operand + 2; break;
            case immediate::relative_8: read_branch(1); break;
            // Intel processors ignore the operand size of near branches in 64-bit code.
            case immediate::relative: read_branch(is_64_bit_ ? 4 : operand); break;
            case immediate::test_8: at_ += is_test ? 1 : 0; break;
            case immediate::test: at_ += is_test ? operand : 0; break;
        }
    }
    constexpr void read_rest(opcode_map const& map, uint8_t opcode) noexcept {
        auto const& form = map.form(opcode);
        auto const& info = map.class_of(opcode);
        made_.kind = info.kind;
        if (!form.is_defined || (is_64_bit_ && !info.is_in_64_bit)) { return is_undefined(); }
        if (form.has_modrm) { read_modrm(form.is_register_only); }
        // XBEGIN has a displacement where MOV has an immediate.
        if (info.needs_modrm && modrm_ == 0xF8 && form.rest == immediate::operand) {
            return read_branch(operand_bytes());
        }
        read_immediate(form.rest);
    }

    // -------------------------------------------------------------------------------- one byte

    [[nodiscard]] constexpr auto reg() const noexcept -> unsigned { return modrm_ >> 3 & 7U; }
    [[nodiscard]] constexpr auto is_memory() const noexcept -> bool { return modrm_ >> 6 != 3; }

    constexpr void read_one_byte(uint8_t opcode) noexcept {
        using enum instruction_class;
        read_rest(one_byte, opcode);
        bool const is_string = (opcode >= 0x6C && opcode <= 0x6F) ||
                               (opcode >= 0xA4 && opcode <= 0xAF && (opcode & 0xFE) != 0xA8);
        made_.repeats = repeat_ != 0 && is_string;
        if (made_.kind == software_interrupt) {
            made_.vector = opcode == 0xCD   ? immediate_
                           : opcode == 0xCC ? uint8_t{3}
                           : opcode == 0xCE ? uint8_t{4}
                                            : uint8_t{1};
        }
        if (!one_byte.class_of(opcode).needs_modrm) { return; }
        bool const is_tsx = modrm_ == 0xF8;
        switch (opcode) {
            case 0x8F:
                if (reg() != 0) { is_undefined(); }
                break;
            case 0xC6:
                if (is_tsx) { made_.kind = xabort; }
                if (!is_tsx && reg() != 0) { is_undefined(); }
                break;
            case 0xC7:
                if (is_tsx) { made_.kind = xbegin; }
                if (!is_tsx && reg() != 0) { is_undefined(); }
                break;
            case 0xFE:
                if (reg() > 1) { is_undefined(); }
                break;
            default: classify_group_5(); break;
        }
    }
    constexpr void classify_group_5() noexcept {
        using enum instruction_class;
        constexpr instruction_class classes[] = {other,         other,    indirect_call, far_call,
                                                 indirect_jump, far_jump, other,         other};
        made_.kind = classes[reg()];
        bool const is_far = made_.kind == far_call || made_.kind == far_jump;
        if (reg() == 7 || (is_far && !is_memory())) { is_undefined(); }
        made_.target_is_16_bits = !is_64_bit_ && operand_bytes() == 2;
    }

    // -------------------------------------------------------------------------------- two bytes

    constexpr void read_two_byte() noexcept {
        uint8_t const opcode = next();
        if (opcode == 0x38 || opcode == 0x3A) {
            (void)next();  // the opcode
            read_modrm(false);
            if (opcode == 0x3A) { ++at_; }
            return;
        }
        read_rest(two_byte, opcode);
        if (two_byte.class_of(opcode).needs_modrm) { classify_two_byte(opcode); }
    }
    constexpr void classify_two_byte(uint8_t opcode) noexcept {
        using enum instruction_class;
        switch (opcode) {
            case 0x01:
                if (!is_memory()) { classify_system(); }
                break;
            case 0x22:
                if (reg() == 3 && (rex_ & 4) == 0) { made_.kind = mov_to_cr3; }
                break;
            case 0x78:  // EXTRQ, INSERTQ
                if (has_66_ || repeat_ == 0xF2) { at_ += 2; }
                break;
            case 0xAE:
                if (repeat_ == 0xF3 && reg() == 4) {
                    if (has_66_) { is_undefined(); }
                    made_.kind = ptwrite;
                    made_.operand_is_64_bits = (rex_ & 8) != 0;
                }
                break;
            default: classify_group_9(); break;
        }
    }
    /// Classifies the system instructions: 0F 01 with a register operand.
    constexpr void classify_system() noexcept {
        using enum instruction_class;
        bool const has_no_prefix = repeat_ == 0 && !has_66_;
        switch (modrm_) {
            case 0xC1: made_.kind = vm_call; break;
            case 0xC2:
            case 0xC3: made_.kind = vm_entry; break;
            case 0xC4: made_.kind = vmxoff; break;
            case 0xC6: {  // WRMSRNS, WRMSRLIST; RDMSRLIST
                bool const writes = has_no_prefix || repeat_ == 0xF3;
                made_.kind = is_64_bit_ && writes ? wrmsr : other;
                break;
            }
            case 0xC9:
            case 0xFB: made_.kind = mwait; break;
            case 0xC0:
            case 0xD7: made_.kind = enclave; break;
            case 0xCA: made_.kind = repeat_ != 0 ? eret : other; break;
            case 0xCD: made_.kind = has_66_ && repeat_ == 0 ? vm_entry : other; break;  // SEAMRET
            case 0xCF: made_.kind = has_no_prefix ? enclave : vm_call; break;  // ENCLS, SEAMCALL
            case 0xD5: made_.kind = has_no_prefix ? xend : other; break;
            case 0xD9: made_.kind = vm_call; break;
            case 0xEC: made_.kind = repeat_ == 0xF3 ? uiret : other; break;
            default: break;
        }
    }
    constexpr void classify_group_9() noexcept {
        using enum instruction_class;
        if (!is_memory()) { return; }
        switch (reg()) {
            case 3: made_.kind = xrstors; break;
            case 5: made_.kind = xsaves; break;
            case 6:
                made_.kind = repeat_ == 0xF3 ? vmxon
                             : repeat_ != 0  ? other
                             : has_66_       ? vmclear
                                             : vmptrld;
                break;
            default: break;
        }
    }

    // -------------------------------------------------------------------------------- vectors, APX

    /// Reads a REX2 prefix, which has a map and more bits of register numbers.
    constexpr void read_rex2() noexcept {
        if (rex_ != 0) { return is_undefined(); }
        uint8_t const payload = next();
        rex_ = static_cast<uint8_t>(0x40 | (payload & 0x0F));
        uint8_t const opcode = next();
        unsigned const row = opcode >> 4U;
        if ((payload & 0x80) != 0) {
            if (row == 3 || row == 8) { return is_undefined(); }
            read_rest(two_byte, opcode);
            if (two_byte.class_of(opcode).needs_modrm) { classify_two_byte(opcode); }
            return;
        }
        bool const is_plain = !has_66_ && !has_67_ && repeat_ == 0 && !has_lock_ && (rex_ & 8) == 0;
        if (opcode == 0xA1 && is_plain) {
            made_.kind = instruction_class::absolute_jump;
            uint64_t target = 0;
            for (unsigned i = 0; i < 8; ++i) { target |= uint64_t{next()} << 8 * i; }
            made_.displacement = static_cast<int64_t>(target);
            return;
        }
        bool const is_reserved = row == 4 || row == 7 || row == 0xA || row == 0xE ||
                                 opcode == 0x0F || opcode == 0x62 || opcode == 0xC4 ||
                                 opcode == 0xC5 || opcode == 0xD5 ||
                                 one_byte.form(opcode).is_prefix;
        if (is_reserved) { return is_undefined(); }
        read_one_byte(opcode);
    }
    /// True for the first byte of VEX, EVEX and XOP. Outside 64-bit code they are other opcodes
    /// with forms of ModRM that are undefined there.
    [[nodiscard]] constexpr auto is_vector(uint8_t opcode) const noexcept -> bool {
        if (opcode == 0x8F) { return (peek() & 0x1F) >= 8; }
        if (opcode != 0xC4 && opcode != 0xC5 && opcode != 0x62) { return false; }
        return is_64_bit_ || peek() >= 0xC0;
    }
    constexpr void read_vector(uint8_t first) noexcept {
        bool const has_prefix = has_66_ || repeat_ != 0 || has_lock_ || rex_ != 0;
        uint8_t const one = next();
        uint8_t const two = first != 0xC5 ? next() : one;
        if (first == 0x62) { (void)next(); }
        uint8_t const opcode = next();
        if (has_prefix) { return is_undefined(); }
        unsigned const map = first == 0xC5 ? 1 : first == 0x62 ? one & 7U : one & 0x1FU;
        // The prefix 66 and REX.W, for the immediates of map 4.
        has_66_ = (two & 3) == 1;
        rex_ = (two & 0x80) != 0 && first != 0xC5 ? 0x48 : 0;
        bool const has_modrm = map != 1 || opcode != 0x77 || first == 0x62;
        if (has_modrm) { read_modrm(false); }
        read_immediate(rest_of_vector(first, map, opcode));
        // WRMSRNS with an immediate.
        bool const has_f3 = (two & 3) == 2;
        if (map == 7 && opcode == 0xF6 && has_f3 && is_64_bit_ && !is_memory() && reg() == 0) {
            made_.kind = instruction_class::wrmsr;
        }
    }
    constexpr auto rest_of_vector(uint8_t first, unsigned map, uint8_t opcode) noexcept
        -> immediate {
        if (first == 0x8F) {
            if (map > 10) { is_undefined(); }
            return map == 8 ? immediate::bits_8 : map == 10 ? immediate::bits_32 : immediate::none;
        }
        switch (map) {
            case 1: {
                bool const has_byte = (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xC2 ||
                                      (opcode >= 0xC4 && opcode <= 0xC6);
                return has_byte ? immediate::bits_8 : immediate::none;
            }
            case 2: return immediate::none;
            case 3: return immediate::bits_8;
            case 4: return first == 0x62 ? rest_of_map_4(opcode) : no_map();
            case 5: return first == 0x62 || is_64_bit_ ? immediate::none : no_map();  // AMX-FP8
            case 6: return first == 0x62 ? immediate::none : no_map();
            case 7: return immediate::bits_32;
            default: return no_map();
        }
    }
    constexpr auto no_map() noexcept -> immediate {
        is_undefined();
        return immediate::none;
    }
    /// Map 4 of EVEX has one-byte opcodes, and the double shifts.
    static constexpr auto rest_of_map_4(uint8_t opcode) noexcept -> immediate {
        if (opcode == 0x24 || opcode == 0x2C) { return immediate::bits_8; }
        bool const is_as_in_one_byte_map = opcode == 0x69 || opcode == 0x6B ||
                                           (opcode >= 0x80 && opcode <= 0x83) || opcode == 0xC0 ||
                                           opcode == 0xC1 || opcode == 0xF6 || opcode == 0xF7;
        return is_as_in_one_byte_map ? one_byte.form(opcode).rest : immediate::none;
    }

    uint8_t const* bytes_;
    unsigned size_;
    unsigned at_ = 0;
    bool is_64_bit_;
    bool is_16_bit_;
    bool has_66_ = false;
    bool has_67_ = false;
    bool has_lock_ = false;
    bool is_defined_ = true;
    uint8_t repeat_ = 0;  ///< F2 or F3, the last one
    uint8_t rex_ = 0;
    uint8_t modrm_ = 0;
    uint8_t immediate_ = 0;
    instruction made_{};
};

/// The bytes of a ModRM, with its SIB and displacement, in 64-bit code.
constexpr auto bytes_of_modrm(uint8_t const* code) noexcept -> unsigned {
    unsigned const mod = code[0] >> 6U;
    if (mod == 3) { return 1; }
    bool const has_sib = (code[0] & 7) == 4;
    unsigned const base = code[has_sib ? 1 : 0] & 7U;
    unsigned const displacement = mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
    return (has_sib ? 2 : 1) + displacement;
}
/// Decodes an instruction from 15 bytes of 64-bit code, for most opcodes: those whose class and
/// whose bytes after ModRM do not depend on ModRM, nor on a prefix other than 66 and REX. For
/// others the length is 0. With it `decode` executes a third of the instructions (g++ 12, code of
/// python).
constexpr auto decode_common(uint8_t const* code) noexcept -> instruction {
    instruction made;
    unsigned at = 0;
    uint8_t opcode = code[0];
    bool const has_66 = opcode == 0x66;
    if (has_66) { opcode = code[++at]; }
    bool has_rex_w = false;
    if ((opcode & 0xF0) == 0x40) {
        has_rex_w = (opcode & 8) != 0;
        opcode = code[++at];
    }
    bool const is_two_byte = opcode == 0x0F;
    if (is_two_byte) { opcode = code[++at]; }
    auto const& map = is_two_byte ? two_byte : one_byte;
    auto const& form = map.form(opcode);
    auto const& info = map.class_of(opcode);
    if (!form.is_common || !info.is_common) { return made; }
    ++at;
    if (form.has_modrm) { at += bytes_of_modrm(code + at); }
    at += form.bytes[has_rex_w ? 2 : has_66 ? 1 : 0];
    if (form.has_displacement) {
        made.has_displacement = true;
        uint64_t value = static_cast<uint64_t>(code[at - 1]) << 56;
        if (form.bytes[0] == 4) {
            value |= uint64_t{code[at - 4]} << 32 | uint64_t{code[at - 3]} << 40 |
                     uint64_t{code[at - 2]} << 48;
        }
        made.displacement = static_cast<int64_t>(value) >> (form.bytes[0] == 4 ? 32 : 56);
    }
    made.kind = info.kind;
    made.length = static_cast<uint8_t>(at);
    return made;
}

}  // namespace detail

/// Decodes the first instruction of some code. It rejects only some of the undefined opcodes and
/// operands: processors differ in them, and no trace has them.
///
/// Errors: `decode_error`.
/// Source: SDM vol. 2, "Instruction Format", "Opcode Map"; GEN-110, GEN-111.
template <same_as<code_width> Width = code_width>
[[nodiscard]] constexpr auto decode(byte_view code, Width width = code_width::bits_64) noexcept
    -> decoded {
    if (width == code_width::bits_64 && code.size() >= instruction::max_bytes) {
        auto const common = detail::decode_common(code.data());
        if (common.length != 0) { return {common}; }
    }
    return detail::instruction_reader<Width>{code, width}.read();
}

}  // namespace ptspec::x86
