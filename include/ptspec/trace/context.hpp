// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/quirk_set.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/trace/known_state.hpp>

/// What packets belong to, and the state of the processor after each.
namespace ptspec::trace {

/// What is known about PacketEn.
enum class tracing : uint8_t {
    unknown,   ///< at the start, after an OVF and after damage
    off,       ///< control flow is not traced: the next is TIP.PGE
    entering,  ///< on according to the last PSB+; a TIP.PGE may follow: BDM70, PKT-140
    on,
};

/// What a packet belongs to.
///
/// Source: PKT-270..278, GEN-246.
enum class owner : uint8_t {
    none,               ///< PAD, TSC, TMA, MTC, CYC, CBR, MNT, PSB, PSBEND
    status,             ///< a packet of a PSB+, which reports the state: PKT-136
    branch,             ///< TNT, TIP, TIP.PGD: the next branches of the code
    far_transfer,       ///< MODE.Exec and TIP without a FUP
    asynchronous,       ///< FUP, PIP, VMCS, MODE.Exec, and the TIP or TIP.PGD that ends the event
    entry,              ///< MODE.Exec and TIP.PGE
    paging,             ///< PIP, VMCS without a FUP: the next MOV CR3, far transfer, VM entry ..
    interrupt_flag,     ///< MODE.Exec and FUP, with event trace: PKT-092
    transaction,        ///< MODE.TSX and FUP
    transaction_abort,  ///< MODE.TSX, FUP, and TIP or TIP.PGD
    overflow,           ///< OVF, and the FUP with the IP at which tracing resumes
    ptwrite,            ///< PTW and FUP
    power,              ///< MWAIT, PWRE, EXSTOP and FUP; PWRX
    pebs,               ///< BBP, BIP, BEP and FUP
    control_flow,       ///< EVD, CFE and FUP
    trigger,            ///< TRIG and FUP
    trace_stop,         ///< TraceStop
};

/// What a packet says about an IP at which tracing may have resumed after an OVF.
///
/// Source: GEN-228, GEN-343.
enum class resumption : uint8_t {
    none,
    possible,   ///< tracing may have resumed at the IP of the PSB+ that ends here
    confirmed,  ///< it did at the last such IP
    withdrawn,  ///< it did not at the last such IP
    refuted,    ///< it did not at any of them
    at_fup,     ///< `withdrawn`: it resumed at the last FUP, whose owner was `asynchronous`
};

/// What a packet belongs to, and whether it completes it.
///
/// MODE.Exec has the owner `far_transfer` until the packet that completes it: TIP, TIP.PGE or FUP.
struct binding {
    owner to = owner::none;
    bool completes = true;  ///< no packet of the same owner has to follow
    rule broken =
        rule::none;  ///< the rule that the order of packets violates; pending packets are dropped
    bool in_psb_plus = false;  ///< between PSB and PSBEND
    bool is_note = false;      ///< `broken` may have another cause than lost packets: GEN-344
    resumption resumed = resumption::none;
};

/// The state of the processor, as far as it is known from the packets.
struct execution_state {
    tracing enabled = tracing::unknown;
    uint8_t code_bits = 0;     ///< 16, 32 or 64; 0: unknown
    bool has_cr3 = false;      ///< `cr3` and `non_root` are known
    bool has_vmcs = false;     ///< `vmcs` is known
    bool non_root = false;     ///< PIP.NR
    bool interrupts = false;   ///< RFLAGS.IF, with event trace
    bool transaction = false;  ///< InTX
    uint64_t cr3 = 0;
    uint64_t vmcs = 0;  ///< the base address of the current VMCS; all ones: none

    friend constexpr auto operator==(execution_state const&, execution_state const&)
        -> bool = default;
};

namespace detail {

/// A bit for each kind of packet whose facts satisfy a condition.
template <class... Packets>
constexpr auto kinds_where(auto const& holds, type_list<Packets...>) noexcept -> uint32_t {
    packet::facts const every[] = {Packets::about...};
    uint32_t bits = 0;
    for (auto const& one : every) { bits |= uint32_t{holds(one)} << underlying(one.id); }
    return bits;
}

/// Packets that belong to the next branches, if nothing is pending.
inline constexpr uint32_t branch_kinds = kinds_where(
    [](packet::facts const& one) {
        return one.id == packet::kind::tnt_short || one.id == packet::kind::tnt_long ||
               one.id == packet::kind::tip;
    },
    packet::all{});
/// Packets that belong to no other. Source: PKT-272.
inline constexpr uint32_t unbound_kinds = kinds_where(
    [](packet::facts const& one) {
        return one.binds_to_ip == packet::binding::no && one.id != packet::kind::psb &&
               one.id != packet::kind::psbend;
    },
    packet::all{});

constexpr auto has_kind(uint32_t kinds, packet::kind which) noexcept -> bool {
    return (kinds >> underlying(which) & 1) != 0;
}

}  // namespace detail

/// Binds each packet to its owner, and tracks the state of the processor.
///
/// If a packet violates the order of packets, its binding has the violated rule. The pending
/// packets are dropped, and the packet is bound without them. After control flow packets that
/// cannot be bound, `is_lost()` is true until the next packet with an IP.
///
/// Shape:  a plain value of fixed size.
/// Source: PKT-070..078, PKT-082, PKT-092, PKT-093, PKT-134..142, PKT-150..154, PKT-161, PKT-163,
///         PKT-172, PKT-181, PKT-188, PKT-204, PKT-222, PKT-241, PKT-270..274.
class context {
public:
    constexpr context() noexcept = default;
    constexpr explicit context(cpu::quirk_set quirks) noexcept : quirks_{quirks} {}

    /// The state after the last packet.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state const& { return now_; }
    [[nodiscard]] constexpr auto in_psb_plus() const noexcept -> bool { return has(psb_plus); }
    /// After an OVF, until a packet shows whether and where tracing resumes.
    [[nodiscard]] constexpr auto in_overflow() const noexcept -> bool {
        return has(overflow | psb_resumes);
    }
    /// Tracing may have resumed at an IP, which a later packet confirms or refutes.
    [[nodiscard]] constexpr auto may_have_resumed() const noexcept -> bool { return has(doubts); }
    /// Packets are lost or cannot be bound: TNTs are meaningless until a packet has an IP.
    [[nodiscard]] constexpr auto is_lost() const noexcept -> bool { return has(lost); }
    /// Tracing is on and no packet is pending: TNT and TIP belong to branches.
    [[nodiscard]] constexpr auto binds_branches() const noexcept -> bool { return flags_ == 0; }

    /// Packets are lost: resets the state to unknown.
    constexpr void restart() noexcept {
        now_ = {};
        flags_ = lost;
        known_.forget();
    }
    /// No packet follows that confirms or refutes where tracing resumed: a FUP is believed, a PSB+
    /// is not.
    constexpr auto end_doubt() noexcept -> resumption {
        auto const found = has(shared_fup)    ? settle_fup()
                           : has(psb_resumes) ? resumption::withdrawn
                                              : resumption::none;
        set(doubts, false);
        return found;
    }

    /// Binds the next packet, as a visitor gets it.
    template <packet::packet_type Packet>
    constexpr auto add(Packet const& which, unsigned length) noexcept -> binding {
        if constexpr (detail::has_kind(detail::branch_kinds, Packet::about.id)) {
            if (binds_branches()) [[likely]] { return {.to = owner::branch}; }
        } else if constexpr (detail::has_kind(detail::unbound_kinds, Packet::about.id)) {
            return {.in_psb_plus = in_psb_plus()};
        }
        return add_other({which, length});
    }
    /// Binds the next packet.
    constexpr auto add(packet::any_packet const& which) noexcept -> binding {
        if (detail::has_kind(detail::branch_kinds, which.kind()) && binds_branches()) [[likely]] {
            return {.to = owner::branch};
        }
        if (detail::has_kind(detail::unbound_kinds, which.kind())) {
            return {.in_psb_plus = in_psb_plus()};
        }
        return add_other(which);
    }
    /// Binds a TIP.PGD that belongs to a branch. Returns false, and changes nothing, for any other
    /// TIP.PGD.
    [[nodiscard]] constexpr auto try_end_tracing() noexcept -> bool {
        if (!binds_branches()) { return false; }
        set(tracing::off);
        return true;
    }
    /// Binds a TIP.PGE without a MODE.Exec. Returns false, and changes nothing, for any other
    /// TIP.PGE.
    [[nodiscard]] constexpr auto try_start_tracing() noexcept -> bool {
        if (flags_ != off) { return false; }
        set(tracing::on);
        return true;
    }

private:
    /// noinline: without it, binding all packets one by one takes up to 31 % more instructions
    /// (g++ 12).
    [[gnu::noinline]] constexpr auto add_other(packet::any_packet const& which) noexcept
        -> binding {
        if (!has(shared_fup) || continues_event(which.kind())) { return add_bound(which); }
        auto const settled = settle_fup();
        auto found = add_bound(which);
        found.resumed = settled;
        return found;
    }
    constexpr auto add_bound(packet::any_packet const& which) noexcept -> binding {
        using packet::kind;
        switch (which.kind()) {
            case kind::psb: return begin_psb_plus();
            case kind::psbend: return end_psb_plus();
            case kind::ovf: return add_ovf();
            default: break;
        }
        bool const is_status = has(psb_plus) && packet_facts(which.kind()).in_psb_plus;
        if (is_status) { return add_status(which); }
        rule const misplaced = has(psb_plus) ? rule::GEN_172 : rule::none;
        if (has(psb_plus)) {
            leave_psb_plus();
            known_.forget();
        }
        auto found = add_outside(which);
        if (misplaced != rule::none) { found.broken = misplaced; }
        return found;
    }

    // What is pending. `off` and `lost` are flags, too: if no flag is set, TNT and TIP belong to
    // branches.
    static constexpr uint32_t psb_plus = 1U << 0;
    static constexpr uint32_t has_psb_ip = 1U << 1;  ///< the PSB+ has a FUP with an IP
    static constexpr uint32_t overflow = 1U << 2;    ///< a FUP or TIP.PGE ends the overflow
    static constexpr uint32_t transaction =
        1U << 3;  ///< this flag to `trigger`: the owner of the next FUP
    static constexpr uint32_t abort = 1U << 4;
    static constexpr uint32_t ptwrite = 1U << 5;
    static constexpr uint32_t exstop = 1U << 6;
    static constexpr uint32_t pebs = 1U << 7;
    static constexpr uint32_t control_flow = 1U << 8;
    static constexpr uint32_t trigger = 1U << 9;
    static constexpr uint32_t mode = 1U << 10;          ///< TIP, TIP.PGE or FUP follows
    static constexpr uint32_t asynchronous = 1U << 11;  ///< TIP or TIP.PGD follows
    static constexpr uint32_t aborting = 1U << 12;      ///< the same, of a TSX abort
    static constexpr uint32_t event_data = 1U << 13;    ///< a CFE follows
    static constexpr uint32_t off = 1U << 14;
    static constexpr uint32_t entering = 1U << 15;
    static constexpr uint32_t lost = 1U << 16;
    static constexpr uint32_t psb_resumes = 1U << 17;  ///< OVF, PSB+ with IP: that may be the IP
    static constexpr uint32_t fup_resumes = 1U << 18;  ///< APL12: the FUP may be spurious
    static constexpr uint32_t shared_fup = 1U << 19;   ///< SKD010: of the OVF, or of an event
    static constexpr uint32_t doubts = psb_resumes | fup_resumes | shared_fup;
    static constexpr uint32_t owners_of_fup = transaction | abort | ptwrite | exstop | pebs |
                                              control_flow | trigger;
    static constexpr uint32_t waiting = owners_of_fup | mode | asynchronous | aborting | event_data;

    [[nodiscard]] constexpr auto has(uint32_t any_of) const noexcept -> bool {
        return (flags_ & any_of) != 0;
    }
    constexpr void set(uint32_t which, bool value = true) noexcept {
        flags_ = value ? flags_ | which : flags_ & ~which;
    }
    constexpr void set(tracing value) noexcept {
        now_.enabled = value;
        set(off, value == tracing::off);
        set(entering, value == tracing::entering);
        if (value == tracing::off || value == tracing::unknown) { known_.forget(); }
    }
    [[nodiscard]] constexpr auto is_on() const noexcept -> bool {
        return now_.enabled == tracing::on || now_.enabled == tracing::entering;
    }
    /// Tracing is on at a known IP.
    constexpr void resume() noexcept {
        set(lost | overflow, false);
        set(tracing::on);
    }
    static constexpr auto packet_facts(packet::kind which) noexcept -> packet::facts {
        return packet::for_kind(which, []<class Packet>() { return Packet::about; }, packet::all{});
    }

    // --------------------------------------------------------------------------- PSB+

    constexpr auto begin_psb_plus() noexcept -> binding {
        if (has(doubts)) { drop_lone_transaction(); }
        // The FUP of an INIT has no TIP before its SIPI: GEN-290. It changes the mode.
        if (has(waiting)) { known_.forget(); }
        rule const broken = has(psb_plus)                  ? rule::PKT_142
                            : has(waiting & ~asynchronous) ? rule::GEN_006
                                                           : rule::none;
        set(waiting | has_psb_ip, false);
        set(psb_plus);
        return {.completes = false, .broken = broken, .in_psb_plus = true};
    }
    constexpr auto end_psb_plus() noexcept -> binding {
        if (!has(psb_plus)) { return {.broken = rule::PKT_134}; }
        bool const has_ip = has(has_psb_ip);
        leave_psb_plus();
        if (!has_ip) {
            // PKT-140. After an OVF: PKT-153.
            auto const found = refute();
            set(overflow | lost, false);
            set(tracing::off);
            return {.in_psb_plus = true, .resumed = found};
        }
        if (has(overflow)) {
            // GEN-343: a FUP, TIP.PGE or branch shows whether this IP is the one of the OVF.
            bool const is_first = !has(psb_resumes);
            set(lost, false);
            set(psb_resumes);
            set(tracing::entering);
            return {.in_psb_plus = true,
                    .resumed = is_first ? resumption::possible : resumption::none};
        }
        if (now_.enabled != tracing::on) {
            resume();
            set(tracing::entering);
        }
        return {.in_psb_plus = true};
    }
    constexpr void leave_psb_plus() noexcept { set(psb_plus | has_psb_ip, false); }
    constexpr auto add_status(packet::any_packet const& which) noexcept -> binding {
        using packet::kind;
        rule broken = rule::none;
        bool agrees = true;
        switch (which.kind()) {
            case kind::fup:
                if (which.as<packet::fup>().has_ip()) { set(has_psb_ip); }
                break;
            case kind::pip: agrees = take(which.as<packet::pip>(), true); break;
            case kind::vmcs: take(which.as<packet::vmcs>()); break;
            case kind::mode_exec: agrees = take(which.as<packet::mode_exec>(), true); break;
            case kind::mode_tsx: agrees = take(which.as<packet::mode_tsx>(), true); break;
            default: broken = rule::GEN_172; break;
        }
        return {.to = owner::status,
                .broken = agrees ? broken : rule::GEN_344,
                .in_psb_plus = true,
                .is_note = !agrees && which.is<packet::pip>()};
    }
    constexpr auto add_ovf() noexcept -> binding {
        auto const found = has(psb_resumes) ? resumption::withdrawn : resumption::none;
        leave_psb_plus();
        set(waiting | psb_resumes, false);
        set(tracing::unknown);
        set(overflow);
        return {.to = owner::overflow, .completes = false, .resumed = found};
    }

    // --------------------------------------------------------------------------- after an OVF

    /// The packets between the FUP of an asynchronous event and its end, and that end.
    [[nodiscard]] static constexpr auto continues_event(packet::kind which) noexcept -> bool {
        using packet::kind;
        return which == kind::pip || which == kind::vmcs || which == kind::mode_exec ||
               which == kind::tip || which == kind::tip_pgd;
    }
    /// The FUP after OVF and PSB+ is that of the OVF: no TIP or TIP.PGD followed.
    constexpr auto settle_fup() noexcept -> resumption {
        set(asynchronous | shared_fup | psb_resumes, false);
        resume();
        return resumption::at_fup;
    }
    /// A packet shows that tracing is off: it did not resume.
    constexpr auto refute() noexcept -> resumption {
        if (!has(doubts)) { return resumption::none; }
        drop_lone_transaction();
        set(doubts | overflow, false);
        set(tracing::off);
        return resumption::refuted;
    }
    /// While PacketEn is 0, no FUP follows MODE.TSX: PKT-093.
    constexpr void drop_lone_transaction() noexcept { set(transaction | abort, false); }

    // --------------------------------------------------------------------------- values

    /// These return false if the packets before say something else.
    constexpr auto take(packet::pip which, bool is_on) noexcept -> bool {
        now_.has_cr3 = true;
        now_.cr3 = which.get<packet::pip::CR3>();
        now_.non_root = which.get<packet::pip::NR>();
        return known_.take(which, is_on);
    }
    constexpr void take(packet::vmcs which) noexcept {
        now_.has_vmcs = true;
        now_.vmcs = which.get<packet::vmcs::base>();
    }
    constexpr auto take(packet::mode_exec which, bool is_on) noexcept -> bool {
        now_.code_bits = static_cast<uint8_t>(which.code_bits());
        now_.interrupts = which.get<packet::mode_exec::IF>();
        return known_.take(which, is_on);
    }
    constexpr auto take(packet::mode_tsx which, bool is_on) noexcept -> bool {
        now_.transaction = which.get<packet::mode_tsx::InTX>();
        return known_.take(which, is_on);
    }

    // --------------------------------------------------------------------------- outside PSB+

    constexpr auto add_outside(packet::any_packet const& which) noexcept -> binding {
        using packet::kind;
        switch (which.kind()) {
            case kind::tnt_short:
            case kind::tnt_long: return add_tnt();
            case kind::tip: return add_tip();
            case kind::tip_pge: return add_tip_pge();
            case kind::tip_pgd: return add_tip_pgd();
            case kind::fup: return add_fup(which.as<packet::fup>());
            case kind::pip:
                (void)take(which.as<packet::pip>(), is_on());
                return add_middle(owner::paging);
            case kind::vmcs:
                take(which.as<packet::vmcs>());
                known_.forget_cr3();
                return add_middle(owner::paging);
            case kind::mode_exec: return add(which.as<packet::mode_exec>());
            case kind::mode_tsx: return add(which.as<packet::mode_tsx>());
            case kind::tracestop: return add_trace_stop();
            case kind::ptw:
                return announce(owner::ptwrite, ptwrite,
                                which.as<packet::ptw>().get<packet::ptw::IP>());
            case kind::exstop:
                return announce(owner::power, exstop,
                                which.as<packet::exstop>().get<packet::exstop::IP>());
            case kind::mwait:
            case kind::pwre: return announce(owner::power, exstop, false);
            case kind::pwrx: return alone(owner::power);
            case kind::bbp:
            case kind::bip: return announce(owner::pebs, pebs, false);
            case kind::bep:
                return announce(owner::pebs, pebs, which.as<packet::bep>().get<packet::bep::IP>());
            case kind::evd: {
                auto const found = announce(owner::control_flow, control_flow, false);
                set(event_data);
                return {.to = found.to, .completes = false, .broken = found.broken};
            }
            case kind::cfe: {
                set(event_data, false);
                known_.take(which.as<packet::cfe>());
                return announce(owner::control_flow, control_flow,
                                which.as<packet::cfe>().get<packet::cfe::IP>());
            }
            case kind::trig:
                return announce(owner::trigger, trigger,
                                which.as<packet::trig>().get<packet::trig::IP>());
            default: return {};
        }
    }

    /// Drops the pending packets that `which` selects. Returns the rule that this violates.
    constexpr auto drop(uint32_t which) noexcept -> rule {
        uint32_t const left = flags_ & which;
        set(which, false);
        if (has(lost)) { return rule::none; }
        return (left & owners_of_fup) != 0               ? rule::PKT_273
               : (left & (asynchronous | aborting)) != 0 ? rule::PKT_077
               : (left & mode) != 0                      ? rule::GEN_235
               : (left & event_data) != 0                ? rule::GEN_302
                                                         : rule::none;
    }
    /// Marks the control flow as lost until the next packet with an IP.
    constexpr void lose_flow() noexcept {
        set(overflow, false);
        set(tracing::unknown);
        set(lost);
    }
    /// Handles a packet that does not depend on PacketEn: after an OVF it shows that tracing is
    /// off.
    ///
    /// Source: PKT-153.
    constexpr void end_overflow() noexcept {
        if (!has(overflow)) { return; }
        set(overflow, false);
        if (!has(psb_resumes)) { set(tracing::off); }
    }
    /// The FUP after the OVF is missing.
    [[nodiscard]] constexpr auto misses_fup() const noexcept -> bool {
        return has(overflow | psb_resumes) && !quirks_.has(cpu::quirk::skd010);
    }
    /// For a packet that only an enabled processor sends.
    [[nodiscard]] constexpr auto confirm() const noexcept -> resumption {
        return has(psb_resumes) ? resumption::confirmed : resumption::none;
    }
    /// Confirms the state that the last PSB+ reported: no TIP.PGE followed it.
    constexpr void enter() noexcept {
        if (now_.enabled == tracing::entering) { set(tracing::on); }
    }

    constexpr auto add_tnt() noexcept -> binding {
        enter();
        bool const loses = has(asynchronous | aborting | abort | mode);
        binding found{.to = owner::branch, .broken = drop(waiting), .resumed = confirm()};
        if (misses_fup()) { found.broken = rule::GEN_227; }
        if (has(overflow) && !has(psb_resumes)) {
            lose_flow();  // TNTs are meaningless until the next IP
        } else if (has(off)) {
            found.broken = rule::GEN_105;
            lose_flow();
        } else if (loses) {
            lose_flow();
        }
        set(overflow | doubts, false);
        return found;
    }
    constexpr auto add_tip() noexcept -> binding {
        enter();
        binding found{
            .to = owner::branch, .broken = drop(owners_of_fup | event_data), .resumed = confirm()};
        if (has(asynchronous | aborting)) {
            found.to = has(aborting) ? owner::transaction_abort : owner::asynchronous;
        } else if (has(mode)) {
            found.to = owner::far_transfer;
        }
        if (misses_fup()) { found.broken = rule::GEN_227; }
        // A FUP and TIP while tracing is off: an INIT and the SIPI after it (GEN-290).
        if (has(off) && found.to != owner::asynchronous) { found.broken = rule::GEN_105; }
        set(waiting | doubts, false);
        resume();
        return found;
    }
    constexpr auto add_tip_pge() noexcept -> binding {
        auto const refuted = refute();
        binding found{.to = owner::entry, .broken = drop(waiting & ~mode), .resumed = refuted};
        if (now_.enabled == tracing::on) { found.broken = rule::GEN_100; }
        known_.enter(has(entering), has(mode));
        set(waiting, false);
        resume();
        return found;
    }
    constexpr auto add_trace_stop() noexcept -> binding {
        auto const refuted = refute();
        known_.forget();
        auto found = alone(owner::trace_stop);
        found.resumed = refuted;
        return found;
    }
    constexpr auto add_tip_pgd() noexcept -> binding {
        enter();
        binding found{
            .to = owner::branch, .broken = drop(owners_of_fup | event_data), .resumed = confirm()};
        if (has(asynchronous | aborting)) {
            found.to = has(aborting) ? owner::transaction_abort : owner::asynchronous;
        } else if (has(off)) {
            found.broken = rule::GEN_101;
        }
        bool const replaces_fup = has(overflow) && quirks_.has(cpu::quirk::apl11);
        if (misses_fup() && !replaces_fup) { found.broken = rule::GEN_227; }
        if (misses_fup() && replaces_fup && has(psb_resumes)) {
            found.resumed = resumption::withdrawn;
        }
        set(waiting | overflow | lost | doubts, false);
        set(tracing::off);
        return found;
    }
    constexpr auto add_fup(packet::fup which) noexcept -> binding {
        if (!has(doubts)) { enter(); }
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
            set(aborting, opens);
            return {.to = to, .completes = !opens};
        }
        if (!which.has_ip()) { return {.to = owner::asynchronous, .broken = rule::PKT_078}; }
        if (has(mode)) {
            set(mode, false);
            return {.to = owner::interrupt_flag};
        }
        if (has(overflow)) { return end_overflow_at_fup(); }
        binding found{.to = owner::asynchronous, .completes = false, .broken = drop(waiting)};
        if (has(off)) { found.broken = rule::PKT_077; }
        set(asynchronous);
        return found;
    }
    /// The first FUP after an OVF, with nothing but timing packets and PSB+s between.
    constexpr auto end_overflow_at_fup() noexcept -> binding {
        bool const has_other_ip = has(psb_resumes);
        set(overflow, false);
        if (has_other_ip && quirks_.has(cpu::quirk::skd010)) {
            // The FUP of the OVF may be missing: then TIP or TIP.PGD follows this one.
            set(asynchronous | shared_fup);
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
    constexpr auto add_middle(owner otherwise) noexcept -> binding {
        end_overflow();
        rule const broken = drop(owners_of_fup | event_data);
        bool const is_middle = has(asynchronous | aborting);
        return {.to = is_middle ? owner::asynchronous : otherwise,
                .completes = !is_middle,
                .broken = broken};
    }
    constexpr auto add(packet::mode_exec which) noexcept -> binding {
        (void)take(which, is_on());
        if (has(asynchronous | aborting)) {
            if (has(shared_fup)) { set(mode); }
            return {.to = owner::asynchronous,
                    .completes = false,
                    .broken = drop(owners_of_fup | event_data)};
        }
        end_overflow();
        rule const broken = drop(owners_of_fup | mode | event_data);
        set(mode);
        return {.to = owner::far_transfer, .completes = false, .broken = broken};
    }
    /// MODE.TSX: a FUP follows while tracing is on. Source: PKT-093.
    constexpr auto add(packet::mode_tsx which) noexcept -> binding {
        (void)take(which, is_on());
        bool const aborts = which.get<packet::mode_tsx::TXAbort>();
        auto const to = aborts ? owner::transaction_abort : owner::transaction;
        auto const found = announce(to, aborts ? abort : transaction, false);
        bool const is_off = has(off);
        if (!is_off) { set(aborts ? abort : transaction); }
        return {.to = to, .completes = is_off, .broken = found.broken};
    }
    /// A packet after which a FUP may follow. Several may share one.
    constexpr auto announce(owner to, uint32_t flag, bool has_fup) noexcept -> binding {
        end_overflow();
        rule const broken = drop(mode | asynchronous | aborting);
        if (has_fup) { set(flag); }
        return {.to = to, .completes = !has_fup, .broken = broken};
    }
    /// A packet without a FUP.
    constexpr auto alone(owner to) noexcept -> binding {
        end_overflow();
        return {.to = to, .broken = drop(waiting)};
    }

    execution_state now_{};
    uint32_t flags_ = lost;
    cpu::quirk_set quirks_{};
    known_state known_{};
};

}  // namespace ptspec::trace
