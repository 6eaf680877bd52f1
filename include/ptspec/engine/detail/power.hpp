// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/power.hpp>
#include <ptspec/engine/detail/control_transfer.hpp>

/// C-states and clock stops. The core clock is off after their packets, until the wake.
///
/// Source: GEN-200, GEN-205, GEN-210, GEN-310..318.
namespace ptspec::engine::detail {

[[nodiscard]] constexpr auto records_power(generator_state const& s) noexcept -> bool {
    return s.trigger_en() && s.ctl<ctl::PwrEvtEn>();
}
constexpr void add_pwre(auto& batch, action::c_state thread, bool by_hardware) noexcept {
    using packet::pwre;
    batch.add(pwre{}.with(pwre::HW{by_hardware}, pwre::substate{wrapped{uint64_t{thread.substate}}},
                          pwre::state{wrapped{uint64_t{thread.state}}}));
}
constexpr void add_pwrx(auto& batch, action::wake const& e) noexcept {
    using packet::pwrx;
    batch.add(pwrx{}.with(pwrx::last{wrapped{uint64_t{e.last}}},
                          pwrx::deepest{wrapped{uint64_t{e.deepest}}},
                          pwrx::reason{wrapped{uint64_t{underlying(e.reason)}}}));
}
/// Source: GEN-317.
constexpr void add_exstop(generator_state const& s, auto& batch, uint64_t from) noexcept {
    bool const has_ip = s.enables().context;
    batch.add(packet::exstop{}.with(packet::exstop::IP{has_ip}));
    if (has_ip) { batch.template add_ip<packet::fup>(s.in_packets(from)); }
}

template <class Sink>
constexpr void handle(generator_state& s, action::mwait const& e, Sink& sink) noexcept {
    s.ip = e.next;
    if (e.thread.state == 0 && e.thread.substate == 0) { return; }
    if (records_power(s)) {
        put_packets(s, sink, [&](auto& batch) {
            using packet::mwait;
            if (s.enables().context && !e.is_io && !e.is_pending) {
                batch.add(mwait{}.with(mwait::hints{wrapped{uint64_t{e.hints}}},
                                       mwait::ext{wrapped{uint64_t{e.ext}}}));
            }
            add_pwre(batch, e.thread, false);
            add_exstop(s, batch, e.at);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, action::halt const& e, Sink& sink) noexcept {
    auto const enables = s.enables();
    s.ip = e.next;
    if (e.is_shutdown && records_events(s, enables, enables)) {
        put_packets(s, sink, [&](auto& batch) {
            add_cfe(batch, {packet::cfe_type::SHUTDOWN, 0, fup_policy::always},
                    s.in_packets(e.from), enables);
        });
    }
    if (records_power(s)) {
        put_packets(s, sink, [&](auto& batch) {
            add_pwre(batch, {1, 0}, false);
            add_exstop(s, batch, e.from);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, action::duty_cycle const& e, Sink& sink) noexcept {
    if (records_power(s)) {
        put_packets(s, sink, [&](auto& batch) {
            add_pwre(batch, {e.state, 0}, true);
            add_exstop(s, batch, e.next);
        });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, action::wake const& e, Sink& sink) noexcept {
    if (!s.clocks.are_off) { return; }
    s.clocks.are_off = false;
    if (!s.trigger_en()) { return; }
    put_packets(s, sink, [&](auto& batch) {
        add_timing(s, batch);
        if (records_power(s)) { add_pwrx(batch, e); }
    });
}
/// In a C-state the clock is off already: GEN-312.
template <class Sink>
constexpr void handle(generator_state& s, action::clock_stop const& e, Sink& sink) noexcept {
    if (s.clocks.are_off) { return; }
    if (records_power(s)) {
        put_packets(s, sink, [&](auto& batch) { add_exstop(s, batch, e.next); });
    }
    s.clocks.are_off = true;
}
template <class Sink>
constexpr void handle(generator_state& s, action::clock_resume const&, Sink& sink) noexcept {
    if (!s.clocks.are_off) { return; }
    s.clocks.are_off = false;
    if (s.trigger_en()) {
        put_packets(s, sink, [&](auto& batch) { add_timing(s, batch); });
    }
}

}  // namespace ptspec::engine::detail
