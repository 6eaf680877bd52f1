// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/check/clocks.hpp>
#include <ptspec/trace/check/placement.hpp>
#include <ptspec/trace/known_state.hpp>
#include <ptspec/trace/reader.hpp>

/// Checks a stream against the rules that a stream alone can violate.
namespace ptspec::trace {

/// The status packets of a PSB+ so far.
struct psb_group {
    uint64_t offset = 0;  ///< of the PSB
    uint32_t seen = 0;    ///< a bit for each packet kind
    unsigned rank = 0;    ///< of the last status packet

    [[nodiscard]] constexpr auto has(packet::kind which) const noexcept -> bool {
        return (seen >> underlying(which) & 1) != 0;
    }
    constexpr void add(packet::kind which) noexcept { seen |= uint32_t{1} << underlying(which); }
};

/// The place of a status packet in a PSB+, from 1; 0 for packets with any place.
///
/// Source: GEN-171.
[[nodiscard]] constexpr auto rank_in_psb(packet::kind which, psb_order order) noexcept -> unsigned {
    using packet::kind;
    bool const is_skylake = order == psb_order::skylake;
    switch (which) {
        case kind::tsc: return is_skylake ? 6 : 1;
        case kind::tma: return is_skylake ? 7 : 2;
        case kind::cbr: return is_skylake ? 8 : 3;
        case kind::pip: return 4;
        case kind::vmcs: return 5;
        case kind::mode_tsx: return is_skylake ? 1 : 6;
        case kind::mode_exec: return is_skylake ? 2 : order == psb_order::atom ? 8 : 7;
        case kind::fup: return is_skylake ? 3 : order == psb_order::atom ? 7 : 8;
        default: return 0;
    }
}

/// A visitor of a reader that checks packets, and calls `report(violation)` for each violation.
///
/// It has a fixed size. A violation may be found when a later packet is seen, so that offsets are
/// only about in order. Packets are checked from the first PSB on. After damage, after a packet
/// that no PSB+ has, and after memory that was not written, checking continues at the next PSB.
/// After OVF only rules are checked that do not depend on lost packets; after a misplaced packet no
/// places until the next PSB.
///
/// Errors: damage is reported with the rule that it breaks. A packet that the end of the trace cuts
///         off is a note: PKT-255.
/// Source: PKT-058..060, PKT-070..078, PKT-092, PKT-093, PKT-109, PKT-134..142, PKT-270..273,
///         GEN-006, GEN-010, GEN-011, GEN-020, GEN-090, GEN-100..105, GEN-120..125, GEN-170..176,
///         GEN-202, GEN-211..217, GEN-227, GEN-235..237, GEN-245, GEN-300..302, GEN-320, GEN-321,
///         GEN-342, GEN-344; and those of `clock_checker` and `placement`.
template <class Report, class Packets = packet::all>
    requires callable<Report&, violation const&>
class checker {
public:
    constexpr checker(check_options const& how, Report report)
        : how_{how},
          clocks_{how.mtc_freq, how.tsc_per_crystal},
          place_{how.writes, how.end_alignment},
          report_{report} {}

    /// A packet, as `reader::for_each` passes it.
    template <packet::packet_type Packet>
    constexpr void operator()(Packet const& which, at where) {
        add({which, where.length}, where.offset);
    }
    /// A run of PADs.
    constexpr void pads(unsigned count, at where) { add_pads(count, where.offset); }
    /// An item of a reader: what is no packet, or any item.
    constexpr void operator()(item const& one) {
        switch (one.what) {
            case item_type::packet:
                if (one.packet.is<packet::pad>()) { return add_pads(1, one.offset); }
                return add(one.packet, one.offset);
            case item_type::unknown: return place_.forget();
            case item_type::damage:
                report_(violation{one.offset, one.broken, packet::kind::pad,
                                  one.why == packet::error::truncated});
                return restart();
            case item_type::synced:
            case item_type::resynced:
            case item_type::lost: return restart();
            case item_type::need_input:
            case item_type::end: break;
        }
    }
    /// Continues at the next PSB, with another part of a trace or after missing packets.
    constexpr void restart() noexcept {
        clocks_.restart();
        place_.forget();
        lose_packets();
        is_synced_ = in_psb_ = false;
    }

private:
    using kind = packet::kind;

    /// More PADs than any alignment needs: to the end of a payload, to a multiple of 16, and to the
    /// next header.
    static constexpr unsigned most_pads = 64;

    /// What is known about PacketEn.
    enum class enabled : uint8_t {
        unknown,
        off,    ///< or BranchEn is 0
        left,   ///< off since a TIP.PGD
        enter,  ///< off before a PSB+ with a FUP: TIP.PGE follows
        on,
    };
    /// A packet after which others must follow.
    struct awaited {
        bool is_set = false;
        kind which = kind::pad;
        uint64_t offset = 0;
    };

    constexpr void report(uint64_t offset, rule broken, kind which) {
        report_(violation{offset, broken, which});
    }
    constexpr void report(rule broken) { report(offset_, broken, kind_); }
    constexpr void report(awaited const& which, rule broken) {
        report(which.offset, broken, which.which);
    }
    [[nodiscard]] constexpr auto here() const noexcept -> awaited { return {true, kind_, offset_}; }
    [[nodiscard]] constexpr auto is_off() const noexcept -> bool {
        return enabled_ == enabled::off || enabled_ == enabled::left || enabled_ == enabled::enter;
    }

    /// Forgets what packets before say about the next.
    constexpr void lose_packets() noexcept {
        enabled_ = enabled::unknown;
        cyc_ = lone_cyc_ = tnt_ = owner_ = event_ = exec_ = evd_ = {};
        knows_forms_ = knows_exec_ = is_fresh_ = is_stopped_ = is_asleep_ = follows_ovf_ = false;
        now_.items = packet::block::none;
        known_.forget();
    }

    /// Many PADs are memory that was not written.
    constexpr void add_pads(unsigned count, uint64_t offset) noexcept {
        pads_ = offset == pads_end_ ? pads_ + count : count;
        pads_end_ = offset + count;
        if (pads_ > most_pads) { restart(); }
    }
    constexpr void add(packet::any_packet const& which, uint64_t offset) {
        offset_ = offset;
        kind_ = which.kind();
        if (!is_synced_ && kind_ != kind::psb) { return; }
        is_synced_ = true;
        check_cyc(which);
        check_place(which);
        check_form(which);
        check_tnt(which);
        check_clocks(which);
        if (in_psb_) {
            add_to_psb(which);
        } else {
            add_outside_psb(which);
        }
        packet::visit<Packets>([&](auto const& one) { now_.record(one, which.length()); }, which);
    }

    // ------------------------------------------------------------------------ single packets

    constexpr void check_cyc(packet::any_packet const& which) {
        auto const before = cyc_;
        auto const lone = lone_cyc_;
        cyc_ = kind_ == kind::cyc ? here() : awaited{};
        lone_cyc_ = kind_ == kind::cyc ? before : awaited{};
        if (how_.has_kind) {
            bool const eligible = packet::facts_of<Packets>(kind_).cyc_eligible !=
                                  packet::cyc_rule::no;
            // The first of two CYCs may belong to a TNT that was lost before an OVF.
            if (lone.is_set && kind_ != kind::ovf) { report(lone, rule::GEN_217); }
            if (before.is_set && kind_ != kind::cyc && !eligible) { report(before, rule::GEN_214); }
        }
        if (kind_ != kind::cyc) { return; }
        auto const value = which.as<packet::cyc>().value();
        if (value == 0) {
            report(rule::GEN_211);
        } else if (how_.has_kind && packet::cyc::of(value).length() != which.length()) {
            report(rule::PKT_109);
        }
    }
    constexpr void check_place(packet::any_packet const& which) {
        if (!how_.has_kind) { return; }
        auto const wrong = place_.add(which, offset_,
                                      {now_.items, in_psb_, enabled_ != enabled::on});
        if (wrong.broken != rule::none) { report_(wrong); }
    }
    /// The form of an IP.
    constexpr void check_form(packet::any_packet const& which) {
        packet::visit<Packets>(
            [&](auto const& one) {
                using type = bare_t<decltype(one)>;
                if constexpr (derived_from<type, packet::ip_packet<type>>) { check_form_of(one); }
            },
            which);
    }
    template <class Packet>
    constexpr void check_form_of(Packet const& which) {
        if (!which.has_ip()) {
            if (kind_ == kind::fup) { report(rule::PKT_078); }
            if (kind_ == kind::tip) { report(rule::PKT_070); }
            if (kind_ == kind::tip_pge) { report(rule::PKT_076); }
            return;
        }
        if (!knows_forms_) {  // the first IP after an OVF
            knows_forms_ = true;
            return;
        }
        if (!how_.has_kind) { return; }
        // TIP.PGE after the PSB+ of an enable is the first IP of its context. Source: GEN-011.
        auto from = now_;
        if (kind_ == kind::tip_pge && is_fresh_) { from.has_context_ip = false; }
        auto const wanted = from.form_of(which.ip(now_.last_ip), how_.writes.ips,
                                         kind_ == kind::fup);
        if (wanted == which.template get<typename Packet::IPBytes>()) { return; }
        report(now_.has_last_ip ? rule::GEN_011 : rule::GEN_174);
    }
    /// The number of branches in a TNT, and the packet after it.
    constexpr void check_tnt(packet::any_packet const& which) {
        bool const is_long = kind_ == kind::tnt_long;
        if (!is_long && kind_ != kind::tnt_short) {
            if (kind_ != kind::cyc) { tnt_ = {}; }
            return;
        }
        constexpr unsigned most_short = packet::tnt_short::max_branches;
        unsigned const capacity = how_.has_kind ? how_.writes.max_branches() : most_short;
        unsigned const count = is_long ? which.as<packet::tnt_long>().taken().count
                                       : which.as<packet::tnt_short>().taken().count;
        if (tnt_.is_set) { report(tnt_, rule::GEN_122); }
        if (how_.has_kind &&
            (count > capacity || (is_long && (capacity == most_short || count <= most_short)))) {
            report(rule::GEN_120);
        }
        tnt_ = count < capacity && (how_.has_kind || !is_long) ? here() : awaited{};
    }
    constexpr void check_clocks(packet::any_packet const& which) {
        rule broken = rule::none;
        switch (kind_) {
            case kind::tsc:
                broken = clocks_.add_tsc(which.as<packet::tsc>().get<packet::tsc::TSC>());
                break;
            case kind::tma: {
                auto const tma = which.as<packet::tma>();
                broken = clocks_.add_tma(tma.get<packet::tma::CTC>(), tma.get<packet::tma::FC>());
                if (tma.reserved_bits_set() != 0) { broken = rule::PKT_104; }
                break;
            }
            case kind::mtc:
                broken = clocks_.add_mtc(which.as<packet::mtc>().get<packet::mtc::CTC>(), offset_);
                break;
            case kind::cyc: break;
            case kind::cbr:
                clocks_.separate();
                if (which.as<packet::cbr>().get<packet::cbr::CoreBusRatio>() == 0) {
                    broken = rule::GEN_202;
                }
                break;
            case kind::ovf: clocks_.lose(); break;
            default:
                clocks_.separate();
                if (!in_psb_ && kind_ != kind::psb && clocks_.take_jump()) {
                    report(clocks_.jump(), rule::GEN_203, kind::mtc);
                }
        }
        if (broken != rule::none) { report(broken); }
    }

    // ----------------------------------------------------------------------------------- PSB+

    constexpr void begin_psb() {
        in_psb_ = true;
        group_ = {.offset = offset_};
        knows_forms_ = true;
        knows_exec_ = true;
        has_exec_ = false;
        is_fresh_ = false;
    }
    /// A packet after a PSB.
    constexpr void add_to_psb(packet::any_packet const& which) {
        switch (kind_) {
            case kind::psbend: return end_psb();
            case kind::ovf: in_psb_ = false; return overflow();
            case kind::psb: report(rule::PKT_142); return begin_psb();
            case kind::cyc:
            case kind::mtc:
            case kind::mnt: return;
            default: break;
        }
        unsigned const rank = rank_in_psb(kind_, how_.writes.in_psb);
        if (rank == 0) {
            bool const is_tnt = kind_ == kind::tnt_short || kind_ == kind::tnt_long;
            report(is_tnt ? rule::GEN_125 : rule::GEN_172);
            return restart();
        }
        if (group_.has(kind_)) {
            report(rule::GEN_170);
        } else if (how_.has_kind && rank < group_.rank) {
            report(rule::GEN_171);
        }
        bool const has_no_ip = kind_ == kind::fup && !which.as<packet::fup>().has_ip();
        if (!has_no_ip) { group_.add(kind_); }
        group_.rank = rank;
        check_known(which);
    }
    /// A status packet repeats what the packets before say.
    constexpr void check_known(packet::any_packet const& which) {
        if (take_state(which, true)) { return; }
        report_(violation{offset_, rule::GEN_344, kind_, kind_ == kind::pip});
    }
    /// Returns false if the packets before say something else.
    constexpr auto take_state(packet::any_packet const& which, bool is_on) noexcept -> bool {
        switch (kind_) {
            case kind::mode_exec: return known_.take(which.as<packet::mode_exec>(), is_on);
            case kind::mode_tsx: return known_.take(which.as<packet::mode_tsx>(), is_on);
            case kind::pip: return known_.take(which.as<packet::pip>(), is_on);
            default: return true;
        }
    }
    constexpr void end_psb() {
        bool const has_fup = group_.has(kind::fup);
        bool const has_tsx = group_.has(kind::mode_tsx);
        bool const agrees = group_.has(kind::cbr) && has_fup == group_.has(kind::mode_exec) &&
                            (!how_.has_kind || (how_.has_tsx ? has_tsx || !has_fup : !has_tsx)) &&
                            (has_fup || enabled_ != enabled::on);
        if (!agrees) { report(group_.offset, rule::GEN_170, kind::psb); }
        if (!has_fup) { known_.forget(); }
        in_psb_ = false;
        has_exec_ = group_.has(kind::mode_exec);
        is_fresh_ = has_fup;
        enabled_ = !has_fup                    ? enabled::off
                   : is_off() && !follows_ovf_ ? enabled::enter
                                               : enabled::on;
        // The context of a PSB+ does not change the form of the next IP here. Source: GEN-011.
        if (how_.writes.ips == ip_choice::icelake && has_fup && !group_.has(kind::vmcs)) {
            now_.has_context_ip = true;
        }
    }

    // ---------------------------------------------------------------------------- other packets

    /// The packets that bind to nothing and may stand anywhere. Source: PKT-272.
    [[nodiscard]] static constexpr auto is_timing(kind which) noexcept -> bool {
        return which == kind::pad || which == kind::cyc || which == kind::mtc ||
               which == kind::tsc || which == kind::tma || which == kind::cbr || which == kind::mnt;
    }

    constexpr void add_outside_psb(packet::any_packet const& which) {
        if (is_timing(kind_)) {
            bool const enables = kind_ == kind::tsc || kind_ == kind::cbr;
            if (enables) { is_stopped_ = false; }
            if (kind_ == kind::cbr && enabled_ == enabled::left) { enabled_ = enabled::off; }
            return;
        }
        if (kind_ == kind::ovf) { return overflow(); }
        if (kind_ == kind::psb) {
            check_psb();
            return begin_psb();
        }
        check_stopped();
        check_event_data();
        bool const had_exec = check_exec();
        bool const has_owner = check_owner();
        check_event();
        check_block();
        check_enter();
        (void)take_state(which, enabled_ == enabled::on || enabled_ == enabled::enter);
        switch (kind_) {
            case kind::tnt_short:
            case kind::tnt_long:
            case kind::tip: branch(); break;
            case kind::tip_pge: enter(had_exec); break;
            case kind::tip_pgd: leave(); break;
            case kind::fup: bind(had_exec || has_owner); break;
            case kind::mode_exec:
                exec_ = here();
                has_exec_ = true;
                break;
            case kind::mode_tsx:
                if (enabled_ == enabled::on) {
                    owner_ = here();
                    aborts_ = which.as<packet::mode_tsx>().get<packet::mode_tsx::TXAbort>();
                }
                break;
            case kind::ptw:
                if (enabled_ == enabled::left) { report(rule::GEN_300); }
                own_fup(which.as<packet::ptw>().get<packet::ptw::IP>());
                break;
            case kind::exstop: own_fup(which.as<packet::exstop>().get<packet::exstop::IP>()); break;
            case kind::bep: own_fup(which.as<packet::bep>().get<packet::bep::IP>()); break;
            case kind::cfe:
                known_.take(which.as<packet::cfe>());
                own_fup(which.as<packet::cfe>().get<packet::cfe::IP>());
                break;
            case kind::vmcs: known_.forget_cr3(); break;
            case kind::trig: own_fup(which.as<packet::trig>().get<packet::trig::IP>()); break;
            case kind::evd: evd_ = here(); break;
            case kind::pwre: is_asleep_ = true; break;
            case kind::pwrx: is_asleep_ = false; break;
            case kind::tracestop:
                if (enabled_ == enabled::on) { report(rule::GEN_090); }
                enabled_ = enabled::off;
                is_stopped_ = true;
                known_.forget();
                break;
            case kind::psbend: report(rule::PKT_134); break;
            default: break;
        }
        if (kind_ != kind::mode_exec && kind_ != kind::pip) { is_fresh_ = false; }
    }

    constexpr void overflow() noexcept {
        lose_packets();
        follows_ovf_ = true;
    }
    /// A PSB inside of events.
    constexpr void check_psb() {
        bool const splits = owner_.is_set || event_.is_set || exec_.is_set || evd_.is_set ||
                            is_asleep_ || now_.items != packet::block::none;
        if (splits) {
            report(rule::GEN_006);
            known_.forget();
        }
        owner_ = event_ = exec_ = evd_ = {};
        is_asleep_ = is_stopped_ = false;
    }
    /// TriggerEn is 0 after TraceStop.
    constexpr void check_stopped() {
        if (is_stopped_) { report(rule::GEN_020); }
        is_stopped_ = false;
    }
    constexpr void check_event_data() {
        bool const has_event = kind_ == kind::evd || kind_ == kind::cfe;
        if (evd_.is_set && !has_event) { report(evd_, rule::GEN_302); }
        evd_ = {};
    }
    /// The packet after MODE.Exec. Returns true if the last packet is a MODE.Exec.
    [[nodiscard]] constexpr auto check_exec() -> bool {
        auto const before = exec_;
        exec_ = {};
        if (!before.is_set || kind_ == kind::tip || kind_ == kind::tip_pge) {
            return before.is_set;
        }
        if (kind_ == kind::fup && !event_.is_set) { return true; }  // IF changed
        report(before, kind_ == kind::tip_pgd                      ? rule::GEN_237
                       : kind_ == kind::pip || kind_ == kind::vmcs ? rule::GEN_245
                                                                   : rule::GEN_235);
        return true;
    }
    /// The packet after one that a FUP follows. Returns true if there is one.
    [[nodiscard]] constexpr auto check_owner() -> bool {
        bool const had = owner_.is_set;
        if (!had || kind_ == kind::fup) { return had; }
        if (shares_fup(owner_.which) && shares_fup(kind_)) { return true; }
        report(owner_, rule::PKT_273);
        owner_ = {};
        return false;
    }
    [[nodiscard]] static constexpr auto shares_fup(kind which) noexcept -> bool {
        return which == kind::exstop || which == kind::pwre || which == kind::mwait ||
               which == kind::cfe || which == kind::evd || which == kind::mode_tsx;
    }
    constexpr void own_fup(bool has_ip) noexcept {
        if (has_ip) { owner_ = here(); }
    }
    /// The packet after the FUP of an asynchronous event.
    constexpr void check_event() {
        if (!event_.is_set || kind_ == kind::pip || kind_ == kind::vmcs ||
            kind_ == kind::mode_exec) {
            return;
        }
        if (kind_ != kind::tip && kind_ != kind::tip_pgd) { report(event_, rule::PKT_077); }
        event_ = {};
    }
    constexpr void check_block() {
        bool const in_block = now_.items != packet::block::none;
        if (kind_ == kind::bep && !in_block) { report(rule::GEN_320); }
        bool const keeps = packet::facts_of<Packets>(kind_).keeps_block;
        if (in_block && !keeps && kind_ != kind::bep && kind_ != kind::bbp) {
            report(rule::GEN_321);
        }
    }
    /// The packet after a PSB+ that has a FUP though PacketEn was 0.
    constexpr void check_enter() {
        if (enabled_ != enabled::enter || kind_ == kind::tip_pge || kind_ == kind::mode_exec ||
            kind_ == kind::pip) {
            return;
        }
        report(group_.offset, rule::GEN_176, kind::psb);
        enabled_ = enabled::on;
    }
    constexpr void branch() {
        if (is_off()) { report(rule::GEN_105); }
        if (follows_ovf_) { report(rule::GEN_227); }
        if (enabled_ != enabled::on) { known_.forget(); }
        enabled_ = enabled::on;
        follows_ovf_ = false;
    }
    constexpr void enter(bool had_exec) {
        if (enabled_ == enabled::on && !is_fresh_) { report(rule::GEN_100); }
        if (knows_exec_ && !has_exec_ && !had_exec) { report(rule::GEN_236); }
        known_.enter(is_fresh_, had_exec);
        enabled_ = enabled::on;
        follows_ovf_ = false;
    }
    constexpr void leave() {
        if (is_off()) { report(rule::GEN_101); }
        if (follows_ovf_) { report(rule::GEN_227); }
        known_.forget();
        enabled_ = enabled::left;
        follows_ovf_ = false;
    }
    /// A FUP, which has an owner or begins an event.
    constexpr void bind(bool has_owner) {
        bool const resumes = follows_ovf_ && !has_owner;
        bool const begins = !has_owner && !resumes;
        if (begins && is_off()) { report(rule::GEN_342); }
        if (begins || resumes) { enabled_ = enabled::on; }
        if (begins || (owner_.which == kind::mode_tsx && aborts_)) { event_ = here(); }
        owner_ = {};
        follows_ovf_ = false;
    }

    check_options how_;
    clock_checker clocks_;
    placement<Packets> place_;
    Report report_;
    known_state known_{};
    writer_state now_{};  ///< the IPs and the block, as a writer of the same packets has them

    // The packet that is checked.
    uint64_t offset_ = 0;
    kind kind_ = kind::pad;

    uint64_t pads_end_ = 0;
    uint64_t pads_ = 0;  ///< that end there

    bool is_synced_ = false;  ///< a PSB was seen
    bool in_psb_ = false;
    psb_group group_{};

    enabled enabled_ = enabled::unknown;
    bool is_fresh_ = false;     ///< nothing but timing packets since a PSB+ with a FUP
    bool follows_ovf_ = false;  ///< and neither FUP nor TIP.PGE followed
    bool is_stopped_ = false;   ///< the last packet is a TraceStop
    bool is_asleep_ = false;    ///< a PWRE without PWRX
    bool aborts_ = false;       ///< the last MODE.TSX has TXAbort
    bool knows_forms_ = false;  ///< `now_` gives the form of the next IP
    bool knows_exec_ = false;   ///< a PSB stands after the last loss
    bool has_exec_ = false;     ///< a MODE.Exec stands after the last PSB

    awaited cyc_{};       ///< the last packet is a CYC
    awaited lone_cyc_{};  ///< and so is the one before
    awaited tnt_{};       ///< the last packet other than CYC is a partial TNT
    awaited owner_{};     ///< a FUP must follow
    awaited event_{};     ///< a FUP: TIP or TIP.PGD must follow
    awaited exec_{};      ///< a MODE.Exec outside of PSB+
    awaited evd_{};       ///< a CFE must follow
};

/// Checks a whole trace, and calls `report(violation)` for each violation.
template <class Report>
constexpr void check(borrowed_bytes whole, check_options const& rules, Report&& report,
                     options how = {}) {
    auto const pass_on = [&](violation const& one) { report(one); };
    checker checks{rules, pass_on};
    reader all{whole, how};
    (void)all.for_each(checks);
}

}  // namespace ptspec::trace
