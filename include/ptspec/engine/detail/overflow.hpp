// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/psb_overflow.hpp>
#include <ptspec/engine/detail/psb.hpp>

/// The end of an overflow, and overflows and PSB+ on request. `put_packets` begins an overflow.
namespace ptspec::engine::detail {

/// True if a packet was lost and no later packet reports its state.
[[nodiscard]] constexpr auto has_lost_state(generator_state const& s,
                                            access::enables const& enables) noexcept -> bool {
    bool const mode_was_lost = enables.packet() && s.view.mode != mode_exec_of(s).raw;
    bool const pip_was_lost = enables.context && s.ctl<ctl::OS>() && s.view.pip != 0 &&
                              s.view.pip != pip_of(s, s.code).raw;
    bool const tsx_was_lost = enables.context && enables.branch &&
                              s.view.in_tx != (s.tx_depth != 0);
    return mode_was_lost || pip_was_lost || (tsx_was_lost && s.options.has_tsx);
}

/// Ends an overflow: generates an OVF and the packets that must follow it. The sink must have room.
/// Source: GEN-227..230.
template <class Sink>
constexpr void resolve_overflow(generator_state& s, Sink& sink) noexcept {
    s.in_overflow = s.overflow_requested = false;
    auto const enables = s.enables();
    if (s.deferred_ovf != deferred_ovf::none) {
        bool const stopped = s.deferred_ovf == deferred_ovf::ovf_and_trace_stop;
        s.deferred_ovf = deferred_ovf::none;
        put_packets(s, sink, [=](auto& batch) {
            batch.add(packet::ovf{});
            if (stopped) { batch.add(packet::tracestop{}); }
        });
    } else if (enables.trigger) {
        put_packets(s, sink, [&](auto& batch) {
            batch.add(packet::ovf{});
            bool const requested = s.options.psb_after_overflow == psb_after_ovf::always ||
                                   (s.options.psb_after_overflow == psb_after_ovf::where_needed &&
                                    has_lost_state(s, enables));
            s.view.psb_requested = s.view.psb_requested || requested;
            bool const psb = s.psb_is_due() && !s.clocks.are_off;
            bool const psb_first = !enables.packet() || s.options.psb_before_ovf_fup;
            if (psb && psb_first) { add_psb(s, batch, enables); }
            if (enables.packet()) { batch.template add_ip<packet::fup>(s.in_packets(s.ip)); }
            if (psb && !psb_first) { add_psb(s, batch, enables); }
        });
    }
    refresh_cache(s);
}

/// Ends an overflow, unless `action::overflow` requested it and `action::overflow_end` ends it.
template <class Sink>
constexpr void end_overflow(generator_state& s, Sink& sink) noexcept {
    if (s.in_overflow && !s.overflow_requested) { resolve_overflow(s, sink); }
}

template <class Sink>
constexpr void handle(generator_state& s, action::psb_due const&, Sink& /*sink*/) noexcept {
    s.view.psb_requested = s.trigger_en();
}
template <class Sink>
constexpr void handle(generator_state& s, action::overflow const&, Sink& /*sink*/) noexcept {
    if (!s.trigger_en()) { return; }
    s.overflow_requested = true;
    begin_overflow(s);
}
template <class Sink>
constexpr void handle(generator_state& s, action::overflow_end const& e, Sink& sink) noexcept {
    if (!s.in_overflow) { return; }
    s.ip = e.next;
    resolve_overflow(s, sink);
}

}  // namespace ptspec::engine::detail
