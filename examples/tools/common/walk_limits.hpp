// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a trace can have, by its file or by --ctl, for those who walk it.

#include "trace_file.hpp"

#include <ptspec/flow/with_ctl.hpp>

namespace trace_file {

/// The options of a walk, completed by what is said of the trace. `of` is nullptr for a raw trace.
inline auto with_limits(flow::walk_options options, given_options const& given, stream const* of)
    -> flow::walk_options {
    auto const& ctl = given.ctl ? given.ctl : of != nullptr ? of->how.ctl : given.ctl;
    return ctl ? flow::with_ctl(options, *ctl) : options;
}

}  // namespace trace_file
