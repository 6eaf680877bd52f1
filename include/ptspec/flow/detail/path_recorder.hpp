// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/code.hpp>
#include <ptspec/flow/sink.hpp>

namespace ptspec::flow::detail {

/// Branches are collected from several TNTs, to walk more of them at once.
template <class Sink, class Code>
inline constexpr bool merges_tnts = takes_paths<Sink> &&
                                    changes_of<Code> == space_changes::at_paging;
template <class Sink, class Code>
inline constexpr bool uses_paths = takes_paths<Sink> &&
                                   changes_of<Code> != space_changes::at_branches;

/// What ended the walk to a branch.
enum class walked : uint8_t {
    branch,   ///< the branch was executed
    waits,    ///< its TIP follows
    lost,     ///< there is a gap
    missing,  ///< code is missing that the caller wants to supply
};

/// A sink that counts edges in another sink, and records their path.
template <class Sink>
struct path_recorder {
    Sink& sink;
    path made{};
    bool fits = true;           ///< `made` has all edges and return addresses
    bool is_compressed = true;  ///< a RET is compressed: it pops its target from the return stack

    constexpr void edge(flow::edge const& one) {
        uint32_t const index = sink.index_of(one);
        if (index != Sink::not_counted) {
            sink.count(index);
            if (!made.count(index)) { fits = false; }
        }
        bool const returns = one.kind == instruction_class::near_return;
        bool const calls = is_pushing_call(one.kind, one.to, one.after);
        if (returns && !is_compressed) {
            made.pops = true;
            return;
        }
        // A RET that pops an address from before the path may have another target next time.
        if (returns && made.pushes == 0) { fits = false; }
        if (calls && made.pushes == path::max_pushes) { fits = false; }
        if (!fits) { return; }
        if (returns) { --made.pushes; }
        if (calls) { made.pushed[made.pushes++] = one.after; }
        made.depth = made.pushes > made.depth ? made.pushes : made.depth;
    }
};

}  // namespace ptspec::flow::detail
