// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/vmx_smm.hpp>
#include <ptspec/engine/detail/msr_access.hpp>

/// VMX, system management mode, measured launch.
///
/// Source: GEN-244, GEN-260..264, GEN-270..279, GEN-287, GEN-288.
namespace ptspec::engine::detail {

/// A VM transition, which may load IA32_RTIT_CTL. Source: GEN-270..278, REG-010.
template <class Sink>
constexpr void vm_transition(generator_state& s, Sink& sink, control_transfer transfer,
                             execution_context const& after, action::ctl_load const& loads,
                             access::msr_write_source source) noexcept {
    s.ctl_load_verdict = {};
    if (loads.has_value) {
        s.ctl_load_verdict = access::check_write_from(source, s.caps, s.msrs, ctl::address,
                                                      loads.value.raw, s.options.policy);
    }
    bool const is_loaded = loads.has_value && s.ctl_load_verdict;
    bool const was_on = s.ctl<ctl::TraceEn>();
    bool const is_on = is_loaded ? loads.value.get<ctl::TraceEn>() : was_on;
    if (was_on == is_on) {
        if (is_loaded && !is_on) { s.msrs.ctl = loads.value; }
        emit_transfer(s, sink, transfer, after);
        return apply_ctl(s);
    }
    auto const context = s.context_at(after, transfer.to);
    auto const result = access::apply(s.caps, s.msrs, loads.value, context);
    if (was_on) {
        // The PIP, which precedes the clearing of TraceEn, depends on the new context.
        bool const in_context = access::context_en(s.msrs.ctl, s.msrs.cr3_match, context);
        if (!in_context) { transfer.pip = packet::pip{0}; }
        end_trace(s, sink, transfer, result.state);
    } else {
        s.msrs = result.state;
    }
    s.code = after;
    s.ip = transfer.to.value;
    if (is_on) {
        begin_trace(s, result, s.in_packets(s.ip), sink, false);
    } else {
        apply_ctl(s);
    }
}

template <class Sink>
constexpr void handle(generator_state& s, action::vm_exit const& e, Sink& sink) noexcept {
    using packet::cfe_type;
    control_transfer transfer{.to = e.to};
    transfer.from = s.in_packets(e.from);
    transfer.has_fup = true;
    if (!s.concealment.exits) {
        transfer.pip = pip_of(e.after, false);
        transfer.cfe = {e.is_vectored ? cfe_type::VMEXIT_INTR : cfe_type::VMEXIT,
                        e.is_vectored ? e.vector : uint8_t{0},
                        fup_policy::if_no_other,
                        {true, packet::evd_type::VMXQ, e.qualification},
                        {true, packet::evd_type::VMXR, e.reason}};
        if (e.to_stm) { transfer.vmcs = vmcs_of(e.vmcs); }
    }
    if (e.to_stm) { s.vmcs = e.vmcs; }
    s.tx_depth = 0;
    vm_transition(s, sink, transfer, e.after, e.loads,
                  access::msr_write_source::vm_exit_msr_load_list);
}
template <class Sink>
constexpr void handle(generator_state& s, action::vm_entry const& e, Sink& sink) noexcept {
    control_transfer transfer{.to = e.to};
    transfer.from = s.in_packets(e.at);
    if (!s.concealment.entries) {
        transfer.pip = pip_of(s, e.after);
        transfer.cfe = {packet::cfe_type::VMENTRY, 0, fup_policy::always};
        if (e.from_stm) { transfer.vmcs = vmcs_of(e.vmcs); }
    }
    if (e.from_stm) { s.vmcs = e.vmcs; }
    vm_transition(s, sink, transfer, e.after, e.loads,
                  access::msr_write_source::vm_entry_msr_load_list);
}
template <class Sink>
constexpr void handle(generator_state& s, action::vm_entry_failure const& e, Sink& sink) noexcept {
    control_transfer transfer{.to = e.to};
    if (e.loaded_host_state && !s.concealment.exits) { transfer.pip = pip_of(e.after, false); }
    emit_transfer(s, sink, transfer, e.loaded_host_state ? e.after : s.code);
}
template <class Sink>
constexpr void handle(generator_state& s, action::vmptrld const& e, Sink& sink) noexcept {
    s.vmcs = e.vmcs;
    s.ip = e.next;
    auto const enables = s.enables();
    if (enables.trigger && enables.context && s.caps.vmx() != cpu::vmx_support::none) {
        put_packets(s, sink, [&](auto& batch) { batch.add(vmcs_of(s.vmcs)); });
    }
}
template <class Sink>
constexpr void handle(generator_state& s, action::vmclear const& e, Sink& /*sink*/) noexcept {
    s.vmcs = no_vmcs;
    s.ip = e.next;
}
template <class Sink>
constexpr void handle(generator_state& s, action::vmxon const& e, Sink& sink) noexcept {
    apply_effect(s, {.state = access::vmxon(s.caps, s.msrs)}, e.at, e.next, sink);
}
template <class Sink>
constexpr void handle(generator_state& s, action::vmxoff const& e, Sink& /*sink*/) noexcept {
    s.msrs = access::vmxoff(s.msrs);
    s.vmcs = no_vmcs;
    s.ip = e.next;
}

template <class Sink>
constexpr void handle(generator_state& s, action::smi const& e, Sink& sink) noexcept {
    if (s.msrs.in_smm) { return; }  // it stays pending
    end_trace(s, sink,
              {.from = s.in_packets(e.next), .has_fup = true, .cfe = {packet::cfe_type::SMI}},
              access::smi(s.msrs));
    s.code = e.after;
    s.ip = e.to;
    s.tx_depth = 0;
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, action::rsm const& e, Sink& sink) noexcept {
    auto const context = s.context_at(e.after, e.to);
    auto const result = access::rsm(s.caps, s.msrs, context, s.options.policy);
    if (result.outcome == access::rsm_outcome::undefined_opcode) { return; }
    if (!result) {
        s.shutdown_by = result.broken;
        return;
    }
    s.code = e.after;
    s.ip = e.to;
    s.msrs = result.effect.state;
    if (!s.ctl<ctl::TraceEn>()) { return refresh_cache(s); }
    begin_trace(s, result.effect, s.in_packets(s.ip), sink, true);
}
template <class Sink>
constexpr void handle(generator_state& s, action::measured_launch const&, Sink& sink) noexcept {
    end_trace(s, sink, {}, access::measured_launch(s.msrs));
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, action::acm_begin const&, Sink& sink) noexcept {
    if (s.in_acm) { return; }
    s.msrs.status = status_now(s);
    put_packets(s, sink, [](auto& batch) { batch.flush(); });
    s.in_acm = true;
    s.trace_en_after_acm = s.ctl<ctl::TraceEn>();
    s.msrs = access::acm_entry(s.msrs);
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, action::acm_end const& e, Sink& sink) noexcept {
    if (!s.in_acm) { return; }
    s.in_acm = false;
    s.ip = e.next;
    s.msrs = access::acm_exit(s.caps, s.msrs, s.trace_en_after_acm, s.context_at(e.next));
    apply_ctl(s);
    if (!s.trigger_en()) { return; }
    begin_output(sink);
    put_packets(s, sink, [&](auto& batch) { add_timing(s, batch); });
}

/// An action that may set TraceEn.
template <class Action>
concept may_set_trace_en = same_as<Action, action::vm_exit> || same_as<Action, action::vm_entry> ||
                           same_as<Action, action::rsm> || same_as<Action, action::acm_end>;

}  // namespace ptspec::engine::detail
