// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/binder.hpp>
#include <ptspec/edit/detail/part_state.hpp>
#include <ptspec/edit/rewrite.hpp>

/// The part of a trace that is the guest's, or the host's.
///
/// With the three "conceal VMX from PT" controls, the trace of a guest that traces itself (PRG-163)
/// shows no VMX operation: `count_vmx_packets` is 0. Without them, `keep_part` keeps the guest's or
/// the host's part of a trace of both, or removes the packets of VMX from a trace of the guest
/// alone. It needs the PIPs that these controls hide: a trace that was recorded with one of them
/// cannot be divided.
namespace ptspec::edit {

/// Whose part of a trace is kept.
enum class side : uint8_t { guest, host };

/// In which operation TraceEn is 1.
///
/// Source: PRG-163.
enum class traced_in : uint8_t {
    both,      ///< system-wide
    non_root,  ///< VM entries set TraceEn, VM exits clear it
    root,      ///< VM exits set TraceEn, VM entries clear it
};

/// What `keep_part` keeps, and how.
struct part_options {
    static constexpr uint64_t any_vmcs = ~uint64_t{0};

    side keep = side::guest;
    traced_in where = traced_in::both;
    /// The guest: the address of its VMCS, as VMCS packets have it. Other guests belong to neither
    /// side.
    uint64_t vmcs = any_vmcs;
    /// A VM exit after which the guest continues at the same or the next instruction leaves no
    /// trace. If false, and where this is not possible, tracing is disabled and enabled around it.
    bool hides_exits = true;
    /// `other_tsc` changes a TSC of the other side to one of the side that is kept. If false, TSC
    /// and TMA of the other side are removed.
    bool has_other_tsc = false;
    trace::tsc_change other_tsc{};
};

/// The result of `keep_part`.
struct [[nodiscard]] kept_part {
    rule broken = rule::none;   ///< that the first damage breaks
    uint64_t offset = 0;        ///< of that damage, in the original
    uint64_t kept = 0;          ///< bytes of packets that remain, without PADs
    uint64_t unattributed = 0;  ///< bytes of packets that may be of either side: removed
    uint64_t incomplete = 0;    ///< bytes of an incomplete packet at the end: removed
    uint64_t left = 0;          ///< VM transitions to the other side
    uint64_t hidden = 0;        ///< how many of them leave no trace

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

namespace detail {

/// The state of `keep_part`.
///
/// Packets that remain are written at `out_`, never after the bytes that were read. While the
/// result has the decoder state of the original, PADs keep each packet at its offset. A PSB is
/// always at its offset. After a removal packets follow each other directly until an IP was
/// written: it may need a longer form than in the original, because the last IP is a different one.
///
/// There is always room: the two last IPs differ in their low n bytes only if an IP packet with n
/// bytes, or the PIP of a VM exit, was removed. Each MODE.Exec that is repeated was removed before.
template <class Packets>
class part_keeper {
public:
    constexpr part_keeper(trace_pieces in, part_options const& how) noexcept
        : bytes_{in},
          how_{how},
          other_tsc_{how.other_tsc},
          now_{how.where == traced_in::both ? world::unknown : world_of_enable()} {}

    constexpr auto run() noexcept -> kept_part {
        for_each_item<Packets>(bytes_, [this](trace::item const& got) { add(got); });
        if (psb_.is_open) { end_group(); }
        bytes_.pad(out_, bytes_.size());
        return result_;
    }

private:
    using kind = packet::kind;

    [[nodiscard]] constexpr auto world_of_enable() const noexcept -> world {
        return how_.where == traced_in::non_root ? world::guest : world::host;
    }
    [[nodiscard]] constexpr auto keeps(world which) const noexcept -> bool {
        return which == (how_.keep == side::guest ? world::guest : world::host);
    }
    [[nodiscard]] constexpr auto keeps() const noexcept -> bool { return keeps(now_); }
    /// Source: PKT-081, PKT-163, PKT-274.
    [[nodiscard]] constexpr auto world_of(packet::pip which) const noexcept -> world {
        if (!which.get<packet::pip::NR>()) { return world::host; }
        if (how_.vmcs == part_options::any_vmcs) { return world::guest; }
        return !has_vmcs_ ? world::unknown : vmcs_ == how_.vmcs ? world::guest : world::other_guest;
    }
    /// PacketEn was 0 before the current packet.
    [[nodiscard]] constexpr auto was_off() const noexcept -> bool {
        return before_ == trace::tracing::off;
    }

    // ----------------------------------------------------------------------- writing

    /// The result has the decoder state of the original.
    [[nodiscard]] constexpr auto is_in_step() const noexcept -> bool {
        return keeps() && !cut_ && last_in_ == last_out_ && mode_in_ == mode_out_ &&
               block_in_ == block_out_;
    }
    [[nodiscard]] constexpr auto fits(uint64_t count) const noexcept -> bool {
        return out_ + count <= limit_;
    }
    constexpr void pad_to(uint64_t at) noexcept {
        if (out_ >= at) { return; }
        bytes_.pad(out_, at);
        out_ = at;
    }
    /// Writes a packet whose place in the original is `at`.
    constexpr void put_bytes(byte_view which, uint64_t at) noexcept {
        if (is_in_step()) { pad_to(at); }
        if (!fits(which.size())) { return; }
        bytes_.write(out_, which);
        written_before_ = written_at_;
        written_at_ = out_;
        out_ += which.size();
        result_.kept += which.size();
    }
    template <packet::packet_type Packet>
    constexpr void put(Packet const& which, uint64_t at) noexcept {
        put_bytes(packet::encode<Packet, Packets>(which), at);
        block_out_ = packet::block_after(which, block_out_);
    }
    /// Writes a packet unchanged.
    constexpr void put_same(part_packet const& one) noexcept {
        block_out_ = packet::block_after<Packets>(one.which, block_out_);
        put_bytes(byte_view{to_le(one.which.raw())}.first(one.which.length()), one.at);
    }
    /// Ends an open block of the result whose end was removed: a TNT in it would be a BIP. There is
    /// room, at least that of the end and the TNT.
    ///
    /// Source: PKT-203, PKT-205.
    constexpr void end_block(uint64_t at) noexcept {
        bool const is_open = block_in_ == packet::block::none && block_out_ != packet::block::none;
        if (is_open) { put(packet::bep{}, at); }
    }
    /// Writes an IP packet: in the original form, if this gives the same IP.
    template <class Packet>
    constexpr void put_ip(part_packet const& one) noexcept {
        auto const which = one.which.as<Packet>();
        if (!which.has_ip()) { return put_same(one); }
        if (which.ip(last_out_) == one.ip) {
            put_same(one);
        } else {
            put(Packet::compressed(one.ip, last_out_), one.at);
        }
        last_out_ = one.ip;
        after_ovf_ = false;
    }
    /// Writes a MODE.Exec if the result has another mode. Source: GEN-236.
    constexpr void put_mode(uint64_t mode, uint64_t at) noexcept {
        if (mode == mode_out_) { return; }
        put(packet::mode_exec{mode}, at);
        mode_out_ = mode;
    }
    /// Writes the MODE.Exec of the original, which has set `mode_in_`.
    constexpr void put_same_mode(part_packet const& one) noexcept {
        uint64_t const mode = mode_in_;
        mode_in_ = mode_out_;  // in step up to this packet
        put_same(one);
        mode_in_ = mode_out_ = mode;
    }

    // ----------------------------------------------------------------------- on and off

    /// The side that is kept was left: tracing is off in the result.
    ///
    /// Source: GEN-101, GEN-273, GEN-275.
    constexpr void leave(uint64_t at) noexcept {
        if (cut_) { return; }
        cut_ = true;
        result_.left += 1;
        if (was_off()) { return; }
        exit_.has_pgd = exit_.has_fup && block_out_ == packet::block::none;
        exit_.pgd_at = out_;
        put(packet::tip_pgd{}, at);
    }
    /// Turns tracing on in the result, at an IP. After an OVF the IP does not depend on the last
    /// one, if possible.
    ///
    /// Source: GEN-100, GEN-229, GEN-236, PKT-076.
    constexpr void start(uint64_t ip, uint64_t mode, uint64_t at) noexcept {
        using packet::ip_bytes;
        using packet::tip_pge;
        start_ = {};
        if (hides_exit(ip, mode)) { return; }
        exit_ = {};
        put_mode(mode, at);
        auto const form = sign_extended(ip, 48) == ip ? ip_bytes::sign_48 : ip_bytes::full;
        auto const whole = tip_pge::of(form, ip);
        bool const takes_whole = after_ovf_ &&
                                 fits(tip_pge::length_of(whole.raw, packet::block::none));
        put(takes_whole ? whole : tip_pge::compressed(ip, last_out_), at);
        last_out_ = ip;
        cut_ = after_ovf_ = false;
    }
    constexpr void start_if_known(uint64_t at) noexcept {
        if (start_.is_known) { start(start_.ip, start_.mode, at); }
    }
    /// Removes the FUP and TIP.PGD of the last VM exit, if the guest continues at the same or the
    /// next instruction: they are at most 15 bytes apart.
    constexpr auto hides_exit(uint64_t ip, uint64_t mode) noexcept -> bool {
        if (!how_.hides_exits || !exit_.has_pgd || ip - exit_.ip > 15 || mode != mode_out_) {
            return false;
        }
        bytes_.pad(exit_.fup_at, exit_.fup_end);
        bytes_.pad(exit_.pgd_at, exit_.pgd_at + packet::tip_pgd::head_bytes);
        result_.kept -= exit_.fup_end - exit_.fup_at + packet::tip_pgd::head_bytes;
        result_.hidden += 1;
        last_out_ = exit_.last_ip;
        exit_ = {};
        cut_ = false;
        return true;
    }

    // ----------------------------------------------------------------------- items

    constexpr void add(trace::item const& got) noexcept {
        switch (got.what) {
            case trace::item_type::packet: return add_packet(got);
            case trace::item_type::damage: return add_damage(got);
            case trace::item_type::resynced: return resume_at(got.offset);
            default: return;
        }
    }
    constexpr void add_damage(trace::item const& got) noexcept {
        if (got.error == packet::error::truncated) {
            result_.incomplete += static_cast<uint64_t>(got.skipped);
            return;
        }
        if (result_) {
            result_.broken = got.broken;
            result_.offset = got.offset;
        }
        binder_.restart();
        psb_ = {};
        lose_track();
        cut_ = true;
    }
    /// Decoding resumes at a PSB after damage. It may begin before the damage, in bytes that were
    /// taken for packets. These are removed: a TNT may follow the packet that has the first byte.
    constexpr void resume_at(uint64_t psb) noexcept {
        if (out_ > psb) {
            uint64_t const first = written_at_ < psb ? written_at_ : written_before_;
            uint64_t const end = first < psb ? first : psb;
            result_.kept -= out_ - end;
            out_ = end;
        }
        limit_ = psb;
        put(packet::ovf{}, psb);  // if there is room
    }
    /// Packets are lost, perhaps those of a VM transition.
    constexpr void lose_track() noexcept {
        forget();
        after_ovf_ = true;
        if (how_.where != traced_in::both) { return; }
        now_ = world::unknown;
        cut_ = true;
    }
    /// Drops what waits for a later packet.
    constexpr void forget() noexcept {
        exit_ = {};
        start_ = {};
        drops_fup_ = false;
        maybe_enabled_ = false;
    }

    // ----------------------------------------------------------------------- packets

    constexpr void add_packet(trace::item const& got) noexcept {
        before_ = binder_.state().enabled;
        trace::binding const bound = binder_.add(got.packet, {got.offset, got.ip, got.length});
        limit_ = got.offset;
        if (psb_.is_open && !bound.in_psb_plus) { end_group(); }
        limit_ = got.offset + got.length;
        if (!got.packet.is<packet::pad>()) {
            dispatch({got.packet, got.offset, last_in_, got.ip}, bound);
        }
        block_in_ = packet::block_after<Packets>(got.packet, block_in_);
        last_in_ = got.ip;
    }
    constexpr void dispatch(part_packet const& one, trace::binding const& bound) noexcept {
        switch (one.which.kind()) {
            case kind::psb: return begin_group(one);
            case kind::psbend:
                if (psb_.is_open) { end_group(); }
                return put_same(one);
            case kind::ovf: put_same(one); return lose_track();
            default: break;
        }
        if (psb_.is_open) { return add_to_group(one); }
        switch (one.which.kind()) {
            case kind::tsc:
            case kind::tma: return add_time(one);
            case kind::cbr: maybe_enabled_ = was_off(); return put_same(one);
            case kind::mtc:
            case kind::cyc: return put_same(one);
            case kind::pip: add_pip(one); break;
            case kind::vmcs: add_vmcs(one); break;
            case kind::tip_pge:
            case kind::mode_exec:
                // TraceEn rose, without a PSB+: GEN-181, GEN-274.
                if (maybe_enabled_) { now_ = world_of_enable(); }
                add_flow(one, bound);
                break;
            case kind::tnt_short:
            case kind::tnt_long:
            case kind::tip:
            case kind::tip_pgd:
            case kind::fup:
            case kind::mode_tsx: add_flow(one, bound); break;
            default: add_other(one); break;
        }
        maybe_enabled_ = false;
    }
    /// Counts a packet that is removed.
    constexpr void drop(part_packet const& one) noexcept {
        result_.unattributed += now_ == world::unknown ? one.which.length() : 0;
    }
    /// TSC and TMA. Source: GEN-200, PKT-302, PKT-303, PKT-317.
    constexpr void add_time(part_packet const& one) noexcept {
        using packet::tma;
        using packet::tsc;
        bool const is_tsc = one.which.is<tsc>();
        if (is_tsc) { has_tsc_ = keeps() || how_.has_other_tsc; }
        if (!has_tsc_) { return drop(one); }
        if (keeps()) { return put_same(one); }
        if (is_tsc) { return put(other_tsc_.changed(one.which.as<tsc>()), one.at); }
        auto changed = one.which.as<tma>();
        if (other_tsc_.change(changed) == rule::none) { put(changed, one.at); }
    }
    /// A CR3 write, or a VM transition. Source: PKT-082, PKT-274, GEN-271..273.
    constexpr void add_pip(part_packet const& one) noexcept {
        auto const pip = one.which.as<packet::pip>();
        bool const was_kept = keeps();
        bool const is_kept = keeps(world_of(pip));
        if (was_kept) { start_if_known(one.at); }
        now_ = world_of(pip);
        if (!is_kept) { return drop(one); }
        if (was_off() && !exit_.has_pgd) { cut_ = false; }  // tracing is off in both
        bool const is_new = !has_cr3_out_ || pip.get<packet::pip::CR3>() != cr3_out_;
        if (was_kept || is_new) { put_pip(one); }
    }
    /// Source: GEN-278, PKT-081.
    constexpr void put_pip(part_packet const& one) noexcept {
        using packet::pip;
        auto const which = one.which.as<pip>();
        has_cr3_out_ = true;
        cr3_out_ = which.get<pip::CR3>();
        put(which.with(pip::NR{false}), one.at);
    }
    constexpr void add_vmcs(part_packet const& one) noexcept {
        take(one.which.as<packet::vmcs>());
        if (!keeps()) { return drop(one); }
        if (how_.keep == side::host) { put_same(one); }
    }
    constexpr void take(packet::vmcs which) noexcept {
        has_vmcs_ = true;
        vmcs_ = which.get<packet::vmcs::base>();
    }
    /// Events, values, power: packets that do not need PacketEn.
    constexpr void add_other(part_packet const& one) noexcept {
        if (!keeps()) { return drop(one); }
        if (how_.keep == side::guest && is_vmx_event(one.which)) {
            drops_fup_ = one.which.is<packet::cfe>() &&
                         one.which.as<packet::cfe>().get<packet::cfe::IP>();
            return;
        }
        exit_ = {};
        start_if_known(one.at);
        put_same(one);
    }

    // ----------------------------------------------------------------------- control flow

    constexpr void add_flow(part_packet const& one, trace::binding const& bound) noexcept {
        if (one.which.is<packet::mode_exec>()) { mode_in_ = one.which.raw().low; }
        if (!keeps()) {
            leave(one.at);
            return drop(one);
        }
        switch (one.which.kind()) {
            case kind::tip_pge: return add_tip_pge(one);
            case kind::tip: return add_tip(one);
            case kind::tip_pgd: return add_tip_pgd(one);
            case kind::fup: return add_fup(one, bound);
            case kind::mode_exec:
                if (!cut_) { put_same_mode(one); }
                return;
            default: break;
        }
        exit_.has_fup = false;
        start_if_known(one.at);
        if (cut_) { return; }
        end_block(one.at);
        put_same(one);
    }
    constexpr void add_tip_pge(part_packet const& one) noexcept {
        if (cut_) { return start_at(one, one.which.as<packet::tip_pge>().has_ip()); }
        exit_ = {};
        put_mode(mode_in_, one.at);
        put_ip<packet::tip_pge>(one);
    }
    /// If tracing is off in the result, it starts at the IP of the TIP. Source: PKT-070, PKT-076.
    constexpr void add_tip(part_packet const& one) noexcept {
        start_if_known(one.at);
        if (cut_) { return start_at(one, one.which.as<packet::tip>().has_ip()); }
        exit_ = {};
        put_mode(mode_in_, one.at);
        put_ip<packet::tip>(one);
    }
    constexpr void start_at(part_packet const& one, bool has_ip) noexcept {
        if (has_ip) { start(one.ip, mode_in_, one.at); }
    }
    constexpr void add_tip_pgd(part_packet const& one) noexcept {
        start_if_known(one.at);
        exit_ = {};
        if (!cut_) {
            put_ip<packet::tip_pgd>(one);
        } else {
            cut_ = false;  // tracing is off in both
        }
    }
    constexpr void add_fup(part_packet const& one, trace::binding const& bound) noexcept {
        using trace::owner;
        bool const drops = drops_fup_ && bound.to == owner::control_flow;
        drops_fup_ = false;
        if (drops) { return; }
        if (cut_ && bound.to == owner::overflow) { return start(one.ip, mode_in_, one.at); }
        start_if_known(one.at);
        bool const needs_packet_en = bound.to == owner::asynchronous ||
                                     bound.to == owner::transaction ||
                                     bound.to == owner::transaction_abort ||
                                     bound.to == owner::interrupt_flag;
        if (cut_ && needs_packet_en) { return; }
        if (bound.to == owner::interrupt_flag) { put_mode(mode_in_, one.at); }
        bool const opens = bound.to == owner::asynchronous;
        exit_ = {.has_fup = opens, .ip = one.ip, .last_ip = last_out_};
        put_ip<packet::fup>(one);
        exit_.fup_at = written_at_;
        exit_.fup_end = out_;
    }

    // ----------------------------------------------------------------------- PSB+

    constexpr void begin_group(part_packet const& one) noexcept {
        if (psb_.is_open) { end_group(); }
        if (!keeps() && now_ != world::unknown) { cut_ = true; }
        forget();
        pad_to(one.at);
        put_same(one);
        psb_ = {.is_open = true};
        held_count_ = 0;
        last_out_ = 0;
        mode_in_ = mode_out_ = 0;
    }
    /// Holds the packets of a PSB+ until the PIP shows whose they are.
    constexpr void add_to_group(part_packet const& one) noexcept {
        bool const is_pip = one.which.is<packet::pip>();
        psb_.reported.add(one.which, {one.at, one.ip, one.which.length()});
        if (one.which.is<packet::vmcs>()) { take(one.which.as<packet::vmcs>()); }
        if (psb_.is_decided) {
            if (is_pip) { now_ = world_of(psb_.reported.pip); }
            return add_status(one);
        }
        held_[held_count_++] = one;
        bool const needs_vmcs = how_.vmcs != part_options::any_vmcs &&
                                !psb_.reported.has(kind::vmcs);
        if ((psb_.reported.has(kind::pip) && !needs_vmcs) || held_count_ == max_held) { decide(); }
    }
    constexpr void decide() noexcept {
        if (psb_.reported.has(kind::pip)) {
            now_ = world_of(psb_.reported.pip);
        } else if (how_.where == traced_in::both && psb_.reported.has_ip) {
            now_ = world::unknown;  // PIPs need OS
        }
        psb_.is_decided = true;
        uint64_t const last_ip = last_in_;
        for (unsigned i = 0; i < held_count_; ++i) {
            last_in_ = held_[i].last_ip;
            add_status(held_[i]);
        }
        last_in_ = last_ip;
    }
    /// A status packet. If tracing is off in the result, the IP waits for a packet that needs it.
    constexpr void add_status(part_packet const& one) noexcept {
        switch (one.which.kind()) {
            case kind::tsc:
            case kind::tma: return add_time(one);
            case kind::cbr:
            case kind::mtc:
            case kind::cyc: return put_same(one);
            case kind::mode_exec: mode_in_ = one.which.raw().low; break;
            default: break;
        }
        if (!keeps()) { return drop(one); }
        switch (one.which.kind()) {
            case kind::pip: return put_pip(one);
            case kind::vmcs:
                if (how_.keep == side::host) { put_same(one); }
                return;
            case kind::mode_exec:
                if (!cut_) { put_same_mode(one); }
                return;
            case kind::fup:
                if (!cut_) {
                    put_ip<packet::fup>(one);
                } else if (one.which.as<packet::fup>().has_ip()) {
                    start_ = {.is_known = true, .ip = one.ip};
                }
                return;
            default: return put_same(one);
        }
    }
    constexpr void end_group() noexcept {
        if (!psb_.is_decided) { decide(); }
        psb_.is_open = false;
        start_.mode = mode_in_;
        if (!keeps()) {
            cut_ = true;  // the PSB+ without IP shows it: PKT-140
        } else if (!start_.is_known) {
            cut_ = false;  // tracing is off in both
        }
    }

    static constexpr unsigned max_held = 16;  ///< more than a PSB+ has before its PIP

    piece_bytes bytes_;
    part_options how_;
    tsc_changer other_tsc_;
    kept_part result_{};
    trace::binder binder_{};
    trace::tracing before_ = trace::tracing::unknown;  ///< before the current packet

    world now_;
    bool has_vmcs_ = false;
    uint64_t vmcs_ = 0;           ///< the current VMCS
    bool maybe_enabled_ = false;  ///< TraceEn may have risen: only timing packets since a CBR

    uint64_t out_ = 0;             ///< the offset where the next packet is written
    uint64_t written_at_ = 0;      ///< the offset of the last packet written
    uint64_t written_before_ = 0;  ///< of the packet before it
    uint64_t limit_ = 0;           ///< the end of the bytes that were read
    uint64_t last_in_ = 0;         ///< the last IP of the original
    uint64_t last_out_ = 0;        ///< the last IP of the result
    uint64_t mode_in_ = 0;   ///< the last MODE.Exec of the original since the last PSB; 0: none
    uint64_t mode_out_ = 0;  ///< the same of the result
    packet::block block_in_ = packet::block::none;   ///< before the current packet
    packet::block block_out_ = packet::block::none;  ///< of the result
    uint64_t cr3_out_ = 0;                           ///< of the last PIP of the result
    bool has_cr3_out_ = false;
    bool cut_ = false;        ///< tracing is off in the result only
    bool after_ovf_ = false;  ///< no IP since an OVF
    bool has_tsc_ = true;     ///< the last TSC of the original is in the result
    bool drops_fup_ = false;  ///< the FUP of a CFE that was removed follows
    exit_event exit_{};
    start_point start_{};

    current_psb_plus psb_{};
    unsigned held_count_ = 0;
    part_packet held_[max_held]{};
};

}  // namespace detail

/// Keeps the guest's or the host's packets of a trace, in place. Packets that are removed become
/// PADs, here or later; the size does not change. To a decoder the result is the trace of that side
/// alone.
///
/// PIP.NR shows to which side a packet belongs, and VMCS packets do if the guest is one of several.
/// What cannot be attributed is removed: after an OVF or damage, until the next PIP; a PSB+ with an
/// IP but without a PIP, as without OS. A TIP.PGE directly after a CBR is one of an enable.
///
/// - PIP: NR becomes 0. That of a VM transition remains only if CR3 is another one than before:
///   then it is the PIP of a CR3 write that exited.
/// - VMCS, and the events of VM transitions (CFE, EVD), are removed from a guest's part.
/// - Where a side is left and entered again, TIP becomes TIP.PGD without IP and TIP.PGE, with the
///   MODE.Exec that it needs. VM exits can be hidden: see `part_options`.
/// - IPs whose last IP was removed get a longer form. There is room in what was removed.
/// - A PSB+ of the other side remains with the status of a side that is not traced.
/// - TSC and TMA of the other side are removed or changed. MTC, CYC and CBR of both sides remain,
///   because time also passes while the other side executes.
///
/// Near RETs of a guest are compressed against a stack of CALLs that the host's CALLs and RETs also
/// changed. Record with DisRETC = 1, or some decoders (GEN-134) may misread RETs after a VM exit.
///
/// Errors: the rule that the first damage breaks. Damage becomes an OVF, if there is room for one,
///         and packets are kept again from the next PSB and PIP on. Bytes before the damage that
///         were taken for packets may remain.
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-163, PRG-164, GEN-028, GEN-100,
///         GEN-101, GEN-176, GEN-181, GEN-229, GEN-236, GEN-271..275, GEN-278, GEN-306,
///         PKT-053..062, PKT-076, PKT-081, PKT-082, PKT-136, PKT-140, PKT-151..156, PKT-163,
///         PKT-250..256, PKT-274, PKT-317.
template <class Packets = packet::all>
constexpr auto keep_part(trace_pieces in, part_options const& how = {}) noexcept -> kept_part {
    return detail::part_keeper<Packets>{in, how}.run();
}

}  // namespace ptspec::edit
