// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/detail/control_transfer.hpp>

/// Far transfers, interrupts, exceptions, INIT and SIPI, enclave transitions.
///
/// Source: GEN-110..114, GEN-136, GEN-285, GEN-286, GEN-289, GEN-290, GEN-301..303.
namespace ptspec::engine::detail {

/// The PIP of a transfer that may load CR3, as a task switch does. Source: GEN-240.
[[nodiscard]] constexpr auto pip_if_changed(generator_state const& s,
                                            execution_context const& after) noexcept
    -> packet::pip {
    return after.cr3 == s.code.cr3 ? packet::pip{0} : pip_of(s, after);
}
/// An event that has a vector. `from` is the IP of its FUP, an offset in CS.
template <class Sink>
constexpr void emit_vectored(generator_state& s, Sink& sink, uint64_t from, uint64_t target,
                             execution_context const& after, traced_event const& cfe) noexcept {
    control_transfer transfer{.to = target};
    transfer.from = s.in_packets(from);
    transfer.has_fup = true;
    transfer.pip = pip_if_changed(s, after);
    transfer.cfe = cfe;
    emit_transfer(s, sink, transfer, after);
}

template <class Sink>
constexpr void handle(generator_state& s, action::far_transfer const& e, Sink& sink) noexcept {
    using packet::cfe_type;
    control_transfer transfer{.to = e.to};
    transfer.from = s.in_packets(e.at);
    transfer.pip = pip_if_changed(s, e.after);
    switch (e.kind) {
        case action::far_kind::iret: transfer.cfe = {cfe_type::IRET}; break;
        case action::far_kind::uiret: transfer.cfe = {cfe_type::UIRET}; break;
        case action::far_kind::syscall:
            if (s.options.swintr_events) {
                transfer.cfe = {cfe_type::SYSCALL, 0, fup_policy::always};
            }
            break;
        case action::far_kind::sysret:
        case action::far_kind::eret:
            if (s.options.iret_at_all_returns) { transfer.cfe = {cfe_type::IRET}; }
            break;
        case action::far_kind::plain: break;
    }
    emit_transfer(s, sink, transfer, e.after);
}
template <class Sink>
constexpr void handle(generator_state& s, action::software_interrupt const& e,
                      Sink& sink) noexcept {
    auto const type = s.options.swintr_events ? packet::cfe_type::SWINTR : packet::cfe_type::INTR;
    emit_vectored(s, sink, e.at, e.to, e.after, {type, e.vector});
}
template <class Sink>
constexpr void handle(generator_state& s, action::interrupt const& e, Sink& sink) noexcept {
    emit_vectored(s, sink, e.next, e.to, e.after, {packet::cfe_type::INTR, e.vector});
}
template <class Sink>
constexpr void handle(generator_state& s, action::exception const& e, Sink& sink) noexcept {
    traced_event cfe{packet::cfe_type::INTR, e.vector};
    if (e.vector == action::exception::page_fault) {
        cfe.first = {true, packet::evd_type::PFA, e.cr2};
    }
    emit_vectored(s, sink, e.at, e.to, e.after, cfe);
}
template <class Sink>
constexpr void handle(generator_state& s, action::kernel_visit const& e, Sink& sink) noexcept {
    using action::kernel_visit;
    auto const user = s.code;
    auto kernel = user;
    kernel.cpl = 0;
    kernel.cs_base = 0;
    kernel.width = code_width::bits_64;
    kernel.real_mode = kernel.virtual_8086 = kernel.IF = false;
    kernel.inside = enclave::none;
    auto const ctl_now = s.msrs.ctl;
    s.msrs.ctl = ctl_now.with(ctl::OS{false});
    switch (e.cause) {
        case kernel_visit::reason::system_call:
            handle(s, action::far_transfer{e.at, 0, kernel, action::far_kind::syscall}, sink);
            break;
        case kernel_visit::reason::interrupt:
            handle(s, action::interrupt{.next = e.at, .after = kernel, .vector = e.vector}, sink);
            break;
        case kernel_visit::reason::exception:
            handle(s,
                   action::exception{.at = e.at, .after = kernel, .vector = e.vector, .cr2 = e.cr2},
                   sink);
            break;
    }
    if (e.returns) {
        auto const by = e.cause == kernel_visit::reason::system_call ? action::far_kind::sysret
                                                                     : action::far_kind::iret;
        handle(s, action::far_transfer{0, e.to, user, by}, sink);
    }
    s.msrs.ctl = ctl_now;
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, action::user_interrupt const& e, Sink& sink) noexcept {
    emit_vectored(s, sink, e.next, e.to, s.code, {packet::cfe_type::UINTR, e.vector});
}
/// A processor that waits for a SIPI evaluates the enables when the SIPI arrives.
template <class Sink>
constexpr void handle(generator_state& s, action::init const& e, Sink& sink) noexcept {
    control_transfer transfer{.to = e.to};
    transfer.from = s.in_packets(e.next);
    transfer.has_fup = true;
    transfer.pip = pip_of(e.after, false);
    transfer.cfe = {packet::cfe_type::INIT};
    s.tx_depth = 0;
    if (!e.waits_for_sipi) { return emit_transfer(s, sink, transfer, e.after); }
    auto const enables = s.enables();
    s.code = e.after;
    s.ip = e.to;
    if (!enables.trigger) { return; }
    put_packets(s, sink, [&](auto& batch) {
        if (records_events(s, enables, enables)) {
            add_cfe(batch, transfer.cfe, transfer.from, enables);
        }
        if (!enables.packet()) { return; }
        batch.template add_ip<packet::fup>(transfer.from);
        if (s.ctl<ctl::OS>()) { add_pip(s, batch, transfer.pip); }
    });
}
template <class Sink>
constexpr void handle(generator_state& s, action::sipi const& e, Sink& sink) noexcept {
    control_transfer transfer{.to = e.to};
    transfer.cfe = {packet::cfe_type::SIPI, e.vector, fup_policy::never};
    emit_transfer(s, sink, transfer, e.after);
}
template <class Sink>
constexpr void handle(generator_state& s, action::enclave_transfer const& e, Sink& sink) noexcept {
    control_transfer transfer{.to = e.to};
    transfer.from = s.in_packets(e.from);
    transfer.has_fup = true;
    emit_transfer(s, sink, transfer, e.after);
}

}  // namespace ptspec::engine::detail
