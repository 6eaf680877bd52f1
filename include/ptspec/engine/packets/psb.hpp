// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/packets/state.hpp>

namespace ptspec::engine {

/// The packets that more than one operation makes. The second layer of `generator`.
///
/// Source: GEN-006, GEN-160..176, GEN-181, GEN-200..202, GEN-227..230, GEN-235..245.
class generator_packets : public generator_state {
public:
    using generator_state::generator_state;

protected:
    /// An operation is complete: a PSB+ may come. While the clocks are off it waits for the wake.
    /// Source: GEN-006, GEN-163.
    template <class Sink>
    constexpr void finish(Sink& to) noexcept {
        if (!psb_is_due() || !triggers() || loses_ || clocks_.are_off) { return; }
        emit(to, [&](auto& all) { add_psb(all, enables_now()); });
    }

    constexpr void add_mode(auto& all) noexcept {
        told_.mode = mode().raw;
        all.add(mode());
    }
    /// A MODE.Exec, where what it tells is not known. Source: GEN-236.
    constexpr void add_mode_where_stale(auto& all) noexcept {
        if (told_.mode != mode().raw) { add_mode(all); }
    }
    /// Source: GEN-240, GEN-241.
    [[nodiscard]] static constexpr auto pip_of(running const& code, bool non_root) noexcept
        -> packet::pip {
        return packet::pip{}.with(packet::pip::NR{non_root}, packet::pip::CR3{wrapped{code.cr3}});
    }
    /// With NR where a VMM does not hide it. Source: GEN-241, GEN-278.
    [[nodiscard]] constexpr auto pip_of(running const& code) const noexcept -> packet::pip {
        return pip_of(code, code.vmx_non_root && !conceal_.non_root);
    }
    [[nodiscard]] constexpr auto pip() const noexcept -> packet::pip { return pip_of(code_); }
    constexpr void add_pip(auto& all, packet::pip which) noexcept {
        told_.pip = which.raw;
        all.add(which);
    }
    [[nodiscard]] static constexpr auto vmcs_of(uint64_t address) noexcept -> packet::vmcs {
        return packet::vmcs{}.with(packet::vmcs::base{wrapped{address}});
    }
    constexpr void add_tsx(auto& all, bool aborted = false) noexcept {
        using packet::mode_tsx;
        told_.in_tx = tx_depth_ != 0;
        all.add(mode_tsx{}.with(mode_tsx::InTX{told_.in_tx}, mode_tsx::TXAbort{aborted}));
    }
    /// Source: GEN-202.
    [[nodiscard]] constexpr auto cbr() const noexcept -> packet::cbr {
        return clocks_.cbr_packet(core_to_bus_of(of_));
    }
    /// Source: GEN-181, GEN-201, GEN-205, GEN-313.
    constexpr void add_times(auto& all) const noexcept {
        if (is_set<ctl::TSCEn>()) { all.add(clocks_.tsc_packet()); }
        if (is_set<ctl::TSCEn>() && is_set<ctl::MTCEn>()) { all.add(clocks_.tma_packet()); }
        all.add(cbr());
    }
    /// A PSB+, as the enables are. Source: GEN-165, GEN-170..176, REG-065.
    constexpr void add_psb(auto& all, enables const& now) noexcept {
        all.flush();
        uint64_t const begin = all.state().bytes;
        trace::psb_status tells;
        if (is_set<ctl::TSCEn>()) { tells.tsc = clocks_.tsc_packet(); }
        if (is_set<ctl::TSCEn>() && is_set<ctl::MTCEn>()) { tells.tma = clocks_.tma_packet(); }
        tells.cbr = cbr();
        bool const sees_vmx = msrs_.in_vmx_operation && of_.vmx() != cpu::vmx_support::none &&
                              !(code_.vmx_non_root && conceal_.non_root);
        told_.mode = 0;
        if (now.context && is_set<ctl::OS>()) {
            tells.pip = pip();
            told_.pip = pip().raw;
        }
        if (sees_vmx && (now.context || !how_.vmcs_needs_context)) { tells.vmcs = vmcs_of(vmcs_); }
        if (now.context && now.branch && how_.has_tsx) {
            using packet::mode_tsx;
            told_.in_tx = tx_depth_ != 0;
            tells.mode_tsx = mode_tsx{}.with(mode_tsx::InTX{told_.in_tx});
        }
        if (now.packet()) {
            tells.mode_exec = mode();
            told_.mode = mode().raw;
            tells.fup = form(ip_);
        }
        all.add(tells);
        told_.counted = how_.psb_counts_itself ? begin : all.state().bytes;
        told_.owes_psb = false;
        calls_.clear();
    }

    // -------------------------------------------------------------------------------- overflow

    /// A TraceStop may have come while packets are lost. Source: GEN-230.
    constexpr void owe(evaluated const& done) noexcept {
        if (!done.trace_stop || !loses_) { return; }
        owes_ = how_.trace_stop_in_overflow == stop_in_overflow::told_afterwards
                    ? owed::ovf_and_trace_stop
                    : owed::nothing;
    }
    /// True when packets were lost that no later one makes up for.
    [[nodiscard]] constexpr auto has_lost_state(enables const& now) const noexcept -> bool {
        bool const mode_was_lost = now.packet() && told_.mode != mode().raw;
        bool const pip_was_lost = now.context && is_set<ctl::OS>() && told_.pip != 0 &&
                                  told_.pip != pip().raw;
        bool const tsx_was_lost = now.context && now.branch && told_.in_tx != (tx_depth_ != 0);
        return mode_was_lost || pip_was_lost || (tsx_was_lost && how_.has_tsx);
    }
    /// Packets come through again, into a sink that has room for them. Source: GEN-227..230.
    template <class Sink>
    constexpr void resolve_overflow(Sink& to) noexcept {
        loses_ = loses_on_ = false;
        enables const now = enables_now();
        if (owes_ != owed::nothing) {
            bool const stopped = owes_ == owed::ovf_and_trace_stop;
            owes_ = owed::nothing;
            emit(to, [=](auto& all) {
                all.add(packet::ovf{});
                if (stopped) { all.add(packet::tracestop{}); }
            });
            return settle();
        }
        if (!now.trigger) { return settle(); }
        emit(to, [&](auto& all) {
            all.add(packet::ovf{});
            bool const asked = how_.psb_after_overflow == psb_after_ovf::always ||
                               (how_.psb_after_overflow == psb_after_ovf::where_needed &&
                                has_lost_state(now));
            told_.owes_psb = told_.owes_psb || asked;
            bool const psb = psb_is_due() && !clocks_.are_off;
            bool const psb_first = !now.packet() || how_.psb_before_ovf_fup;
            if (psb && psb_first) { add_psb(all, now); }
            if (now.packet()) { all.template add_ip<packet::fup>(form(ip_)); }
            if (psb && !psb_first) { add_psb(all, now); }
        });
        settle();
    }
};

}  // namespace ptspec::engine
