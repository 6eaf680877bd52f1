// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

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
/// The next CYC with a TNT is not aligned, on a kind of processor that aligns most.
/// Source: GEN-010.
struct unaligned_cyc {};
/// The place of an MTC that falls due while TSC, TMA and CBR are generated: in a PSB+, or after the
/// clocks were off. Source: GEN-171, GEN-172, GEN-205, GEN-218.
enum class mtc_place : uint8_t {
    none,
    before_tsc,  ///< of the current count: TSC and TMA report the time after it
    after_tsc,   ///< of the next count, here and below
    after_tma,
    after_cbr,
    before_older_tsc,  ///< TSC and TMA report the time before it
};
/// The ratio of the core clock to the bus clock changes. Source: GEN-202.
struct ratio {
    uint8_t core_to_bus = 0;  ///< 0: the processor's default ratio
};
/// A CYC without a packet, generated before the cycle counter wraps. Source: GEN-217.
struct cycle_guard {};

}  // namespace ptspec::engine::action
