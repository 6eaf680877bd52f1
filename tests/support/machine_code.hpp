// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/program_runs.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

// Random programs as x86 instructions in memory: functions in kernel code, in 64-bit user code and
// in 32-bit user code.
namespace ptspec::test::machine_code {

using test::dice;

/// The effect of an instruction on the trace.
enum class op : std::uint8_t {
    plain,
    conditional,  ///< Jcc, LOOPcc, JCXZ
    jump,         ///< to a higher address
    call,         ///< of a later function
    call_next,    ///< E8 with displacement 0
    jump_indirect,
    call_indirect,
    ret,
    far_jump,  ///< between 64-bit and 32-bit user code
    syscall,   ///< SYSCALL, SYSENTER
    sysret,    ///< SYSRET, SYSEXIT
    iret,
    int_n,
    mov_cr3,
    wrmsr,
    mwait,
    hlt,
    ptwrite,
    xbegin,
    xend,
};

struct instruction {
    op what = op::plain;
    std::uint64_t at = 0;
    std::uint64_t next = 0;
    std::uint64_t to = 0;  ///< target of a direct branch, or fallback of XBEGIN
    bool is_64_bit = false;
};

/// A program: its instructions by address, and its memory image. Each function has its own page and
/// ends with a branch that is always taken. Only conditional direct branches go backwards, so that
/// every loop produces packets.
class code {
public:
    enum segment : unsigned { kernel, user_64, user_32 };
    static constexpr std::uint64_t page = 0x1000;
    static constexpr unsigned functions = 6;
    static constexpr std::uint64_t bases[] = {0xFFFF'8000'0010'0000, 0x40'0000, 0x804'8000};
    static constexpr std::size_t segments = sizeof bases / sizeof bases[0];

    explicit code(dice& from) : dice_{from} {
        for (unsigned s = 0; s < segments; ++s) {
            bytes_[s].resize(functions * page, 0xCC);
            for (unsigned f = 0; f < functions; ++f) { write_function(static_cast<segment>(s), f); }
        }
    }

    /// The instruction at an address, or a null pointer.
    [[nodiscard]] auto at(std::uint64_t ip) const -> instruction const* {
        auto const found = all_.find(ip);
        return found == all_.end() ? nullptr : &found->second;
    }
    [[nodiscard]] static auto function(segment which, unsigned number) -> std::uint64_t {
        return bases[which] + number * page;
    }
    [[nodiscard]] static auto segment_of(std::uint64_t ip) -> segment {
        return ip >= bases[kernel]                      ? kernel
               : ip - bases[user_64] < functions * page ? user_64
                                                        : user_32;
    }
    /// The address of a random instruction in a segment.
    [[nodiscard]] auto any_in(segment which, dice& from) const -> std::uint64_t {
        auto const& some = starts_[which];
        return some[static_cast<std::size_t>(from.roll(some.size()))];
    }
    /// Reads up to `most` bytes of memory.
    auto read(std::uint64_t ip, std::uint8_t* to, std::size_t most) const -> std::size_t {
        for (unsigned s = 0; s < segments; ++s) {
            auto const offset = ip - bases[s];
            if (offset >= bytes_[s].size()) { continue; }
            std::size_t const left = bytes_[s].size() - static_cast<std::size_t>(offset);
            std::size_t const count = most < left ? most : left;
            for (std::size_t i = 0; i < count; ++i) { to[i] = bytes_[s][offset + i]; }
            return count;
        }
        return 0;
    }

private:
    /// An instruction whose branch target is resolved later.
    struct draft {
        op what = op::plain;
        std::vector<std::uint8_t> bytes{};
        std::size_t offset_bytes = 0;  ///< size of the displacement, which is at the end
        std::size_t target = 0;        ///< index of an instruction in the same function
        std::uint64_t address = 0;     ///< target outside the function; 0: none
    };
    using bytes = std::vector<std::uint8_t>;

    dice& dice_;
    std::vector<std::uint8_t> bytes_[segments];
    std::vector<std::uint64_t> starts_[segments];
    std::map<std::uint64_t, instruction> all_;

    auto byte(unsigned first, std::uint64_t sides) -> std::uint8_t {
        return static_cast<std::uint8_t>(first + dice_.roll(sides));
    }
    auto plain(bool wide) -> bytes {
        switch (dice_.roll(8)) {
            case 0: return {0x90};
            case 1: return {0x0F, 0x1F, 0x40, 0x00};
            case 2: return wide ? bytes{0x48, 0x89, 0xD8} : bytes{0x89, 0xD8};
            case 3: return {byte(0xB8, 8), 0xEB, 0xFE, 0xC3, 0xE8};
            case 4: return {0x83, byte(0xC0, 8), byte(0, 256)};
            case 5: return {0x8B, 0x44, 0x24, byte(0, 128)};
            case 6: return {0xF3, 0xA4};
            default: return {0x66, 0x0F, 0x6F, byte(0xC0, 64)};
        }
    }
    auto drawn(segment where, unsigned function_number, std::size_t number, std::size_t count)
        -> draft {
        bool const wide = where != user_32;
        auto const backwards = [&] { return static_cast<std::size_t>(dice_.roll(count)); };
        auto const forwards = [&] {
            return number + 1 + static_cast<std::size_t>(dice_.roll(count - number - 1));
        };
        auto const plain_one = [&] { return draft{op::plain, plain(wide)}; };
        auto const callee = [&](op what, std::uint8_t opcode) -> draft {
            if (function_number + 1 == functions) { return plain_one(); }
            auto const later = function_number + 1 +
                               static_cast<unsigned>(dice_.roll(functions - function_number - 1));
            return {what, {opcode, 0, 0, 0, 0}, 4, 0, function(where, later)};
        };
        if (number + 1 == count) {
            switch (dice_.roll(8)) {
                case 0: {
                    auto made = callee(op::jump, 0xE9);
                    if (made.what == op::jump) { return made; }
                    break;
                }
                case 1: return {op::jump_indirect, {0xFF, byte(0xE0, 4)}};
                case 2:
                    if (where == kernel) { return {op::iret, {0x48, 0xCF}}; }
                    break;
                case 3: return {op::ret, {0xC2, 0x08, 0x00}};
                case 4: return {op::ret, {0xF3, 0xC3}};
                default: break;
            }
            return {op::ret, {0xC3}};
        }
        switch (dice_.roll(32)) {
            case 0:
            case 1:
            case 2: return {op::conditional, {byte(0x70, 16), 0}, 1, backwards()};
            case 3:
            case 4:
            case 5: return {op::conditional, {0x0F, byte(0x80, 16), 0, 0, 0, 0}, 4, backwards()};
            case 6: return {op::conditional, {byte(0xE0, 4), 0}, 1, backwards()};
            case 7: return {op::jump, {0xEB, 0}, 1, forwards()};
            case 8: return {op::jump, {0xE9, 0, 0, 0, 0}, 4, forwards()};
            case 9:
            case 10:
            case 11: return callee(op::call, 0xE8);
            case 12: return {op::call_next, {0xE8, 0, 0, 0, 0}};
            case 13: return {op::jump_indirect, {0xFF, 0x25, 0, 0, 0, 0}};
            case 14: return {op::call_indirect, {0xFF, byte(0xD0, 4)}};
            case 15: return {op::call_indirect, {0xFF, 0x15, 0, 0, 0, 0}};
            case 16: return {op::ret, {0xC3}};
            case 17: return {op::int_n, {0xCD, 0x80}};
            case 18:
                return {op::ptwrite,
                        wide ? bytes{0xF3, 0x48, 0x0F, 0xAE, 0xE0} : bytes{0xF3, 0x0F, 0xAE, 0xE0}};
            case 19: return {op::xbegin, {0xC7, 0xF8, 0, 0, 0, 0}, 4, forwards()};
            case 20: return {op::xend, {0x0F, 0x01, 0xD5}};
            case 21:
            case 22:
                if (where == kernel) { return {op::mov_cr3, {0x0F, 0x22, byte(0xD8, 4)}}; }
                return {op::syscall, wide ? bytes{0x0F, 0x05} : bytes{0x0F, 0x34}};
            case 23:
                if (where == kernel) { return {op::sysret, {0x48, 0x0F, 0x07}}; }
                return {op::far_jump, {0xFF, 0x28}};
            case 24:
                if (where == kernel) { return {op::sysret, {0x0F, 0x35}}; }
                return plain_one();
            case 25:
                if (where == kernel) { return {op::wrmsr, {0x0F, 0x30}}; }
                return plain_one();
            case 26:
                if (where == kernel) { return {op::mwait, {0x0F, 0x01, 0xC9}}; }
                return plain_one();
            case 27:
                if (where == kernel) { return {op::hlt, {0xF4}}; }
                return plain_one();
            default: return plain_one();
        }
    }
    void write_function(segment where, unsigned number) {
        std::size_t const count = 4 + static_cast<std::size_t>(dice_.roll(16));
        std::vector<draft> drafts;
        std::vector<std::uint64_t> starts;
        auto at = function(where, number);
        for (std::size_t i = 0; i < count; ++i) {
            drafts.push_back(drawn(where, number, i, count));
            starts.push_back(at);
            at += drafts.back().bytes.size();
        }
        for (std::size_t i = 0; i < count; ++i) {
            auto& one = drafts[i];
            auto const next = starts[i] + one.bytes.size();
            auto const to = one.what == op::call_next ? next
                            : one.address != 0        ? one.address
                                                      : starts[one.target];
            std::uint64_t const displacement = to - next;
            for (std::size_t b = 0; b < one.offset_bytes; ++b) {
                one.bytes[one.bytes.size() - one.offset_bytes + b] = static_cast<std::uint8_t>(
                    displacement >> (8 * b));
            }
            for (std::size_t b = 0; b < one.bytes.size(); ++b) {
                bytes_[where][static_cast<std::size_t>(starts[i] - bases[where]) + b] =
                    one.bytes[b];
            }
            starts_[where].push_back(starts[i]);
            all_[starts[i]] = {one.what, starts[i], next, to, where != user_32};
        }
    }
};

}  // namespace ptspec::test::machine_code
