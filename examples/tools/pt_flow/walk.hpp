// SPDX-License-Identifier: BSL-1.0
#pragma once

// Walks traces, in one thread or in several.

#include "in_order.hpp"
#include "../common/progress.hpp"
#include "../common/trace_file.hpp"
#include "../common/reports/recorder.hpp"

#include <ptspec/flow.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/no_clock.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pt_flow {

using namespace reports;

/// Contiguous bytes of a trace, in one or more pieces.
class stretch {
public:
    /// `is_after_gap`: bytes are missing before it.
    explicit stretch(std::uint64_t offset, bool is_after_gap = false)
        : offset_{offset}, is_after_gap_{is_after_gap} {}

    /// Appends bytes, which it borrows.
    void add(byte_view piece) {
        pieces_.push_back(piece);
        size_ += piece.size();
    }
    /// The offset of the first byte in the trace or stream.
    [[nodiscard]] auto offset() const -> std::uint64_t { return offset_; }
    [[nodiscard]] auto is_after_gap() const -> bool { return is_after_gap_; }
    [[nodiscard]] auto size() const -> std::size_t { return size_; }
    [[nodiscard]] auto pieces() const -> std::vector<byte_view> const& { return pieces_; }
    /// All bytes as one piece: several are copied.
    auto whole() -> byte_view {
        if (pieces_.empty()) { return {}; }
        if (pieces_.size() > 1) {
            owned_.reserve(size_);
            for (auto const& one : pieces_) { owned_.insert(owned_.end(), one.begin(), one.end()); }
            pieces_ = {byte_view{owned_}};
        }
        return pieces_[0];
    }
    /// False if there are bytes, but no PSB to begin at.
    [[nodiscard]] auto has_psb() -> bool {
        auto const is_in = [](byte_view piece) { return trace::find_psb(piece) != trace::npos; };
        return size_ == 0 || std::any_of(pieces_.begin(), pieces_.end(), is_in) || is_in(whole());
    }
    /// Keeps the bytes from the last PSB at or before byte `from` to the first one at or after
    /// byte `to`: offsets in the trace or stream.
    void keep(std::uint64_t from, std::uint64_t to) {
        auto const all = whole();
        auto const place = [&](std::uint64_t at) {
            auto const in_here = at < offset_ ? 0 : at - offset_;
            return static_cast<std::size_t>(std::min<std::uint64_t>(in_here, all.size()));
        };
        auto first = trace::find_psb_before(all, std::min(place(from) + 1, all.size()));
        if (first == trace::npos) { first = 0; }
        auto const last = to <= offset_ ? 0 : trace::find_psb(all, place(to));
        auto const kept = all.first(std::min(last, all.size())).from(std::min(first, last));
        offset_ += first;
        size_ = kept.size();
        pieces_ = {kept};
    }

private:
    std::uint64_t offset_;
    bool is_after_gap_;
    std::size_t size_ = 0;
    std::vector<byte_view> pieces_{};
    std::vector<std::uint8_t> owned_{};
};

/// The bytes of a stream, from one gap to the next.
inline auto stretches_of(trace_file::stream const& of) -> std::vector<stretch> {
    std::vector<stretch> made;
    std::uint64_t offset = 0;
    for (auto const& one : of.pieces) {
        if (made.empty() || one.has_gap_before) { made.emplace_back(offset, one.has_gap_before); }
        if (!one.bytes.empty()) { made.back().add(one.bytes); }
        offset += one.bytes.size();
    }
    return made;
}

/// How to walk.
struct walk_settings {
    flow::walk_options options{};
    /// Where the code contradicts `options.on_ret_mismatch`, a part is walked with the other value.
    bool tries_other_ret = true;
    unsigned jobs = 1;
    trace::clock_options clock{};
    trace_file::conversion to_ns{};
    std::optional<time_window> window{};  ///< the times that are shown
    tool::place_filter places{};          ///< the places that are shown
    tool::progress* bar = nullptr;
};

namespace detail {

/// Blocks of decoded code.
class own_block_cache {
public:
    auto cache() -> flow::block_cache& { return cache_; }

private:
    std::vector<flow::block> storage_ = std::vector<flow::block>(std::size_t{1} << 16);
    flow::block_cache cache_{storage_.data(), storage_.size()};
};

/// The gaps that another effect of uncompressed RETs on the return stack may avoid.
struct wrong_turns {
    recorder& to;
    std::uint64_t count = 0;

    void gap(flow::gap const& one) {
        count += one.why == flow::gap_reason::wrong_turn ? 1 : 0;
        to.gap(one);
    }
};
template <class Sink>
struct counted : Sink {
    wrong_turns& gaps;

    void gap(flow::gap const& one) { gaps.gap(one); }
};

/// Walks a stretch with times in this thread.
template <class Code, class Sink>
void walk_stretch(stretch const& of, Code& code, flow::block_cache& cache, walk_settings const& how,
                  trace::clock& clock, Sink& sink, std::uint64_t& done) {
    constexpr std::size_t most = std::size_t{4} << 20;  // bytes between two reports of progress
    flow::walker<Code, trace::clock> walk{code, cache, how.options, clock};
    for (auto piece : of.pieces()) {
        while (!piece.empty()) {
            auto const now = piece.first(most);
            piece = piece.from(now.size());
            (void)walk.feed(borrowed_bytes{now.data(), now.size()});
            (void)walk.run(sink);
            done += now.size();
            if (how.bar != nullptr) { how.bar->at(done); }
        }
    }
    walk.finish();
    (void)walk.run(sink);
    clock = walk.clock();
    clock.lose();
}
/// The `--ret` that was not given.
inline auto other_ret(walk_settings const& how) -> trace::ret_mismatch {
    using enum trace::ret_mismatch;
    return how.options.on_ret_mismatch == pop ? keep : pop;
}
inline auto name_of(trace::ret_mismatch ret) -> std::string {
    return ret == trace::ret_mismatch::pop ? "pop" : "keep";
}
/// Says that a walk with times had wrong turns.
inline void note_wrong_turns(std::uint64_t count, walk_settings const& how, report& to) {
    if (count == 0 || !how.tries_other_ret) { return; }
    to.notes.push_back(std::to_string(count) + " wrong turns; --ret " + name_of(other_ret(how)) +
                       " was not tried, since times or changing code are needed (GEN-134)");
}
/// The parts that were walked with the other `--ret`, since it fits better.
struct other_rets {
    std::uint64_t count = 0;
    std::uint64_t first = 0;  ///< the offset of the first one

    void add(std::uint64_t offset) {
        if (count++ == 0) { first = offset; }
    }
    void note(std::size_t parts, walk_settings const& how, report& to) const {
        if (count == 0) { return; }
        to.notes.push_back("--ret " + name_of(other_ret(how)) + " fits the code in " +
                           std::to_string(count) + " of " + std::to_string(parts) +
                           " parts, the first at " + tool::hex(first) +
                           ": they were walked so (GEN-134)");
    }
};
/// Records the place of the code, if a report needs it.
template <class Code>
void follow(Code const& code, wanted const& of, walk_settings const& how, recorder& to) {
    if constexpr (requires { code.place(); }) {
        if (of.edges || how.places.is_on()) { to.follow(code.place()); }
    }
}

template <class Code, class Shows>
void walk_in_order(std::vector<stretch> const& all, Code& code, walk_settings const& how,
                   report& to, Shows const& shows) {
    own_block_cache blocks;
    trace::clock clock{how.clock};
    std::uint64_t done = 0;
    std::uint64_t wrong = 0;
    auto needs = to.wants();
    needs.window = how.window.has_value();
    auto const flush = [&](records& from) {
        from.replay(to, shows);
        from.clear();
    };
    for (auto const& one : all) {
        recorder reports{needs, to, one.offset(), code, flush};
        follow(code, needs, how, reports);
        if (one.is_after_gap()) { reports.gap({.why = flow::gap_reason::missing_trace}); }
        wrong_turns turns{reports};
        auto const walk_with = [&](auto sink) {
            walk_stretch(one, code, blocks.cache(), how, clock, sink, done);
        };
        needs.instructions ? walk_with(counted<timed<instruction_recorder>>{{{reports}}, turns})
                           : walk_with(counted<timed<block_recorder>>{{{reports}}, turns});
        flush(reports.all());
        wrong += turns.count;
    }
    note_wrong_turns(wrong, how, to);
}

/// Code that does not depend on times: its address space changes only with the page tables.
template <class Code>
struct untimed_code {
    static constexpr auto changes = flow::space_changes::at_paging;

    Code of;

    auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        return of.code(address, space);
    }
    auto space_of(flow::walk_state const& walked) -> std::uint32_t { return of.space_of(walked); }
    auto needs_time_at(std::uint64_t address, std::uint32_t space) -> bool {
        return of.needs_time_at(address, space);
    }
};

/// A part of a stretch.
struct piece {
    flow::part part;
    std::uint64_t offset;
    bool is_after_gap;

    [[nodiscard]] auto end() const -> std::uint64_t { return offset + part.bytes.size(); }
};
/// The bytes of a part.
inline constexpr std::size_t grain = std::size_t{256} << 10;

inline auto pieces_of(std::vector<stretch>& all, walk_settings const& how) -> std::vector<piece> {
    std::vector<piece> made;
    for (auto& one : all) {
        auto const bytes = one.whole();
        auto const count = how.options.has_branches ? bytes.size() / grain + 1 : 1;
        flow::parts const cut{borrowed_bytes{bytes.data(), bytes.size()}, count,
                              how.options.quirks};
        bool is_after_gap = one.is_after_gap();
        for (auto const& part : cut) {
            made.push_back({part, one.offset() + part.offset, is_after_gap});
            is_after_gap = false;
        }
        if (is_after_gap) { made.push_back({{}, one.offset(), true}); }  // it is empty
    }
    return made;
}

/// Walks parts of the trace in several threads. This thread reports them in order.
template <class Code, class Shows>
void walk_in_threads(std::vector<stretch>& all, Code const& code, walk_settings const& how,
                     report& to, Shows const& shows) {
    auto const parts = pieces_of(all, how);
    struct worker {
        untimed_code<Code> code;
        own_block_cache blocks{};
        std::optional<recorded_runs> runs{};
    };
    std::vector<std::unique_ptr<worker>> workers(how.jobs);
    auto const wanted = to.wants();
    std::uint64_t size = 0;
    for (auto const& one : all) { size += one.size(); }
    // Instructions are recorded singly, and edges with the place of the code.
    bool const has_runs = !wanted.instructions && !wanted.edges && !wanted.blocks &&
                          code.changing_thread() == nullptr;
    struct result {
        records reports{};
        std::uint64_t end = 0;
        std::uint64_t begin = 0;
        bool has_other_ret = false;
    };
    other_rets others;
    auto const make = [&](unsigned number, std::size_t i) {
        auto& by = workers[number];
        if (by == nullptr) {
            by.reset(new worker{{code}});
            if (has_runs) { by->runs.emplace(size); }
        }
        auto const& [part, offset, is_after_gap] = parts[i];
        recorder reports{wanted, to, offset, by->code.of};
        follow(by->code.of, wanted, how, reports);
        if (by->runs) {
            by->runs->limit();
            reports.repeat_with(*by->runs);
        }
        if (is_after_gap) { reports.gap({.why = flow::gap_reason::missing_trace}); }
        auto const code_before = by->code.of;
        auto const walk_with = [&](trace::ret_mismatch ret, recorder& into) {
            auto options = part.options(how.options);
            options.on_ret_mismatch = ret;
            flow::walker walk{borrowed_bytes{part.bytes.data(), part.bytes.size()}, by->code,
                              by->blocks.cache(), options};
            walk.set_space(by->code.space_of({}));
            wrong_turns sink_of{into};
            if (wanted.instructions) {
                counted<instruction_recorder> sink{{into}, sink_of};
                (void)walk.run(sink);
            } else {
                counted<block_recorder> sink{{into}, sink_of};
                (void)walk.run(sink);
            }
            return sink_of.count;
        };
        auto const ret = how.options.on_ret_mismatch;
        auto const wrong = walk_with(ret, reports);
        bool is_other = false;
        if (wrong != 0 && how.tries_other_ret) {
            by->code.of = code_before;
            recorder other{wanted, to, offset, by->code.of};
            follow(by->code.of, wanted, how, other);
            if (is_after_gap) { other.gap({.why = flow::gap_reason::missing_trace}); }
            is_other = walk_with(other_ret(how), other) < wrong;
            if (is_other) { return result{std::move(other.all()), parts[i].end(), offset, true}; }
        }
        return result{std::move(reports.all()), parts[i].end(), offset, false};
    };
    tool::in_order(parts.size(), how.jobs, make, [&](result const& one) {
        one.reports.replay(to, shows);
        if (one.has_other_ret) { others.add(one.begin); }
        if (how.bar != nullptr) { how.bar->at(one.end); }
    });
    others.note(parts.size(), how, to);
}

}  // namespace detail

/// Reports what executed. Between two stretches, packets are missing. Parts are walked in parallel
/// if neither the report nor the code needs times.
template <class Code>
void walk(std::vector<stretch>& all, Code& code, walk_settings const& how, report& to) {
    to.is_shown = !how.window;
    if (to.wants().functions) {
        code.ends.symbols_of = [&to](thread_id thread) { return to.symbols_of(thread); };
    }
    to.is_filtered = how.places.is_on();
    if (code.constant_thread() != nullptr) { to.thread(*code.constant_thread()); }
    auto const shows = [&](trace::time const& when) {
        return !how.window || how.window->contains(when, how.to_ns);
    };
    if constexpr (requires { code.needs_time(); }) {
        bool const is_timed = to.wants().times || how.window || code.needs_time() ||
                              how.places.is_on();
        if (!is_timed) { return detail::walk_in_threads(all, code, how, to, shows); }
    }
    detail::walk_in_order(all, code, how, to, shows);
}

}  // namespace pt_flow
