// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/walk_options.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

namespace ptspec::flow {

/// The options for a trace that was recorded with this IA32_RTIT_CTL.
///
/// Source: REG-024..041, GEN-029, GEN-325.
[[nodiscard]] constexpr auto with_ctl(walk_options options, reg::ia32_rtit_ctl ctl) noexcept
    -> walk_options {
    using word = reg::ia32_rtit_ctl;
    options.has_branches = ctl.get<word::BranchEn>();
    options.has_tnt = !ctl.get<word::DisTNT>();
    options.has_compressed_rets = !ctl.get<word::DisRETC>();
    return options;
}

}  // namespace ptspec::flow
