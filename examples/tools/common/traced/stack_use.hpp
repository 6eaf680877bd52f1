// SPDX-License-Identifier: BSL-1.0
#pragma once

// What code does with the stack pointer.

#include <ptspec/base/bytes.hpp>
#include <ptspec/flow/frame.hpp>
#include <ptspec/x86/decode.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace traced {

using namespace ptspec;

/// Code at an address.
struct code_part {
    std::uint64_t address = 0;
    byte_view bytes{};
    bool is_64_bit = true;
};

/// How an instruction sets the stack pointer, apart from pushes, pops, calls and arithmetic.
enum class stack_load : std::uint8_t {
    none,
    frame,  ///< from RBP or a register that keeps it: the stack of the function
    other,  ///< from another register or from memory
};

/// Finds the loads of RSP in code: MOV, XCHG, POP, LEA and LEAVE. Other instructions that could
/// load it are not used for that.
class stack_loads {
public:
    explicit stack_loads(bool is_64_bit) : is_64_bit_{is_64_bit} {}

    /// Takes the next instruction.
    auto take(byte_view instruction) -> stack_load {
        std::size_t at = 0;
        auto const byte = [&](std::size_t i) -> unsigned {
            return at + i < instruction.size() ? instruction[at + i] : 0U;
        };
        auto const is_prefix = [&] {
            auto const one = byte(0);
            return one == 0x66 || one == 0x67 || one == 0xF2 || one == 0xF3 || one == 0x2E ||
                   one == 0x36 || one == 0x3E || one == 0x26 || one == 0x64 || one == 0x65;
        };
        while (at < instruction.size() && is_prefix()) { ++at; }
        unsigned rex = 0;
        if (is_64_bit_ && (byte(0) & 0xF0) == 0x40) {
            rex = byte(0);
            ++at;
        }
        unsigned const opcode = byte(0), modrm = byte(1);
        unsigned const reg = (modrm >> 3 & 7) | (rex & 4) << 1;
        bool const is_register = modrm >> 6 == 3;
        unsigned const base = (modrm & 7) == rsp && !is_register ? byte(2) & 7 : modrm & 7;
        unsigned const rm = base | (rex & 1) << 3;
        switch (opcode) {
            case 0x89: return is_register ? move(rm, reg) : stack_load::none;
            case 0x8B:
                if (is_register) { return move(reg, rm); }
                return reg == rsp ? stack_load::other : stack_load::none;
            case 0x87:
                return reg == rsp || (is_register && rm == rsp) ? stack_load::other
                                                                : stack_load::none;
            case 0x8D: return move(reg, rm);
            case 0x94:
            case 0x5C: return (rex & 1) == 0 ? stack_load::other : stack_load::none;
            case 0xC9: return stack_load::frame;
            default: return stack_load::none;
        }
    }

private:
    static constexpr unsigned rsp = 4, rbp = 5;

    auto move(unsigned to, unsigned from) -> stack_load {
        if (from == rsp) { keeps_ |= 1U << to; }
        if (to != rsp || from == rsp) { return stack_load::none; }
        return (keeps_ >> from & 1) != 0 ? stack_load::frame : stack_load::other;
    }

    bool is_64_bit_;
    unsigned keeps_ = 1U << rbp;  ///< registers with an address in the stack
};

/// What a function with this code does with the stack pointer before a branch at an address: on the
/// way there in the order of the code. After a RET or JMP the way comes over the first jump from
/// above, if there is one. `unknown`: the code does not have the address.
inline auto stack_use_at(code_part const& code, std::uint64_t address) -> flow::stack_use {
    using enum x86::instruction_class;
    auto const size = address - code.address;
    if (size >= code.bytes.size()) { return flow::stack_use::unknown; }
    auto const width = code.is_64_bit ? x86::code_width::bits_64 : x86::code_width::bits_32;
    stack_loads loads{code.is_64_bit};
    auto last = stack_load::none;
    bool has_way = true;
    std::map<std::uint64_t, stack_load> jumps;  // by target: what was loaded before
    for (std::size_t at = 0;;) {
        if (auto const jump = jumps.find(at); !has_way && jump != jumps.end()) {
            last = jump->second;
            has_way = true;
        }
        if (at >= size) { break; }
        auto const one = x86::decode(code.bytes.from(at), width);
        std::size_t const length = one ? one.instruction.length : 1;
        if (one) {
            auto const load = loads.take(code.bytes.from(at).first(length));
            if (load != stack_load::none) { last = load; }
            auto const kind = one.instruction.kind;
            if (kind == conditional || kind == direct_jump) {
                jumps.try_emplace(x86::target_of(one.instruction, at, width), last);
            }
            if (kind == direct_jump || kind == indirect_jump || kind == near_return) {
                last = stack_load::none;
                has_way = false;
            }
        }
        at += length;
    }
    return last == stack_load::other ? flow::stack_use::switches : flow::stack_use::keeps;
}

}  // namespace traced
