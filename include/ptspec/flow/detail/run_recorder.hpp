// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/code.hpp>
#include <ptspec/flow/sink.hpp>

namespace ptspec::flow::detail {

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

/// Counts a run once more, or repeats its reports.
template <takes_runs Sink>
constexpr void repeat(run& known, run_table& runs, Sink& sink) {
    if constexpr (repeats_runs<Sink>) {
        sink.repeat_run(runs.index_of(known));
    } else {
        runs.repeat(known);
    }
}

/// A sink that passes reports to another one, and keeps the edges to make a run of them.
template <class Sink>
class run_recorder {
public:
    constexpr explicit run_recorder(Sink& sink) : sink_{&sink} {
        if constexpr (repeats_runs<Sink>) { sink.begin_run(); }
    }

    constexpr void block(executed_block const& one)
        requires takes_blocks<Sink>
    {
        sink_->block(one);
    }
    constexpr void stop(flow::stop const& one)
        requires takes_stops<Sink>
    {
        sink_->stop(one);
    }
    constexpr void edge(flow::edge const& one) {
        uint32_t index = not_counted;
        if constexpr (repeats_runs<Sink>) {
            sink_->edge(one);
        } else if (index = sink_->index_of(one); index != Sink::not_counted) {
            sink_->count(index, 1);
        } else {
            index = not_counted;
        }
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
    /// Stores the run with this key at a place of the table, or as much of it as was walked.
    /// `is_whole`: all was walked, and `next` is the IP after it. A run that has no room for all
    /// becomes several parts, each with the key of the branches that are left.
    constexpr void store(run_key key, bool is_whole, uint64_t next, run* place) const {
        if (!is_whole && branches_ == highest_bit(key.branches)) { return; }
        bool const has_end = is_whole && is_whole_;
        auto& runs = *sink_->runs();
        unsigned at = 0;  // of the branches
        for (;;) {
            run made{};
            made.key = key;
            int level = 0;
            unsigned const first = at;
            bool const ends = has_end && add(made, level, edges_before(at), count_);
            if (ends) {
                at = branches_;
            } else {
                made = {};
                made.key = key;
                level = 0;
                while (at != branches_ && add_branch(made, level, at)) { ++at; }
            }
            if (at == first && !ends) { return; }
            made.taken = static_cast<uint8_t>(at - first);
            made.is_part = !ends;
            made.next = !ends ? ends_[at - 1].next : key.end() == run_end::none ? next : key.to;
            made.effects = effects_of(made);
            if constexpr (repeats_runs<Sink>) {
                run_table::no_counts none;
                bool const is_kept = ends && place != nullptr &&
                                     sink_->keep_run(runs.index_of(*place));
                if (is_kept) { (void)runs.insert(*place, made, none); }
                return;
            } else if (place != nullptr) {
                (void)runs.insert(*place, made, *sink_);
            }
            if (ends || (at == branches_ && !has_end)) { return; }
            key = key.after(at - first, made.next);
            // It is nullptr also if another run has the same part.
            place = runs.find_or_place(key).place;
        }
    }

private:
    static constexpr uint32_t not_counted = 0xFFFF'FFFF;
    static constexpr unsigned max_edges = 128;
    /// So many edges usually have room, also with their return addresses.
    static constexpr unsigned most_unmerged = 16;

    struct kept {
        uint64_t address;  ///< of a RET its target, else the address after the branch
        uint32_t index;
        bool returns;
        bool calls;
    };
    struct branch_end {
        uint64_t next;
        uint8_t edges;
    };
    [[nodiscard]] static constexpr auto effects_of(run const& made) noexcept -> uint8_t {
        bool const has_returns = made.pops || made.pushes != 0 || made.takes != 0 ||
                                 made.depth != 0;
        bool const has_target = !made.is_part && made.key.end() != run_end::none;
        bool const ends = !made.is_part && made.key.end() == run_end::tip_pgd_out;
        return static_cast<uint8_t>(
            (has_returns ? run::has_returns : 0U) | (made.takes != 0 ? run::has_takes : 0U) |
            (has_target ? run::has_target : 0U) | (ends ? run::ends | run::clears : 0U));
    }
    [[nodiscard]] constexpr auto edges_before(unsigned branch) const noexcept -> unsigned {
        return branch == 0 ? 0 : ends_[branch - 1].edges;
    }
    /// Adds the edges of a branch to a run. Returns false, and changes nothing, if they have no
    /// room.
    [[nodiscard]] constexpr auto add_branch(run& made, int& level, unsigned branch) const noexcept
        -> bool {
        unsigned const begin = edges_before(branch);
        unsigned const end = ends_[branch].edges;
        constexpr unsigned most_words = 3;  // of an edge: it and a return address
        if (made.room() >= most_words * (end - begin)) { return add(made, level, begin, end); }
        run tried = made;
        int tried_level = level;
        if (!add(tried, tried_level, begin, end)) { return false; }
        made = tried;
        level = tried_level;
        return true;
    }
    /// Adds edges to a run, perhaps only some of them: then it returns false. `level` is the number
    /// of its addresses on the return stack, less those that it took.
    [[nodiscard]] constexpr auto add(run& made, int& level, unsigned begin,
                                     unsigned end) const noexcept -> bool {
        unsigned const walked = edges_before(branches_);
        bool const merges = count_ > most_unmerged;
        for (unsigned i = begin; i < end; ++i) {
            kept const& one = edges_[i];
            if (one.index != not_counted && !made.add(one.index, merges)) { return false; }
            if (!one.returns && !one.calls) { continue; }
            if (one.returns && i >= walked) {
                made.pops = true;  // it has a TIP: it is not compressed
            } else if (one.returns && made.pushes != 0) {
                --made.pushes;
                --level;
            } else {
                if (made.room() < 2) { return false; }
                made.set_address(made.takes + made.pushes, one.address);
                one.returns ? ++made.takes : ++made.pushes;
                level += one.returns ? -1 : 1;
                if (level > made.depth) { made.depth = static_cast<uint8_t>(level); }
            }
        }
        return true;
    }

    Sink* sink_;
    unsigned count_ = 0;
    uint8_t branches_ = 0;
    bool is_whole_ = true;
    kept edges_[max_edges];
    branch_end ends_[run_key::max_branches];
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
