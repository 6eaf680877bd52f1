// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/trace/check/options.hpp>

namespace ptspec::engine {

/// How to check the streams of a kind of processor. `manual` leaves open what processors choose.
///
/// Source: GEN-009..011, GEN-120, GEN-170, GEN-171.
[[nodiscard]] constexpr auto check_options_of(model_kind kind) noexcept -> trace::check_options {
    auto const& options = options_of(kind);
    return {.has_model = kind != model_kind::manual,
            .writes = {.ips = options.ips,
                       .tnt_capacity = options.tnt_capacity,
                       .defers_tips = options.defers_tips,
                       .pads = options.pads,
                       .in_psb = options.in_psb},
            .end_alignment = options.end_alignment,
            .has_tsx = options.has_tsx};
}

}  // namespace ptspec::engine
