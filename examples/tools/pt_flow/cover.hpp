// SPDX-License-Identifier: BSL-1.0
#pragma once

// Walks traces for coverage: each thread collects what it walks, without records of it.

#include "../common/reports/covered.hpp"
#include "walk.hpp"

#include <ptspec/flow.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pt_flow {

namespace detail {

/// Collects what the options select.
template <class Collector, class Shows>
struct selecting {
    Collector& to;
    walk_counts& all;
    Shows const& shows;
    tool::walk_place const* place;  ///< nullptr: all places are selected
    bool is_shown;
    bool is_time_new = false;
    trace::time when{};

    void time(trace::time const& now) {
        all.found.time(now);
        when = now;
        is_time_new = true;
    }
    void start(std::uint64_t, std::uint32_t) { settle(); }
    void stop(flow::stop const&) { settle(); }
    void block(flow::executed_block const& one) {
        settle();
        if (!is_in_place()) {
            all.others.instructions += one.count;
            all.others.unknown += place->is_known ? 0 : one.count;
        } else {
            all.found.executed(one.count, is_shown);
            if (is_shown) { to.block(one); }
        }
    }
    void edge(flow::edge const& one) {
        if (!Collector::takes_jumps && is_jump(one)) { return; }
        settle();
        if (!is_in_place()) {
            all.others.branches += 1;
        } else if (is_shown) {
            to.edge(one);
        }
    }
    void gap(flow::gap const& one) {
        settle();
        if (is_in_place() && is_shown) { return all.gap(one); }
        all.wrong_turns += one.why == flow::gap_reason::wrong_turn ? 1 : 0;
        if (is_in_place()) {
            all.found.executed(1, false);
        } else {
            all.others.gaps += 1;
        }
    }

private:
    [[nodiscard]] auto is_in_place() const -> bool { return place == nullptr || place->is_wanted; }
    /// A time matters from the first report after it on.
    void settle() {
        if (is_time_new) { is_shown = shows(when); }
        is_time_new = false;
    }
};

/// A table of runs, for sinks that take them.
class own_run_table {
public:
    auto table() -> flow::run_table* { return &table_; }

private:
    std::vector<flow::run> storage_ = std::vector<flow::run>(std::size_t{1} << 14);
    flow::run_table table_{storage_.data(), storage_.size()};
};
struct no_run_table {
    static auto table() -> flow::run_table* { return nullptr; }
};
/// Whether known runs are counted without a walk: then instructions are not counted.
template <class Collector, class Code>
inline constexpr bool counts_runs = flow::detail::uses_runs<typename Collector::sink, Code>;
template <class Collector, class Code>
using runs_for = std::conditional_t<counts_runs<Collector, Code>, own_run_table, no_run_table>;

inline void count(walk_counts const& from, report& to) {
    to.found.add(from.found);
    to.others.add(from.others);
}

template <class Code, class Report>
void cover_in_order(std::vector<stretch> const& all, Code& code, walk_settings const& how,
                    Report& to) {
    auto& collector = to.own();
    using collector_type = std::remove_reference_t<decltype(collector)>;
    own_block_cache blocks;
    runs_for<collector_type, Code> runs;
    trace::clock clock{how.clock};
    std::uint64_t done = 0;
    walk_counts counts;
    bool is_shown = !how.window;
    auto const shows = [&](trace::time const& when) {
        return !how.window || how.window->contains(when, how.to_ns);
    };
    tool::walk_place const* place = nullptr;
    if constexpr (requires { code.place(); }) {
        if (how.places.is_on()) { place = &code.place(); }
    }
    for (auto const& one : all) {
        collector.begin(code);
        auto const walk_with = [&](auto& sink) {
            if (one.is_after_gap()) { sink.gap({.why = flow::gap_reason::missing_trace}); }
            walk_stretch(one, code, blocks.cache(), how, clock, sink, done);
        };
        if (how.window || place != nullptr || !counts_runs<collector_type, Code>) {
            selecting<collector_type, decltype(shows)> sink{collector, counts, shows, place,
                                                            is_shown};
            walk_with(sink);
            is_shown = sink.is_shown;
        } else {
            auto sink = collector.sink_for(counts, runs.table());
            walk_with(sink);
        }
    }
    count(counts, to);
    note_wrong_turns(counts.wrong_turns, how, to);
}

template <class Code, class Report>
void cover_in_threads(std::vector<stretch>& all, Code const& code, walk_settings const& how,
                      Report& to) {
    using collector_type = std::remove_reference_t<decltype(to.own())>;
    auto const parts = pieces_of(all, how);
    struct worker {
        Code code;
        std::unique_ptr<collector_type> own;
        collector_type& collector;
        own_block_cache blocks{};
        runs_for<collector_type, Code> runs{};
    };
    auto const jobs = std::min(how.jobs, to.max_jobs());
    std::vector<std::unique_ptr<worker>> workers(jobs);
    struct result {
        walk_counts counts{};
        bool has_other_ret = false;
    };
    auto const make = [&](unsigned number, std::size_t i) {
        auto& by = workers[number];
        if (by == nullptr) {
            auto own = number == 0 ? nullptr : to.another();
            auto& collector = own == nullptr ? to.own() : *own;
            by.reset(new worker{code, std::move(own), collector});
        }
        auto const& [part, offset, is_after_gap] = parts[i];
        auto const code_before = by->code;
        auto const walk_with = [&](trace::ret_mismatch ret, auto sink) {
            by->code = code_before;
            auto options = part.options(how.options);
            options.on_ret_mismatch = ret;
            flow::walker walk{borrowed_bytes{part.bytes.data(), part.bytes.size()}, by->code,
                              by->blocks.cache(), options};
            (void)walk.run(sink);
        };
        auto& collector = by->collector;
        auto const collect = [&](trace::ret_mismatch ret, flow::run_table* runs) {
            walk_counts counts;
            collector.begin(by->code);
            if (is_after_gap) { counts.gap({.why = flow::gap_reason::missing_trace}); }
            walk_with(ret, collector.sink_for(counts, runs));
            return counts;
        };
        auto const ret = how.options.on_ret_mismatch;
        result made{collect(ret, by->runs.table())};
        if (made.counts.wrong_turns == 0 || !how.tries_other_ret) { return made; }
        walk_counts other;
        struct gaps_only {
            walk_counts& all;
            void gap(flow::gap const& one) {
                all.wrong_turns += one.why == flow::gap_reason::wrong_turn ? 1 : 0;
            }
        };
        walk_with(other_ret(how), gaps_only{other});
        made.has_other_ret = other.wrong_turns < made.counts.wrong_turns;
        if (made.has_other_ret) {
            collector.undo([&](auto sink) { walk_with(ret, sink); });
            made.counts = collect(other_ret(how), nullptr);
        }
        return made;
    };
    other_rets others;
    auto next = parts.begin();
    tool::in_order(parts.size(), jobs, make, [&](result const& one) {
        count(one.counts, to);
        if (one.has_other_ret) { others.add(next->offset); }
        if (how.bar != nullptr) { how.bar->at(next->end()); }
        ++next;
    });
    for (auto const& one : workers) {
        if (one != nullptr && one->own != nullptr) { to.own().add(*one->own); }
    }
    others.note(parts.size(), how, to);
}

}  // namespace detail

/// Whether parts of a trace are walked in parallel: no time is needed, and there are several.
template <class Code>
auto is_divided(Code const& code, walk_settings const& how, std::uint64_t size) -> bool {
    if constexpr (requires { code.needs_time(); }) {
        bool const is_timed = how.window || how.places.is_on() || code.needs_time();
        return !is_timed && size >= detail::grain;
    } else {
        return false;
    }
}

/// Collects what executed. Between two stretches, packets are missing.
template <class Code, class Report>
void cover(std::vector<stretch>& all, Code& code, walk_settings const& how, Report& to) {
    if constexpr (requires { code.needs_time(); }) {
        if (is_divided(code, how, ~std::uint64_t{0})) {
            return detail::cover_in_threads(all, code, how, to);
        }
    }
    detail::cover_in_order(all, code, how, to);
}

/// Counts instructions.
class instruction_count : public report {
public:
    [[nodiscard]] auto wants() const -> wanted override { return {.blocks = true}; }
};

/// Counts edges. Where there are none, a second walk counts what was executed without them.
template <class Code>
void cover_edges(std::vector<stretch>& all, Code& code, walk_settings const& how, edge_counts& to) {
    if constexpr (!detail::counts_runs<edge_collector, Code>) {
        cover(all, code, how, to);
    } else {
        auto another = code;
        cover(all, code, how, to);
        if (!to.is_empty() || to.found.instructions + to.found.outside != 0) { return; }
        auto quiet = how;
        quiet.bar = nullptr;
        instruction_count count;
        walk(all, another, quiet, count);
        to.found.executed(count.found.instructions, true);
    }
}

}  // namespace pt_flow
