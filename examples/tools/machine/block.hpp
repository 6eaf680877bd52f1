// SPDX-License-Identifier: BSL-1.0
#pragma once

// Blocks of instructions as the emulator translates them.

#include "../common/qemu_plugin.h"

#include <ptspec/simulate/instruction_action.hpp>
#include <ptspec/x86/decode.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace machine {

using namespace ptspec;
using cpu::code_width;

/// Instructions that execute in sequence; only the last one can branch. Addresses are offsets in
/// the code segment.
struct code_block {
    std::uint64_t first = 0;  ///< the address of the first instruction
    std::uint32_t count = 0;  ///< of instructions
    /// The last one may not execute with the block: it crosses a page, and QEMU 7.2 lists it.
    bool last_may_not_run = false;
    simulate::successors after{};  ///< of the last instruction
    simulate::execution end{};     ///< the last instruction

    [[nodiscard]] auto holds(std::uint64_t ip) const -> bool { return first <= ip && ip <= end.at; }
};

/// Adds an instruction of `size` bytes at an offset: the last one so far.
inline void add_instruction(code_block& to, x86::decoded const& one, std::uint64_t at,
                            std::size_t size, code_width width) {
    ++to.count;
    to.end = {.instruction = one.instruction, .at = at, .after = {.width = width}};
    if (!one) { to.end.instruction.length = static_cast<std::uint8_t>(size); }
    to.after = simulate::successors_of(to.end.instruction, at, width);
}

/// The block of code at an offset.
inline auto block_of_bytes(byte_view code, std::uint64_t first, code_width width) -> code_block {
    code_block made{.first = first};
    for (std::size_t i = 0; i < code.size();) {
        auto const one = x86::decode(code.from(i), width);
        std::size_t const size = one ? one.instruction.length : code.size() - i;
        add_instruction(made, one, first + i, size, width);
        i += size;
    }
    return made;
}

/// The block that the emulator translates, for code of this width in a segment with this base.
inline auto block_of(qemu_plugin_tb const* from, code_width width, std::uint64_t base)
    -> std::unique_ptr<code_block> {
    auto made = std::make_unique<code_block>();
    std::uint64_t const mask = width == code_width::bits_64 ? ~std::uint64_t{0} : low_bits(32);
    made->first = (qemu_plugin_tb_vaddr(from) - base) & mask;
    std::size_t const count = qemu_plugin_tb_n_insns(from);
    for (std::size_t i = 0; i < count; ++i) {
        auto* const one = qemu_plugin_tb_get_insn(from, i);
        std::size_t const size = qemu_plugin_insn_size(one);
        auto const* const bytes = static_cast<std::uint8_t const*>(qemu_plugin_insn_data(one));
        auto const decoded = x86::decode(byte_view{bytes, size}, width);
        bool const is_last = i + 1 == count;
        if (is_last && count > 1 && decoded.error == x86::decode_error::truncated) { break; }
        std::uint64_t const linear = qemu_plugin_insn_vaddr(one);
        add_instruction(*made, decoded, (linear - base) & mask, size, width);
        made->last_may_not_run = is_last && count > 1 &&
                                 linear / 4096 != (linear + size - 1) / 4096;
    }
    return made;
}

/// The translated blocks, until the emulator drops its translations.
class live_blocks {
public:
    auto add(std::unique_ptr<code_block> block) -> code_block* {
        std::lock_guard const guard{lock_};
        all_.push_back(std::move(block));
        return all_.back().get();
    }
    /// No block executes.
    void clear() {
        std::lock_guard const guard{lock_};
        all_.clear();
    }

private:
    std::mutex lock_{};
    std::vector<std::unique_ptr<code_block>> all_{};
};

}  // namespace machine
