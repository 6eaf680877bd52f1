// SPDX-License-Identifier: BSL-1.0
#pragma once

// The segments of a trace that was read into memory.

#include <ptspec/ptspec.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace pt_cut {

using namespace ptspec;
using edit::segment;
using edit::value_change;

using segments = std::span<segment const>;

/// The segments of a trace, and what is in none of them.
struct contents {
    std::vector<segment> all{};
    std::uint64_t skipped = 0;  ///< bytes before the first PSB
};

inline auto contents_of(byte_view trace) -> contents {
    contents found;
    found.skipped = edit::for_each_segment(trace,
                                           [&](segment const& one) { found.all.push_back(one); });
    return found;
}

/// Calls `visit(item)` for each packet of the segments. Offsets are those in the segment.
template <class Visit>
void for_each_packet(byte_view trace, segments selected, Visit const& visit) {
    for (auto const& one : selected) { edit::for_each_packet(trace, one, visit); }
}

}  // namespace pt_cut
