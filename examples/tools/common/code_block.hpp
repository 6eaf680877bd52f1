// SPDX-License-Identifier: BSL-1.0
#pragma once

// Blocks of code as emulators execute them.

#include <ptspec/simulate/instruction_action.hpp>
#include <ptspec/x86/decode.hpp>

#include <cstddef>
#include <cstdint>

namespace emulated {

using namespace ptspec;

struct no_notes {};

/// Instructions that execute in sequence; only the last one can branch. Addresses are offsets in
/// the code segment. `Notes` is what a program adds. Each execution reads the members up to `end`,
/// so they share a cache line.
template <class Notes = no_notes>
struct alignas(64) code_block : Notes {
    std::uint64_t first = 0;       ///< the address of the first instruction
    simulate::successors after{};  ///< of the last instruction
    std::uint32_t count = 0;       ///< the number of instructions
    /// The block may end before its last instruction, which crosses a page: QEMU 7.2 lists it, too.
    bool last_may_not_run = false;
    simulate::execution end{};  ///< the last instruction

    [[nodiscard]] auto holds(std::uint64_t ip) const -> bool { return first <= ip && ip <= end.at; }
};

/// Adds an instruction of `size` bytes at an offset, the last one so far: in this context, in a
/// segment with this base.
template <class Notes>
void add_instruction(code_block<Notes>& to, x86::decoded const& one, std::uint64_t at,
                     std::size_t size, engine::execution_context const& context,
                     std::uint64_t base = 0) {
    ++to.count;
    to.end = {.instruction = one.instruction, .at = at, .after = context};
    if (!one) { to.end.instruction.length = static_cast<std::uint8_t>(size); }
    to.after = simulate::successors_of(to.end.instruction, at, context.width);
    std::uint64_t const linear = base + at;
    to.last_may_not_run = to.count > 1 && linear / 4096 != (linear + size - 1) / 4096;
}

/// The block of code at an offset, in this context.
template <class Notes>
auto block_of(byte_view code, std::uint64_t first, engine::execution_context const& context)
    -> code_block<Notes> {
    code_block<Notes> made;
    made.first = first;
    for (std::size_t i = 0; i < code.size();) {
        auto const one = x86::decode(code.from(i), context.width);
        std::size_t const size = one ? one.instruction.length : code.size() - i;
        add_instruction(made, one, first + i, size, context);
        i += size;
    }
    return made;
}

}  // namespace emulated
