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
constexpr void vectored(generator_state& s, Sink& to, uint64_t from, uint64_t target,
                        execution_context const& after, traced_event const& cfe) noexcept {
    control_transfer how{.to = target};
    how.from = s.in_packets(from);
    how.has_fup = true;
    how.pip = pip_if_changed(s, after);
    how.cfe = cfe;
    transfer(s, to, how, after);
}

template <class Sink>
constexpr void handle(generator_state& s, action::far_transfer const& e, Sink& to) noexcept {
    using packet::cfe_type;
    control_transfer how{.to = e.to};
    how.from = s.in_packets(e.at);
    how.pip = pip_if_changed(s, e.after);
    switch (e.kind) {
        case action::far_kind::iret: how.cfe = {cfe_type::IRET}; break;
        case action::far_kind::uiret: how.cfe = {cfe_type::UIRET}; break;
        case action::far_kind::syscall:
            if (s.options.swintr_events) { how.cfe = {cfe_type::SYSCALL, 0, fup_policy::always}; }
            break;
        case action::far_kind::sysret:
        case action::far_kind::eret:
            if (s.options.iret_at_all_returns) { how.cfe = {cfe_type::IRET}; }
            break;
        case action::far_kind::plain: break;
    }
    transfer(s, to, how, e.after);
}
template <class Sink>
constexpr void handle(generator_state& s, action::software_interrupt const& e, Sink& to) noexcept {
    auto const type = s.options.swintr_events ? packet::cfe_type::SWINTR : packet::cfe_type::INTR;
    vectored(s, to, e.at, e.to, e.after, {type, e.vector});
}
template <class Sink>
constexpr void handle(generator_state& s, action::interrupt const& e, Sink& to) noexcept {
    vectored(s, to, e.next, e.to, e.after, {packet::cfe_type::INTR, e.vector});
}
template <class Sink>
constexpr void handle(generator_state& s, action::exception const& e, Sink& to) noexcept {
    traced_event cfe{packet::cfe_type::INTR, e.vector};
    if (e.vector == action::exception::page_fault) {
        cfe.first = {true, packet::evd_type::PFA, e.cr2};
    }
    vectored(s, to, e.at, e.to, e.after, cfe);
}
template <class Sink>
constexpr void handle(generator_state& s, action::kernel_visit const& e, Sink& to) noexcept {
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
            handle(s, action::far_transfer{e.at, 0, kernel, action::far_kind::syscall}, to);
            break;
        case kernel_visit::reason::interrupt:
            handle(s, action::interrupt{.next = e.at, .after = kernel, .vector = e.vector}, to);
            break;
        case kernel_visit::reason::exception:
            handle(s,
                   action::exception{.at = e.at, .after = kernel, .vector = e.vector, .cr2 = e.cr2},
                   to);
            break;
    }
    if (e.returns) {
        auto const by = e.cause == kernel_visit::reason::system_call ? action::far_kind::sysret
                                                                     : action::far_kind::iret;
        handle(s, action::far_transfer{0, e.to, user, by}, to);
    }
    s.msrs.ctl = ctl_now;
    refresh_cache(s);
}
template <class Sink>
constexpr void handle(generator_state& s, action::user_interrupt const& e, Sink& to) noexcept {
    vectored(s, to, e.next, e.to, s.code, {packet::cfe_type::UINTR, e.vector});
}
/// A processor that waits for a SIPI evaluates the enables when the SIPI arrives.
template <class Sink>
constexpr void handle(generator_state& s, action::init const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.in_packets(e.next);
    how.has_fup = true;
    how.pip = pip_of(e.after, false);
    how.cfe = {packet::cfe_type::INIT};
    s.tx_depth = 0;
    if (!e.waits_for_sipi) { return transfer(s, to, how, e.after); }
    auto const now = s.enables();
    s.code = e.after;
    s.ip = e.to;
    if (!now.trigger) { return; }
    put_packets(s, to, [&](auto& batch) {
        if (records_events(s, now, now)) { add_cfe(batch, how.cfe, how.from, now); }
        if (!now.packet()) { return; }
        batch.template add_ip<packet::fup>(how.from);
        if (s.ctl<ctl::OS>()) { add_pip(s, batch, how.pip); }
    });
}
template <class Sink>
constexpr void handle(generator_state& s, action::sipi const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.cfe = {packet::cfe_type::SIPI, e.vector, fup_policy::never};
    transfer(s, to, how, e.after);
}
template <class Sink>
constexpr void handle(generator_state& s, action::enclave_transfer const& e, Sink& to) noexcept {
    control_transfer how{.to = e.to};
    how.from = s.in_packets(e.from);
    how.has_fup = true;
    transfer(s, to, how, e.after);
}

}  // namespace ptspec::engine::detail
