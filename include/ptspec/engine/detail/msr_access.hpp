// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/engine/action/register_write.hpp>
#include <ptspec/engine/detail/control_transfer.hpp>

/// Accesses to MSRs, which can start and end tracing, and writes of other registers.
///
/// Source: GEN-020..024, GEN-087, GEN-124, GEN-161, GEN-162, GEN-180..185, GEN-236, GEN-240..243,
///         GEN-291, GEN-305.
namespace ptspec::engine::detail {

/// TraceEn rose. A sink with an output starts it now, and calls `count_from_address`. Without one
/// the position is that of the last WRMSR of OutputOffset, and the bytes since.
template <class Sink>
constexpr void begin_output(Sink& sink) noexcept {
    if constexpr (requires { sink.begin_output(); }) { sink.begin_output(); }
}
/// Generates the packets after TraceEn rose, by the instruction at `at`. The last IP is kept.
/// Source: GEN-011, GEN-107, GEN-162, GEN-176, GEN-180..182, GEN-236.
template <class Sink>
constexpr void begin_trace(generator_state& s, access::effect const& result, packet_ip at,
                           Sink& sink, bool by_rsm) noexcept {
    uint64_t const count = s.msrs.status.get<access::ia32_rtit_status::PacketByteCnt>();
    s.writer = {.last_ip = s.writer.last_ip, .bytes = s.writer.bytes};
    s.view = {.in_tx = s.tx_depth != 0, .count_start = s.writer.bytes - count};
    s.in_overflow = s.overflow_requested = false;
    s.deferred_ovf = deferred_ovf::none;
    apply_ctl(s);
    if (!s.trigger_en() && !result.trace_stop) { return; }
    auto const enables = s.enables();
    begin_output(sink);
    bool const psb = result.psb == access::psb_plus_generation::yes ||
                     (result.psb == access::psb_plus_generation::may &&
                      s.options.psb_on_every_enable);
    bool const psb_last = psb && s.options.psb_after_pge && enables.packet();
    packet_ip const next = s.in_packets(s.ip);
    put_packets(s, sink, [&](auto& batch) {
        if (!psb) {
            add_timing(s, batch);
        } else if (!psb_last) {
            bool const filter = enables.filter && s.options.psb_of_enable_has_fup;
            add_psb(s, batch, {enables.trigger, enables.context, filter, enables.branch}, at);
            batch.begin_context();  // the IP of TIP.PGE is not compressed by that of the PSB+
        }
        if (by_rsm && s.ctl<ctl::EventEn>() && enables.context) {
            add_cfe(batch, {packet::cfe_type::RSM, 0, fup_policy::never}, 0, enables);
        }
        if (enables.packet()) {
            if (s.options.psb_before_pge) { add_psb(s, batch, enables); }
            add_changed_mode_exec(s, batch);
            add_moments_before(s, batch, packet::kind::tip_pge);
            batch.template add_ip<packet::tip_pge>(next);
        }
        if (psb_last) { add_psb(s, batch, enables); }
        if (result.trace_stop) { batch.add(packet::tracestop{}); }
    });
}
/// Generates the packets when TraceEn is cleared, for any reason. The MSRs are `next` afterwards;
/// PacketByteCnt includes these packets. Source: GEN-124, GEN-183, GEN-260, GEN-273, REG-061.
template <class Sink>
constexpr void end_trace(generator_state& s, Sink& sink, control_transfer const& transfer,
                         access::msr_state const& next) noexcept {
    using status = access::ia32_rtit_status;
    auto const before = s.enables();
    if (before.trigger) {
        put_packets(s, sink, [&](auto& batch) {
            if (records_events(s, before, before)) {
                add_cfe(batch, transfer.cfe, transfer.from, before);
            }
            if (before.packet() && transfer.has_fup) {
                batch.template add_ip<packet::fup>(transfer.from);
            }
            if (transfer.pip.raw != 0 && s.ctl<ctl::OS>()) { add_pip(s, batch, transfer.pip); }
            if (before.packet()) { add_in_time(s, batch, packet::tip_pgd{}); }
            batch.flush();
            if (s.options.end_alignment != 0) { batch.align_end(s.options.end_alignment); }
        });
        if (s.in_overflow) { s.deferred_ovf = deferred_ovf::ovf; }
    }
    s.overflow_requested = false;
    auto const last = status_now(s);
    s.msrs = next;
    s.msrs.status = next.status.with(
        status::PacketByteCnt{wrapped{last.get<status::PacketByteCnt>()}},
        status::PendPSB{last.get<status::PendPSB>()});
}
/// An instruction at `at` wrote MSRs: TraceEn may have risen or fallen.
template <class Sink>
constexpr void apply_effect(generator_state& s, access::effect const& result, uint64_t at,
                            uint64_t next, Sink& sink) noexcept {
    bool const was_on = s.ctl<ctl::TraceEn>();
    bool const is_on = result.state.ctl.get<ctl::TraceEn>();
    if (was_on && !is_on) {
        end_trace(s, sink, {.from = s.in_packets(at), .has_fup = true}, result.state);
    } else {
        s.msrs = result.state;
    }
    s.ip = next;
    if (!was_on && is_on) {
        begin_trace(s, result, s.in_packets(at), sink, false);
    } else {
        apply_ctl(s);
    }
}

/// Writes IA32_RTIT_CTL between two instructions of the code that executes, at any CPL.
template <class Sink>
[[nodiscard]] constexpr auto start(generator_state& s, access::ia32_rtit_ctl value,
                                   Sink& sink) noexcept -> access::verdict {
    auto const on = value.with(ctl::TraceEn{true});
    auto const checked = access::check_write(s.caps, s.msrs, ctl::address, on.raw, 0,
                                             s.options.policy);
    if (!checked) { return checked; }
    apply_effect(s, access::apply(s.caps, s.msrs, on, s.context_at(s.ip)), s.ip, s.ip, sink);
    complete_action(s, sink);
    return checked;
}
/// Clears TraceEn between two instructions.
template <class Sink>
constexpr void stop(generator_state& s, Sink& sink) noexcept {
    if (!s.ctl<ctl::TraceEn>()) { return; }
    apply_effect(s, {.state = access::disabled(s.msrs)}, s.ip, s.ip, sink);
}

/// RDMSR. Source: REG-011, GEN-161.
[[nodiscard]] constexpr auto rdmsr(generator_state& s, msr_index index) noexcept
    -> access::read_result {
    if (!s.options.msrs_lag) { s.msrs.status = status_now(s); }
    return access::read(s.caps, s.msrs, index, s.code.counted_cpl());
}
/// WRMSR.
///
/// Errors: those of `access::check_write`; nothing has changed then.
/// Source: GEN-021, GEN-088, GEN-106, GEN-180..183.
template <class Sink>
[[nodiscard]] constexpr auto wrmsr(generator_state& s, msr_write const& e, Sink& sink) noexcept
    -> access::verdict {
    auto const result = access::effect_of_write(s.caps, s.msrs, e.index, e.value,
                                                s.context_at(e.next), s.options.policy);
    if (!result) { return result.verdict; }
    apply_effect(s, result, e.at.value, e.next.value, sink);
    using pointers = access::ia32_rtit_output_mask_ptrs;
    if (e.index == pointers::address && !s.ctl<ctl::TraceEn>()) {
        align_to_address(s, s.msrs.output.mask_ptrs.get<pointers::OutputOffset>());
    }
    complete_action(s, sink);
    return result.verdict;
}
/// The instruction at `at` cleared TraceEn and was undone: IA32_RTIT_CTL is as before.
/// Source: GEN-180, GEN-181, GEN-184, PRG-111.
template <class Sink>
constexpr void set_ctl_again(generator_state& s, access::ia32_rtit_ctl value, uint64_t at,
                             Sink& sink) noexcept {
    apply_effect(s, access::apply(s.caps, s.msrs, value, s.context_at(at)), at, at, sink);
    complete_action(s, sink);
}
/// XRSTORS of component 8. Source: GEN-184, REG-143..146.
template <class Sink>
[[nodiscard]] constexpr auto xrstors(generator_state& s, access::xsave_pt_state const& image,
                                     uint64_t at, uint64_t next, Sink& sink) noexcept
    -> access::xrstors_result {
    auto const result = access::xrstors(s.caps, s.msrs, image, s.context_at(next),
                                        s.options.policy);
    if (result) {
        apply_effect(s, result.effect, at, next, sink);
        complete_action(s, sink);
    }
    return result;
}
/// XRSTORS where XSTATE_BV[8] is 0. Source: REG-146.
[[nodiscard]] constexpr auto xrstors_init(generator_state& s, uint64_t next) noexcept
    -> access::xrstors_result {
    auto const result = access::xrstors_init(s.msrs);
    if (result) {
        s.msrs = result.effect.state;
        s.ip = next;
    }
    return result;
}

/// The TraceStop ranges are compared with the address of the MOV CR3, or with the next address.
/// Source: GEN-087, GEN-101, GEN-240..243.
template <class Sink>
constexpr void handle(generator_state& s, action::mov_cr3 const& e, Sink& sink) noexcept {
    uint64_t const cr3 = e.cr3 & ~action::mov_cr3::keeps_translations;
    bool const has_pip = cr3 != s.code.cr3 || s.options.pip_for_same_cr3;
    s.code.cr3 = cr3;
    s.ip = e.next;
    control_transfer const transfer{.encoding = branch_encoding::none,
                                    .to = e.next,
                                    .pip = has_pip ? pip_of(s, s.code) : packet::pip{0}};
    emit_transfer(s, sink, transfer, s.in_packets(s.options.mov_cr3_stops_at_next ? e.next : e.at));
}
template <class Sink>
constexpr void handle(generator_state& s, action::interrupt_flag const& e, Sink& sink) noexcept {
    bool const changes = s.code.IF != e.IF;
    s.code.IF = e.IF;
    s.ip = e.next;
    if (!changes || !s.ctl<ctl::EventEn>() || !s.enables().packet()) { return; }
    put_packets(s, sink, [&](auto& batch) {
        add_mode_exec(s, batch);
        batch.template add_ip<packet::fup>(s.in_packets(e.next));
    });
}

/// Resets generate no packet. Source: GEN-291, REG-090..093.
constexpr void reset(generator_state& s, access::msr_state const& msrs,
                     execution_context const& after, uint64_t ip) noexcept {
    s.msrs = msrs;
    s.code = after;
    s.ip = ip;
    s.vmcs = no_vmcs;
    s.tx_depth = 0;
    s.view = {};
    s.in_overflow = s.overflow_requested = s.in_acm = false;
    s.deferred_ovf = deferred_ovf::none;
    s.shutdown_by = rule::none;
    s.clocks.are_off = false;
    apply_ctl(s);
}
constexpr void warm_reset(generator_state& s, execution_context const& after,
                          uint64_t ip) noexcept {
    s.msrs.status = status_now(s);
    reset(s, access::warm_reset(s.caps, s.msrs), after, ip);
}
constexpr void cold_reset(generator_state& s, execution_context const& after,
                          uint64_t ip) noexcept {
    reset(s, access::cold_reset(), after, ip);
}

}  // namespace ptspec::engine::detail
