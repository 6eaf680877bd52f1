// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/packet/cbr.hpp>
#include <ptspec/packet/mtc.hpp>
#include <ptspec/packet/tma.hpp>
#include <ptspec/packet/tsc.hpp>
#include <ptspec/trace/write/state.hpp>

/// The clocks of a logical processor, and the packets that tell of them.
namespace ptspec::engine {

/// The MTCs that are due.
struct mtcs_due {
    /// More cannot be told apart: eight bits of the crystal counter are in a packet.
    static constexpr uint64_t most = 256;

    uint64_t first = 0;  ///< the crystal counter at the first, without the bits that are left out
    uint64_t count = 0;

    /// Packet `i`. Source: GEN-203, PKT-101.
    [[nodiscard]] constexpr auto packet(uint64_t i) const noexcept -> packet::mtc {
        return packet::mtc{}.with(packet::mtc::CTC{wrapped{first + i}});
    }
};

/// The core:bus ratio of a processor that has none in MSR_PLATFORM_INFO.
///
/// Units:  of the bus clock: 2.4 GHz where it runs at 100 MHz.
/// Source: GEN-202.
inline constexpr uint8_t default_core_to_bus = 24;

/// What the clocks show.
///
/// Units:  ticks of the crystal clock and of the time-stamp counter.
/// Source: SDM vol. 3, "Timing Packets"; GEN-200..204.
struct clocks {
    uint64_t art = 0;
    uint64_t tsc = 0;          ///< as RDTSC would give it
    uint64_t tsc_at_edge = 0;  ///< what it was at the last edge of the crystal clock
    uint8_t core_to_bus = 0;   ///< 0: not given, the processor's own (`core_to_bus_of`)
    bool are_off = false;      ///< the core clock stands still

    /// The crystal clock and the time-stamp counter run up to what is given.
    ///
    /// Source: GEN-201.
    constexpr void run_to(uint64_t new_art, uint64_t new_tsc) noexcept {
        if (new_art != art) { tsc_at_edge = new_tsc; }
        art = new_art;
        tsc = new_tsc;
    }
    /// The MTCs that are due when the crystal counter runs to a value, `freq` being MTCFreq. Of more
    /// than 256 the last; none where it runs back.
    ///
    /// Source: SDM vol. 3, "Mini Time Counter (MTC) Packet"; GEN-203, PRG-134.
    [[nodiscard]] constexpr auto until(uint64_t new_art, unsigned freq) const noexcept -> mtcs_due {
        if (new_art <= art) { return {}; }
        uint64_t const periods = (new_art >> freq) - (art >> freq);
        uint64_t const count = periods < mtcs_due::most ? periods : mtcs_due::most;
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
    /// With the ratio `otherwise` where none was given. Source: GEN-202, PKT-106.
    [[nodiscard]] constexpr auto cbr_packet(uint8_t otherwise = default_core_to_bus) const noexcept
        -> packet::cbr {
        uint8_t const ratio = core_to_bus != 0 ? core_to_bus : otherwise;
        return packet::cbr{}.with(packet::cbr::CoreBusRatio{wrapped{uint64_t{ratio}}});
    }
    friend constexpr auto operator==(clocks const&, clocks const&) -> bool = default;
};

/// The core:bus ratio at which a processor runs where nothing else is given: MaxNonTurboRatio, at which
/// the TSC counts.
///
/// Source: REG-168, GEN-202, GEN-208.
[[nodiscard]] constexpr auto core_to_bus_of(cpu::capabilities const& of) noexcept -> uint8_t {
    auto const ratio = of.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>();
    return ratio != 0 ? static_cast<uint8_t>(ratio) : default_core_to_bus;
}

/// Where the cycle counter is when cycles have passed.
struct counted_cycles {
    uint64_t cycles = 0;
    bool guard = false;  ///< it is about to wrap: a CYC takes all of them
};

/// Counts core clock cycles by a counter of `bits` bits. While packets are lost it wraps.
///
/// Source: SDM vol. 3, "Cycle-Accurate Mode"; GEN-210, GEN-217, GEN-220.
[[nodiscard]] constexpr auto count_cycles(uint64_t before, uint64_t passed, unsigned bits,
                                          bool loses) noexcept -> counted_cycles {
    uint64_t const sum = before + passed;
    bool const carries = sum < before;
    uint64_t const all = carries ? ~uint64_t{0} : sum;
    uint64_t const most = low_bits(bits);
    if (all < most) { return {all, false}; }
    return loses ? counted_cycles{sum & most, false} : counted_cycles{all, true};
}

}  // namespace ptspec::engine
