// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/xsave.hpp>
#include <ptspec/engine/packets/branches.hpp>

namespace ptspec::engine {

/// Accesses to MSRs, which start and end tracing, and other registers. The fifth layer of
/// `generator`.
///
/// Source: GEN-020..024, GEN-087, GEN-124, GEN-161, GEN-162, GEN-180..185, GEN-236, GEN-240..243,
///         GEN-291, GEN-305.
class generator_msrs : public generator_flow {
public:
    using generator_flow::generator_flow;
    using generator_flow::on;

    /// RDMSR. Source: REG-011, GEN-161.
    [[nodiscard]] constexpr auto rdmsr(uint32_t index) noexcept -> access::read_result {
        if (!how_.msrs_lag) { sync_status(); }
        return access::read(of_, msrs_, index, code_.counted_cpl());
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at,
                                         uint64_t next, Sink& to) noexcept
        -> access::xrstors_result {
        auto const done = access::xrstors(of_, msrs_, image, context_at(next), how_.policy);
        if (done) { take(done.effect, at, next, to); }
        return done;
    }
    /// The same where XSTATE_BV[8] is 0. Source: REG-146.
    [[nodiscard]] constexpr auto xrstors_init(uint64_t next) noexcept -> access::xrstors_result {
        auto const done = access::xrstors_init(msrs_);
        if (done) {
            msrs_ = done.effect.state;
            ip_ = next;
        }
        return done;
    }
    /// WRMSR by the instruction at `at`.
    ///
    /// Errors: those of `access::check_write`; nothing has happened then.
    /// Source: GEN-021, GEN-088, GEN-106, GEN-180..183.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto wrmsr(uint32_t index, uint64_t value, uint64_t at, uint64_t next,
                                       Sink& to) noexcept -> access::verdict {
        auto const done = access::effect_of_write(of_, msrs_, index, value, context_at(next),
                                                  how_.policy);
        if (!done) { return done.verdict; }
        take(done, at, next, to);
        return done.verdict;
    }

    template <trace::packet_sink Sink>
    constexpr void on(event::mov_cr3 const& e, Sink& to) noexcept {
        enables const before = enables_now();
        uint64_t const cr3 = e.cr3 & ~event::mov_cr3::keeps_translations;
        bool const changes = cr3 != code_.cr3 || how_.pip_for_same_cr3;
        code_.cr3 = cr3;
        ip_ = e.next;
        if (before.trigger) { move_cr3(to, e, before, changes); }
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::interrupt_flag const& e, Sink& to) noexcept {
        bool const changes = code_.IF != e.IF;
        code_.IF = e.IF;
        ip_ = e.next;
        if (changes && is_set<ctl::EventEn>() && enables_now().packet()) {
            emit(to, [&](auto& all) {
                add_mode(all);
                all.template add_ip<packet::fup>(form(e.next));
            });
        }
        finish(to);
    }

    /// Neither reset leaves a packet. Source: GEN-291, REG-090..093.
    constexpr void warm_reset(running const& after, uint64_t ip) noexcept {
        sync_status();
        reset(access::warm_reset(of_, msrs_), after, ip);
    }
    constexpr void cold_reset(running const& after, uint64_t ip) noexcept {
        reset(access::cold_reset(), after, ip);
    }

protected:
    constexpr void reset(access::msr_state const& now, running const& after, uint64_t ip) noexcept {
        msrs_ = now;
        code_ = after;
        ip_ = ip;
        vmcs_ = no_vmcs;
        tx_depth_ = 0;
        told_ = {};
        loses_ = loses_on_ = in_acm_ = false;
        owes_ = owed::nothing;
        shut_down_by_ = rule::none;
        clocks_.are_off = false;
        take_over_ctl();
    }
    /// MSRs are as an instruction left them: TraceEn may have risen or fallen.
    template <class Sink>
    constexpr void take(access::effect const& done, uint64_t at, uint64_t next, Sink& to) noexcept {
        bool const was_on = is_set<ctl::TraceEn>();
        bool const is_on = done.state.ctl.get<ctl::TraceEn>();
        if (was_on && !is_on) {
            end_trace(to, {.from = form(at), .has_fup = true}, done.state);
        } else {
            msrs_ = done.state;
        }
        ip_ = next;
        if (!was_on && is_on) { return begin_trace(done, to, false), finish(to); }
        take_over_ctl();
    }
    /// TraceEn has risen. A reader's last IP stays. Source: GEN-107, GEN-162, GEN-180..182, GEN-236.
    template <class Sink>
    constexpr void begin_trace(access::effect const& done, Sink& to, bool by_rsm) noexcept {
        now_ = {.last_ip = now_.last_ip, .bytes = now_.bytes};
        told_ = {.in_tx = tx_depth_ != 0,
                 .counted = now_.bytes - msrs_.status.get<status::PacketByteCnt>()};
        loses_ = loses_on_ = false;
        owes_ = owed::nothing;
        take_over_ctl();
        if (!triggers() && !done.trace_stop) { return; }
        enables const now = enables_now();
        bool const psb = done.psb == access::psb_plus::yes ||
                         (done.psb == access::psb_plus::may && how_.psb_on_every_enable);
        bool const psb_behind = psb && how_.psb_after_pge && now.packet();
        emit(to, [&](auto& all) {
            if (!psb) {
                add_times(all);
            } else if (!psb_behind) {
                add_psb(all, {now.trigger, now.context, false, now.branch});
            }
            if (by_rsm && is_set<ctl::EventEn>() && now.context) {
                add_events(all, {packet::cfe_type::RSM, 0, own_ip::never}, 0, now);
            }
            if (now.packet()) {
                add_mode(all);
                all.template add_ip<packet::tip_pge>(form(ip_));
            }
            if (psb_behind) { add_psb(all, now); }
            if (done.trace_stop) { all.add(packet::tracestop{}); }
        });
    }
    /// The packets of whatever clears TraceEn, behind which the MSRs are `next` and count the bytes
    /// of those packets, too. Source: GEN-124, GEN-183, GEN-260, GEN-273, REG-061.
    template <class Sink>
    constexpr void end_trace(Sink& to, movement const& how,
                             access::msr_state const& next) noexcept {
        enables const before = enables_now();
        if (before.trigger) {
            emit(to, [&](auto& all) {
                if (tells_events(before, before)) { add_events(all, how.tells, how.from, before); }
                if (before.packet() && how.has_fup) { all.template add_ip<packet::fup>(how.from); }
                if (how.pip.raw != 0 && is_set<ctl::OS>()) { add_pip(all, how.pip); }
                if (before.packet()) { all.add(packet::tip_pgd{}); }
                all.flush();
            });
        }
        if (before.trigger && loses_) { owes_ = owed::ovf; }
        loses_on_ = false;
        sync_status();
        auto const last = msrs_.status;
        msrs_ = next;
        msrs_.status = next.status.with(
            status::PacketByteCnt{wrapped{last.get<status::PacketByteCnt>()}},
            status::PendPSB{last.get<status::PendPSB>()});
    }
    /// MOV CR3. Source: GEN-087, GEN-101, GEN-240..243.
    template <class Sink>
    constexpr void move_cr3(Sink& to, event::mov_cr3 const& e, enables const& before,
                            bool tells_pip) noexcept {
        uint64_t const next = form(e.next);
        uint64_t const stops_at = how_.mov_cr3_stops_at_next ? next : form(e.at);
        auto const done = evaluate(of_, msrs_, context_of(code_, next), {true, next, stops_at});
        msrs_.status = done.status;
        bool const was_on = before.packet();
        bool const is_on = done.after.packet();
        owe(done);
        emit(to, [&](auto& all) {
            if (tells_pip && done.after.context && is_set<ctl::OS>()) { add_pip(all, pip()); }
            if (was_on && !is_on) {
                if (done.after.context) {
                    all.template add_ip<packet::tip_pgd>(next);
                } else {
                    all.add(packet::tip_pgd{});
                }
            } else if (!was_on && is_on) {
                add_mode_where_stale(all);
                all.template add_ip<packet::tip_pge>(next);
            }
            if (done.trace_stop) { all.add(packet::tracestop{}); }
        });
        if (done.trace_stop || was_on != is_on) { settle(); }
    }
};

}  // namespace ptspec::engine
