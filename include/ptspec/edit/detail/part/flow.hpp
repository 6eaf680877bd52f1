// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/detail/part/writer.hpp>
#include <ptspec/trace/binding.hpp>

/// The control flow of a part: tracing goes off where its side is left, and on where it continues.
namespace ptspec::edit::detail {

/// A FUP that begins a compound event, and the TIP.PGD that ends it if it is a VM exit.
struct exit_event {
    bool has_fup = false;  ///< since then only PIP, VMCS, MODE.Exec and timing packets
    bool has_pgd = false;
    uint64_t ip = 0;
    uint64_t last_ip = 0;  ///< before the FUP
    uint64_t fup_at = 0;   ///< offsets in the result
    uint64_t fup_end = 0;
    uint64_t pgd_at = 0;
};

/// The IP and mode of a PSB+ that came while tracing was off in the result. They are not in it yet.
struct start_point {
    bool is_known = false;
    uint64_t ip = 0;
    uint64_t mode = 0;
};

/// Writes the control flow packets of a part.
template <class Packets>
class part_flow {
public:
    part_writer<Packets> out;
    uint64_t left = 0;    ///< times that the side was left
    uint64_t hidden = 0;  ///< how many of them leave no trace

    constexpr part_flow(trace_memory whole, bool hides_exits) noexcept
        : out{whole}, hides_exits_{hides_exits} {}

    /// The TIP.PGD of a VM exit was written.
    [[nodiscard]] constexpr auto has_exit() const noexcept -> bool { return exit_.has_pgd; }
    /// In the result, tracing resumes at the IP of the last PSB+.
    [[nodiscard]] constexpr auto has_start() const noexcept -> bool { return start_.is_known; }

    /// The last VM exit can no longer be hidden.
    constexpr void forget_exit() noexcept { exit_ = {}; }
    constexpr void forget() noexcept {
        exit_ = {};
        start_ = {};
    }
    constexpr void set_start_mode(uint64_t mode) noexcept { start_.mode = mode; }

    /// The side that is kept was left: tracing is off in the result. `was_off`: also in the
    /// original.
    ///
    /// Source: GEN-101, GEN-273, GEN-275.
    constexpr void leave(uint64_t offset, bool was_off) noexcept {
        if (out.is_cut) { return; }
        out.is_cut = true;
        left += 1;
        if (was_off) { return; }
        exit_.has_pgd = exit_.has_fup && out.result.block == packet::block::none;
        exit_.pgd_at = out.end();
        out.put(packet::tip_pgd{}, offset);
    }
    /// Turns tracing on in the result if the IP is known from a PSB+.
    constexpr void start_if_known(uint64_t offset) noexcept {
        if (start_.is_known) { start(start_.ip, start_.mode, offset); }
    }

    /// Writes a packet of the side that is kept.
    constexpr void put(part_packet const& one, trace::owner bound_to) noexcept {
        using kind = packet::kind;
        switch (one.packet.kind()) {
            case kind::tip_pge: return put_tip_pge(one);
            case kind::tip: return put_tip(one);
            case kind::tip_pgd: return put_tip_pgd(one);
            case kind::fup: return put_fup(one, bound_to);
            case kind::mode_exec: return put_mode_exec(one);
            default: return put_branches(one);
        }
    }
    constexpr void put_mode_exec(part_packet const& one) noexcept {
        if (!out.is_cut) { out.put_same_mode(one); }
    }
    /// The FUP of a PSB+. If tracing is off in the result, its IP waits for a packet that needs it.
    constexpr void put_status_ip(part_packet const& one) noexcept {
        if (!out.is_cut) {
            out.template put_ip<packet::fup>(one);
        } else if (one.packet.as<packet::fup>().has_ip()) {
            start_ = {.is_known = true, .ip = one.ip};
        }
    }

private:
    /// Turns tracing on in the result, at an IP. After an OVF the IP does not depend on the last
    /// one, if possible.
    ///
    /// Source: GEN-100, GEN-229, GEN-236, PKT-076.
    constexpr void start(uint64_t ip, uint64_t mode, uint64_t offset) noexcept {
        using packet::ip_bytes;
        using packet::tip_pge;
        start_ = {};
        if (hides_exit(ip, mode)) { return; }
        exit_ = {};
        out.put_mode(mode, offset);
        auto const form = sign_extended(ip, 48) == ip ? ip_bytes::sign_48 : ip_bytes::full;
        auto const whole = tip_pge::of(form, ip);
        bool const takes_whole = out.after_ovf &&
                                 out.fits(tip_pge::length_of(whole.raw, packet::block::none));
        out.put(takes_whole ? whole : tip_pge::compressed(ip, out.result.last_ip), offset);
        out.result.last_ip = ip;
        out.is_cut = out.after_ovf = false;
    }
    /// Removes the FUP and TIP.PGD of the last VM exit, if the guest continues at the same or the
    /// next instruction: they are at most 15 bytes apart.
    constexpr auto hides_exit(uint64_t ip, uint64_t mode) noexcept -> bool {
        if (!hides_exits_ || !exit_.has_pgd || ip - exit_.ip > 15 || mode != out.result.mode) {
            return false;
        }
        out.remove(exit_.fup_at, exit_.fup_end);
        out.remove(exit_.pgd_at, exit_.pgd_at + packet::tip_pgd::head_bytes);
        hidden += 1;
        out.result.last_ip = exit_.last_ip;
        exit_ = {};
        out.is_cut = false;
        return true;
    }

    constexpr void put_tip_pge(part_packet const& one) noexcept {
        if (out.is_cut) { return start_at(one, one.packet.as<packet::tip_pge>().has_ip()); }
        put_target<packet::tip_pge>(one);
    }
    /// Puts a TIP, or starts tracing at its IP where it is off in the result. Source: PKT-070,
    /// PKT-076.
    constexpr void put_tip(part_packet const& one) noexcept {
        start_if_known(one.offset);
        if (out.is_cut) { return start_at(one, one.packet.as<packet::tip>().has_ip()); }
        put_target<packet::tip>(one);
    }
    constexpr void start_at(part_packet const& one, bool has_ip) noexcept {
        if (has_ip) { start(one.ip, out.original.mode, one.offset); }
    }
    template <class Packet>
    constexpr void put_target(part_packet const& one) noexcept {
        exit_ = {};
        out.put_mode(out.original.mode, one.offset);
        out.template put_ip<Packet>(one);
    }
    constexpr void put_tip_pgd(part_packet const& one) noexcept {
        start_if_known(one.offset);
        exit_ = {};
        if (!out.is_cut) {
            out.template put_ip<packet::tip_pgd>(one);
        } else {
            out.is_cut = false;  // tracing is off in both
        }
    }
    constexpr void put_fup(part_packet const& one, trace::owner bound_to) noexcept {
        using trace::owner;
        if (out.is_cut && bound_to == owner::overflow) {
            return start(one.ip, out.original.mode, one.offset);
        }
        start_if_known(one.offset);
        bool const needs_packet_en = bound_to == owner::asynchronous ||
                                     bound_to == owner::transaction ||
                                     bound_to == owner::transaction_abort ||
                                     bound_to == owner::interrupt_flag;
        if (out.is_cut && needs_packet_en) { return; }
        if (bound_to == owner::interrupt_flag) { out.put_mode(out.original.mode, one.offset); }
        bool const opens = bound_to == owner::asynchronous;
        exit_ = {.has_fup = opens, .ip = one.ip, .last_ip = out.result.last_ip};
        out.template put_ip<packet::fup>(one);
        exit_.fup_at = out.last();
        exit_.fup_end = out.end();
    }
    /// TNT and MODE.TSX.
    constexpr void put_branches(part_packet const& one) noexcept {
        exit_.has_fup = false;
        start_if_known(one.offset);
        if (out.is_cut) { return; }
        out.end_block(one.offset);
        out.put_same(one);
    }

    bool hides_exits_;
    exit_event exit_{};
    start_point start_{};
};

}  // namespace ptspec::edit::detail
