// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/fake_processor.hpp>

// A modelled processor with its memory, for tests of drivers and of the model.
namespace ptspec::test {

/// A processor in the kernel at 1000H, its memory, and a tap. Nothing is programmed.
///
/// It is not copied: the processor borrows the memory and the tap.
template <memory_port Memory, class Tap = simulate::no_tap>
struct world_of {
    using machine = simulate::fake_processor<Memory, Tap>;

    Memory memory;
    Tap tap{};
    machine cpu;

    constexpr explicit world_of(cpu::capabilities const& of = cpu::preset::skylake_x,
                                engine::execution_context const& code = {},
                                Memory const& begin = Memory{})
        : memory{begin}, cpu{of, memory, tap, code, 0x1000} {}
    world_of(world_of const&) = delete;
    auto operator=(world_of const&) -> world_of& = delete;
};

}  // namespace ptspec::test
