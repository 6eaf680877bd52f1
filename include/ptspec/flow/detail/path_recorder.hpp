// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>

namespace ptspec::flow::detail {

/// A sink that counts edges in another one, and keeps the path.
template <class Sink>
struct path_recorder {
    Sink& to;
    path made{};
    bool fits = true;           ///< `made` is what the branches led to
    bool is_compressed = true;  ///< RETs take an entry of the stack

    constexpr void edge(flow::edge const& one) noexcept {
        uint32_t const index = to.index_of(one);
        if (index != Sink::not_counted) {
            to.count(index);
            if (!made.count(index)) { fits = false; }
        }
        bool const returns = one.which == instruction_class::near_return;
        bool const calls = is_pushing_call(one.which, one.to, one.after);
        if (returns && !is_compressed) {
            made.pops = true;
            return;
        }
        // An entry of the stack from before the path may be another one next time.
        if (returns && made.pushes == 0) { fits = false; }
        if (calls && made.pushes == path::most_pushes) { fits = false; }
        if (!fits) { return; }
        if (returns) { --made.pushes; }
        if (calls) { made.pushed[made.pushes++] = one.after; }
        made.depth = made.pushes > made.depth ? made.pushes : made.depth;
    }
};

}  // namespace ptspec::flow::detail
