// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/binder_state.hpp>

/// What earlier packets require of the next one. If that is missing, the latest of them is at
/// fault.
namespace ptspec::trace::detail {

/// The packets that can follow the FUP of an asynchronous event, including those that end it.
inline constexpr packet::kind_set continues_event = packet::kinds_of(
    kind::pip, kind::vmcs, kind::mode_exec, kind::tip, kind::tip_pgd);

/// The packets that can share the FUP of one event. PTW, BEP and TRIG do not share their FUP:
/// each describes one instruction. Source: PKT-188, PKT-222, PKT-273.
inline constexpr packet::kind_set share_fup = packet::kinds_of(
    kind::mode_tsx, kind::exstop, kind::mwait, kind::pwre, kind::evd, kind::cfe);

constexpr auto may_follow_mode(binder_state const& s) noexcept -> bool {
    return s.is_any_of(packet::kinds_of(kind::tip, kind::tip_pge)) ||
           (s.here.kind == kind::fup && !s.has(pending::event | pending::aborting));
}

/// True if the packet is part of the event that has begun, or comes while a processor waits for
/// a SIPI: GEN-290.
constexpr auto continues(binder_state const& s, packet::any_packet const& packet,
                         bool had_owner) noexcept -> bool {
    if (continues_event.has(s.here.kind)) { return true; }
    if (s.has(pending::aborting)) { return false; }
    if (s.here.kind == kind::fup) { return had_owner; }
    if (packet.is<packet::cfe>()) {
        return packet.as<packet::cfe>().get<packet::cfe::type>() == packet::cfe_type::SIPI;
    }
    return s.is_any_of(packet::kinds_of(kind::pwre, kind::exstop, kind::pwrx));
}

/// Reports a pending MODE.Exec, EVD, owner of a FUP or event if this packet does not continue
/// it. The latest is checked first.
constexpr void check_pending(binder_state& s, packet::any_packet const& packet) noexcept {
    bool const is_fup = s.here.kind == kind::fup;
    if (s.has(pending::mode) && !may_follow_mode(s)) {
        s.violate(s.here.kind == kind::tip_pgd                           ? rule::GEN_237
                  : s.is_any_of(packet::kinds_of(kind::pip, kind::vmcs)) ? rule::GEN_245
                                                                         : rule::GEN_235,
                  s.mode_at);
        s.set(pending::mode, false);
    }
    if (s.has(pending::event_data)) {
        if (!s.is_any_of(packet::kinds_of(kind::evd, kind::cfe))) {
            s.violate(rule::GEN_302, {s.event_data_at, kind::evd});
        }
        s.set(pending::event_data, false);
    }
    bool const had_owner = s.has(pending::owners_of_fup);
    if (had_owner && !is_fup && !(share_fup.has(s.here.kind) && share_fup.has(s.owner_at.kind))) {
        if (s.has(pending::at_start | pending::lost)) { s.drop_lone_transaction(); }
        if (s.has(pending::owners_of_fup)) { s.violate(rule::PKT_273, s.owner_at); }
        s.set(pending::owners_of_fup, false);
    }
    if (s.has(pending::event | pending::aborting) && !continues(s, packet, had_owner)) {
        s.violate(rule::PKT_077, {s.event_at, kind::fup});
        s.set(pending::event | pending::aborting, false);
    }
}

/// After a PSB+ with an IP, TIP.PGE must follow directly, unless PacketEn was 1.
constexpr void check_tip_pge(binder_state& s) noexcept {
    if (s.is_any_of(packet::kinds_of(kind::mode_exec, kind::pip, kind::tip_pge))) { return; }
    if (s.has(pending::needs_tip_pge)) { s.violate(rule::GEN_176, {s.psb.offset, kind::psb}); }
    s.set(pending::needs_tip_pge, false);
    if (!s.has(pending::doubts)) { s.confirm_enabled(); }
}

constexpr void check_pebs_group(binder_state& s) noexcept {
    bool const is_bep = s.here.kind == kind::bep;
    if (is_bep && !s.has(pending::block | pending::at_start | pending::lost)) {
        s.violate(rule::GEN_320);
    }
    if (packet::block_kinds.has(s.here.kind) || s.here.kind == kind::bbp) { return; }
    if (s.has(pending::block) && !is_bep) { s.violate(rule::GEN_321); }
    s.set(pending::block, false);
}

}  // namespace ptspec::trace::detail
