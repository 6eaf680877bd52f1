// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/time.hpp>
#include <ptspec/engine/detail/psb.hpp>

/// Time: cycles, MTC, CBR.
///
/// Source: GEN-200..204, GEN-210, GEN-217, GEN-220.
namespace ptspec::engine::detail {

[[nodiscard]] constexpr auto count_passed(generator_state const& s,
                                          action::cycles const& e) noexcept -> counted_cycles {
    bool const wraps = s.in_overflow || !s.ctl<ctl::CYCEn>();
    return count_cycles(
        {.cycles = s.writer.cycles, .bits = s.options.cycle_counter_bits, .wraps = wraps},
        e.passed);
}
/// Counts cycles after which no CYC is due. False if one is.
[[nodiscard]] constexpr auto try_fast_path(generator_state& s, action::cycles const& e) noexcept
    -> bool {
    if (!s.trigger_en() || s.clocks.are_off) { return true; }
    auto const counted = count_passed(s, e);
    if (!counted.guard) { s.writer.cycles = counted.cycles; }
    return !counted.guard;
}

template <class Sink>
constexpr void handle(generator_state& s, action::cycle_guard const&, Sink& sink) noexcept {
    if (!s.trigger_en() || !s.ctl<ctl::CYCEn>() || s.writer.cycles == 0) { return; }
    put_packets(s, sink, [](auto& batch) { batch.add_cycles(); });
}
template <class Sink>
constexpr void handle(generator_state& s, action::cycles const& e, Sink& sink) noexcept {
    s.writer.cycles = count_passed(s, e).cycles;
    handle(s, action::cycle_guard{}, sink);
}
/// Each MTC is an action of its own, after which a PSB+ may be due: the clocks run from one to the
/// next. Source: GEN-203, GEN-206.
template <class Sink>
constexpr void handle(generator_state& s, action::elapsed const& e, Sink& sink) noexcept {
    action::cycles const cycles{e.cycles};
    if (!try_fast_path(s, cycles)) {
        handle(s, cycles, sink);
        complete_action(s, sink);
    }
    auto const freq = static_cast<unsigned>(s.ctl<ctl::MTCFreq>());
    auto const due = s.clocks.until(e.art, freq);
    bool const generates = s.trigger_en() && s.ctl<ctl::MTCEn>() && !s.clocks.are_off;
    uint64_t const tsc_per_tick = due.count != 0 ? (e.tsc - s.clocks.tsc) / (e.art - s.clocks.art)
                                                 : 0;
    for (uint64_t i = 0; generates && i < due.count; ++i) {
        uint64_t const art = (due.first + i) << freq;
        s.clocks.run_to(art, e.tsc - tsc_per_tick * (e.art - art));
        put_packets(s, sink, [&](auto& batch) { batch.add(due.packet(i)); });
        complete_action(s, sink);
    }
    s.clocks.run_to(e.art, e.tsc);
}
template <class Sink>
constexpr void handle(generator_state& s, action::ratio const& e, Sink& sink) noexcept {
    s.clocks.core_to_bus = e.core_to_bus;
    if (s.trigger_en() && !s.clocks.are_off) {
        put_packets(s, sink, [&](auto& batch) { batch.add(cbr_of(s)); });
    }
}

}  // namespace ptspec::engine::detail
