// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/trace/check/options.hpp>

namespace ptspec::engine {

/// How to check the streams of a kind of processor. `manual` leaves open what processors choose.
///
/// Source: GEN-009..011, GEN-120, GEN-170, GEN-171.
[[nodiscard]] constexpr auto check_options_of(model_kind which) noexcept -> trace::check_options {
    auto const& how = options_of(which);
    return {.has_model = which != model_kind::manual,
            .writes = {.ips = how.ips,
                       .tnt_capacity = how.tnt_capacity,
                       .defers_tips = how.defers_tips,
                       .pads = how.pads,
                       .in_psb = how.in_psb},
            .end_alignment = how.end_alignment,
            .has_tsx = how.has_tsx};
}

}  // namespace ptspec::engine
