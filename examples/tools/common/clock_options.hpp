// SPDX-License-Identifier: BSL-1.0
#pragma once

// Options that describe the clocks of a trace.

#include "numbers.hpp"
#include "trace_file.hpp"

#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/time_conversion.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace trace_file {

/// Converts TSC ticks to nanoseconds.
struct conversion {
    std::uint64_t frequency = 0;    ///< of the TSC, in Hz; 0: unknown
    trace::time_conversion perf{};  ///< takes precedence

    [[nodiscard]] auto is_known() const -> bool { return perf.mult != 0 || frequency != 0; }
    /// Modulo 2^64.
    [[nodiscard]] auto ns(std::uint64_t tsc) const -> std::uint64_t {
        if (perf.mult != 0) { return perf.time_of(tsc); }
        constexpr std::uint64_t second = 1'000'000'000;
        return tsc / frequency * second + tsc % frequency * second / frequency;
    }
};

/// Takes --ctl, which has also fields of the clocks: the options for these take precedence.
/// Returns false when it is another option.
inline auto take_ctl_option(tool::command_line& line, trace::clock_options& clock,
                            given_options& given) -> bool {
    using word = reg::ia32_rtit_ctl;
    auto const option = line.argument();
    if (!line.is("--ctl")) { return false; }
    word const ctl{tool::parse_address(option, line.value())};
    if (ctl.reserved_bits_set() != 0) {
        throw tool::failure{option + " takes IA32_RTIT_CTL: " + tool::hex(ctl.raw) +
                            " has reserved bits"};
    }
    given.ctl = ctl;
    if (!given.mtc_freq) { clock.mtc_freq = static_cast<std::uint8_t>(ctl.get<word::MTCFreq>()); }
    if (!given.cyc_thresh) {
        clock.cyc_thresh = static_cast<std::uint8_t>(ctl.get<word::CycThresh>());
    }
    given.mtc_freq = given.cyc_thresh = true;
    return true;
}

/// Takes an option with a rate of a clock. Returns false when it is another option.
inline auto take_rate_option(tool::command_line& line, trace::clock_options& clock,
                             given_options& given) -> bool {
    constexpr std::uint64_t any32 = 0xFFFF'FFFF;
    if (take_ctl_option(line, clock, given)) { return true; }
    if (line.is("--mtc-freq")) {
        given.mtc_freq = true;
        clock.mtc_freq = static_cast<std::uint8_t>(
            tool::number_of(line, "MTCFreq, a number from 0 to 15", 15));
    } else if (line.is("--cyc-thresh")) {
        given.cyc_thresh = true;
        clock.cyc_thresh = static_cast<std::uint8_t>(
            tool::number_of(line, "CycThresh, a number from 0 to 15", 15));
    } else if (line.is("--non-turbo")) {
        clock.max_non_turbo_ratio = static_cast<std::uint8_t>(
            tool::number_of(line, "a ratio from 1 to 255", 255, 1));
    } else if (line.is("--tsc-ratio")) {
        constexpr std::string_view takes = "EBX/EAX of CPUID.15H, like 168/2";
        auto const found = tool::numbers_of(line, takes, '/', {any32, any32}, 2);
        if (found[0] == 0 || found[1] == 0) {
            throw tool::failure{"--tsc-ratio takes " + std::string{takes}};
        }
        clock.tsc_numerator = static_cast<std::uint32_t>(found[0]);
        clock.tsc_denominator = static_cast<std::uint32_t>(found[1]);
    } else {
        return false;
    }
    return true;
}

/// Takes an option that describes the clocks. Returns false when it is another option.
template <class Settings>
auto take_clock_option(tool::command_line& line, Settings& how) -> bool {
    constexpr std::uint64_t any = ~std::uint64_t{0};
    constexpr std::uint64_t any32 = 0xFFFF'FFFF;
    auto& clock = how.clock;
    if (take_rate_option(line, clock, how.given)) { return true; }
    if (line.is("--monotonic")) {
        clock.monotonic = true;
    } else if (line.is("--tsc-reference")) {
        clock.tsc_reference = tool::number_of(line, "a TSC of 64 bits, not 0", any, 1);
    } else if (line.is("--begins-in-guest")) {
        clock.is_guest = true;
    } else if (line.is("--guest-tsc")) {
        auto const found = tool::numbers_of(
            line, "OFFSET,MULTIPLIER: TSC offset and TSC multiplier of the VMCS", ',', {any, any},
            2);
        if (found[1] == 0) { throw tool::failure{"--guest-tsc takes a MULTIPLIER above 0"}; }
        clock.has_guest_tsc = true;
        clock.guest_tsc.offset = found[0];
        clock.guest_tsc.multiplier = found[1];
    } else if (line.is("--tsc-hz")) {
        how.to_ns.frequency = tool::number_of(line, "a frequency from 1 to 10000000000 Hz",
                                              10'000'000'000, 1);
    } else if (line.is("--perf-clock")) {
        auto const found = tool::numbers_of(
            line, "SHIFT,MULT,ZERO: time_shift up to 32, time_mult and time_zero of perf", ',',
            {32, any32, any}, 3);
        how.to_ns.perf = {.shift = static_cast<std::uint16_t>(found[0]),
                          .mult = static_cast<std::uint32_t>(found[1]),
                          .zero = found[2]};
        if (found[1] == 0) { throw tool::failure{"--perf-clock takes a MULT above 0"}; }
    } else {
        return false;
    }
    return true;
}

}  // namespace trace_file
