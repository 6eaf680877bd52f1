// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/code.hpp>
#include <ptspec/flow/sink.hpp>

namespace ptspec::flow::detail {

/// Branches are collected from several TNTs, to walk more of them at once.
template <class Sink, class Code>
inline constexpr bool merges_tnts = takes_runs<Sink> &&
                                    changes_of<Code> == space_changes::at_paging;
template <class Sink, class Code>
inline constexpr bool uses_runs = takes_runs<Sink> &&
                                  changes_of<Code> != space_changes::at_branches;

/// What ended the walk to a branch.
enum class walked : uint8_t {
    branch,   ///< the branch was executed
    waits,    ///< its TIP follows
    lost,     ///< there is a gap
    missing,  ///< code is missing that the caller wants to supply
};

/// A sink that counts edges in another sink, and keeps them to make a run of them.
template <class Sink>
class run_recorder {
public:
    constexpr explicit run_recorder(Sink& sink) noexcept : sink_{&sink} {}

    constexpr void edge(flow::edge const& one) {
        uint32_t const index = sink_->index_of(one);
        if (index != Sink::not_counted) { sink_->count(index, 1); }
        bool const returns = one.kind == instruction_class::near_return;
        bool const calls = !returns && is_pushing_call(one.kind, one.to, one.after);
        if (count_ == max_edges) {
            is_whole_ = false;
            return;
        }
        edges_[count_++] = {returns ? one.to : one.after, index, returns, calls};
    }
    /// A branch was walked; the next IP is `next`.
    constexpr void end_branch(uint64_t next) noexcept {
        if (!is_whole_) { return; }
        ends_[branches_++] = {next, static_cast<uint8_t>(count_)};
    }
    /// The run with this key. `next` is the IP after its last branch, if no packet ends it. A part
    /// of the run, of `taken` branches, perhaps none, if fewer were walked or have room.
    [[nodiscard]] constexpr auto made(run_key const& key, uint64_t next) const noexcept -> run {
        run all{};
        unsigned taken = branches_;
        bool const merges = count_ > most_unmerged;
        unsigned const fitting = fill(all, count_, merges);
        bool const is_whole = is_whole_ && fitting == count_ && taken == highest_bit(key.branches);
        if (is_whole) {
            all.next = key.end() == run_end::none ? next : key.to;
        } else {
            while (taken != 0 && ends_[taken - 1].edges > fitting) { --taken; }
            all = {};
            if (taken != 0) {
                (void)fill(all, ends_[taken - 1].edges, merges);
                all.next = ends_[taken - 1].next;
            }
        }
        all.key = key;
        all.taken = static_cast<uint8_t>(taken);
        all.is_part = !is_whole;
        bool const has_returns = all.pops || all.pushes != 0 || all.takes != 0 || all.depth != 0;
        bool const has_target = is_whole && key.end() != run_end::none;
        bool const ends = is_whole && key.end() == run_end::tip_pgd_out;
        all.effects = static_cast<uint8_t>((has_returns ? run::has_returns : 0U) |
                                           (has_target ? run::has_target : 0U) |
                                           (ends ? run::ends | run::clears : 0U));
        return all;
    }

private:
    static constexpr unsigned max_edges = 128;
    /// So many edges usually have room, also with their return addresses.
    static constexpr unsigned most_unmerged = 16;

    struct kept {
        uint64_t address;  ///< of a RET its target, else the address after the branch
        uint32_t index;
        bool returns;
        bool calls;
    };
    struct end {
        uint64_t next;
        uint8_t edges;
    };

    /// Adds the first `count` edges to a run. Returns how many had room.
    constexpr auto fill(run& all, unsigned count, bool merges) const noexcept -> unsigned {
        unsigned const walked = branches_ == 0 ? 0 : ends_[branches_ - 1].edges;
        int level = 0;
        for (unsigned i = 0; i < count; ++i) {
            kept const& one = edges_[i];
            if (one.index != Sink::not_counted && !all.add(one.index, merges)) { return i; }
            if (!one.returns && !one.calls) { continue; }
            if (one.returns && i >= walked) {
                all.pops = true;  // it has a TIP: it is not compressed
            } else if (one.returns && all.pushes != 0) {
                --all.pushes;
                --level;
            } else {
                if (all.room() < 2) { return i; }
                all.set_address(all.takes + all.pushes, one.address);
                one.returns ? ++all.takes : ++all.pushes;
                level += one.returns ? -1 : 1;
                if (level > all.depth) { all.depth = static_cast<uint8_t>(level); }
            }
        }
        return count;
    }

    Sink* sink_;
    unsigned count_ = 0;
    uint8_t branches_ = 0;
    bool is_whole_ = true;
    kept edges_[max_edges];
    end ends_[run_key::max_branches];
};

/// The start of tracing at an IP, as a run. It is a part if it has no room.
template <takes_runs Sink>
constexpr auto start_of(run_key const& key, uint32_t space, Sink& sink) -> run {
    run made{};
    made.key = key;
    made.next = key.to;
    made.effects = run::clears | run::has_target;
    if constexpr (takes_starts<Sink>) {
        uint32_t const index = sink.index_of_start(key.to, space);
        made.is_part = index != Sink::not_counted && !made.add(index, false);
    }
    return made;
}

}  // namespace ptspec::flow::detail
