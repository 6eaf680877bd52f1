// SPDX-License-Identifier: BSL-1.0
#pragma once

// Blocks of code as QEMU translates them.

#include "code_block.hpp"
#include "qemu_plugin.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace emulated {

/// Copies the bytes of an instruction; returns their number.
inline auto bytes_of(qemu_plugin_insn const* from, std::uint8_t* to, std::size_t most)
    -> std::size_t {
#if PT_RECORD_QEMU_API >= 3
    return qemu_plugin_insn_data(from, to, most);
#else
    std::size_t const size = qemu_plugin_insn_size(from);
    std::size_t const count = size < most ? size : most;
    std::memcpy(to, qemu_plugin_insn_data(from), count);
    return count;
#endif
}

/// Adds the instructions of a block that QEMU translates, for code in this context, in a segment
/// with this base. Calls `visit(instruction of QEMU, linear address, bytes, decoded)` for each.
template <class Notes, class Visit>
void translate(code_block<Notes>& to, qemu_plugin_tb const* from,
               engine::execution_context const& context, std::uint64_t base, Visit&& visit) {
    bool const is_64_bits = context.width == cpu::code_width::bits_64;
    std::uint64_t const mask = is_64_bits ? ~std::uint64_t{0} : low_bits(32);
    to.first = (qemu_plugin_tb_vaddr(from) - base) & mask;
    std::size_t const count = qemu_plugin_tb_n_insns(from);
    for (std::size_t i = 0; i < count; ++i) {
        auto* const one = qemu_plugin_tb_get_insn(from, i);
        std::uint64_t const linear = qemu_plugin_insn_vaddr(one);
        std::uint8_t letters[x86::instruction::max_bytes];
        byte_view const bytes{letters, bytes_of(one, letters, sizeof letters)};
        auto const decoded = x86::decode(bytes, context.width);
        bool const is_last = i + 1 == count;
        if (is_last && count > 1 && decoded.error == x86::decode_error::truncated) { break; }
        add_instruction(to, decoded, (linear - base) & mask, bytes.size(), context, base);
        visit(one, linear, bytes, decoded);
    }
}

}  // namespace emulated
