// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/code_walk.hpp>
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
/// executed. An IP of an event is reached at its first occurrence.
///
/// After damage, lost packets, absent code, or a packet that contradicts the code there is a gap;
/// the walk resumes at the next packet with an IP.
///
/// A sink or code source may throw. The exception leaves `run`; after it the walker can be
/// destroyed, assigned, or given the `next_input`. Its caches stay valid, and so do those of paths.
///
/// Shape:  a value of at most 4 KB. It borrows the trace, the source and the cache.
/// Source: PKT-275..277, GEN-101, GEN-110..114, GEN-130..139; those of `trace::event_reader`.
template <code_source Code, trace::event_clock Clock = trace::no_clock>
class walker {
public:
    static_assert(sizeof(detail::source_members<Code>) != 0);

    /// Walks a whole trace from its first PSB on.
    constexpr walker(borrowed_bytes whole, Code& code, block_cache& cache, walk_options how = {},
                     Clock clock = {}) noexcept
        : reader_{whole, clock, how.quirks},
          walk_{code, cache, how},
          quirks_{how.quirks},
          until_{how.until},
          continues_{how.continues} {}
    /// Walks a trace that arrives in chunks.
    constexpr walker(Code& code, block_cache& cache, walk_options how = {},
                     Clock clock = {}) noexcept
        : reader_{clock, how.quirks},
          walk_{code, cache, how},
          quirks_{how.quirks},
          until_{how.until},
          continues_{how.continues} {}

    /// Begins another trace, as a new walker does. Caches and address space stay. A fuzzer calls it
    /// for each execution.
    constexpr void next_input(borrowed_bytes whole, Clock clock = {}) noexcept {
        reader_ = reader{whole, clock, quirks_};
        walk_.restart();
        waits_ = waiting::none;
        psb_end_ = 0;
        psb_has_mode_ = has_ended_ = continues_ = false;
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

    /// Walks until the end of the trace or of the chunk, or until code is missing.
    template <class Sink>
    constexpr auto run(Sink& to) -> walk_end {
        (void)detail::sink_members<Sink>{};
        static_assert(sink<Sink>,
                      "a sink has at least one of instruction, block, edge, gap, start, "
                      "stop, time and event");
        for (;;) {
            if (!proceed(to)) { return walk_end::missing_code; }
            if (has_ended_) { return walk_end::end; }
            trace::event const* const next = reader_.next_after(direct<Sink>{this, &to});
            if (next == nullptr) { return walk_end::missing_code; }
            if (next->what == trace::event_type::need_input) { return walk_end::need_input; }
            event_ = *next;
            walk_.set_packet(next->offset, next->when);
            waits_ = waiting::event;
            if constexpr (takes_times<Sink>) { to.time(next->when); }
            if (next->what == trace::event_type::end) {
                if (!proceed(to)) { return walk_end::missing_code; }
                walk_.close_gap(to, false, 0);
                return walk_end::end;
            }
        }
    }

    /// The linear address whose page is absent: after `walk_end::missing_code`.
    [[nodiscard]] constexpr auto missing() const noexcept -> uint64_t { return walk_.missing(); }
    /// After `walk_end::missing_code`: the caller cannot supply the code at `missing()`. The walker
    /// reports a gap there, as `on_missing_code::gap` does.
    constexpr void skip_missing() noexcept { walk_.skip_missing(); }
    /// The gaps of this trace, and its bytes that were not walked, whatever the sinks take. A gap
    /// is counted at its end, the last one when `run` returns `walk_end::end`.
    [[nodiscard]] constexpr auto gaps() const noexcept -> gap_counts const& { return walk_.gaps(); }
    /// The address space of the code.
    [[nodiscard]] constexpr auto space() const noexcept -> uint32_t { return walk_.space(); }
    /// Sets the address space of the code that follows.
    constexpr void set_space(uint32_t space) noexcept { walk_.set_space(space); }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return reader_.clock(); }

private:
    /// With the usual 32 a walker has more than 4 KB.
    static constexpr unsigned events_at_once = 20;

    using event_type = trace::event_type;
    using reader = trace::event_reader<Clock, trace::no_hook, packet::all, events_at_once>;

    /// What the walker continues when the caller has supplied code.
    enum class waiting : uint8_t { none, branches, branch, disable, event };

    struct null_sink {};

    /// Takes branches from the reader.
    template <class Sink>
    struct direct {
        static constexpr bool skips_packets = takes_paths<Sink> && !takes_times<Sink> &&
                                              changes_of<Code> == space_changes::at_paging &&
                                              __is_empty(Clock);

        walker* to;
        Sink* sink;
        bool stopped = false;

        [[nodiscard]] constexpr auto has_stopped() const noexcept -> bool { return stopped; }

        template <class Packet>
        constexpr auto branches(Packet const& which, trace::packet_place where, Clock& clock)
            -> bool {
            begin(where, clock);
            if (!to->walk_.add_branches(which.taken(), *sink)) { return stop(waiting::branches); }
            return true;
        }
        constexpr auto branch(packet::tip const& which, trace::packet_place where, Clock& clock)
            -> bool {
            begin(where, clock);
            if (!to->walk_.add_target(form_of(which), where.ip, *sink)) {
                return stop_at(waiting::branch, form_of(which), where.ip);
            }
            return true;
        }
        constexpr auto disable(packet::tip_pgd const& which, trace::packet_place where,
                               Clock& clock) -> bool {
            begin(where, clock);
            if (!to->walk_.add_end(form_of(which), where.ip, *sink)) {
                return stop_at(waiting::disable, form_of(which), where.ip);
            }
            return true;
        }
        constexpr auto enable(packet::tip_pge const& which, trace::packet_place where, Clock& clock)
            -> bool {
            begin(where, clock);
            to->walk_.add_start(which.has_ip(), where.ip, *sink);
            return true;
        }

        /// See `trace::skips_packets`. `binds` applies TIP.PGE and TIP.PGD to the binder.
        template <class Binds>
        constexpr auto skip(uint8_t const* bytes, size_t room, uint64_t offset, Binds& binds)
            -> trace::skipped_packets {
            return to->walk_.skip_known_paths(bytes, room, offset, binds, *sink);
        }
        /// Other packets came.
        constexpr void end_skipping() noexcept { to->walk_.end_skipping(); }

    private:
        constexpr void begin(trace::packet_place where, Clock& clock) {
            if constexpr (takes_times<Sink>) { sink->time(clock.now()); }
            to->walk_.set_packet(where.offset, clock.now());
            clock.pass();
        }
        constexpr auto stop_at(waiting what, packet::ip_bytes form, uint64_t target) noexcept
            -> bool {
            to->form_ = form;
            to->event_.to = target;
            return stop(what);
        }
        constexpr auto stop(waiting what) noexcept -> bool {
            to->waits_ = what;
            stopped = true;
            return false;
        }
    };

    /// Continues what waits for code. Returns false if code is missing.
    template <class Sink>
    constexpr auto proceed(Sink& to) -> bool {
        bool is_done = true;
        switch (waits_) {
            case waiting::none: return true;
            case waiting::branches: is_done = walk_.continue_branches(to); break;
            case waiting::branch: is_done = walk_.add_target(form_, event_.to, to); break;
            case waiting::disable: is_done = walk_.add_end(form_, event_.to, to); break;
            case waiting::event: is_done = apply_event(to); break;
        }
        if (!is_done) { return false; }
        waits_ = waiting::none;
        return true;
    }

    template <class Packet>
    static constexpr auto form_of(Packet const& which) noexcept -> packet::ip_bytes {
        return which.template get<typename Packet::IPBytes>();
    }

    // --------------------------------------------------------------------------- events

    template <class Sink>
    constexpr auto apply_event(Sink& to) -> bool {
        if (!walk_.flush(to) || !walk_event(to)) { return false; }
        if constexpr (takes_events<Sink>) {
            if (event_.what > event_type::disabled && event_.offset < until_) { to.event(event_); }
        }
        return true;
    }
    template <class Sink>
    constexpr auto walk_event(Sink& to) -> bool {
        auto const& e = event_;
        // Lost packets may hide where tracing ended: PKT-140, PKT-153.
        bool const is_lost = !walk_.is_known() && !walk_.is_off();
        if (is_lost && e.enabled == trace::tracing::off) { walk_.leave(to); }
        if (!e.is_status && e.what != event_type::psb) { psb_has_mode_ = false; }  // it was cut
        switch (e.what) {
            case event_type::branches:
                if (walk_.add_branches(e.branches(), to) && walk_.flush(to)) { return true; }
                waits_ = waiting::branches;  // they are added
                return false;
            case event_type::indirect_branch:
                return walk_.add_target(form_of(e.packet.template as<packet::tip>()), e.to, to);
            case event_type::disabled:
                return walk_.add_end(form_of(e.packet.template as<packet::tip_pgd>()), e.to, to);
            case event_type::enabled: walk_.add_start(e.has_ip, e.ip, to); return true;
            case event_type::async_branch: return interrupt(to);
            case event_type::async_disabled:
                if (walk_.is_known() && !walk_.walk_until(e.ip, to)) { return false; }
                if (walk_.is_known() && e.has_to) { report_interrupt(to); }
                if constexpr (takes_stops<Sink>) {
                    if (walk_.is_known() && !e.has_to) { to.stop(e.ip, walk_.space()); }
                }
                walk_.leave(to);
                return true;
            case event_type::overflow: return walk_.lose(gap_reason::overflow);
            case event_type::resumed:
                if (walk_.is_known()) { (void)walk_.lose(gap_reason::damage); }
                if (e.has_ip) { walk_.resume(e.ip, to); }
                return true;
            case event_type::psb: return psb(to);
            case event_type::exec_mode:
                walk_.set_width(e.packet.as<packet::mode_exec>());
                psb_has_mode_ = psb_has_mode_ || e.is_status;
                return true;
            case event_type::paging: return page(to);
            case event_type::damage:
                if (e.error == packet::error::none && changes_no_ip()) { return true; }
                return walk_.lose(gap_reason::damage, e.broken);
            case event_type::synced: walk_.count_unread(e.offset); return true;
            case event_type::lost:
            case event_type::resynced:
                if (e.what == event_type::lost) { walk_.count_unread(e.offset); }
                if (walk_.is_known()) { (void)walk_.lose(gap_reason::damage); }
                return true;
            case event_type::ptwrite:
            case event_type::transaction:
            case event_type::exstop:
            case event_type::mwait:
            case event_type::pwre:
            case event_type::pebs_end:
            case event_type::control_flow:
            case event_type::trigger: return visit(to);
            default: return true;
        }
    }
    /// True if damage to the order of packets leaves the IP known: if a time is wrong, while
    /// tracing is off, or before the IP of a PSB+.
    [[nodiscard]] constexpr auto changes_no_ip() const noexcept -> bool {
        return walk_.is_off() || event_.offset < psb_end_ ||
               packet::unbound_kinds.has(event_.packet.kind());
    }
    /// A PIP. Without an IP it belongs to the next MOV CR3, far transfer or VM entry.
    template <class Sink>
    constexpr auto page(Sink& to) -> bool {
        walk_.set_paging(event_.packet.as<packet::pip>());
        if (walk_.is_known() && !event_.is_status && !event_.has_ip) {
            return walk_.has_branches() || walk_.walk_over(instruction_class::mov_to_cr3, to);
        }
        walk_.settle_paging();
        return true;
    }
    /// An event at an IP that does not change the flow.
    template <class Sink>
    constexpr auto visit(Sink& to) -> bool {
        auto const& e = event_;
        if (e.is_status) { return true; }
        if (!e.has_ip) {
            bool const is_ptwrite = e.what == event_type::ptwrite;
            if (!walk_.is_known() || !is_ptwrite || walk_.has_branches()) { return true; }
            return walk_.walk_over(instruction_class::ptwrite, to);
        }
        if (!walk_.is_known()) {
            if (e.enabled == trace::tracing::on) { walk_.resume(e.ip, to); }
            return true;
        }
        return walk_.has_branches() || walk_.find_way_to(e.ip) == gap_reason::wrong_turn ||
               walk_.walk_until(e.ip, to);
    }
    /// An event at `event_.ip`, whose handler is at `event_.to`.
    template <class Sink>
    constexpr auto interrupt(Sink& to) -> bool {
        if (!walk_.is_known()) { walk_.resume(event_.ip, to); }
        if (!walk_.walk_until(event_.ip, to)) { return false; }
        if (!event_.has_to) { return walk_.lose(gap_reason::no_target); }
        if (!walk_.is_known()) {
            walk_.resume(event_.to, to);
        } else {
            report_interrupt(to);
            walk_.go(event_.to);
        }
        walk_.settle_paging();
        return true;
    }
    template <class Sink>
    constexpr void report_interrupt([[maybe_unused]] Sink& to) {
        if constexpr (takes_edges<Sink>) {
            to.edge(edge{.from = event_.ip,
                         .to = event_.to,
                         .after = event_.ip,
                         .space = walk_.space(),
                         .is_asynchronous = true});
        }
    }
    template <class Sink>
    constexpr auto psb(Sink& to) -> bool {
        if (!end_of_psb_plus(to)) { return false; }
        psb_end_ = event_.offset;
        // A MODE.Exec follows before the next IP, unless the PSB+ has one: GEN-236.
        if (!psb_has_mode_) { walk_.forget_width(); }
        psb_has_mode_ = continues_ = false;
        has_ended_ = event_.offset >= until_;
        return true;
    }
    template <class Sink>
    constexpr auto end_of_psb_plus(Sink& to) -> bool {
        if (!event_.has_ip) {
            if (walk_.is_known()) { (void)walk_.lose(gap_reason::damage); }
            walk_.leave(to);
            return true;
        }
        if (walk_.is_known() && !walk_.walk_until(event_.ip, to)) { return false; }
        walk_.clear_returns();
        if (walk_.is_known()) { return true; }
        if (continues_) {
            null_sink none;  // the walker of the part before reports the start
            walk_.resume(event_.ip, none);
        } else if (event_.enabled != trace::tracing::unknown) {
            walk_.resume(event_.ip, to);
        }
        return true;
    }

    reader reader_;
    detail::code_walk<Code> walk_;
    cpu::quirk_set quirks_;
    uint64_t until_;
    bool continues_;
    waiting waits_ = waiting::none;
    packet::ip_bytes form_{};    ///< of the TIP or TIP.PGD that waits
    uint64_t psb_end_ = 0;       ///< the offset of the last PSBEND
    bool psb_has_mode_ = false;  ///< the PSB+ that is read
    bool has_ended_ = false;     ///< at `until_`
    trace::event event_{};
};

}  // namespace ptspec::flow
