// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the packets of a part, and their places, say about what is not in the trace: where TraceEn
// fell and rose, and OS and User in between.

#include "configuration.hpp"

#include <ptspec/engine/state.hpp>

namespace pt_twin {

/// Where a packet stands: as it follows the one before it, or as it follows the PADs that show that
/// TraceEn fell in between.
struct place {
    bool is_plain = false;
    bool is_after_fall = false;
};

/// The maximum number of packets that are searched for a privilege, which bounds the work for a
/// difference.
constexpr std::size_t max_evidence = 20'000;

/// Answers about packets by their indexes.
class evidence {
public:
    evidence(recording const& from, configuration const& with, std::string_view kind_name)
        : all_{from.all},
          begin_{from.begin - from.alignment},
          with_{with},
          options_{options_of(kind_name)},
          is_broadwell_{kind_name == "broadwell"} {
        write_options_.ips = options_.ips;
        write_options_.tnt_capacity = options_.tnt_capacity;
        write_options_.pads = options_.pads;
        write_options_.in_psb = options_.in_psb;
    }

    [[nodiscard]] auto is_at(std::size_t i, kind which) const -> bool {
        return i < all_.size() && all_[i].is(which);
    }

    /// Whether a packet, with the CYC before it, stands where it would without a fall of TraceEn
    /// before it, and where it would after one. Source: GEN-010.
    [[nodiscard]] auto place_of(std::size_t i) const -> place {
        if (i == 0 || i >= all_.size()) { return {}; }
        bool const has_cyc = is_at(i, kind::cyc) && i + 1 < all_.size();
        auto const& one = all_[has_cyc ? i + 1 : i];
        auto start = state_before(i);
        auto how = write_options_;
        how.cyc = has_cyc;
        how.cyc_threshold = 0;
        if (has_cyc) { start.cycles = all_[i].as<packet::cyc>().value(); }
        auto const stands = [&](bool falls) {
            trace::packet_batch<> trial{start, how};
            if (falls && options_.end_alignment != 0) { trial.align_end(options_.end_alignment); }
            trial.add(one.packet);
            trial.finish();
            return trial.state().bytes == one.end - begin_;
        };
        return {stands(false), stands(true)};
    }

    /// True if only a fall of TraceEn explains where the packet stands.
    [[nodiscard]] auto must_have_fallen(std::size_t i) const -> bool {
        auto const found = place_of(i);
        return found.is_after_fall && !found.is_plain;
    }

    [[nodiscard]] auto may_have_fallen(std::size_t i) const -> bool {
        return options_.end_alignment == 0 || place_of(i).is_after_fall;
    }

    [[nodiscard]] auto may_be_rise(std::size_t i) const -> bool {
        return is_at(i, kind::psb) || is_at(i, kind::tsc) || is_at(i, kind::cbr);
    }

    [[nodiscard]] auto is_timing_of_rise(group const& in) const -> bool {
        if (auto const tma = in.tma()) {
            unsigned const freq = with_.mtc_freq;
            std::uint64_t const count = tma->get<packet::tma::CTC>() >> freq;
            if (!in.takes.fits(count, freq < 8 ? 8 : 16 - freq)) { return false; }
        }
        return in.cbr() && in.tsc().has_value() == with_.tsc &&
               in.tma().has_value() == (with_.tsc && with_.mtc);
    }

    /// True if TraceEn rises at a packet, whatever precedes it.
    [[nodiscard]] auto rises_at(std::size_t i) const -> bool {
        if (is_at(i, kind::psb)) {
            auto const in = psb_plus_at(all_, i);
            std::size_t const next = after_times(all_, in.next);
            if (!is_broadwell_) { return in.fup() && is_at(next, kind::tip_pge); }
            // Broadwell writes one PSB+ for the rise, and one for TIP.PGE.
            bool const has_context = in.pip() || in.tsx();
            if (in.fup() || !has_context || !is_at(next, kind::psb)) { return false; }
            auto const of_pge = psb_plus_at(all_, next);
            return of_pge.fup() && of_pge.tsc() == in.tsc() &&
                   is_at(after_times(all_, of_pge.next), kind::tip_pge);
        }
        auto const in = timing_at(all_, i);
        if (!is_timing_of_rise(in)) { return false; }
        std::size_t next = after_times(all_, in.next);
        if (is_broadwell_ && is_at(next, kind::psb)) {
            auto const before = psb_plus_at(all_, next);
            return before.fup() && is_at(after_times(all_, before.next), kind::tip_pge);
        }
        while (is_at(next, kind::cbr) || is_at(next, kind::tsc)) {  // the ratio changes
            if (must_have_fallen(next)) { return false; }
            next = after_times(all_, timing_at(all_, next).next);
        }
        return is_at(next, kind::mode_exec) && is_at(after_times(all_, next + 1), kind::tip_pge);
    }

    /// OS and User while TraceEn stays 1, as the packets from `i` on show them: only with OS is
    /// there a PIP, and in a PSB+ where ContextEn is 1; only a change of the CPL leaves the context
    /// without a FUP. Otherwise the IPs show it: those of kernels are in the upper half.
    [[nodiscard]] auto privilege_from(std::size_t i, bool is_off, privilege before) const
        -> privilege {
        if (!with_.os) { return {false, true}; }
        std::optional<bool> os;
        // WRMSR executes at CPL 0: if OS is 1 a TIP.PGE follows.
        bool const at_wrmsr = is_off && with_.filters.empty() && !with_.cr3_filter;
        if (at_wrmsr && !is_at(i, kind::psb) && !rises_at(i)) { os = false; }
        bool leaves = false;
        bool is_out = false;  // a PSB+ without PIP shows, with OS, that ContextEn is 0
        bool has_kernel_ip = false;
        bool has_user_ip = false;
        std::uint64_t mode = 0;  // the last MODE.Exec since the last PSB
        std::size_t const end = i + std::min(all_.size() - i, max_evidence);
        for (std::size_t k = i; k < end; ++k) {
            auto const& one = all_[k];
            if (k != i && may_be_rise(k) && must_have_fallen(k)) { break; }
            if (one.is(kind::psb)) {
                auto const in = psb_plus_at(all_, k);
                bool const is_rise = in.fup() && is_at(after_times(all_, in.next), kind::tip_pge);
                if (k != i && is_rise && !is_broadwell_) { break; }
                bool const at_rise = k == i && is_off && !with_.cr3_filter;
                bool const is_known = in.fup() || in.tsx() || in.pip() || at_rise;
                if (in.is_complete && is_known && !os) { os = in.pip().has_value(); }
                mode = in.exec() ? in.exec()->raw : 0;
                is_out |= in.is_complete && !in.pip() && !with_.cr3_filter;
                k = in.next - 1;
            } else if (one.is(kind::pip)) {
                if (!os) { os = true; }
            } else if (one.is(kind::tip_pgd) && !one.has_ip && !with_.cr3_filter &&
                       with_.filters.empty()) {
                std::size_t last = k;
                while (last != i &&
                       (all_[last - 1].is(kind::mtc) || all_[last - 1].is(kind::cyc))) {
                    --last;
                }
                if (last == i || !all_[last - 1].is(kind::fup)) {
                    leaves = true;
                } else if (auto const next = place_of(k + 1);
                           next.is_plain && !next.is_after_fall && !os) {
                    os = false;
                }
            } else if (one.is(kind::mode_exec)) {
                bool const enters = is_at(after_times(all_, k + 1), kind::tip_pge);
                if (enters && mode == one.packet.raw().low) { break; }  // TraceEn has risen
                mode = one.packet.raw().low;
            } else if (one.has_ip && !one.is(kind::tip_pgd)) {
                (one.ip >> 63 != 0 ? has_kernel_ip : has_user_ip) = true;
            }
        }
        if (!os && leaves) { os = has_kernel_ip && !has_user_ip; }
        if (!os && has_kernel_ip != has_user_ip) { os = has_kernel_ip; }
        bool const is_os = os.value_or(before.os);
        return {is_os, !is_os || !(leaves || is_out)};
    }

    /// True if only a rise of TraceEn at these timing packets explains the MODE.Exec before the
    /// next TIP.PGE: no change of the mode, no PSB and no later rise does. Source: GEN-181.
    [[nodiscard]] auto explains_mode(std::size_t i, privilege who,
                                     engine::generator_state const& now) const -> bool {
        for (std::size_t k = timing_at(all_, i).next; k < all_.size();) {
            auto const& one = all_[k];
            if (one.is(kind::mtc) || one.is(kind::cyc) || one.is(kind::tsc) || one.is(kind::cbr)) {
                auto const later = timing_at(all_, k);
                if (later.is_complete && is_timing_of_rise(later) && may_have_fallen(k)) {
                    return false;
                }
                k = later.next != k ? later.next : k + 1;
                continue;
            }
            if (one.is(kind::ovf) || one.is(kind::pip) || one.is(kind::vmcs) ||
                one.is(kind::mode_tsx)) {
                ++k;
                continue;
            }
            std::size_t const pge = after_times(all_, k + 1);
            if (!one.is(kind::mode_exec) || !is_at(pge, kind::tip_pge)) { return false; }
            bool const is_other = with_.os && !who.os && all_[pge].ip >> 63 != 0;
            return is_other || has_wide_form(all_[pge], now.writer) ||
                   one.packet.raw().low == now.view.mode;
        }
        return false;
    }

    /// True if packets before the next possible rise contradict OS: TraceEn fell meanwhile.
    [[nodiscard]] auto has_other_os(std::size_t i, privilege who) const -> bool {
        if (!with_.os || with_.cr3_filter || !may_enter_after_rise(i)) { return false; }
        for (std::size_t k = i; k < all_.size(); ++k) {
            if (all_[k].is(kind::pip)) { return !who.os; }
            if (all_[k].is(kind::psb)) {
                auto const in = psb_plus_at(all_, k);
                if (in.is_complete && (in.fup() || in.tsx() || in.pip())) {
                    return in.pip().has_value() != who.os;
                }
                k = in.next - 1;
            } else if (may_be_rise(k) && is_timing_of_rise(timing_at(all_, k)) &&
                       may_have_fallen(k)) {
                return false;
            }
        }
        return false;
    }

    /// True for a CYC whose packet was lost, or is after the end.
    [[nodiscard]] auto is_alone(std::size_t i) const -> bool {
        if (i + 1 >= all_.size() || is_at(i + 1, kind::cyc)) { return true; }
        auto const& next = all_[i + 1];
        if (next.is(kind::ovf)) { return next.offset != all_[i].end || !place_of(i).is_plain; }
        bool is_timed = false;
        packet::visit(
            [&](auto const& one) {
                is_timed = bare_t<decltype(one)>::about.cyc_eligible == packet::cyc_rule::yes;
            },
            next.packet);
        return !is_timed;
    }

private:
    /// The first TIP.PGE after a rise of TraceEn has a MODE.Exec, or a PSB+ stands before it.
    [[nodiscard]] auto may_enter_after_rise(std::size_t i) const -> bool {
        for (std::size_t k = i; k < all_.size(); ++k) {
            if (all_[k].is(kind::psb) || all_[k].is(kind::mode_exec)) { return true; }
            if (all_[k].is(kind::tip_pge)) { return false; }
        }
        return true;
    }
    [[nodiscard]] auto state_before(std::size_t i) const -> trace::writer_state {
        auto const& before = all_[i - 1];
        trace::writer_state start;
        start.bytes = before.end - begin_;
        bool const is_wide_ip = before.has_ip && before.packet.length() >= 7;
        start.ends_in_payload = is_wide_ip || before.is(kind::pip) || before.is(kind::vmcs) ||
                                before.is(kind::tsc) || before.is(kind::tma);
        return start;
    }
    /// True for a TIP.PGE with more bytes than the last IP asks for: the first after a rise.
    [[nodiscard]] auto has_wide_form(seen const& one, trace::writer_state const& writer) const
        -> bool {
        if (options_.end_alignment != 0) { return false; }  // PADs show it
        auto const form = writer.form_of(one.ip, options_.ips);
        return one.packet.length() > packet::encode(packet::tip_pge::of(form, one.ip)).length;
    }

    std::span<seen const> all_;
    std::uint64_t begin_;  ///< the offset of a multiple of 16 in the output buffer
    configuration const& with_;
    engine::model_options options_;
    trace::writer_options write_options_{};
    bool is_broadwell_;
};

}  // namespace pt_twin
