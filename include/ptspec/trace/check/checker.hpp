// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/check/clocks.hpp>
#include <ptspec/trace/check/placement.hpp>
#include <ptspec/trace/reader.hpp>

/// Checks a stream against the rules that a stream alone can violate.
namespace ptspec::trace {

/// The place of a status packet in a PSB+, from 1; 0 for packets with any place.
///
/// Source: GEN-171.
[[nodiscard]] constexpr auto rank_in_psb(packet::kind packet_kind, psb_order order) noexcept
    -> unsigned {
    using packet::kind;
    bool const is_skylake = order == psb_order::skylake;
    switch (packet_kind) {
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
/// A `binder` checks the order of packets. The checker itself checks single packets, the choices of
/// a kind of processor, clocks and places. It has a fixed size. A violation may be found when a
/// later packet is seen, so offsets are only roughly in order. Packets are checked from the first
/// PSB on. After damage, and after memory that was not written, checking continues at the
/// next PSB. After an OVF only the rules that do not depend on lost packets are checked. After a
/// misplaced packet, places are not checked until the next PSB.
///
/// Errors: damage is reported with the rule that it breaks.
/// Source: PKT-058..060, PKT-070, PKT-076, PKT-109, PKT-255, GEN-010, GEN-011, GEN-120..122,
///         GEN-170, GEN-171, GEN-174, GEN-181, GEN-202, GEN-211..217, GEN-236; and those of
///         `binder`, `clock_checker` and `placement`.
template <class Report, class Packets = packet::all>
    requires callable<Report&, violation const&>
class checker {
public:
    constexpr checker(check_options const& options, Report report)
        : options_{options},
          binder_{options.quirks},
          clocks_{options.mtc_freq, options.tsc_per_crystal},
          place_{options.writes, options.end_alignment},
          report_{report} {}

    /// A packet, as `reader::for_each` passes it.
    template <packet::packet_type Packet>
    constexpr void operator()(Packet const& packet, packet_place place) {
        add({packet, place.length}, place);
    }
    /// A run of PADs.
    constexpr void pads(unsigned count, packet_place place) { add_pads(count, place.offset); }
    /// An item of a reader, which may also be a packet.
    constexpr void operator()(item const& one) {
        switch (one.what) {
            case item_type::packet:
                if (one.packet.is<packet::pad>()) { return add_pads(1, one.offset); }
                return add(one.packet, one.place());
            case item_type::unknown: return place_.forget();
            case item_type::damage:
                report_(violation{one.offset, one.broken, packet::kind::none,
                                  one.error == packet::error::truncated});
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
        binder_.restart();
        clocks_.restart();
        place_.forget();
        lose_packets();
        is_synced_ = false;
    }

private:
    using kind = packet::kind;

    /// More PADs than any alignment needs: to the end of a payload, to a multiple of 16, and to the
    /// next header.
    static constexpr unsigned max_pads = 64;

    /// A packet after which others must follow.
    struct awaited {
        bool is_set = false;
        packet::kind kind = packet::kind::pad;
        uint64_t offset = 0;
    };

    constexpr void report(uint64_t offset, rule broken, kind packet_kind) {
        report_(violation{offset, broken, packet_kind});
    }
    constexpr void report(rule broken) { report(offset_, broken, kind_); }
    constexpr void report(awaited const& packet, rule broken) {
        report(packet.offset, broken, packet.kind);
    }
    [[nodiscard]] constexpr auto here() const noexcept -> awaited { return {true, kind_, offset_}; }

    /// Forgets what earlier packets require of later ones.
    constexpr void lose_packets() noexcept {
        cyc_ = lone_cyc_ = tnt_ = {};
        knows_forms_ = needs_mode_ = false;
        state_.items = packet::block::none;
    }

    /// Counts PADs. More than `max_pads` are memory that was not written.
    constexpr void add_pads(unsigned count, uint64_t offset) noexcept {
        pads_ = offset == pads_end_ ? pads_ + count : count;
        pads_end_ = offset + count;
        if (pads_ > max_pads) { restart(); }
    }
    constexpr void add(packet::any_packet const& packet, packet_place place) {
        offset_ = place.offset;
        kind_ = packet.kind();
        if (!is_synced_ && kind_ != kind::psb) { return; }
        is_synced_ = true;
        check_cyc(packet);
        check_place(packet);
        check_form(packet);
        check_tnt(packet);
        check_clocks(packet);
        check_order(packet, place);
        packet::visit<Packets>([&](auto const& one) { state_.record(one, packet.length()); },
                               packet);
    }

    // ------------------------------------------------------------------------ single packets

    constexpr void check_cyc(packet::any_packet const& packet) {
        auto const before = cyc_;
        auto const lone = lone_cyc_;
        cyc_ = kind_ == kind::cyc ? here() : awaited{};
        lone_cyc_ = kind_ == kind::cyc ? before : awaited{};
        if (options_.has_model) {
            bool const eligible = packet::facts_of<Packets>(kind_).cyc_eligible !=
                                  packet::cyc_rule::no;
            // The first of two CYCs may belong to a TNT that was lost before an OVF.
            if (lone.is_set && kind_ != kind::ovf) { report(lone, rule::GEN_217); }
            if (before.is_set && kind_ != kind::cyc && !eligible) { report(before, rule::GEN_214); }
        }
        if (kind_ != kind::cyc) { return; }
        auto const value = packet.as<packet::cyc>().value();
        if (value == 0) {
            report(rule::GEN_211);
        } else if (options_.has_model && packet::cyc::of(value).length() != packet.length()) {
            report(rule::PKT_109);
        }
    }
    constexpr void check_place(packet::any_packet const& packet) {
        if (!options_.has_model) { return; }
        bool const is_on = binder_.state().enabled == tracing::on ||
                           (is_fresh() && !binder_.needs_tip_pge());
        auto const wrong = place_.add(packet, offset_,
                                      {state_.items, binder_.in_psb_plus(), !is_on});
        if (wrong.broken != rule::none) { report_(wrong); }
    }
    /// The form of an IP.
    constexpr void check_form(packet::any_packet const& packet) {
        packet::visit<Packets>(
            [&](auto const& one) {
                using type = bare_t<decltype(one)>;
                if constexpr (derived_from<type, packet::ip_packet<type>>) { check_form_of(one); }
            },
            packet);
    }
    template <class Packet>
    constexpr void check_form_of(Packet const& packet) {
        if (!packet.has_ip()) {
            if (kind_ == kind::tip) { report(rule::PKT_070); }
            if (kind_ == kind::tip_pge) { report(rule::PKT_076); }
            return;
        }
        if (!knows_forms_) {  // the first IP after an OVF
            knows_forms_ = true;
            return;
        }
        // The first IP after TraceEn rises is that of another context: GEN-181.
        bool const is_entry = kind_ == kind::tip_pge;
        if (!options_.has_model || (is_entry && may_be_enabled_)) { return; }
        // TIP.PGE after the PSB+ of an enable is the first IP of its context. Source: GEN-011.
        auto from = state_;
        if (is_entry && is_fresh()) { from.has_context_ip = false; }
        auto const wanted = from.form_of(packet.ip(state_.last_ip), options_.writes.ips,
                                         kind_ == kind::fup);
        if (wanted == packet.template get<typename Packet::IPBytes>()) { return; }
        report(state_.has_last_ip ? rule::GEN_011 : rule::GEN_174);
    }
    /// The number of branches in a TNT, and the packet after it.
    constexpr void check_tnt(packet::any_packet const& packet) {
        bool const is_long = kind_ == kind::tnt_long;
        if (!is_long && kind_ != kind::tnt_short) {
            if (kind_ != kind::cyc) { tnt_ = {}; }
            return;
        }
        constexpr unsigned max_short = packet::tnt_short::max_branches;
        unsigned const capacity = options_.has_model ? options_.writes.max_branches() : max_short;
        unsigned const count = is_long ? packet.as<packet::tnt_long>().taken().count
                                       : packet.as<packet::tnt_short>().taken().count;
        if (tnt_.is_set) { report(tnt_, rule::GEN_122); }
        if (options_.has_model &&
            (count > capacity || (is_long && (capacity == max_short || count <= max_short)))) {
            report(rule::GEN_120);
        }
        tnt_ = count < capacity && (options_.has_model || !is_long) ? here() : awaited{};
    }
    constexpr void check_clocks(packet::any_packet const& packet) {
        rule broken = rule::none;
        switch (kind_) {
            case kind::tsc:
                broken = clocks_.add_tsc(packet.as<packet::tsc>().get<packet::tsc::TSC>());
                break;
            case kind::tma: {
                auto const tma = packet.as<packet::tma>();
                broken = clocks_.add_tma(tma.get<packet::tma::CTC>(), tma.get<packet::tma::FC>());
                if (tma.reserved_bits_set() != 0) { broken = rule::PKT_104; }
                break;
            }
            case kind::mtc:
                broken = clocks_.add_mtc(packet.as<packet::mtc>().get<packet::mtc::CTC>(), offset_);
                break;
            case kind::cyc: break;
            case kind::cbr:
                clocks_.separate();
                if (packet.as<packet::cbr>().get<packet::cbr::CoreBusRatio>() == 0) {
                    broken = rule::GEN_202;
                }
                break;
            case kind::ovf: clocks_.lose(); break;
            default:
                clocks_.separate();
                if (!binder_.in_psb_plus() && kind_ != kind::psb && clocks_.take_jump()) {
                    report(clocks_.jump(), rule::GEN_203, kind::mtc);
                }
        }
        if (broken != rule::none) { report(broken); }
    }

    // ----------------------------------------------------------------------------------- order

    constexpr void check_order(packet::any_packet const& packet, packet_place place) {
        bool const is_off = binder_.state().enabled == tracing::off && !binder_.in_psb_plus();
        may_be_enabled_ = is_off && (may_be_enabled_ || kind_ == kind::cbr);
        auto const before = binder_.last_psb_plus();
        bool const was_in_psb = binder_.in_psb_plus();
        bool const was_on = is_on() && !binder_.may_have_resumed();
        auto const bound = binder_.add(packet, place);
        if (bound.broken != rule::none) { report_(binder_.violated()); }
        check_mode(bound, was_in_psb);
        switch (kind_) {
            case kind::psb:
                rank_ = 0;
                knows_forms_ = true;
                return;
            case kind::psbend:
                if (was_in_psb) { end_psb(before, was_on); }
                return;
            case kind::ovf: return lose_packets();
            default: break;
        }
        if (!was_in_psb) { return; }
        if (bound.in_psb_plus) { return check_status(before); }
        place_.forget();  // no PSB+ has the packet
    }
    /// The first TIP.PGE after a PSB+ without MODE.Exec follows a MODE.Exec.
    constexpr void check_mode(binding bound, bool was_in_psb) {
        if (kind_ == kind::tip_pge) {
            if (needs_mode_ && bound.broken == rule::none) { report(rule::GEN_236); }
            needs_mode_ = false;
        } else if (kind_ == kind::mode_exec || binder_.is_lost()) {
            needs_mode_ = false;
        } else if (kind_ == kind::psbend && was_in_psb) {
            needs_mode_ = !binder_.last_psb_plus().has(kind::mode_exec);
        }
    }
    constexpr void check_status(psb_plus const& before) {
        unsigned const rank = rank_in_psb(kind_, options_.writes.in_psb);
        if (rank == 0) { return; }
        if (before.has(kind_)) {
            report(rule::GEN_170);
        } else if (options_.has_model && rank < rank_) {
            report(rule::GEN_171);
        }
        rank_ = rank;
    }
    constexpr void end_psb(psb_plus const& all, bool was_on) {
        bool const has_tsx = all.has(kind::mode_tsx);
        bool const agrees = all.has(kind::cbr) && all.has_ip == all.has(kind::mode_exec) &&
                            (!options_.has_model ||
                             (options_.has_tsx ? has_tsx || !all.has_ip : !has_tsx)) &&
                            (all.has_ip || !was_on);
        if (!agrees) { report(all.offset, rule::GEN_170, kind::psb); }
        // The context of a PSB+ does not change the form of the next IP here. Source: GEN-011.
        if (options_.writes.ips == ip_choice::icelake && all.has_ip && !all.has(kind::vmcs)) {
            state_.has_context_ip = true;
        }
    }
    /// True if PacketEn is known to be 1.
    [[nodiscard]] constexpr auto is_on() const noexcept -> bool {
        return binder_.state().enabled == tracing::on || (is_fresh() && !binder_.needs_tip_pge());
    }
    /// True if only timing packets came since a PSB+ with a FUP.
    [[nodiscard]] constexpr auto is_fresh() const noexcept -> bool {
        return binder_.state().enabled == tracing::entering;
    }

    check_options options_;
    binder binder_;
    clock_checker clocks_;
    placement<Packets> place_;
    Report report_;
    writer_state state_{};  ///< the IPs and the block, as a writer of the same packets has them

    // The packet that is checked.
    uint64_t offset_ = 0;
    kind kind_ = kind::pad;

    uint64_t pads_end_ = 0;
    uint64_t pads_ = 0;  ///< the number of PADs that end at `pads_end_`

    bool is_synced_ = false;       ///< a PSB was seen
    bool needs_mode_ = false;      ///< the next TIP.PGE must follow a MODE.Exec
    bool knows_forms_ = false;     ///< `state_` gives the form of the next IP
    bool may_be_enabled_ = false;  ///< TraceEn may have risen, with a CBR, while tracing was off
    unsigned rank_ = 0;            ///< of the last status packet of the PSB+

    awaited cyc_{};       ///< the last packet is a CYC
    awaited lone_cyc_{};  ///< the packet before it is a CYC, too
    awaited tnt_{};       ///< the last packet other than CYC is a partial TNT
};

/// Checks a whole trace, and calls `report(violation)` for each violation.
template <callable<violation> Report>
constexpr void check(borrowed_bytes whole, check_options const& rules, Report&& report,
                     reader_options options = {}) {
    auto const pass_on = [&](violation const& one) { report(one); };
    checker checks{rules, pass_on};
    reader all{whole, options};
    (void)all.for_each(checks);
}

}  // namespace ptspec::trace
