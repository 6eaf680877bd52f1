// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>
#include <ptspec/packet/kind.hpp>

/// Time passes.
namespace ptspec::engine::action {

/// Time passes.
///
/// Units:  core clock cycles; ticks of the crystal clock; ticks of the time-stamp counter as RDTSC
///         returns them.
/// Source: GEN-200..204, GEN-210.
struct elapsed {
    uint64_t cycles = 0;  ///< since the last action
    uint64_t art = 0;     ///< the new value of the crystal clock's counter
    uint64_t tsc = 0;     ///< the new value of the time-stamp counter
};
/// Core clock cycles pass. Source: GEN-210.
struct cycles {
    uint64_t passed = 0;
};
/// An MTC that falls due while the packets of an action are generated.
/// Source: GEN-171, GEN-205, GEN-218.
enum class due_mtc : uint8_t {
    none,
    reported,  ///< of the count that the clocks have: a TMA after it reports the same
    next,      ///< of the next count: TSC and TMA report the time at the beginning of the action
};
/// Time that passes while the packets of an action are generated, before one of them.
///
/// Source: GEN-006, GEN-171, GEN-172, GEN-181, GEN-183, GEN-205, GEN-215.
struct moment {
    packet::kind before{};  ///< before the next packet of this kind; without one, at the end
    uint64_t cycles = 0;    ///< core clock cycles that pass
    due_mtc mtc{};          ///< falls due after them
    uint64_t tsc = 0;       ///< the time-stamp counter at the next MTC; 0: not changed
};
/// The moments of one action, in their order. A view: they must outlive the call.
struct time_within {
    moment const* first = nullptr;
    size_t count = 0;

    constexpr time_within() noexcept = default;
    constexpr time_within(moment const* moments, size_t size) noexcept
        : first{moments}, count{size} {}
    template <size_t Size>
    constexpr time_within(moment const (&moments)[Size]) noexcept : time_within{moments, Size} {}
};
/// The ratio of the core clock to the bus clock changes. Source: GEN-202.
struct ratio {
    uint8_t core_to_bus = 0;  ///< 0: the processor's default ratio
};
/// A CYC without a packet, generated before the cycle counter wraps. Source: GEN-217.
struct cycle_guard {};

}  // namespace ptspec::engine::action
