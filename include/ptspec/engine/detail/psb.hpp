// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/state.hpp>

/// PSB+, and its status packets: MODE, PIP, VMCS, timing.
namespace ptspec::engine::detail {

/// Lets a moment pass: adds its cycles, then its MTC. Source: GEN-006, GEN-203, GEN-217.
constexpr void add_moment(generator_state& s, auto& batch, action::moment const& one) noexcept {
    using action::due_mtc;
    if (!s.clocks.are_off) {
        bool const guard = count_cycles({.cycles = batch.state().cycles,
                                         .bits = s.options.cycle_counter_bits,
                                         .wraps = !s.ctl<ctl::CYCEn>()},
                                        one.cycles)
                               .guard;
        batch.advance(one.cycles);
        if (guard) { batch.add_cycles(); }
    }
    if (one.mtc == due_mtc::none) { return; }
    auto const freq = static_cast<unsigned>(s.ctl<ctl::MTCFreq>());
    uint64_t const count = (s.clocks.art >> freq) + (one.mtc == due_mtc::next ? 1 : 0);
    if (one.mtc == due_mtc::next) {
        s.clocks.run_to(count << freq, one.tsc != 0 ? one.tsc : s.clocks.tsc);
    }
    if (!s.ctl<ctl::MTCEn>() || s.clocks.are_off) { return; }
    batch.add(packet::mtc{}.with(packet::mtc::CTC{wrapped{count}}));
}
/// Lets the moments up to the last one before a packet of this kind pass.
constexpr void add_moments_before(generator_state& s, auto& batch, packet::kind kind) noexcept {
    auto const [first, count] = s.within;
    size_t passed = 0;
    for (size_t i = 0; i < count; ++i) { passed = first[i].before == kind ? i + 1 : passed; }
    for (size_t i = 0; i < passed; ++i) { add_moment(s, batch, first[i]); }
    s.within = {first + passed, count - passed};
}
/// Adds a packet after the moments before it.
template <packet::packet_type Packet>
constexpr void add_in_time(generator_state& s, auto& batch, Packet const& packet) noexcept {
    add_moments_before(s, batch, Packet::about.id);
    batch.add(packet);
}
/// Runs an action while moments pass. Moments that no packet waited for pass at its end.
template <class Sink, class Run>
constexpr auto run_within(generator_state& s, action::time_within moments, Sink& sink,
                          Run const& run) noexcept {
    s.within = moments;
    auto const done = run();
    auto const rest = s.within;
    s.within = {};
    if (rest.count == 0 || !s.trigger_en()) { return done; }
    put_packets(s, sink, [&](auto& batch) {
        for (size_t i = 0; i < rest.count; ++i) { add_moment(s, batch, rest.first[i]); }
    });
    return done;
}
/// The MODE.Exec of the code that executes. Source: GEN-235, GEN-305.
[[nodiscard]] constexpr auto mode_exec_of(generator_state const& s) noexcept -> packet::mode_exec {
    using packet::mode_exec;
    return mode_exec{}.with(mode_exec::CS_L{s.code.width == code_width::bits_64},
                            mode_exec::CS_D{s.code.width == code_width::bits_32},
                            mode_exec::IF{s.ctl<ctl::EventEn>() && s.code.IF});
}
constexpr void add_mode_exec(generator_state& s, auto& batch) noexcept {
    s.view.mode = mode_exec_of(s).raw;
    add_in_time(s, batch, mode_exec_of(s));
}
/// Adds a MODE.Exec if the mode differs from the last one in the trace. Source: GEN-236.
constexpr void add_changed_mode_exec(generator_state& s, auto& batch) noexcept {
    if (s.view.mode != mode_exec_of(s).raw) { add_mode_exec(s, batch); }
}

/// Source: GEN-240, GEN-241.
[[nodiscard]] constexpr auto pip_of(execution_context const& code, bool non_root) noexcept
    -> packet::pip {
    return packet::pip{}.with(packet::pip::NR{non_root}, packet::pip::CR3{wrapped{code.cr3}});
}
/// The PIP of a context, with NR unless a VMM conceals it. Source: GEN-241, GEN-278.
[[nodiscard]] constexpr auto pip_of(generator_state const& s,
                                    execution_context const& code) noexcept -> packet::pip {
    return pip_of(code, code.vmx_non_root && !s.concealment.non_root);
}
constexpr void add_pip(generator_state& s, auto& batch, packet::pip pip) noexcept {
    s.view.pip = pip.raw;
    add_in_time(s, batch, pip);
}
[[nodiscard]] constexpr auto vmcs_of(uint64_t address) noexcept -> packet::vmcs {
    return packet::vmcs{}.with(packet::vmcs::base{wrapped{address}});
}
[[nodiscard]] constexpr auto mode_tsx_of(generator_state const& s, bool aborted = false) noexcept
    -> packet::mode_tsx {
    using packet::mode_tsx;
    return mode_tsx{}.with(mode_tsx::InTX{s.tx_depth != 0}, mode_tsx::TXAbort{aborted});
}
constexpr void add_mode_tsx(generator_state& s, auto& batch, bool aborted = false) noexcept {
    s.view.in_tx = s.tx_depth != 0;
    batch.add(mode_tsx_of(s, aborted));
}
/// Source: GEN-202.
[[nodiscard]] constexpr auto cbr_of(generator_state const& s) noexcept -> packet::cbr {
    return s.clocks.cbr_packet(core_to_bus_of(s.caps));
}
/// The timing packets after the clocks were off, or TraceEn rose.
/// Source: GEN-181, GEN-201, GEN-205, GEN-313.
constexpr void add_timing(generator_state& s, auto& batch) noexcept {
    auto const tsc = s.clocks.tsc_packet();
    auto const tma = s.clocks.tma_packet();
    if (s.ctl<ctl::TSCEn>()) { add_in_time(s, batch, tsc); }
    if (s.ctl<ctl::TSCEn>() && s.ctl<ctl::MTCEn>()) { add_in_time(s, batch, tma); }
    add_in_time(s, batch, cbr_of(s));
}

/// Adds a PSB+ that reports the status under these enables, at this IP.
/// Source: GEN-012, GEN-165, GEN-170..176, REG-065.
constexpr void add_psb(generator_state& s, auto& batch, access::enables const& enables,
                       packet_ip ip) noexcept {
    batch.flush();
    uint64_t const begin = batch.state().bytes;
    trace::psb_status reported;
    if (s.ctl<ctl::TSCEn>()) { reported.tsc = s.clocks.tsc_packet(); }
    if (s.ctl<ctl::TSCEn>() && s.ctl<ctl::MTCEn>()) { reported.tma = s.clocks.tma_packet(); }
    reported.cbr = cbr_of(s);
    bool const vmx_is_visible = s.msrs.in_vmx_operation && s.caps.vmx() != cpu::vmx_support::none &&
                                !(s.code.vmx_non_root && s.concealment.non_root);
    s.view.mode = 0;
    if (enables.context && s.ctl<ctl::OS>()) {
        reported.pip = pip_of(s, s.code);
        s.view.pip = pip_of(s, s.code).raw;
    }
    if (vmx_is_visible && (enables.context || !s.options.vmcs_needs_context)) {
        reported.vmcs = vmcs_of(s.vmcs);
    }
    if (enables.context && enables.branch && s.options.has_tsx) {
        reported.mode_tsx = mode_tsx_of(s);
        s.view.in_tx = s.tx_depth != 0;
    }
    if (enables.packet()) {
        reported.mode_exec = mode_exec_of(s);
        s.view.mode = mode_exec_of(s).raw;
        reported.fup = ip.value;
    }
    batch.add(reported, [&](packet::kind kind) { add_moments_before(s, batch, kind); });
    if (s.options.psb_keeps_remainder && begin - s.view.count_start >= s.psb_period &&
        begin - s.view.count_start < 2 * s.psb_period) {
        start_period(s, s.view.count_start + s.psb_period);
    } else {
        start_period(s, s.options.psb_counts_itself ? begin : batch.state().bytes);
    }
    s.view.psb_requested = false;
    s.calls.clear();
}

constexpr void add_psb(generator_state& s, auto& batch, access::enables const& enables) noexcept {
    add_psb(s, batch, enables, s.in_packets(s.ip));
}

/// Completes an action: generates a PSB+ if one is due. While the clocks are off it stays due until
/// the wake. Source: GEN-006, GEN-163.
template <class Sink>
constexpr void complete_action(generator_state& s, Sink& sink) noexcept {
    if (!s.psb_is_due() || !s.trigger_en() || s.in_overflow || s.clocks.are_off) { return; }
    put_packets(s, sink, [&](auto& batch) { add_psb(s, batch, s.enables()); });
}

}  // namespace ptspec::engine::detail
