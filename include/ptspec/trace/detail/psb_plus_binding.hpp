// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/overflow_end.hpp>

/// The packets of a PSB+.
namespace ptspec::trace::detail {

constexpr auto begin_psb_plus(binder_state& s) noexcept -> binding {
    if (s.has(pending::at_start)) { s.lose_flow(); }  // until PSBEND
    if (s.has(pending::doubts | pending::lost)) { s.drop_lone_transaction(); }
    if (s.has(pending::waiting)) { s.known.forget(); }
    // The FUP of an INIT waits for the SIPI: GEN-290.
    if (s.has(pending::psb_open)) {
        s.violate(rule::PKT_142);
    } else if (s.has((pending::waiting & ~pending::event) | pending::block | pending::asleep)) {
        s.violate(rule::GEN_006);
        s.set(pending::waiting, false);
    }
    s.set(pending::block | pending::asleep | pending::stopped, false);
    s.set(pending::psb_open);
    s.psb.begin(s.here.offset);
    return {.completes = false, .in_psb_plus = true};
}

constexpr auto end_psb_plus(binder_state& s) noexcept -> binding {
    if (!s.has(pending::psb_open)) {
        s.violate(rule::PKT_134);
        s.set(pending::block, false);
        return {};
    }
    s.set(pending::psb_open, false);
    if (!s.psb.has_ip) {
        // PKT-140. After an OVF: PKT-153.
        auto const found = refute(s);
        s.set(pending::overflow | pending::lost, false);
        s.set(tracing::off);
        return {.in_psb_plus = true, .resumed = found};
    }
    if (s.has(pending::overflow)) {
        // GEN-343: a FUP, TIP.PGE or branch shows whether tracing resumed at this IP.
        bool const is_first = !s.has(pending::psb_resumes);
        s.set(pending::lost, false);
        s.set(pending::psb_resumes);
        s.set(tracing::entering);
        return {.in_psb_plus = true, .resumed = is_first ? resumption::possible : resumption::none};
    }
    if (s.execution.enabled != tracing::on) {
        bool const was_off = s.has(pending::off | pending::needs_tip_pge);
        s.resume();
        s.set(tracing::entering);
        s.set(pending::needs_tip_pge, was_off);
    }
    return {.in_psb_plus = true};
}

/// Ends an event at a PSB+, but not an INIT, which leads to real mode: GEN-290.
constexpr void drop_event_unless_init(binder_state& s) noexcept {
    if (!s.has(pending::event) || s.has(pending::psb_resumes) || s.execution.code_bits == 16) {
        return;
    }
    s.violate(rule::PKT_077, {s.event_at, kind::fup});
    s.set(pending::event, false);
}

constexpr auto bind_status(binder_state& s, packet::any_packet const& packet,
                           packet_place place) noexcept -> binding {
    bool agrees = true;
    switch (s.here.kind) {
        case kind::fup:
            if (!packet.as<packet::fup>().has_ip()) { s.violate(rule::PKT_078); }
            break;
        case kind::pip: agrees = s.take(packet.as<packet::pip>(), true); break;
        case kind::vmcs: s.execution.take(packet.as<packet::vmcs>()); break;
        case kind::mode_exec:
            agrees = s.take(packet.as<packet::mode_exec>(), true);
            drop_event_unless_init(s);
            break;
        case kind::mode_tsx: agrees = s.take(packet.as<packet::mode_tsx>(), true); break;
        default: break;
    }
    if (!agrees) {
        s.violate(rule::GEN_344);
        s.violated.is_note = s.here.kind == kind::pip;
    }
    s.psb.add(packet, place);
    return {.to = owner::status, .in_psb_plus = true};
}

constexpr void add_clock(binder_state& s, packet::any_packet const& packet,
                         packet_place place) noexcept {
    if (s.has(pending::psb_open)) { s.psb.add(packet, place); }
    bool const is_cbr = packet.is<packet::cbr>();
    // TraceEn rises, and PacketEn may be 1 with BranchEn 0.
    if (is_cbr || packet.is<packet::tsc>()) { s.set(pending::stopped, false); }
    if (is_cbr) { s.set(pending::after_pgd, false); }
}

}  // namespace ptspec::trace::detail
