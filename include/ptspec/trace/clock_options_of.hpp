// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/trace/clock_options.hpp>

namespace ptspec::trace {

/// The constants of the clock of a trace that this configuration makes on this processor.
///
/// Source: PKT-101, PKT-301, PKT-311, REG-168.
[[nodiscard]] constexpr auto clock_options_of(reg::ia32_rtit_ctl ctl,
                                              cpu::capabilities const& caps) noexcept
    -> clock_options {
    using word = reg::ia32_rtit_ctl;
    auto const ratio = caps.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>();
    return {.mtc_freq = static_cast<uint8_t>(ctl.get<word::MTCFreq>()),
            .cyc_thresh = static_cast<uint8_t>(ctl.get<word::CycThresh>()),
            .max_non_turbo_ratio = static_cast<uint8_t>(ratio),
            .tsc_numerator = static_cast<uint32_t>(caps.leaf_15_ebx.raw),
            .tsc_denominator = static_cast<uint32_t>(caps.leaf_15_eax.raw),
            .tsc_age = tsc_age_of(caps.leaf_15_ebx.raw, caps.leaf_15_eax.raw)};
}

}  // namespace ptspec::trace
