// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/branch_walk.hpp>
#include <ptspec/trace/events.hpp>

/// The executed instructions of a trace.
namespace ptspec::flow {

/// Why a walker returned.
enum class walk_end : uint8_t {
    end,           ///< the end of the trace
    need_input,    ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    missing_code,  ///< the bytes at `missing()` are absent; the walk continues there
};

/// Walks the code that a trace describes, and reports what executed to a sink.
///
/// Branches that need no binding go from the reader to the walk; other packets become events first.
/// Code is decoded once into blocks. Straight code is reported when a packet shows that it was
/// executed. It is followed for 4096 blocks, through direct jumps; more without a packet is a gap.
/// An IP of an event is reached at its first occurrence.
///
/// After damage, lost packets, absent code, or a packet that contradicts the code there is a gap;
/// the walk resumes at the next packet with an IP.
///
/// A sink or code source may throw. The exception leaves `run`; after it the walker can be
/// destroyed, assigned, or given the `next_input`. Its caches stay valid, and so does a table of
/// runs.
///
/// Shape:  a value of at most 4 KB. It borrows the trace, the source and the cache.
/// Source: PKT-275..277, GEN-101, GEN-110..114, GEN-130..139; those of `trace::event_reader`.
template <code_source Code, trace::event_clock Clock = trace::no_clock>
class walker {
public:
    static_assert(sizeof(detail::source_members<Code>) != 0);

    /// Walks a whole trace from its first PSB on.
    constexpr walker(borrowed_bytes whole, Code& code, block_cache& cache,
                     walk_options const& options = {}, Clock clock = {}) noexcept
        : reader_{whole, clock, options.quirks},
          walk_{code, cache, options},
          quirks_{options.quirks} {}
    /// Walks a trace that arrives in chunks.
    constexpr walker(Code& code, block_cache& cache, walk_options const& options = {},
                     Clock clock = {}) noexcept
        : reader_{clock, options.quirks}, walk_{code, cache, options}, quirks_{options.quirks} {}

    /// Begins another trace, as a new walker does. Caches and address space stay. A fuzzer calls it
    /// for each execution.
    constexpr void next_input(borrowed_bytes whole, Clock clock = {}) noexcept {
        reader_ = reader{whole, clock, quirks_};
        walk_.restart();
    }

    /// Gives the next chunk: at the start, and after `walk_end::need_input`. At other times it
    /// returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return reader_.feed(chunk);
    }
    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { reader_.finish(); }
    /// Where reading continues, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return reader_.offset(); }

    /// Walks until the end of the trace or of the chunk, or until code is missing. An exception of
    /// the sink, of the code source or of `count` leaves it; then the counts of runs that were
    /// repeated are lost.
    template <class Sink>
    constexpr auto run(Sink& sink) -> walk_end {
        (void)detail::sink_members<Sink>{};
        static_assert(flow::sink<Sink>,
                      "a sink has at least one of instruction, block, edge, gap, start, "
                      "stop, time and event");
        if constexpr (takes_runs<Sink>) {
            auto* const runs = sink.runs();
            if (runs != nullptr) {
                if constexpr (!repeats_runs<Sink>) { runs->forget_counts(); }
                auto const end = walk(sink);
                if constexpr (!repeats_runs<Sink>) { runs->count_all(sink); }
                return end;
            }
        }
        return walk(sink);
    }

    /// The linear address whose page is absent: after `walk_end::missing_code`.
    [[nodiscard]] constexpr auto missing() const noexcept -> uint64_t {
        return walk_.walk.missing();
    }
    /// After `walk_end::missing_code`: the caller cannot supply the code at `missing()`. The walker
    /// reports a gap there, as `on_missing_code::gap` does.
    constexpr void skip_missing() noexcept { walk_.walk.skip_missing(); }
    /// The gaps of this trace, and its bytes that were not walked, whatever the sinks take. A gap
    /// is counted at its end, the last one when `run` returns `walk_end::end`.
    [[nodiscard]] constexpr auto gaps() const noexcept -> gap_counts const& {
        return walk_.walk.gaps();
    }
    /// The address space of the code.
    [[nodiscard]] constexpr auto space() const noexcept -> uint32_t { return walk_.walk.space(); }
    /// Sets the address space of the code that follows.
    constexpr void set_space(uint32_t space) noexcept { walk_.walk.set_space(space); }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return reader_.clock(); }

private:
    template <class Sink>
    constexpr auto walk(Sink& sink) -> walk_end {
        using out = detail::branch_walk<Code, Clock, Sink>;
        for (;;) {
            if (!walk_.proceed(sink)) { return walk_end::missing_code; }
            if (walk_.has_ended) {
                walk_.finish(sink);
                return walk_end::end;
            }
            trace::event const* const next = reader_.next_after(out{&walk_, &sink});
            if (next == nullptr) { return walk_end::missing_code; }
            if (next->what == trace::event_type::need_input) {
                return walk_.flush(sink) ? walk_end::need_input : walk_end::missing_code;
            }
            walk_.set_event(*next);
            if constexpr (takes_times<Sink>) { sink.time(next->when); }
            if (next->what == trace::event_type::end) {
                if (!walk_.proceed(sink)) { return walk_end::missing_code; }
                walk_.finish(sink);
                return walk_end::end;
            }
        }
    }

    /// With the usual 32 a walker has more than 4 KB.
    static constexpr unsigned events_at_once = 20;

    using reader = trace::event_reader<Clock, trace::no_hook, packet::all, events_at_once>;

    reader reader_;
    detail::event_walk<Code> walk_;
    cpu::quirk_set quirks_;
};

}  // namespace ptspec::flow
