// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/packet_order.hpp>
#include <ptspec/trace/detail/psb_plus_binding.hpp>
#include <ptspec/base/attribute.hpp>

/// What a packet belongs to.
namespace ptspec::trace::detail {

/// A packet without a FUP.
constexpr auto bind_alone(binder_state& s, owner to) noexcept -> binding {
    end_overflow(s);
    return {.to = to};
}

/// Records that a FUP of this packet follows, if `has_fup`. Several packets may share a FUP.
constexpr auto expect_fup(binder_state& s, owner bound_to, uint32_t flag, bool has_fup) noexcept
    -> binding {
    end_overflow(s);
    if (has_fup) {
        s.set(flag);
        s.owner_at = s.here;
    }
    return {.to = bound_to, .completes = !has_fup};
}

constexpr auto bind_tnt(binder_state& s, bool loses_flow) noexcept -> binding {
    auto const resumed = confirm(s);
    if (s.has(pending::off)) { s.violate(rule::GEN_105); }
    if (s.has(pending::off) || loses_flow ||
        (s.has(pending::overflow) && !s.has(pending::psb_resumes))) {
        s.lose_flow();
    }
    s.set(pending::overflow | pending::doubts, false);
    return {.to = owner::branch, .resumed = resumed};
}

/// What a TIP or TIP.PGD ends. While PacketEn is 0, one without a FUP before it violates `broken`;
/// with a FUP, these are an INIT and its SIPI (GEN-290).
constexpr auto owner_of_target(binder_state& s, rule broken) noexcept -> owner {
    if (s.has(pending::aborting)) { return owner::transaction_abort; }
    if (s.has(pending::event)) { return owner::asynchronous; }
    if (s.has(pending::off)) { s.violate(broken); }
    return s.has(pending::mode) ? owner::far_transfer : owner::branch;
}

constexpr auto bind_tip(binder_state& s) noexcept -> binding {
    auto const resumed = confirm(s);
    auto const bound_to = owner_of_target(s, rule::GEN_105);
    s.set(pending::waiting | pending::doubts, false);
    s.resume();
    return {.to = bound_to, .resumed = resumed};
}

constexpr auto bind_tip_pge(binder_state& s) noexcept -> binding {
    s.check_stop();
    if (s.execution.enabled == tracing::on) { s.violate(rule::GEN_100); }
    s.known.enable(s.has(pending::entering), s.has(pending::mode));
    s.set(pending::waiting, false);
    s.resume();
    return {.to = owner::enable};
}

constexpr auto bind_tip_pgd(binder_state& s) noexcept -> binding {
    auto const resumed = confirm(s, s.has(pending::overflow) && s.quirks.has(cpu::quirk::apl11));
    auto const bound_to = owner_of_target(s, rule::GEN_101);
    s.end_tracing(pending::after_pgd);
    return {.to = bound_to, .resumed = resumed};
}

constexpr auto bind_fup(binder_state& s) noexcept -> binding {
    s.check_stop();
    if (s.has(pending::owners_of_fup)) {
        auto const bound_to = s.has(pending::transaction)    ? owner::transaction
                              : s.has(pending::abort)        ? owner::transaction_abort
                              : s.has(pending::ptwrite)      ? owner::ptwrite
                              : s.has(pending::exstop)       ? owner::power
                              : s.has(pending::pebs)         ? owner::pebs
                              : s.has(pending::control_flow) ? owner::control_flow
                                                             : owner::trigger;
        bool const is_abort = s.has(pending::abort);
        s.set(pending::owners_of_fup, false);
        if (is_abort) { s.begin_event(pending::aborting); }
        return {.to = bound_to, .completes = !is_abort};
    }
    if (s.has(pending::mode)) {
        s.set(pending::mode, false);
        return {.to = owner::interrupt_flag};
    }
    if (s.has(pending::overflow)) { return end_overflow_at_fup(s); }
    if (s.has(pending::off)) {
        s.violate(rule::GEN_342);
        s.set(tracing::on);
    }
    s.begin_event(pending::event);
    return {.to = owner::asynchronous, .completes = false};
}

/// Binds a PIP or VMCS, which is part of a compound event or alone.
constexpr auto bind_pip_or_vmcs(binder_state& s) noexcept -> binding {
    end_overflow(s);
    bool const is_middle = s.has(pending::event | pending::aborting);
    return {.to = is_middle ? owner::asynchronous : owner::paging, .completes = !is_middle};
}

constexpr auto bind_mode_exec(binder_state& s, packet::mode_exec packet) noexcept -> binding {
    end_overflow(s);
    (void)s.take(packet, s.is_on());
    s.set(pending::mode);
    s.mode_at = s.here;
    return {.to = s.has(pending::event | pending::aborting) ? owner::asynchronous
                                                            : owner::far_transfer,
            .completes = false};
}

/// Binds a MODE.TSX. A FUP follows, unless tracing is known to be off. Source: PKT-093.
constexpr auto bind_mode_tsx(binder_state& s, packet::mode_tsx packet) noexcept -> binding {
    end_overflow(s);
    (void)s.take(packet, s.is_on());
    bool const aborts = packet.get<packet::mode_tsx::TXAbort>();
    return expect_fup(s, aborts ? owner::transaction_abort : owner::transaction,
                      aborts ? pending::abort : pending::transaction, !s.has(pending::off));
}

constexpr auto bind_trace_stop(binder_state& s) noexcept -> binding {
    s.check_stop();
    if (s.is_on()) { s.violate(rule::GEN_090); }
    s.end_tracing(pending::stopped);
    return {.to = owner::trace_stop};
}

/// Binds a PTW. None follows a TIP.PGD while PacketEn is 0. Source: GEN-300.
constexpr auto bind_ptw(binder_state& s, bool has_fup) noexcept -> binding {
    end_overflow(s);
    if (s.has(pending::after_pgd)) { s.violate(rule::GEN_300); }
    return expect_fup(s, owner::ptwrite, pending::ptwrite, has_fup);
}

constexpr auto bind_by_kind(binder_state& s, packet::any_packet const& packet,
                            bool loses_flow) noexcept -> binding {
    switch (s.here.kind) {
        case kind::tnt_short:
        case kind::tnt_long: return bind_tnt(s, loses_flow);
        case kind::tip: return bind_tip(s);
        case kind::tip_pge: return bind_tip_pge(s);
        case kind::tip_pgd: return bind_tip_pgd(s);
        case kind::fup: return bind_fup(s);
        case kind::pip:
            (void)s.take(packet.as<packet::pip>(), s.is_on());
            return bind_pip_or_vmcs(s);
        case kind::vmcs:
            s.execution.take(packet.as<packet::vmcs>());
            s.known.forget_cr3();
            return bind_pip_or_vmcs(s);
        case kind::mode_exec: return bind_mode_exec(s, packet.as<packet::mode_exec>());
        case kind::mode_tsx: return bind_mode_tsx(s, packet.as<packet::mode_tsx>());
        case kind::tracestop: return bind_trace_stop(s);
        case kind::ptw: return bind_ptw(s, packet.as<packet::ptw>().get<packet::ptw::IP>());
        case kind::exstop:
            return expect_fup(s, owner::power, pending::exstop,
                              packet.as<packet::exstop>().get<packet::exstop::IP>());
        case kind::mwait: return bind_alone(s, owner::power);
        case kind::pwre: s.set(pending::asleep); return bind_alone(s, owner::power);
        case kind::pwrx: s.set(pending::asleep, false); return bind_alone(s, owner::power);
        case kind::bbp: s.set(pending::block); return bind_alone(s, owner::pebs);
        case kind::bip: return bind_alone(s, owner::pebs);
        case kind::bep:
            return expect_fup(s, owner::pebs, pending::pebs,
                              packet.as<packet::bep>().get<packet::bep::IP>());
        case kind::evd: {
            auto found = bind_alone(s, owner::control_flow);
            s.set(pending::event_data);
            s.event_data_at = s.here.offset;
            found.completes = false;
            return found;
        }
        case kind::cfe:
            s.known.take(packet.as<packet::cfe>());
            return expect_fup(s, owner::control_flow, pending::control_flow,
                              packet.as<packet::cfe>().get<packet::cfe::IP>());
        case kind::trig:
            return expect_fup(s, owner::trigger, pending::trigger,
                              packet.as<packet::trig>().get<packet::trig::IP>());
        // `bind_packet` binds these.
        case kind::ovf:
        case kind::psb:
        case kind::psbend:
        // The binder binds these itself.
        case kind::pad:
        case kind::tsc:
        case kind::tma:
        case kind::mtc:
        case kind::cyc:
        case kind::cbr:
        case kind::mnt:
        case kind::none: break;
    }
    return {};
}

constexpr auto bind_outside_psb_plus(binder_state& s, packet::any_packet const& packet) noexcept
    -> binding {
    if (s.here.kind == kind::fup && !packet.as<packet::fup>().has_ip()) {
        s.violate(rule::PKT_078);
        if (!s.has(pending::owners_of_fup)) { return {.to = owner::asynchronous}; }
    }
    bool const shows_off = s.is_any_of(packet::kinds_of(kind::tip_pge, kind::tracestop));
    auto const refuted = shows_off ? refute(s) : resumption::none;
    bool const loses_flow = s.has(pending::event | pending::aborting | pending::abort |
                                  pending::mode);
    if (s.has(pending::waiting)) { check_pending(s, packet); }
    if (s.has(pending::needs_tip_pge | pending::entering)) { check_tip_pge(s); }
    auto found = bind_by_kind(s, packet, loses_flow);
    check_pebs_group(s);
    if (shows_off) { found.resumed = refuted; }
    return found;
}

constexpr auto bind_packet(binder_state& s, packet::any_packet const& packet,
                           packet_place place) noexcept -> binding {
    switch (s.here.kind) {
        case kind::psb: return begin_psb_plus(s);
        case kind::psbend: return end_psb_plus(s);
        case kind::ovf: return bind_ovf(s);
        default: break;
    }
    if (s.has(pending::psb_open)) {
        if (packet::psb_plus_kinds.has(s.here.kind)) { return bind_status(s, packet, place); }
        bool const is_tnt = s.is_any_of(packet::kinds_of(kind::tnt_short, kind::tnt_long));
        s.violate(is_tnt ? rule::GEN_125 : rule::GEN_172);
        s.set(pending::psb_open, false);
        s.known.forget();
    }
    return bind_outside_psb_plus(s, packet);
}

/// Binds a packet that `binder::add` does not bind itself.
///
/// noinline: without it, binding all packets one by one takes up to 31 % more instructions
/// (g++ 12).
PTSPEC_ATTRIBUTE(noinline)
constexpr auto bind_on_slow_path(binder_state& s, packet::any_packet const& packet,
                                 packet_place place) noexcept -> binding {
    s.here = {place.offset, packet.kind()};
    s.violated.broken = rule::none;
    bool const settles = s.has(pending::shared_fup) && !continues_event.has(s.here.kind);
    auto const settled = settles ? settle_fup(s) : resumption::none;
    auto found = bind_packet(s, packet, place);
    if (settles) { found.resumed = settled; }
    if (s.violated.broken != rule::none) [[unlikely]] {
        found.broken = s.violated.broken;
        found.is_note = s.violated.is_note;
    }
    return found;
}

}  // namespace ptspec::trace::detail

#undef PTSPEC_ATTRIBUTE
