// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/code_walk.hpp>
#include <ptspec/packet/kind_set.hpp>
#include <ptspec/trace/psb_plus.hpp>
#include <ptspec/trace/event.hpp>

namespace ptspec::flow::detail {

/// What continues when the caller has supplied code.
enum class waiting : uint8_t { none, branches, branch, disable, event };

struct waiting_step {
    waiting what = waiting::none;
    packet::ip_bytes form{};  ///< of the TIP or TIP.PGD
    uint64_t target = 0;      ///< of its branch
};

template <class Packet>
constexpr auto form_of(Packet const& packet) noexcept -> packet::ip_bytes {
    return packet.template get<typename Packet::IPBytes>();
}

/// Walks the code up to each event of a trace.
///
/// As in `code_walk`, functions return false if code is missing that the caller wants to supply.
template <code_source Code>
struct event_walk {
    code_walk<Code> walk;
    uint64_t until;     ///< the part of the trace ends with the PSB+ at this offset
    bool continues;     ///< the part before it has reported the first start
    bool has_branches;  ///< the trace has branches
    waiting_step step{};
    bool has_ended = false;     ///< at `until`
    bool psb_has_mode = false;  ///< the PSB+ that is read
    uint64_t psb_end = 0;       ///< the offset of the last PSBEND
    trace::event event{};
    stop_reason cause = stop_reason::unknown;  ///< of the event before

    struct no_sink {};

    constexpr event_walk(Code& code, block_cache& cache, walk_options const& options) noexcept
        : walk{code, cache, options},
          until{options.until},
          continues{options.continues},
          has_branches{options.has_branches} {}

    /// Begins another trace, which is whole.
    constexpr void restart() noexcept {
        walk.restart();
        step = {};
        psb_end = 0;
        psb_has_mode = has_ended = continues = false;
    }
    constexpr void set_event(trace::event const& next) {
        event = next;
        walk.set_packet(next.offset, next.when);
        step.what = waiting::event;
    }
    /// Continues what waits for code.
    template <class Sink>
    constexpr auto proceed(Sink& sink) -> bool {
        bool is_done = true;
        switch (step.what) {
            case waiting::none: return true;
            case waiting::branches: is_done = walk.continue_branches(sink); break;
            case waiting::branch: is_done = walk.add_target(step.form, step.target, sink); break;
            case waiting::disable: is_done = walk.add_end(step.form, step.target, sink); break;
            case waiting::event: is_done = apply(sink); break;
        }
        if (!is_done) { return false; }
        step.what = waiting::none;
        return true;
    }
    /// Walks over the branches that are collected. Another sink may take what follows.
    template <class Sink>
    constexpr auto flush(Sink& sink) -> bool {
        if (walk.flush(sink)) { return true; }
        step.what = waiting::branches;
        return false;
    }
    /// True if a whole PSB+ can be taken in place of its events. Walks over the branches before it.
    template <class Sink>
    constexpr auto may_take(trace::psb_plus const& read, uint64_t end_at, Sink& sink) -> bool {
        return end_at < until && walk.agrees_with(read) && walk.flush(sink);
    }
    /// Applies a whole PSB+. Returns false if code is missing: then `proceed` continues.
    template <class Sink>
    constexpr auto add_psb_plus(trace::psb_plus const& status, uint64_t end_at, Sink& sink)
        -> bool {
        set_event({.what = trace::event_type::psb,
                   .enabled = status.has_ip ? trace::tracing::on : trace::tracing::off,
                   .has_ip = status.has_ip,
                   .offset = end_at,
                   .ip = status.has_ip ? status.ip : 0});
        if (status.has(packet::kind::mode_exec)) {
            walk.set_width(status.mode_exec);
            psb_has_mode = true;
        }
        if (status.has(packet::kind::vmcs)) { walk.set_vmcs(status.vmcs); }
        if (status.has(packet::kind::pip)) {
            walk.set_paging(status.pip);
            walk.settle_paging();
        }
        return proceed(sink);
    }
    /// The trace ends, or this part of it.
    template <class Sink>
    constexpr void finish(Sink& sink) {
        walk.close_gap(sink, false, 0);
        if (!has_branches) { walk.count_unread(event.offset); }
    }

private:
    template <class Sink>
    constexpr auto apply(Sink& sink) -> bool {
        if (!walk.flush(sink) || !walk_to_event(sink)) { return false; }
        if constexpr (takes_events<Sink>) {
            if (event.what > trace::event_type::disabled && event.offset < until) {
                sink.event(event);
            }
        }
        return true;
    }
    template <class Sink>
    constexpr auto walk_to_event(Sink& sink) -> bool {
        auto const& e = event;
        // Lost packets may hide where tracing ended: PKT-140, PKT-153.
        bool const is_lost = !walk.is_known() && !walk.is_off() && has_branches;
        if (is_lost && e.enabled == trace::tracing::off) { walk.leave(sink); }
        if (e.what != trace::event_type::async_disabled) { cause = cause_of(e); }
        // Another event than those of a PSB+: the last PSB+ may have no end.
        if (!e.is_status && e.what != trace::event_type::psb) { psb_has_mode = false; }
        switch (e.what) {
            case trace::event_type::branches:
                if (walk.add_branches(e.branches(), sink) && walk.flush(sink)) { return true; }
                step.what = waiting::branches;  // which were added, but not all walked
                return false;
            case trace::event_type::indirect_branch:
                return walk.add_target(form_of(e.packet.template as<packet::tip>()), e.to, sink);
            case trace::event_type::disabled:
                return walk.add_end(form_of(e.packet.template as<packet::tip_pgd>()), e.to, sink);
            case trace::event_type::enabled: walk.add_start(e.has_ip, e.ip, sink); return true;
            case trace::event_type::async_branch: return interrupt(sink);
            case trace::event_type::async_disabled:
                if (walk.is_known() && !walk.walk_until(e.ip, sink)) { return false; }
                if (walk.is_known() && e.has_to) { report_interrupt(sink); }
                if constexpr (takes_stops<Sink>) {
                    if (walk.is_known() && !e.has_to) {
                        sink.stop(stop{e.ip, walk.space(), cause});
                    }
                }
                walk.leave(sink);
                return true;
            case trace::event_type::overflow: return walk.lose(gap_reason::overflow);
            case trace::event_type::resumed:
                if (walk.is_known()) { (void)walk.lose(gap_reason::damage); }
                if (e.has_ip) { walk.resume(e.ip, sink); }
                return true;
            case trace::event_type::psb: return psb(sink);
            case trace::event_type::exec_mode:
                walk.set_width(e.packet.as<packet::mode_exec>());
                psb_has_mode = psb_has_mode || e.is_status;
                return true;
            case trace::event_type::paging: return page(sink);
            case trace::event_type::damage:
                if (e.error == packet::error::none && changes_no_ip()) { return true; }
                return walk.lose(gap_reason::damage, e.broken);
            case trace::event_type::synced: walk.count_unread(e.offset); return true;
            case trace::event_type::lost:
            case trace::event_type::resynced:
                if (e.what == trace::event_type::lost) { walk.count_unread(e.offset); }
                if (walk.is_known()) { (void)walk.lose(gap_reason::damage); }
                return true;
            case trace::event_type::ptwrite:
            case trace::event_type::transaction:
            case trace::event_type::exstop:
            case trace::event_type::mwait:
            case trace::event_type::pwre:
            case trace::event_type::pebs_end:
            case trace::event_type::control_flow:
            case trace::event_type::trigger: return visit(sink);
            case trace::event_type::vmcs: walk.set_vmcs(e.packet.as<packet::vmcs>()); break;
            // They change neither the IP nor the code.
            case trace::event_type::trace_stop:
            case trace::event_type::pwrx:
            case trace::event_type::pebs_group:
            case trace::event_type::pebs_item:
            case trace::event_type::event_data:
            case trace::event_type::frequency:
            case trace::event_type::maintenance:
            case trace::event_type::note:
            case trace::event_type::unknown:
            case trace::event_type::need_input:
            case trace::event_type::end: break;
        }
        return true;
    }
    /// True if damage to the order of packets leaves the IP known: if a time is wrong, while
    /// tracing is off, or before the IP of a PSB+.
    [[nodiscard]] constexpr auto changes_no_ip() const noexcept -> bool {
        return walk.is_off() || event.offset < psb_end ||
               packet::unbound_kinds.has(event.packet.kind());
    }
    /// A PIP. Without an IP it belongs to the next MOV CR3, far transfer or VM entry.
    template <class Sink>
    constexpr auto page(Sink& sink) -> bool {
        walk.set_paging(event.packet.as<packet::pip>());
        if (walk.is_known() && !event.is_status && !event.has_ip) {
            return walk.has_branches() || walk.walk_over(instruction_class::mov_to_cr3, sink);
        }
        walk.settle_paging();
        return true;
    }
    /// An event at an IP that does not change the flow.
    template <class Sink>
    constexpr auto visit(Sink& sink) -> bool {
        auto const& e = event;
        if (e.is_status) { return true; }
        if (!e.has_ip) {
            bool const is_ptwrite = e.what == trace::event_type::ptwrite;
            if (!walk.is_known() || !is_ptwrite || walk.has_branches()) { return true; }
            return walk.walk_over(instruction_class::ptwrite, sink);
        }
        if (!walk.is_known()) {
            if (e.enabled == trace::tracing::on) { walk.resume(e.ip, sink); }
            return true;
        }
        return walk.has_branches() || walk.find_way_to(e.ip) == gap_reason::wrong_turn ||
               walk.walk_until(e.ip, sink);
    }
    /// An event at `event.ip`, whose handler is at `event.to`.
    template <class Sink>
    constexpr auto interrupt(Sink& sink) -> bool {
        if (!walk.is_known()) { walk.resume(event.ip, sink); }
        if (!walk.walk_until(event.ip, sink)) { return false; }
        if (!event.has_to) { return walk.lose(gap_reason::no_target); }
        if (!walk.is_known()) {
            walk.resume(event.to, sink);
        } else {
            report_interrupt(sink);
            walk.go(event.to);
        }
        walk.settle_paging();
        return true;
    }
    /// What a CFE says of the end of tracing after it.
    ///
    /// Source: SDM vol. 3, "Control Flow Event (CFE) Packet"; GEN-301, GEN-303.
    [[nodiscard]] static constexpr auto cause_of(trace::event const& one) noexcept -> stop_reason {
        if (one.what != trace::event_type::control_flow) { return stop_reason::unknown; }
        auto const cfe = one.packet.as<packet::cfe>();
        switch (cfe.get<packet::cfe::type>()) {
            case packet::cfe_type::SWINTR:
            case packet::cfe_type::SYSCALL: return stop_reason::system_call;
            case packet::cfe_type::INTR: {
                constexpr unsigned nmi = 2, first_interrupt = 32;
                auto const vector = cfe.get<packet::cfe::vector>();
                return vector < first_interrupt && vector != nmi ? stop_reason::fault
                                                                 : stop_reason::interrupt;
            }
            case packet::cfe_type::SMI:
            case packet::cfe_type::INIT:
            case packet::cfe_type::VMEXIT:
            case packet::cfe_type::VMEXIT_INTR: return stop_reason::interrupt;
            default: return stop_reason::unknown;
        }
    }
    template <class Sink>
    constexpr void report_interrupt([[maybe_unused]] Sink& sink) {
        if constexpr (takes_edges<Sink>) {
            sink.edge(edge{.from = event.ip,
                           .to = event.to,
                           .after = event.ip,
                           .space = walk.space(),
                           .is_asynchronous = true});
        }
    }
    template <class Sink>
    constexpr auto psb(Sink& sink) -> bool {
        if (!end_of_psb_plus(sink)) { return false; }
        psb_end = event.offset;
        // A MODE.Exec follows before the next IP, unless the PSB+ has one: GEN-236.
        if (!psb_has_mode) { walk.forget_width(); }
        psb_has_mode = continues = false;
        has_ended = event.offset >= until;
        return true;
    }
    template <class Sink>
    constexpr auto end_of_psb_plus(Sink& sink) -> bool {
        if (!event.has_ip) {
            if (walk.is_known()) { (void)walk.lose(gap_reason::damage); }
            if (has_branches) { walk.leave(sink); }
            return true;
        }
        if (walk.is_known() && !walk.walk_until(event.ip, sink)) { return false; }
        walk.clear_returns();
        if (walk.is_known()) { return true; }
        if (continues) {
            no_sink none;  // the walker of the part before reports the start
            walk.resume(event.ip, none);
        } else if (event.enabled != trace::tracing::unknown) {
            walk.resume(event.ip, sink);
        }
        return true;
    }
};

}  // namespace ptspec::flow::detail
