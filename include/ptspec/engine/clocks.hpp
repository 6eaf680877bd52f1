// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/packet/cbr.hpp>
#include <ptspec/packet/mtc.hpp>
#include <ptspec/packet/tma.hpp>
#include <ptspec/packet/tsc.hpp>
#include <ptspec/trace/write/state.hpp>

/// The clocks of a logical processor, and the packets that report them.
namespace ptspec::engine {

/// The MTCs that are due.
struct mtcs_due {
    /// The maximum count. A packet has eight bits of the crystal counter, so more are
    /// indistinguishable.
    static constexpr uint64_t max_count = 256;

    uint64_t first = 0;  ///< the crystal counter at the first, shifted right by MTCFreq
    uint64_t count = 0;

    /// Packet `i`. Source: GEN-203, PKT-101.
    [[nodiscard]] constexpr auto packet(uint64_t i) const noexcept -> packet::mtc {
        return packet::mtc{}.with(packet::mtc::CTC{wrapped{first + i}});
    }
};

/// The core:bus ratio if MSR_PLATFORM_INFO gives none.
///
/// Units:  a multiple of the bus clock: 2.4 GHz with a bus clock of 100 MHz.
/// Source: GEN-202.
inline constexpr uint8_t default_core_to_bus = 24;

/// The values of the clocks.
///
/// Units:  ticks of the crystal clock and of the time-stamp counter.
/// Source: SDM vol. 3, "Timing Packets"; GEN-200..204.
struct clocks {
    uint64_t art = 0;
    uint64_t tsc = 0;          ///< as RDTSC would return it
    uint64_t tsc_at_edge = 0;  ///< its value at the last edge of the crystal clock
    uint8_t core_to_bus = 0;   ///< 0: the processor's default ratio (`core_to_bus_of`)
    bool are_off = false;      ///< the core clock is stopped

    /// Advances the crystal clock and the time-stamp counter to new values.
    ///
    /// Source: GEN-201.
    constexpr void run_to(uint64_t new_art, uint64_t new_tsc) noexcept {
        if (new_art != art) { tsc_at_edge = new_tsc; }
        art = new_art;
        tsc = new_tsc;
    }
    /// The MTCs that are due when the crystal counter advances to a value. The last 256 if there
    /// are more, none if the value is lower. `freq` is MTCFreq.
    ///
    /// Source: SDM vol. 3, "Mini Time Counter (MTC) Packet"; GEN-203, PRG-134.
    [[nodiscard]] constexpr auto until(uint64_t new_art, unsigned freq) const noexcept -> mtcs_due {
        if (new_art <= art) { return {}; }
        uint64_t const periods = (new_art >> freq) - (art >> freq);
        uint64_t const count = periods < mtcs_due::max_count ? periods : mtcs_due::max_count;
        return {(new_art >> freq) - count + 1, count};
    }

    /// Source: GEN-200.
    [[nodiscard]] constexpr auto tsc_packet() const noexcept -> packet::tsc {
        return packet::tsc{}.with(packet::tsc::TSC{wrapped{tsc}});
    }
    /// Source: GEN-201.
    [[nodiscard]] constexpr auto tma_packet() const noexcept -> packet::tma {
        return packet::tma{}.with(packet::tma::CTC{wrapped{art}},
                                  packet::tma::FC{wrapped{tsc - tsc_at_edge}});
    }
    /// `otherwise` is the ratio if `core_to_bus` is 0. Source: GEN-202, PKT-106.
    [[nodiscard]] constexpr auto cbr_packet(uint8_t otherwise = default_core_to_bus) const noexcept
        -> packet::cbr {
        uint8_t const ratio = core_to_bus != 0 ? core_to_bus : otherwise;
        return packet::cbr{}.with(packet::cbr::CoreBusRatio{wrapped{uint64_t{ratio}}});
    }
    friend constexpr auto operator==(clocks const&, clocks const&) -> bool = default;
};

/// The default core:bus ratio of a processor: MaxNonTurboRatio, the ratio at which the TSC counts.
///
/// Source: REG-168, GEN-202, GEN-208.
[[nodiscard]] constexpr auto core_to_bus_of(cpu::capabilities const& caps) noexcept -> uint8_t {
    auto const ratio = caps.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>();
    return ratio != 0 ? static_cast<uint8_t>(ratio) : default_core_to_bus;
}

/// The cycle counter after cycles have passed.
struct counted_cycles {
    uint64_t cycles = 0;
    bool guard = false;  ///< it is about to wrap: a CYC with all cycles is due
};

/// A counter of core clock cycles.
struct cycle_counter {
    uint64_t cycles = 0;  ///< the count
    unsigned bits = 64;
    bool wraps = false;  ///< at `bits`, and no CYC is due
};

/// Adds core clock cycles to a counter.
///
/// Source: SDM vol. 3, "Cycle-Accurate Mode"; GEN-210, GEN-217, GEN-220.
[[nodiscard]] constexpr auto count_cycles(cycle_counter counter, uint64_t passed) noexcept
    -> counted_cycles {
    uint64_t const sum = counter.cycles + passed;
    bool const carries = sum < counter.cycles;
    uint64_t const all = carries ? ~uint64_t{0} : sum;
    uint64_t const max_count = low_bits(counter.bits);
    if (all < max_count) { return {all, false}; }
    return counter.wraps ? counted_cycles{sum & max_count, false} : counted_cycles{all, true};
}

}  // namespace ptspec::engine
