// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/trace/tsc_change.hpp>

namespace ptspec::trace {

/// The constants of a clock. `clock_options_of` gives those of a processor.
struct clock_options {
    uint8_t mtc_freq = 0;             ///< IA32_RTIT_CTL.MTCFreq
    uint8_t cyc_thresh = 0;           ///< IA32_RTIT_CTL.CycThresh
    uint8_t max_non_turbo_ratio = 0;  ///< MSR_PLATFORM_INFO[15:8]; 0: no time from CYC and CBR
    uint32_t tsc_numerator = 0;       ///< CPUID.15H:EBX; 0: no time from MTC
    uint32_t tsc_denominator = 0;     ///< CPUID.15H:EAX; 0: no time from MTC
    /// The maximum number of consecutive MTCs that the processor may drop. Real processors drop
    /// single MTCs: GEN-203.
    uint8_t lost_mtcs = 1;
    /// The frequency of the core clock deviates from the ratio of CBR by at most 1 / 2^tolerance.
    /// `tolerance` is at most 16; 0: the deviation has no limit.
    uint8_t tolerance = 5;
    /// The maximum age of the value of a TSC packet at its CYC, in TSC ticks: see `tsc_age_of`.
    uint16_t tsc_age = 0;
    bool monotonic = false;      ///< no estimate is lower than one before: PKT-309
    uint64_t tsc_reference = 0;  ///< a TSC near the trace: it extends the 56 bits of a TSC packet
    cpu::quirk_set quirks{};     ///< skl168, skz84
    bool is_guest = false;       ///< before the first PIP, TSC packets have the TSC of a guest
    bool has_guest_tsc = false;  ///< `guest_tsc` is known: times of guests become the host's
    tsc_change guest_tsc{};
};

/// `clock_options::tsc_age` of a processor whose TSC has `numerator` / `denominator` times the
/// frequency of the crystal clock: one crystal cycle, in TSC ticks, rounded up; 0 if the ratio is
/// unknown. A real processor reads the TSC a little before it sends the packet with its CYC: 0.85
/// to 0.9 crystal cycles in all six places where an MTC shows it (6/85).
///
/// Source: GEN-201.
[[nodiscard]] constexpr auto tsc_age_of(uint64_t numerator, uint64_t denominator) noexcept
    -> uint16_t {
    if (denominator == 0) { return 0; }
    uint64_t const ticks = numerator / denominator + (numerator % denominator != 0 ? 1 : 0);
    return static_cast<uint16_t>(ticks < 0xFFFF ? ticks : 0xFFFF);
}

}  // namespace ptspec::trace
