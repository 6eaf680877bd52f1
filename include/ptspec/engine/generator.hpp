// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/engine/detail/branch.hpp>
#include <ptspec/engine/detail/msr_access.hpp>
#include <ptspec/engine/detail/overflow.hpp>
#include <ptspec/engine/detail/power.hpp>
#include <ptspec/engine/detail/time.hpp>
#include <ptspec/engine/detail/transaction.hpp>
#include <ptspec/engine/detail/transfer.hpp>
#include <ptspec/engine/detail/value.hpp>
#include <ptspec/engine/detail/vmx_smm.hpp>
#include <ptspec/base/attribute.hpp>

/// Generates packets from actions: the dispatch, and a generator for the caller's own sink.
namespace ptspec::engine {

/// An action: a struct of `engine::action` that a `handle` accepts.
template <class Action, class Sink>
concept action_for = requires(generator_state& state, Action const& e, Sink& sink) {
    detail::handle(state, e, sink);
};

namespace detail {

/// Handles an action, and completes it. The state's cache decides which actions take the fast path.
///
/// always_inline: without it branches take 1 % more instructions (clang 19).
template <class Action, class Sink>
PTSPEC_ATTRIBUTE(always_inline)
constexpr void generate(generator_state& s, Action const& e, Sink& sink) noexcept {
    if constexpr (requires { try_fast_path(s, e); }) {
        if (try_fast_path(s, e)) { return; }
    }
    handle(s, e, sink);
    complete_action(s, sink);
}
/// The same while time passes.
template <class Action, class Sink>
constexpr void generate(generator_state& s, Action const& e, action::time_within moments,
                        Sink& sink) noexcept {
    (void)run_within(s, moments, sink, [&] {
        generate(s, e, sink);
        return true;
    });
}

/// The state of a processor that has executed for a while. Source: GEN-010, REG-072.
[[nodiscard]] constexpr auto make_generator_state(cpu::capabilities const& caps,
                                                  access::msr_state const& msrs,
                                                  execution_context const& code, uint64_t ip,
                                                  model_options const& options) noexcept
    -> generator_state {
    generator_state s{.caps = caps, .options = options, .msrs = msrs, .code = code, .ip = ip};
    // PADs align packets in memory: the first byte is stored at the output offset.
    s.writer.bytes = msrs.output.mask_ptrs.get<access::ia32_rtit_output_mask_ptrs::OutputOffset>();
    s.view.count_start = s.writer.bytes -
                         msrs.status.get<access::ia32_rtit_status::PacketByteCnt>();
    if (s.trigger_en()) { s.view.mode = mode_exec_of(s).raw; }
    apply_ctl(s);
    return s;
}

}  // namespace detail

/// Generates the packets of a logical processor from its actions.
///
/// A value that holds the MSRs of Intel PT and the context that executes. Each operation appends
/// its packets to a sink. If the sink has no room for them an overflow begins, and packets are lost
/// until `end_overflow`.
///
/// Output is not modelled, nor are the MSRs that output changes: `trace_unit` adds both. PADs align
/// packets to OutputOffset, as it is at construction or after a WRMSR, plus the bytes since.
///
/// Source: SDM vol. 3, "Packet Generation Scenarios", "Trace Packets and Data Types"; GEN-001..342.
class generator {
public:
    /// Without options it has those of the processor's kind.
    constexpr generator(cpu::capabilities const& caps, access::msr_state const& msrs,
                        execution_context const& code, uint64_t ip) noexcept
        : generator{caps, msrs, code, ip, options_of(caps)} {}
    constexpr generator(cpu::capabilities const& caps, access::msr_state const& msrs,
                        execution_context const& code, uint64_t ip,
                        model_options const& options) noexcept
        : state_{detail::make_generator_state(caps, msrs, code, ip, options)} {}

    /// The state of packet generation. PacketByteCnt and PendPSB of `msrs.status` are as of the
    /// last access to an MSR.
    [[nodiscard]] constexpr auto state() const noexcept -> generator_state const& { return state_; }

    /// Handles an action.
    template <class Action, trace::packet_sink Sink>
        requires action_for<Action, Sink>
    constexpr void on(Action const& e, Sink& sink) noexcept {
        detail::generate(state_, e, sink);
    }
    /// The same while time passes.
    template <class Action, trace::packet_sink Sink>
        requires action_for<Action, Sink>
    constexpr void on(Action const& e, Sink& sink, action::time_within moments) noexcept {
        detail::generate(state_, e, moments, sink);
    }
    template <class Action, class Sink>
        requires(!trace::packet_sink<Sink>)
    void on(Action const&, Sink&) = delete;  // a sink has append(byte_view) -> bool
    template <class Other, trace::packet_sink Sink>
        requires(!action_for<Other, Sink>)
    void on(Other const&, Sink&) = delete;  // an action is a struct of engine::action
    /// Ends an overflow that `action::overflow` did not request. The sink must have room.
    template <trace::packet_sink Sink>
    constexpr void end_overflow(Sink& sink) noexcept {
        detail::end_overflow(state_, sink);
    }

    /// Starts tracing at the next instruction, like a WRMSR of `value`, with TraceEn = 1, directly
    /// before it: for an emulator that traces code which has no such WRMSR, such as user code.
    ///
    /// Errors: those of `access::check_write` at CPL 0; nothing has changed then.
    /// Source: GEN-162, GEN-180..182.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto start(access::ia32_rtit_ctl value, Sink& sink) noexcept
        -> access::verdict {
        return detail::start(state_, value, sink);
    }
    /// Ends tracing before the next instruction, and appends the gathered branches. Without effect
    /// if TraceEn is 0. Source: GEN-124, GEN-183.
    template <trace::packet_sink Sink>
    constexpr void stop(Sink& sink) noexcept {
        detail::stop(state_, sink);
    }

    /// RDMSR. Source: REG-011, GEN-161.
    [[nodiscard]] constexpr auto rdmsr(msr_index index) noexcept -> access::read_result {
        return detail::rdmsr(state_, index);
    }
    /// WRMSR. It, and XRSTORS, may take time.
    ///
    /// Errors: those of `access::check_write`; nothing has changed then.
    /// Source: GEN-021, GEN-088, GEN-106, GEN-180..183.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto wrmsr(msr_write const& e, Sink& sink,
                                       action::time_within moments = {}) noexcept
        -> access::verdict {
        return detail::run_within(state_, moments, sink,
                                  [&] { return detail::wrmsr(state_, e, sink); });
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <trace::packet_sink Sink>
    [[nodiscard]] constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at,
                                         uint64_t next, Sink& sink,
                                         action::time_within moments = {}) noexcept
        -> access::xrstors_result {
        return detail::run_within(state_, moments, sink,
                                  [&] { return detail::xrstors(state_, image, at, next, sink); });
    }
    /// XRSTORS where XSTATE_BV[8] is 0. Source: REG-146.
    [[nodiscard]] constexpr auto xrstors_init(uint64_t next) noexcept -> access::xrstors_result {
        return detail::xrstors_init(state_, next);
    }

    /// Source: GEN-291, REG-090..093.
    constexpr void warm_reset(execution_context const& after, uint64_t ip) noexcept {
        detail::warm_reset(state_, after, ip);
    }
    constexpr void cold_reset(execution_context const& after, uint64_t ip) noexcept {
        detail::cold_reset(state_, after, ip);
    }

    /// Source: GEN-278.
    constexpr void conceal(vmx_concealment const& concealment) noexcept {
        state_.concealment = concealment;
    }
    /// Sets the clocks without timing packets for the time between.
    constexpr void set_clocks(clocks const& clocks) noexcept { state_.clocks = clocks; }

private:
    generator_state state_;
};

}  // namespace ptspec::engine

#undef PTSPEC_ATTRIBUTE
