// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/packet/kind_set.hpp>
#include <ptspec/trace/binding.hpp>
#include <ptspec/trace/detail/pending.hpp>
#include <ptspec/trace/known_state.hpp>
#include <ptspec/trace/psb_plus.hpp>
#include <ptspec/base/attribute.hpp>

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
    constexpr explicit binder(cpu::quirk_set quirks) noexcept : quirks_{quirks} {}

    /// The state after the last packet.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& { return now_; }
    /// The violation of the last packet whose binding has a broken rule.
    [[nodiscard]] constexpr auto violated() const noexcept -> violation const& { return violated_; }
    [[nodiscard]] constexpr auto in_psb_plus() const noexcept -> bool { return has(psb_open); }
    /// What the open PSB+, or the last one, reports.
    [[nodiscard]] constexpr auto last_psb_plus() const noexcept -> psb_plus const& { return psb_; }
    /// True after an OVF, until a packet shows whether and where tracing resumes.
    [[nodiscard]] constexpr auto in_overflow() const noexcept -> bool {
        return has(overflow | psb_resumes);
    }
    /// True if tracing may have resumed at an IP, which a later packet confirms or refutes.
    [[nodiscard]] constexpr auto may_have_resumed() const noexcept -> bool { return has(doubts); }
    /// True if packets are lost or cannot be bound: the branches of TNTs are at unknown IPs until a
    /// packet has an IP. False before the first packet that shows PacketEn.
    [[nodiscard]] constexpr auto is_lost() const noexcept -> bool { return has(lost); }
    /// True if tracing is on and no packet is pending: TNT and TIP belong to branches.
    [[nodiscard]] constexpr auto binds_branches() const noexcept -> bool { return flags_ == 0; }
    /// True if an asynchronous event has begun with its FUP: TIP or TIP.PGD ends it. If the event
    /// is an INIT, packets of other owners and a PSB+ may come before its end: GEN-290.
    [[nodiscard]] constexpr auto in_event() const noexcept -> bool { return has(event); }
    /// True if a PSB+ with an IP came while PacketEn was 0: TIP.PGE follows. Source: GEN-176.
    [[nodiscard]] constexpr auto must_enter() const noexcept -> bool {
        return has(must_be_entered);
    }

    /// True if both binders bind all later packets in the same way.
    [[nodiscard]] constexpr auto agrees_with(binder const& other) const noexcept -> bool {
        return flags_ == other.flags_ && known_ == other.known_ &&
               now_.enabled == other.now_.enabled;
    }

    /// Packets are lost: resets the state to unknown.
    constexpr void restart() noexcept {
        now_ = {};
        flags_ = lost;
        known_.forget();
    }
    /// Ends the doubt when no packet follows that confirms or refutes where tracing resumed:
    /// tracing resumed at the IP of a FUP, but not at the IP of a PSB+.
    constexpr auto end_doubt() noexcept -> resumption {
        auto const found = has(shared_fup)    ? settle_fup()
                           : has(psb_resumes) ? resumption::withdrawn
                                              : resumption::none;
        set(doubts, false);
        return found;
    }

    /// Binds the next packet, as a visitor gets it.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const& which, packet_place where) noexcept -> binding {
        if constexpr (branch_kinds.has(Packet::about.id)) {
            if (binds_branches()) [[likely]] { return {.to = owner::branch}; }
        } else if constexpr (packet::unbound_kinds.has(Packet::about.id)) {
            if constexpr (one_of<Packet, packet::tsc, packet::tma, packet::cbr>) {
                add_unbound({which, where.length}, where);
            }
            return {.in_psb_plus = in_psb_plus()};
        } else if constexpr (same_as<Packet, packet::tip_pgd>) {
            if (try_end_tracing()) { return {.to = owner::branch}; }
        } else if constexpr (same_as<Packet, packet::tip_pge>) {
            if (try_start_tracing()) { return {.to = owner::entry}; }
        }
        return add_other({which, where.length}, where);
    }
    /// Binds the next packet.
    constexpr auto add(packet::any_packet const& which, packet_place where) noexcept -> binding {
        if (branch_kinds.has(which.kind()) && binds_branches()) [[likely]] {
            return {.to = owner::branch};
        }
        if (packet::unbound_kinds.has(which.kind())) {
            add_unbound(which, where);
            return {.in_psb_plus = in_psb_plus()};
        }
        return add_other(which, where);
    }
    /// Binds a TIP.PGD that belongs to a branch. Returns false, and changes nothing, for any other
    /// TIP.PGD.
    [[nodiscard]] constexpr auto try_end_tracing() noexcept -> bool {
        if (!binds_branches()) { return false; }
        now_.enabled = tracing::off;
        flags_ = off | after_pgd;
        known_.forget();
        return true;
    }
    /// Binds a TIP.PGE without a MODE.Exec. Returns false, and changes nothing, for any other
    /// TIP.PGE.
    [[nodiscard]] constexpr auto try_start_tracing() noexcept -> bool {
        if ((flags_ & ~after_pgd) != off) { return false; }
        now_.enabled = tracing::on;
        flags_ = 0;
        return true;
    }

private:
    using kind = packet::kind;
    /// Packets that belong to the next branches, if nothing is pending.
    static constexpr packet::kind_set branch_kinds = packet::kinds_of(kind::tnt_short,
                                                                      kind::tnt_long, kind::tip);

    using enum detail::pending::flags;
    /// A packet that waits for others.
    struct place {
        uint64_t offset = 0;
        kind which = kind::pad;
    };

    [[nodiscard]] constexpr auto has(uint32_t any_of) const noexcept -> bool {
        return (flags_ & any_of) != 0;
    }
    constexpr void set(uint32_t which, bool value = true) noexcept {
        flags_ = value ? flags_ | which : flags_ & ~which;
    }
    constexpr void set(tracing value) noexcept {
        now_.enabled = value;
        set(must_be_entered, false);
        if (value != tracing::off) { set(after_pgd, false); }
        set(off, value == tracing::off);
        set(entering, value == tracing::entering);
        if (value == tracing::off || value == tracing::unknown) { known_.forget(); }
    }
    [[nodiscard]] constexpr auto is_on() const noexcept -> bool {
        return now_.enabled == tracing::on || now_.enabled == tracing::entering;
    }
    /// Sets tracing to on: the IP is known.
    constexpr void resume() noexcept {
        set(at_start | lost | overflow, false);
        set(tracing::on);
    }
    [[nodiscard]] constexpr auto is_any_of(packet::kind_set kinds) const noexcept -> bool {
        return kinds.has(here_.which);
    }

    // --------------------------------------------------------------------------- violations

    /// Only the first violation of a packet counts.
    constexpr void violate(rule broken, place const& where) noexcept {
        if (violated_.broken == rule::none) { violated_ = {where.offset, broken, where.which}; }
    }
    constexpr void violate(rule broken) noexcept { violate(broken, here_); }

    /// noinline: without it, binding all packets one by one takes up to 31 % more instructions
    /// (g++ 12).
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto add_other(packet::any_packet const& which, packet_place where) noexcept
        -> binding {
        here_ = {where.offset, which.kind()};
        violated_.broken = rule::none;
        bool const settles = has(shared_fup) && !continues_event.has(here_.which);
        auto const settled = settles ? settle_fup() : resumption::none;
        auto found = add_bound(which, where);
        if (settles) { found.resumed = settled; }
        if (violated_.broken != rule::none) [[unlikely]] {
            found.broken = violated_.broken;
            found.is_note = violated_.is_note;
        }
        return found;
    }
    constexpr auto add_bound(packet::any_packet const& which, packet_place where) noexcept
        -> binding {
        switch (here_.which) {
            case kind::psb: return begin_psb_plus();
            case kind::psbend: return end_psb_plus();
            case kind::ovf: return add_ovf();
            default: break;
        }
        if (has(psb_open)) {
            if (packet::psb_plus_kinds.has(here_.which)) { return add_status(which, where); }
            bool const is_tnt = is_any_of(packet::kinds_of(kind::tnt_short, kind::tnt_long));
            violate(is_tnt ? rule::GEN_125 : rule::GEN_172);
            set(psb_open, false);
            known_.forget();
        }
        return add_outside(which);
    }
    constexpr void add_unbound(packet::any_packet const& which, packet_place where) noexcept {
        if (has(psb_open | stopped | after_pgd)) [[unlikely]] { add_clock(which, where); }
    }
    constexpr void add_clock(packet::any_packet const& which, packet_place where) noexcept {
        if (has(psb_open)) { psb_.add(which, where); }
        bool const is_cbr = which.is<packet::cbr>();
        // TraceEn rises, and PacketEn may be 1 with BranchEn 0.
        if (is_cbr || which.is<packet::tsc>()) { set(stopped, false); }
        if (is_cbr) { set(after_pgd, false); }
    }

    // --------------------------------------------------------------------------- PSB+

    constexpr auto begin_psb_plus() noexcept -> binding {
        if (has(at_start)) { lose_flow(); }  // until PSBEND
        if (has(doubts | lost)) { drop_lone_transaction(); }
        if (has(waiting)) { known_.forget(); }
        // The FUP of an INIT waits for the SIPI: GEN-290.
        if (has(psb_open)) {
            violate(rule::PKT_142);
        } else if (has((waiting & ~event) | block | asleep)) {
            violate(rule::GEN_006);
            set(waiting, false);
        }
        set(block | asleep | stopped, false);
        set(psb_open);
        psb_.begin(here_.offset);
        return {.completes = false, .in_psb_plus = true};
    }
    constexpr auto end_psb_plus() noexcept -> binding {
        if (!has(psb_open)) {
            violate(rule::PKT_134);
            set(block, false);
            return {};
        }
        set(psb_open, false);
        if (!psb_.has_ip) {
            // PKT-140. After an OVF: PKT-153.
            auto const found = refute();
            set(overflow | lost, false);
            set(tracing::off);
            return {.in_psb_plus = true, .resumed = found};
        }
        if (has(overflow)) {
            // GEN-343: a FUP, TIP.PGE or branch shows whether tracing resumed at this IP.
            bool const is_first = !has(psb_resumes);
            set(lost, false);
            set(psb_resumes);
            set(tracing::entering);
            return {.in_psb_plus = true,
                    .resumed = is_first ? resumption::possible : resumption::none};
        }
        if (now_.enabled != tracing::on) {
            bool const was_off = has(off | must_be_entered);
            resume();
            set(tracing::entering);
            set(must_be_entered, was_off);
        }
        return {.in_psb_plus = true};
    }
    constexpr auto add_status(packet::any_packet const& which, packet_place where) noexcept
        -> binding {
        bool agrees = true;
        switch (here_.which) {
            case kind::fup:
                if (!which.as<packet::fup>().has_ip()) { violate(rule::PKT_078); }
                break;
            case kind::pip: agrees = take(which.as<packet::pip>(), true); break;
            case kind::vmcs: now_.take(which.as<packet::vmcs>()); break;
            case kind::mode_exec:
                agrees = take(which.as<packet::mode_exec>(), true);
                drop_event_unless_init();
                break;
            case kind::mode_tsx: agrees = take(which.as<packet::mode_tsx>(), true); break;
            default: break;
        }
        if (!agrees) {
            violate(rule::GEN_344);
            violated_.is_note = here_.which == kind::pip;
        }
        psb_.add(which, where);
        return {.to = owner::status, .in_psb_plus = true};
    }
    /// Ends an event at a PSB+, but not an INIT, which leads to real mode: GEN-290.
    constexpr void drop_event_unless_init() noexcept {
        if (!has(event) || has(psb_resumes) || now_.code_bits == 16) { return; }
        violate(rule::PKT_077, {event_at_, kind::fup});
        set(event, false);
    }
    constexpr auto add_ovf() noexcept -> binding {
        auto const found = has(psb_resumes) ? resumption::withdrawn : resumption::none;
        set(psb_open | waiting | block | asleep | stopped | psb_resumes | at_start | lost, false);
        set(tracing::unknown);
        set(overflow);
        return {.to = owner::overflow, .completes = false, .resumed = found};
    }

    // --------------------------------------------------------------------------- after an OVF

    /// The packets that can follow the FUP of an asynchronous event, including those that end it.
    static constexpr packet::kind_set continues_event = packet::kinds_of(
        kind::pip, kind::vmcs, kind::mode_exec, kind::tip, kind::tip_pgd);
    /// Assigns the FUP after OVF and PSB+ to the OVF: no TIP or TIP.PGD followed.
    constexpr auto settle_fup() noexcept -> resumption {
        set(event | shared_fup | psb_resumes, false);
        resume();
        return resumption::at_fup;
    }
    /// Handles a packet that shows that tracing is off, so that it did not resume.
    constexpr auto refute() noexcept -> resumption {
        if (!has(doubts)) { return resumption::none; }
        drop_lone_transaction();
        set(doubts | overflow, false);
        set(tracing::off);
        return resumption::refuted;
    }
    /// While PacketEn is 0, no FUP follows MODE.TSX: PKT-093.
    constexpr void drop_lone_transaction() noexcept {
        if (owner_at_.which == kind::mode_tsx) { set(owners_of_fup, false); }
    }

    /// Takes the value of a packet. Returns false if earlier packets contradict it.
    template <packet::packet_type Packet>
    constexpr auto take(Packet which, bool is_on) noexcept -> bool {
        now_.take(which);
        return known_.take(which, is_on);
    }

    // --------------------------------------------------------------------------- what is pending

    /// Reports a pending MODE.Exec, EVD, owner of a FUP or event if this packet does not continue
    /// it. The latest is checked first.
    constexpr void check_pending(packet::any_packet const& which) noexcept {
        bool const is_fup = here_.which == kind::fup;
        if (has(mode) && !may_follow_mode()) {
            violate(here_.which == kind::tip_pgd                         ? rule::GEN_237
                    : is_any_of(packet::kinds_of(kind::pip, kind::vmcs)) ? rule::GEN_245
                                                                         : rule::GEN_235,
                    mode_at_);
            set(mode, false);
        }
        if (has(event_data)) {
            if (!is_any_of(packet::kinds_of(kind::evd, kind::cfe))) {
                violate(rule::GEN_302, {event_data_at_, kind::evd});
            }
            set(event_data, false);
        }
        bool const had_owner = has(owners_of_fup);
        if (had_owner && !is_fup &&
            !(share_fup.has(here_.which) && share_fup.has(owner_at_.which))) {
            if (has(at_start | lost)) { drop_lone_transaction(); }
            if (has(owners_of_fup)) { violate(rule::PKT_273, owner_at_); }
            set(owners_of_fup, false);
        }
        if (has(event | aborting) && !continues(which, had_owner)) {
            violate(rule::PKT_077, {event_at_, kind::fup});
            set(event | aborting, false);
        }
    }
    [[nodiscard]] constexpr auto may_follow_mode() const noexcept -> bool {
        return is_any_of(packet::kinds_of(kind::tip, kind::tip_pge)) ||
               (here_.which == kind::fup && !has(event | aborting));
    }
    /// The packets that can share the FUP of one event. PTW, BEP and TRIG do not share their FUP:
    /// each describes one instruction. Source: PKT-188, PKT-222, PKT-273.
    static constexpr packet::kind_set share_fup = packet::kinds_of(
        kind::mode_tsx, kind::exstop, kind::mwait, kind::pwre, kind::evd, kind::cfe);
    /// True if the packet is part of the event that has begun, or comes while a processor waits for
    /// a SIPI: GEN-290.
    [[nodiscard]] constexpr auto continues(packet::any_packet const& which,
                                           bool had_owner) const noexcept -> bool {
        if (continues_event.has(here_.which)) { return true; }
        if (has(aborting)) { return false; }
        if (here_.which == kind::fup) { return had_owner; }
        if (which.is<packet::cfe>()) {
            return which.as<packet::cfe>().get<packet::cfe::type>() == packet::cfe_type::SIPI;
        }
        return is_any_of(packet::kinds_of(kind::pwre, kind::exstop, kind::pwrx));
    }
    /// After a PSB+ with an IP, TIP.PGE must follow directly, unless PacketEn was 1.
    constexpr void check_entry() noexcept {
        if (is_any_of(packet::kinds_of(kind::mode_exec, kind::pip, kind::tip_pge))) { return; }
        if (has(must_be_entered)) { violate(rule::GEN_176, {psb_.offset, kind::psb}); }
        set(must_be_entered, false);
        if (!has(doubts)) { enter(); }
    }
    constexpr void check_stop() noexcept {
        if (has(stopped)) { violate(rule::GEN_020); }
        set(stopped, false);
    }
    constexpr void check_block() noexcept {
        bool const is_bep = here_.which == kind::bep;
        if (is_bep && !has(block | at_start | lost)) { violate(rule::GEN_320); }
        if (packet::block_kinds.has(here_.which) || here_.which == kind::bbp) { return; }
        if (has(block) && !is_bep) { violate(rule::GEN_321); }
        set(block, false);
    }

    // --------------------------------------------------------------------------- outside PSB+

    constexpr auto add_outside(packet::any_packet const& which) noexcept -> binding {
        if (here_.which == kind::fup && !which.as<packet::fup>().has_ip()) {
            violate(rule::PKT_078);
            if (!has(owners_of_fup)) { return {.to = owner::asynchronous}; }
        }
        bool const shows_off = is_any_of(packet::kinds_of(kind::tip_pge, kind::tracestop));
        auto const refuted = shows_off ? refute() : resumption::none;
        bool const loses = has(event | aborting | abort | mode);
        if (has(waiting)) { check_pending(which); }
        if (has(must_be_entered | entering)) { check_entry(); }
        auto found = bind(which, loses);
        check_block();
        if (shows_off) { found.resumed = refuted; }
        return found;
    }
    constexpr auto bind(packet::any_packet const& which, bool loses) noexcept -> binding {
        switch (here_.which) {
            case kind::tnt_short:
            case kind::tnt_long: return add_tnt(loses);
            case kind::tip: return add_tip();
            case kind::tip_pge: return add_tip_pge();
            case kind::tip_pgd: return add_tip_pgd();
            case kind::fup: return add_fup();
            case kind::pip: (void)take(which.as<packet::pip>(), is_on()); return add_middle();
            case kind::vmcs:
                now_.take(which.as<packet::vmcs>());
                known_.forget_cr3();
                return add_middle();
            case kind::mode_exec: return add(which.as<packet::mode_exec>());
            case kind::mode_tsx: return add(which.as<packet::mode_tsx>());
            case kind::tracestop: return add_trace_stop();
            case kind::ptw: return add_ptw(which.as<packet::ptw>().get<packet::ptw::IP>());
            case kind::exstop:
                return announce(owner::power, exstop,
                                which.as<packet::exstop>().get<packet::exstop::IP>());
            case kind::mwait: return announce(owner::power, exstop, false);
            case kind::pwre: set(asleep); return announce(owner::power, exstop, false);
            case kind::pwrx: set(asleep, false); return announce(owner::power, exstop, false);
            case kind::bbp: set(block); return announce(owner::pebs, pebs, false);
            case kind::bip: return announce(owner::pebs, pebs, false);
            case kind::bep:
                return announce(owner::pebs, pebs, which.as<packet::bep>().get<packet::bep::IP>());
            case kind::evd: {
                auto found = announce(owner::control_flow, control_flow, false);
                set(event_data);
                event_data_at_ = here_.offset;
                found.completes = false;
                return found;
            }
            case kind::cfe:
                known_.take(which.as<packet::cfe>());
                return announce(owner::control_flow, control_flow,
                                which.as<packet::cfe>().get<packet::cfe::IP>());
            case kind::trig:
                return announce(owner::trigger, trigger,
                                which.as<packet::trig>().get<packet::trig::IP>());
            default: return {};
        }
    }

    /// Marks the control flow as lost until the next packet with an IP.
    constexpr void lose_flow() noexcept {
        set(tracing::unknown);
        set(at_start, false);
        set(lost);
    }
    /// Handles a packet that does not depend on PacketEn: after an OVF it shows that tracing is
    /// off.
    ///
    /// Source: PKT-153.
    constexpr void end_overflow() noexcept {
        check_stop();
        if (!has(overflow)) { return; }
        set(overflow, false);
        if (!has(psb_resumes)) { set(tracing::off); }
    }
    /// For a packet that only an enabled processor sends. After an OVF its FUP is missing, unless
    /// the packet `replaces_fup`.
    constexpr auto confirm(bool replaces_fup = false) noexcept -> resumption {
        enter();
        check_stop();
        bool const misses_fup = has(overflow | psb_resumes) && !quirks_.has(cpu::quirk::skd010);
        if (misses_fup && !replaces_fup) { violate(rule::GEN_227); }
        if (!has(psb_resumes)) { return resumption::none; }
        return misses_fup && replaces_fup ? resumption::withdrawn : resumption::confirmed;
    }
    /// Confirms the state that the last PSB+ reported: no TIP.PGE followed it.
    constexpr void enter() noexcept {
        if (now_.enabled == tracing::entering) { set(tracing::on); }
    }

    constexpr auto add_tnt(bool loses) noexcept -> binding {
        auto const resumed = confirm();
        if (has(off)) { violate(rule::GEN_105); }
        if (has(off) || loses || (has(overflow) && !has(psb_resumes))) { lose_flow(); }
        set(overflow | doubts, false);
        return {.to = owner::branch, .resumed = resumed};
    }
    constexpr auto add_tip() noexcept -> binding {
        auto const resumed = confirm();
        auto const to = has(aborting) ? owner::transaction_abort
                        : has(event)  ? owner::asynchronous
                        : has(mode)   ? owner::far_transfer
                                      : owner::branch;
        // A FUP and TIP while tracing is off: an INIT and the SIPI after it (GEN-290).
        if (has(off) && !has(event | aborting)) { violate(rule::GEN_105); }
        set(waiting | doubts, false);
        resume();
        return {.to = to, .resumed = resumed};
    }
    constexpr auto add_tip_pge() noexcept -> binding {
        check_stop();
        if (now_.enabled == tracing::on) { violate(rule::GEN_100); }
        known_.enter(has(entering), has(mode));
        set(waiting, false);
        resume();
        return {.to = owner::entry};
    }
    constexpr auto add_trace_stop() noexcept -> binding {
        check_stop();
        if (is_on()) { violate(rule::GEN_090); }
        set(waiting | overflow | at_start | lost, false);
        set(tracing::off);
        set(stopped);
        return {.to = owner::trace_stop};
    }
    constexpr auto add_tip_pgd() noexcept -> binding {
        auto const resumed = confirm(has(overflow) && quirks_.has(cpu::quirk::apl11));
        auto const to = has(aborting) ? owner::transaction_abort
                        : has(event)  ? owner::asynchronous
                                      : owner::branch;
        if (has(off) && !has(event | aborting)) { violate(rule::GEN_101); }
        set(waiting | overflow | at_start | lost | doubts, false);
        set(tracing::off);
        set(after_pgd);
        return {.to = to, .resumed = resumed};
    }
    constexpr auto add_fup() noexcept -> binding {
        check_stop();
        if (has(owners_of_fup)) {
            auto const to = has(transaction)    ? owner::transaction
                            : has(abort)        ? owner::transaction_abort
                            : has(ptwrite)      ? owner::ptwrite
                            : has(exstop)       ? owner::power
                            : has(pebs)         ? owner::pebs
                            : has(control_flow) ? owner::control_flow
                                                : owner::trigger;
            bool const opens = has(abort);
            set(owners_of_fup, false);
            if (opens) { begin_event(aborting); }
            return {.to = to, .completes = !opens};
        }
        if (has(mode)) {
            set(mode, false);
            return {.to = owner::interrupt_flag};
        }
        if (has(overflow)) { return end_overflow_at_fup(); }
        if (has(off)) {
            violate(rule::GEN_342);
            set(tracing::on);
        }
        begin_event(event);
        return {.to = owner::asynchronous, .completes = false};
    }
    constexpr void begin_event(uint32_t flag) noexcept {
        set(flag);
        event_at_ = here_.offset;
    }
    /// The first FUP after an OVF, with nothing but timing packets and PSB+s between.
    constexpr auto end_overflow_at_fup() noexcept -> binding {
        bool const has_other_ip = has(psb_resumes);
        set(overflow, false);
        if (has_other_ip && quirks_.has(cpu::quirk::skd010)) {
            // The FUP of the OVF may be missing: then TIP or TIP.PGD follows this one.
            begin_event(event);
            set(shared_fup);
            return {.to = owner::asynchronous, .completes = false};
        }
        set(psb_resumes, false);
        resume();
        if (quirks_.has(cpu::quirk::apl12)) {
            // The FUP is spurious if TIP.PGE, TraceStop or a PSB+ without FUP shows that tracing
            // is off.
            set(fup_resumes);
            set(tracing::entering);
        }
        return {.to = owner::overflow,
                .resumed = has_other_ip ? resumption::withdrawn : resumption::none};
    }
    /// PIP and VMCS: of a compound event, or alone.
    constexpr auto add_middle() noexcept -> binding {
        end_overflow();
        bool const is_middle = has(event | aborting);
        return {.to = is_middle ? owner::asynchronous : owner::paging, .completes = !is_middle};
    }
    constexpr auto add(packet::mode_exec which) noexcept -> binding {
        end_overflow();
        (void)take(which, is_on());
        set(mode);
        mode_at_ = here_;
        return {.to = has(event | aborting) ? owner::asynchronous : owner::far_transfer,
                .completes = false};
    }
    /// MODE.TSX: a FUP follows while tracing is on. Source: PKT-093.
    constexpr auto add(packet::mode_tsx which) noexcept -> binding {
        end_overflow();
        (void)take(which, is_on());
        bool const aborts = which.get<packet::mode_tsx::TXAbort>();
        return announce(aborts ? owner::transaction_abort : owner::transaction,
                        aborts ? abort : transaction, !has(off));
    }
    /// Source: GEN-300.
    constexpr auto add_ptw(bool has_fup) noexcept -> binding {
        end_overflow();
        if (has(after_pgd)) { violate(rule::GEN_300); }
        return announce(owner::ptwrite, ptwrite, has_fup);
    }
    /// A packet after which a FUP may follow. Several may share one.
    constexpr auto announce(owner to, uint32_t flag, bool has_fup) noexcept -> binding {
        end_overflow();
        if (has_fup) {
            set(flag);
            owner_at_ = here_;
        }
        return {.to = to, .completes = !has_fup};
    }

    execution_state now_{};
    uint32_t flags_ = at_start;
    cpu::quirk_set quirks_{};
    known_state known_{};
    psb_plus psb_{};
    violation violated_{};
    place here_{};  ///< the packet that is bound
    place mode_at_{};
    place owner_at_{};
    uint64_t event_data_at_ = 0;
    uint64_t event_at_ = 0;  ///< the offset of the event's FUP
};

}  // namespace ptspec::trace

#undef PTSPEC_ATTRIBUTE
