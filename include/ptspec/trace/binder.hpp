// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/detail/packet_owner.hpp>

namespace ptspec::trace {

/// Binds each packet to its owner, tracks the state of the processor, and checks the order of
/// packets.
///
/// A packet violates at most one rule. If what earlier packets require is missing, the latest of
/// these packets is at fault, otherwise the packet itself. What the packet contradicts is dropped,
/// and the packet is bound without it. After control flow packets that cannot be bound, `is_lost()`
/// is true until the next packet with an IP.
///
/// Shape:  a plain value of fixed size.
/// Source: PKT-070..078, PKT-082, PKT-092, PKT-093, PKT-134..142, PKT-150..154, PKT-161, PKT-163,
///         PKT-172, PKT-181, PKT-188, PKT-204, PKT-222, PKT-241, PKT-270..274, GEN-006, GEN-020,
///         GEN-090, GEN-100..105, GEN-125, GEN-172, GEN-176, GEN-227, GEN-228, GEN-235,
///         GEN-237, GEN-245, GEN-246, GEN-290, GEN-300, GEN-302, GEN-320, GEN-321,
///         GEN-342..344.
class binder {
public:
    constexpr binder() noexcept = default;
    constexpr explicit binder(cpu::quirk_set quirks) noexcept { state_.quirks = quirks; }

    /// The state after the last packet.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& {
        return state_.execution;
    }
    /// The violation of the last packet whose binding has a broken rule.
    [[nodiscard]] constexpr auto violated() const noexcept -> violation const& {
        return state_.violated;
    }
    [[nodiscard]] constexpr auto in_psb_plus() const noexcept -> bool {
        return state_.has(pending::psb_open);
    }
    /// What the open PSB+, or the last one, reports.
    [[nodiscard]] constexpr auto last_psb_plus() const noexcept -> psb_plus const& {
        return state_.psb;
    }
    /// True after an OVF, until a packet shows whether and where tracing resumes.
    [[nodiscard]] constexpr auto in_overflow() const noexcept -> bool {
        return state_.has(pending::overflow | pending::psb_resumes);
    }
    /// True if tracing may have resumed at an IP, which a later packet confirms or refutes.
    [[nodiscard]] constexpr auto may_have_resumed() const noexcept -> bool {
        return state_.has(pending::doubts);
    }
    /// True if packets are lost or cannot be bound: the branches of TNTs are at unknown IPs until a
    /// packet has an IP. False before the first packet that shows PacketEn.
    [[nodiscard]] constexpr auto is_lost() const noexcept -> bool {
        return state_.has(pending::lost);
    }
    /// True if tracing is on and no packet is pending: TNT and TIP belong to branches.
    [[nodiscard]] constexpr auto binds_branches() const noexcept -> bool {
        return state_.flags == 0;
    }
    /// True if an asynchronous event has begun with its FUP: TIP or TIP.PGD ends it. If the event
    /// is an INIT, packets of other owners and a PSB+ may come before its end: GEN-290.
    [[nodiscard]] constexpr auto in_event() const noexcept -> bool {
        return state_.has(pending::event);
    }
    /// True if a PSB+ with an IP came while PacketEn was 0: TIP.PGE follows. Source: GEN-176.
    [[nodiscard]] constexpr auto needs_tip_pge() const noexcept -> bool {
        return state_.has(pending::needs_tip_pge);
    }

    /// True if both binders bind all later packets in the same way.
    [[nodiscard]] constexpr auto agrees_with(binder const& other) const noexcept -> bool {
        return state_.flags == other.state_.flags && state_.known == other.state_.known &&
               state_.execution.enabled == other.state_.execution.enabled;
    }

    /// Packets are lost: resets the state to unknown.
    constexpr void restart() noexcept {
        state_.execution = {};
        state_.flags = pending::lost;
        state_.known.forget();
    }
    /// Ends the doubt when no packet follows that confirms or refutes where tracing resumed:
    /// tracing resumed at the IP of a FUP, but not at the IP of a PSB+.
    constexpr auto end_doubt() noexcept -> resumption {
        auto const found = state_.has(pending::shared_fup)    ? detail::settle_fup(state_)
                           : state_.has(pending::psb_resumes) ? resumption::withdrawn
                                                              : resumption::none;
        state_.set(pending::doubts, false);
        return found;
    }

    /// Binds the next packet, as a visitor gets it.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const& packet, packet_place place) noexcept -> binding {
        if constexpr (branch_kinds.has(Packet::about.id)) {
            if (binds_branches()) [[likely]] { return {.to = owner::branch}; }
        } else if constexpr (packet::unbound_kinds.has(Packet::about.id)) {
            if constexpr (one_of<Packet, packet::tsc, packet::tma, packet::cbr>) {
                add_unbound({packet, place.length}, place);
            }
            return {.in_psb_plus = in_psb_plus()};
        } else if constexpr (same_as<Packet, packet::tip_pgd>) {
            if (try_end_tracing()) { return {.to = owner::branch}; }
        } else if constexpr (same_as<Packet, packet::tip_pge>) {
            if (try_start_tracing()) { return {.to = owner::enable}; }
        }
        return detail::bind_on_slow_path(state_, {packet, place.length}, place);
    }
    /// Binds the next packet.
    constexpr auto add(packet::any_packet const& packet, packet_place place) noexcept -> binding {
        if (branch_kinds.has(packet.kind()) && binds_branches()) [[likely]] {
            return {.to = owner::branch};
        }
        if (packet::unbound_kinds.has(packet.kind())) {
            add_unbound(packet, place);
            return {.in_psb_plus = in_psb_plus()};
        }
        return detail::bind_on_slow_path(state_, packet, place);
    }
    /// Binds a TIP.PGD that belongs to a branch. Returns false, and changes nothing, for any other
    /// TIP.PGD.
    [[nodiscard]] constexpr auto try_end_tracing() noexcept -> bool {
        if (!binds_branches()) { return false; }
        state_.execution.enabled = tracing::off;
        state_.flags = pending::off | pending::after_pgd;
        state_.known.forget();
        return true;
    }
    /// Binds a TIP.PGE without a MODE.Exec. Returns false, and changes nothing, for any other
    /// TIP.PGE.
    [[nodiscard]] constexpr auto try_start_tracing() noexcept -> bool {
        if ((state_.flags & ~uint32_t{pending::after_pgd}) != pending::off) { return false; }
        state_.execution.enabled = tracing::on;
        state_.flags = 0;
        return true;
    }
    /// Binds a PTW while PacketEn is known and nothing is pending; then its FUP is, if it has one.
    /// Returns false, and changes nothing, for any other PTW.
    [[nodiscard]] constexpr auto try_ptw(bool has_fup, packet_place place) noexcept -> bool {
        if ((state_.flags & ~uint32_t{pending::off}) != 0) { return false; }
        if (has_fup) {
            state_.flags |= pending::ptwrite;
            state_.owner_at = {place.offset, kind::ptw};
        }
        return true;
    }
    /// Binds the FUP of a PTW, if nothing else is pending; the FUP has an IP. Returns false, and
    /// changes nothing, for any other FUP.
    [[nodiscard]] constexpr auto try_end_ptw() noexcept -> bool {
        if ((state_.flags & ~uint32_t{pending::off}) != pending::ptwrite) { return false; }
        state_.flags &= pending::off;
        return true;
    }
    /// Binds a FUP that begins an asynchronous event while nothing is pending; it has an IP.
    /// Returns false, and changes nothing, for any other FUP.
    [[nodiscard]] constexpr auto try_event(packet_place place) noexcept -> bool {
        if (!binds_branches()) { return false; }
        state_.flags = pending::event;
        state_.event_at = place.offset;
        return true;
    }
    /// Binds a TIP, or a TIP.PGD that `disables`, that ends an asynchronous event, if nothing else
    /// is pending. Returns false, and changes nothing, for any other one.
    [[nodiscard]] constexpr auto try_end_event(bool disables) noexcept -> bool {
        if (state_.flags != pending::event) { return false; }
        state_.flags = 0;
        return !disables || try_end_tracing();
    }
    /// Binds a whole PSB+ that says no more than the packets before it: PacketEn is known, nothing
    /// is pending, and no value differs. The values of packets that it lacks are those of
    /// `last_psb_plus()`. Returns false, and changes nothing, for any other one; with `is_known`
    /// also for one that changes `state()`, by a value that was not known.
    template <same_as<psb_plus> Report>
    [[nodiscard]] constexpr auto try_psb_plus(Report const& read, bool is_known = false) noexcept
        -> bool {
        bool const is_on = state_.flags == 0;
        bool const is_off = (state_.flags & ~uint32_t{pending::after_pgd}) == pending::off;
        if (!(is_on || is_off) || read.has_ip != is_on) { return false; }
        auto known = state_.known;
        auto execution = state_.execution;
        bool agrees = true;
        auto const take = [&](auto const& packet) {
            execution.take(packet);
            agrees &= known.take(packet, true);
        };
        if (read.has(kind::pip)) { take(read.pip); }
        if (read.has(kind::mode_exec)) { take(read.mode_exec); }
        if (read.has(kind::mode_tsx)) { take(read.mode_tsx); }
        if (read.has(kind::vmcs)) { execution.take(read.vmcs); }
        if (!agrees || (is_known && execution != state_.execution)) { return false; }
        state_.execution = execution;
        state_.known = known;
        state_.psb = read;
        if (is_off) {
            state_.known.forget();
            if (read.has(kind::cbr)) { state_.set(pending::after_pgd, false); }
        }
        return true;
    }

private:
    using kind = packet::kind;
    using pending = detail::pending;

    /// Packets that belong to the next branches, if nothing is pending.
    static constexpr packet::kind_set branch_kinds = packet::kinds_of(kind::tnt_short,
                                                                      kind::tnt_long, kind::tip);

    constexpr void add_unbound(packet::any_packet const& packet, packet_place place) noexcept {
        if (state_.has(pending::psb_open | pending::stopped | pending::after_pgd)) [[unlikely]] {
            detail::add_clock(state_, packet, place);
        }
    }

    detail::binder_state state_{};
};

}  // namespace ptspec::trace
