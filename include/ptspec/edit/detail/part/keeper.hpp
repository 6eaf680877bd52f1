// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/detail/part/attribution.hpp>
#include <ptspec/edit/detail/part/flow.hpp>
#include <ptspec/edit/detail/part/held_psb_plus.hpp>
#include <ptspec/edit/vmx_packets.hpp>
#include <ptspec/trace/binder.hpp>

/// Decides for each packet of a trace whether it is kept, changed or removed.
namespace ptspec::edit::detail {

/// Reads a trace, and keeps or removes each packet: `side_` says whose it is, `flow_` writes it.
template <class Packets>
class part_keeper {
public:
    constexpr part_keeper(trace_memory whole, part_options const& options) noexcept
        : keep_{options.keep},
          has_other_tsc_{options.has_other_tsc},
          other_tsc_{options.other_tsc},
          side_{options},
          flow_{whole, options.hides_exits} {
        out().is_kept = side_.is_kept();
    }

    constexpr auto run() noexcept -> kept_part {
        for_each_item<Packets>(out().bytes(), [this](trace::item const& item) { add(item); });
        if (psb_.is_open) { end_group(); }
        out().finish();
        result_.kept = out().kept();
        result_.left = flow_.left;
        result_.hidden = flow_.hidden;
        return result_;
    }

private:
    using kind = packet::kind;

    constexpr auto out() noexcept -> part_writer<Packets>& { return flow_.out; }
    /// PacketEn was 0 before the current packet.
    [[nodiscard]] constexpr auto was_off() const noexcept -> bool {
        return before_ == trace::tracing::off;
    }

    // ----------------------------------------------------------------------- whose packets

    constexpr void take(packet::pip pip) noexcept {
        side_.take(pip);
        out().is_kept = side_.is_kept();
    }
    /// Forgets which side executes, which may have changed, until a PIP shows it.
    constexpr void forget_side() noexcept {
        side_.lose();
        out().is_kept = false;
    }
    /// Called when TraceEn has risen without a PSB+: GEN-181, GEN-274.
    constexpr void enable() noexcept {
        side_.enable();
        out().is_kept = side_.is_kept();
    }
    /// Counts a packet that is removed.
    constexpr void drop(part_packet const& one) noexcept {
        result_.unattributed += side_.is_known() ? 0 : one.packet.length();
    }

    // ----------------------------------------------------------------------- items

    constexpr void add(trace::item const& item) noexcept {
        switch (item.what) {
            case trace::item_type::packet: return add_packet(item);
            case trace::item_type::damage: return add_damage(item);
            case trace::item_type::resynced: return resume_at(item.offset);
            default: return;
        }
    }
    constexpr void add_damage(trace::item const& item) noexcept {
        if (item.error == packet::error::truncated) {
            result_.incomplete += static_cast<uint64_t>(item.skipped);
            return;
        }
        if (result_) {
            result_.broken = item.broken;
            result_.offset = item.offset;
        }
        binder_.restart();
        psb_.close();
        lose_track();
        out().is_cut = true;
    }
    /// Decoding resumes at a PSB after damage. It may begin before the damage, in bytes that were
    /// taken for packets: these are removed.
    constexpr void resume_at(uint64_t psb) noexcept {
        out().remove_after(psb);
        out().set_limit(psb);
        out().put(packet::ovf{}, psb);  // if there is room
    }
    /// Drops what waits for lost packets, and cuts the trace if a VM transition may be among them.
    constexpr void lose_track() noexcept {
        forget();
        out().after_ovf = true;
        if (!side_.needs_pip()) { return; }
        forget_side();
        out().is_cut = true;
    }
    /// Drops what waits for a later packet.
    constexpr void forget() noexcept {
        flow_.forget();
        drops_fup_ = false;
        maybe_enabled_ = false;
    }

    // ----------------------------------------------------------------------- packets

    constexpr void add_packet(trace::item const& item) noexcept {
        before_ = binder_.state().enabled;
        trace::binding const bound = binder_.add(item.packet, item.place());
        out().set_limit(item.offset);
        if (psb_.is_open && !bound.in_psb_plus) { end_group(); }
        out().set_limit(item.offset + item.length);
        auto& original = out().original;
        if (!item.packet.is<packet::pad>()) {
            dispatch({item.packet, item.offset, original.last_ip, item.ip}, bound);
        }
        original.block = packet::block_after<Packets>(item.packet, original.block);
        original.last_ip = item.ip;
    }
    constexpr void dispatch(part_packet const& one, trace::binding const& bound) noexcept {
        switch (one.packet.kind()) {
            case kind::psb: return begin_group(one);
            case kind::psbend:
                if (psb_.is_open) { end_group(); }
                return out().put_same(one);
            case kind::ovf: out().put_same(one); return lose_track();
            default: break;
        }
        if (psb_.is_open) { return add_to_group(one); }
        switch (one.packet.kind()) {
            case kind::tsc:
            case kind::tma: return add_time(one);
            case kind::cbr: maybe_enabled_ = was_off(); return out().put_same(one);
            case kind::mtc:
            case kind::cyc: return out().put_same(one);
            case kind::pip: add_pip(one); break;
            case kind::vmcs: add_vmcs(one); break;
            case kind::tip_pge:
            case kind::mode_exec:
                if (maybe_enabled_) { enable(); }
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
    /// Keeps, changes or drops a TSC or TMA. Source: GEN-200, PKT-302, PKT-303, PKT-317.
    constexpr void add_time(part_packet const& one) noexcept {
        using packet::tma;
        using packet::tsc;
        bool const is_tsc = one.packet.is<tsc>();
        if (is_tsc) { has_tsc_ = side_.is_kept() || has_other_tsc_; }
        if (!has_tsc_) { return drop(one); }
        if (side_.is_kept()) { return out().put_same(one); }
        if (is_tsc) { return out().put(other_tsc_.changed(one.packet.as<tsc>()), one.offset); }
        auto changed = one.packet.as<tma>();
        if (other_tsc_.change(changed) == rule::none) { out().put(changed, one.offset); }
    }
    /// Handles a PIP, which shows a CR3 write or a VM transition. Source: PKT-082, PKT-274,
    /// GEN-271..273.
    constexpr void add_pip(part_packet const& one) noexcept {
        auto const pip = one.packet.as<packet::pip>();
        bool const was_kept = side_.is_kept();
        bool const is_kept = side_.is_kept_after(pip);
        if (was_kept) { flow_.start_if_known(one.offset); }
        take(pip);
        if (!is_kept) { return drop(one); }
        if (was_off() && !flow_.has_exit()) { out().is_cut = false; }  // tracing is off in both
        bool const is_new = !has_cr3_ || pip.get<packet::pip::CR3>() != cr3_;
        if (was_kept || is_new) { put_pip(one); }
    }
    /// Source: GEN-278, PKT-081.
    constexpr void put_pip(part_packet const& one) noexcept {
        using packet::pip;
        auto const original = one.packet.as<pip>();
        has_cr3_ = true;
        cr3_ = original.get<pip::CR3>();
        out().put(original.with(pip::NR{false}), one.offset);
    }
    constexpr void add_vmcs(part_packet const& one) noexcept {
        side_.take(one.packet.as<packet::vmcs>());
        if (!side_.is_kept()) { return drop(one); }
        put_vmcs(one);
    }
    constexpr void put_vmcs(part_packet const& one) noexcept {
        if (keep_ == side::host) { out().put_same(one); }
    }
    /// Keeps or drops a packet that does not need PacketEn, such as those of power events.
    constexpr void add_other(part_packet const& one) noexcept {
        if (!side_.is_kept()) { return drop(one); }
        if (keep_ == side::guest && is_vmx_event(one.packet)) {
            drops_fup_ = one.packet.is<packet::cfe>() &&
                         one.packet.as<packet::cfe>().get<packet::cfe::IP>();
            return;
        }
        flow_.forget_exit();
        flow_.start_if_known(one.offset);
        out().put_same(one);
    }
    constexpr void add_flow(part_packet const& one, trace::binding const& bound) noexcept {
        if (one.packet.is<packet::mode_exec>()) { out().original.mode = one.packet.raw().low; }
        if (!side_.is_kept()) {
            flow_.leave(one.offset, was_off());
            return drop(one);
        }
        if (one.packet.is<packet::fup>()) {
            bool const drops = drops_fup_ && bound.to == trace::owner::control_flow;
            drops_fup_ = false;
            if (drops) { return; }
        }
        flow_.put(one, bound.to);
    }

    // ----------------------------------------------------------------------- PSB+

    constexpr void begin_group(part_packet const& one) noexcept {
        if (psb_.is_open) { end_group(); }
        if (!side_.is_kept() && side_.is_known()) { out().is_cut = true; }
        forget();
        out().pad_to(one.offset);
        out().put_same(one);
        psb_.open();
        out().result.last_ip = 0;
        out().original.mode = out().result.mode = 0;
    }
    constexpr void add_to_group(part_packet const& one) noexcept {
        psb_.report(one);
        if (one.packet.is<packet::vmcs>()) { side_.take(one.packet.as<packet::vmcs>()); }
        if (psb_.is_decided) {
            if (one.packet.is<packet::pip>()) { take(psb_.reported.pip); }
            return add_status(one);
        }
        psb_.hold(one);
        if (psb_.can_decide(side_.needs_vmcs())) { decide(); }
    }
    constexpr void decide() noexcept {
        if (psb_.reported.has(kind::pip)) {
            take(psb_.reported.pip);
        } else if (side_.needs_pip() && psb_.reported.has_ip) {
            forget_side();  // PIPs need OS
        }
        psb_.is_decided = true;
        auto& original = out().original;
        uint64_t const last_ip = original.last_ip;
        for (unsigned i = 0; i < psb_.count; ++i) {
            original.last_ip = psb_.packets[i].last_ip;
            add_status(psb_.packets[i]);
        }
        original.last_ip = last_ip;
    }
    constexpr void add_status(part_packet const& one) noexcept {
        switch (one.packet.kind()) {
            case kind::tsc:
            case kind::tma: return add_time(one);
            case kind::cbr:
            case kind::mtc:
            case kind::cyc: return out().put_same(one);
            case kind::mode_exec: out().original.mode = one.packet.raw().low; break;
            default: break;
        }
        if (!side_.is_kept()) { return drop(one); }
        switch (one.packet.kind()) {
            case kind::pip: return put_pip(one);
            case kind::vmcs: return put_vmcs(one);
            case kind::mode_exec: return flow_.put_mode_exec(one);
            case kind::fup: return flow_.put_status_ip(one);
            default: return out().put_same(one);
        }
    }
    constexpr void end_group() noexcept {
        if (!psb_.is_decided) { decide(); }
        psb_.is_open = false;
        flow_.set_start_mode(out().original.mode);
        if (!side_.is_kept()) {
            out().is_cut = true;  // the PSB+ without IP shows it: PKT-140
        } else if (!flow_.has_start()) {
            out().is_cut = false;  // tracing is off in both
        }
    }

    side keep_;
    bool has_other_tsc_;
    tsc_changer other_tsc_;
    kept_part result_{};
    trace::binder binder_{};
    trace::tracing before_ = trace::tracing::unknown;  ///< before the current packet
    attribution side_;
    part_flow<Packets> flow_;
    held_psb_plus psb_{};
    bool maybe_enabled_ = false;  ///< TraceEn may have risen: only timing packets since a CBR
    bool drops_fup_ = false;      ///< the FUP of a CFE that was removed follows
    bool has_tsc_ = true;         ///< the last TSC of the original is in the result
    bool has_cr3_ = false;        ///< a PIP is in the result
    uint64_t cr3_ = 0;            ///< of the last one
};

}  // namespace ptspec::edit::detail
