// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/paths.hpp>
#include <ptspec/engine/packets/msr_access.hpp>

namespace ptspec::engine {

/// VMX, system management mode, measured launch. The sixth layer of `generator`.
///
/// Source: GEN-244, GEN-260..264, GEN-270..279, GEN-287, GEN-288.
class generator_system : public generator_msrs {
public:
    using generator_msrs::generator_msrs;
    using generator_msrs::on;

    /// The controls by which a VMM hides VMX operation from trace. Source: GEN-278.
    constexpr void conceal(concealed const& what) noexcept { conceal_ = what; }
    [[nodiscard]] constexpr auto conceals() const noexcept -> concealed const& { return conceal_; }

    /// What became of the value for IA32_RTIT_CTL that the last VM transition loaded. One that was
    /// refused was not loaded.
    [[nodiscard]] constexpr auto outcome_of_load() const noexcept -> access::path_verdict {
        return load_outcome_;
    }
    /// The rule by which the processor shut down. Source: GEN-262.
    [[nodiscard]] constexpr auto why_shut_down() const noexcept -> rule { return shut_down_by_; }

    // -------------------------------------------------------------------------------- VMX

    template <trace::packet_sink Sink>
    constexpr void on(event::vm_exit const& e, Sink& to) noexcept {
        using packet::cfe_type;
        movement how{.by = told_by::tip, .to = e.to};
        how.from = form(e.from);
        how.has_fup = true;
        if (!conceal_.exits) {
            how.pip = pip_of(e.after, false);
            how.tells = {e.is_vectored ? cfe_type::VMEXIT_INTR : cfe_type::VMEXIT,
                         e.is_vectored ? e.vector : uint8_t{0},
                         own_ip::where_no_other,
                         {true, packet::evd_type::VMXQ, e.qualification},
                         {true, packet::evd_type::VMXR, e.reason}};
            if (e.to_stm) { how.vmcs = vmcs_of(e.vmcs); }
        }
        if (e.to_stm) { vmcs_ = e.vmcs; }
        tx_depth_ = 0;
        cross(to, how, e.after, e.loads, access::write_path::vm_exit_msr_load_list);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::vm_entry const& e, Sink& to) noexcept {
        movement how{.by = told_by::tip, .to = e.to};
        how.from = form(e.at);
        if (!conceal_.entries) {
            how.pip = pip_of(e.after);
            how.tells = {packet::cfe_type::VMENTRY, 0, own_ip::always};
            if (e.from_stm) { how.vmcs = vmcs_of(e.vmcs); }
        }
        if (e.from_stm) { vmcs_ = e.vmcs; }
        cross(to, how, e.after, e.loads, access::write_path::vm_entry_msr_load_list);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::vm_entry_failure const& e, Sink& to) noexcept {
        movement how{.by = told_by::tip, .to = e.to};
        if (e.loaded_host_state && !conceal_.exits) { how.pip = pip_of(e.after, false); }
        go(to, how, e.loaded_host_state ? e.after : code_);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::vmptrld const& e, Sink& to) noexcept {
        vmcs_ = e.vmcs;
        ip_ = e.next;
        enables const now = enables_now();
        if (now.trigger && now.context && of_.vmx() != cpu::vmx_support::none) {
            emit(to, [&](auto& all) { all.add(vmcs_of(vmcs_)); });
        }
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::vmclear const& e, Sink& /*to*/) noexcept {
        vmcs_ = no_vmcs;
        ip_ = e.next;
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::vmxon const& e, Sink& to) noexcept {
        take({.state = access::vmxon(of_, msrs_)}, e.at, e.next, to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::vmxoff const& e, Sink& /*to*/) noexcept {
        msrs_ = access::vmxoff(msrs_);
        vmcs_ = no_vmcs;
        ip_ = e.next;
    }

    // -------------------------------------------------------------------------------- SMM and so on

    template <trace::packet_sink Sink>
    constexpr void on(event::smi const& e, Sink& to) noexcept {
        if (msrs_.in_smm) { return; }  // it waits
        end_trace(to, {.from = form(e.next), .has_fup = true, .tells = {packet::cfe_type::SMI}},
                  access::smi(msrs_));
        code_ = e.after;
        ip_ = e.to;
        tx_depth_ = 0;
        settle();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::rsm const& e, Sink& to) noexcept {
        auto const done = access::rsm(of_, msrs_, context_of(e.after, form(e.after, e.to)),
                                      how_.policy);
        if (done.outcome == access::rsm_outcome::undefined_opcode) { return; }
        if (!done) {
            shut_down_by_ = done.why;
            return;
        }
        code_ = e.after;
        ip_ = e.to;
        msrs_ = done.effect.state;
        if (!is_set<ctl::TraceEn>()) { return settle(); }
        begin_trace(done.effect, to, true);
        finish(to);
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::measured_launch const&, Sink& to) noexcept {
        end_trace(to, {}, access::measured_launch(msrs_));
        settle();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::acm_begin const&, Sink& to) noexcept {
        if (in_acm_) { return; }
        sync_status();
        emit(to, [](auto& all) { all.flush(); });
        in_acm_ = true;
        goes_on_behind_acm_ = is_set<ctl::TraceEn>();
        msrs_ = access::acm_begins(msrs_);
        settle();
    }
    template <trace::packet_sink Sink>
    constexpr void on(event::acm_end const& e, Sink& to) noexcept {
        if (!in_acm_) { return; }
        in_acm_ = false;
        ip_ = e.next;
        msrs_ = access::acm_ended(of_, msrs_, goes_on_behind_acm_, context_at(e.next));
        take_over_ctl();
        if (triggers()) {
            emit(to, [&](auto& all) { add_times(all); });
            finish(to);
        }
    }

private:
    access::path_verdict load_outcome_{};

    /// A VM transition, which may load IA32_RTIT_CTL. Source: GEN-270..278, REG-010.
    template <class Sink>
    constexpr void cross(Sink& to, movement const& how, running const& after,
                         event::ctl_load const& loads, access::write_path path) noexcept {
        load_outcome_ = {};
        if (loads.is_there) {
            load_outcome_ = access::check_write_on(path, of_, msrs_, ctl::address, loads.value.raw,
                                                   how_.policy);
        }
        bool const was_on = is_set<ctl::TraceEn>();
        bool const is_on = loads.is_there && load_outcome_ ? loads.value.get<ctl::TraceEn>()
                                                           : was_on;
        if (was_on == is_on) {
            if (loads.is_there && load_outcome_ && !is_on) { msrs_.ctl = loads.value; }
            return go(to, how, after), take_over_ctl();
        }
        auto const code = context_of(after, form(after, how.to));
        // The new state counts for the PIP, which comes before TraceEn falls.
        bool const in_context = was_on && access::context_en(msrs_.ctl, msrs_.cr3_match, code);
        auto packets = how;
        if (!in_context) { packets.pip = packet::pip{0}; }
        auto const done = access::detail::write_ctl(of_, msrs_, loads.value, code);
        if (was_on) {
            end_trace(to, packets, done.state);
        } else {
            msrs_ = done.state;
        }
        code_ = after;
        ip_ = how.to;
        if (is_on) { return begin_trace(done, to, false), finish(to); }
        take_over_ctl();
    }
};

}  // namespace ptspec::engine
