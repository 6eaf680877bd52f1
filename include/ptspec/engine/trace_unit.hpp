// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/access_result.hpp>
#include <ptspec/engine/byte_queue.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::engine {

namespace detail {

struct unit_codec;

}  // namespace detail

/// The trace unit of a logical processor: turns actions into packets in memory, status bits and
/// interrupts.
///
/// A value. Memory, fabric and interrupts are ports, passed with each operation; see `output` for
/// what they may do. Packets pass through a buffer of `Depth` bytes; after each operation
/// `model_options::drained_at_once` of them are stored. A full buffer begins an overflow.
///
/// If a port fails, no byte is lost or repeated: bytes that were not stored stay in the buffer.
/// `on` returns the fault, and the operation has taken effect. Only an operation that clears
/// TraceEn must store all bytes: until it has, the unit `is_flushing`, and each operation first
/// tries to store them again; if that fails the operation does not take effect.
///
/// Shape:  at most 2 KB besides the buffer.
/// Source: SDM vol. 3, "Intel Processor Trace"; GEN-003, GEN-004, GEN-183, GEN-184, GEN-225..232,
///         OUT-132, PRG-061, PRG-110.
template <size_t Depth = 1024>
class trace_unit {
    static_assert(Depth >= trace::writer_state::max_bytes,
                  "the buffer holds the packets of any operation");
    using ctl = access::ia32_rtit_ctl;

public:
    /// A processor after a cold reset. Without options it has those of its kind.
    constexpr explicit trace_unit(cpu::capabilities const& caps, execution_context const& code = {},
                                  uint64_t ip = 0) noexcept
        : trace_unit{caps, code, ip, options_of(caps)} {}
    constexpr trace_unit(cpu::capabilities const& caps, execution_context const& code, uint64_t ip,
                         model_options const& options) noexcept
        : trace_unit{caps, access::msr_state{}, code, ip, options} {}
    /// A processor that has executed for a while. If TraceEn is 1, output begins with the first
    /// operation.
    constexpr trace_unit(cpu::capabilities const& caps, access::msr_state const& msrs,
                         execution_context const& code, uint64_t ip) noexcept
        : trace_unit{caps, msrs, code, ip, options_of(caps)} {}
    constexpr trace_unit(cpu::capabilities const& caps, access::msr_state const& msrs,
                         execution_context const& code, uint64_t ip,
                         model_options const& options) noexcept
        : state_{detail::make_generator_state(caps, msrs, code, ip, options)},
          pending_{state_.ctl<ctl::TraceEn>() ? pending_action::start_output
                                              : pending_action::none} {}

    /// The state of packet generation. The output MSRs and the counters of IA32_RTIT_STATUS in it
    /// are not current: use `msrs`.
    [[nodiscard]] constexpr auto state() const noexcept -> generator_state const& { return state_; }
    /// The next instruction.
    [[nodiscard]] constexpr auto ip() const noexcept -> uint64_t { return state_.ip; }
    /// The MSRs, all current.
    [[nodiscard]] constexpr auto msrs() const noexcept -> access::msr_state {
        auto msrs = state_.msrs;
        msrs.status = detail::status_now(state_);
        if (output_active_) { output_.write_back(msrs); }
        return msrs;
    }
    [[nodiscard]] constexpr auto total() const noexcept -> totals const& { return total_; }
    /// The bytes that are not stored yet.
    [[nodiscard]] constexpr auto buffered() const noexcept -> byte_queue<Depth> const& {
        return queue_;
    }
    /// True if TraceEn was cleared and bytes are not stored yet, because a port failed.
    [[nodiscard]] constexpr auto is_flushing() const noexcept -> bool {
        return pending_ == pending_action::flush || pending_ == pending_action::save;
    }
    /// The rule by which output ended by itself since TraceEn rose; `none` if it has not.
    [[nodiscard]] constexpr auto ended_by() const noexcept -> rule { return output_.ended_by(); }

    /// Handles an action: appends its packets to the buffer, and stores bytes of the buffer.
    template <class Action, memory_port Memory>
        requires action_for<Action, byte_queue<Depth>>
    constexpr auto on(Action const& e, Memory& memory) noexcept -> port_fault {
        if constexpr (requires { detail::try_fast_path(state_, e); }) {
            // This attribute and two in `drain_after_operation`: branches are 4 % faster (g++ 12).
            if (pending_ == pending_action::none && detail::try_fast_path(state_, e)) [[likely]] {
                return queue_.empty() ? port_fault{} : drain_after_operation(memory);
            }
        }
        return on_slow_path(e, memory);
    }
    /// The same while time passes before some of the packets, as `moments` lists.
    template <class Action, memory_port Memory>
        requires action_for<Action, byte_queue<Depth>>
    constexpr auto on(Action const& e, Memory& memory, action::time_within moments) noexcept
        -> port_fault {
        if (auto const fault = complete_pending(memory); fault.happened) { return fault; }
        if constexpr (detail::may_set_trace_en<Action>) {
            starting_sink<Memory> sink{*this, memory};
            detail::generate(state_, e, moments, sink);
            return drain_after_operation(memory, sink);
        } else {
            detail::generate(state_, e, moments, queue_);
            return drain_after_operation(memory);
        }
    }
    template <class Other, class Memory>
    void on(Other const&, Memory&) = delete;  // an action is a struct of engine::action

    /// Starts tracing at the next instruction, like a WRMSR of `value`, with TraceEn = 1, directly
    /// before it: for an emulator that traces code which has no such WRMSR, such as user code.
    ///
    /// Errors: those of `access::check_write` at CPL 0; nothing has changed then.
    /// Source: GEN-162, GEN-180..182.
    template <memory_port Memory>
    constexpr auto start(access::ia32_rtit_ctl value, Memory& memory) noexcept -> access_result {
        if (auto const fault = complete_pending(memory); fault.happened) {
            return detail::not_started(fault);
        }
        starting_sink<Memory> sink{*this, memory};
        auto const verdict = detail::start(state_, value, sink);
        return detail::access_result_of(verdict, drain_after_operation(memory, sink));
    }
    /// Ends tracing before the next instruction, and stores all bytes. Without effect if TraceEn is
    /// 0. Source: GEN-124, GEN-183.
    template <memory_port Memory>
    constexpr auto stop(Memory& memory) noexcept -> port_fault {
        if (auto const fault = complete_pending(memory); fault.happened) { return fault; }
        detail::stop(state_, queue_);
        return drain_after_operation(memory);
    }

    /// RDMSR at the CPL of the code that executes. Source: REG-011, PRG-034.
    [[nodiscard]] constexpr auto rdmsr(msr_index index) noexcept -> access::read_result {
        bool const lags = state_.options.msrs_lag && state_.ctl<ctl::TraceEn>();
        if (output_active_ && !lags) { output_.write_back(state_.msrs); }
        return detail::rdmsr(state_, index);
    }
    /// WRMSR. It, XSAVES and XRSTORS may take time, as an action may.
    template <memory_port Memory>
    constexpr auto wrmsr(msr_write const& e, Memory& memory,
                         action::time_within moments = {}) noexcept -> access_result {
        if (auto const fault = complete_pending(memory); fault.happened) {
            return detail::not_started(fault);
        }
        starting_sink<Memory> sink{*this, memory};
        auto const verdict = detail::run_within(state_, moments, sink,
                                                [&] { return detail::wrmsr(state_, e, sink); });
        return detail::access_result_of(verdict, drain_after_operation(memory, sink));
    }
    /// XSAVES of component 8 by the instruction at `at`. If a port fails nothing is stored, and
    /// TraceEn is 0: retry it, and it stores what the first attempt would have stored.
    ///
    /// Source: GEN-184, REG-142, PRG-110.
    template <memory_port Memory>
    constexpr auto xsaves(uint64_t at, uint64_t next, Memory& memory,
                          action::time_within moments = {}) noexcept -> xsaves_result {
        bool const was_on = pending_ == pending_action::save || state_.ctl<ctl::TraceEn>();
        if (auto const fault = begin_save(at, next, memory, moments); fault.happened) {
            return {detail::not_started(fault)};
        }
        auto before = state_.msrs;
        if (was_on) { before.ctl = ctl_at_start_; }
        return {{}, access::xsaves(state_.caps, before).image};
    }
    /// XSAVES of component 8 by the instruction at `at` that faults, or causes a VM exit, after it
    /// cleared TraceEn: TraceEn gets its value back, and the fault is an action of its own. If a
    /// port fails before, TraceEn is 0: retry it.
    ///
    /// Source: GEN-184, REG-142, PRG-111.
    template <memory_port Memory>
    constexpr auto xsaves_that_faults(uint64_t at, Memory& memory) noexcept -> access_result {
        bool const was_on = pending_ == pending_action::save || state_.ctl<ctl::TraceEn>();
        if (auto const fault = begin_save(at, at, memory, {}); fault.happened) {
            return detail::not_started(fault);
        }
        starting_sink<Memory> sink{*this, memory};
        if (was_on) { detail::set_ctl_again(state_, ctl_at_start_, at, sink); }
        return detail::access_result_of({}, drain_after_operation(memory, sink));
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <memory_port Memory>
    constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at, uint64_t next,
                           Memory& memory, action::time_within moments = {}) noexcept
        -> xrstors_result {
        if (auto const fault = complete_pending(memory); fault.happened) {
            return {detail::not_started(fault)};
        }
        starting_sink<Memory> sink{*this, memory};
        auto const loaded = detail::run_within(
            state_, moments, sink, [&] { return detail::xrstors(state_, image, at, next, sink); });
        return {
            detail::access_result_of(loaded.effect.verdict, drain_after_operation(memory, sink)),
            loaded.violated};
    }
    /// XRSTORS where XSTATE_BV[8] is 0. Source: REG-146.
    template <memory_port Memory>
    constexpr auto xrstors_init(uint64_t next, Memory& memory) noexcept -> xrstors_result {
        if (auto const fault = complete_pending(memory); fault.happened) {
            return {detail::not_started(fault)};
        }
        return {detail::access_result_of(detail::xrstors_init(state_, next).effect.verdict, {})};
    }
    /// Executes a warm reset, which loses the bytes in the buffer. Source: GEN-291, REG-091..093.
    constexpr void warm_reset(execution_context const& after, uint64_t ip) noexcept {
        state_.msrs = msrs();
        detail::warm_reset(state_, after, ip);
        drop_buffer();
    }
    constexpr void cold_reset(execution_context const& after, uint64_t ip) noexcept {
        detail::cold_reset(state_, after, ip);
        drop_buffer();
    }

    /// Sets the controls by which a VMM conceals VMX operation. Source: GEN-278.
    constexpr void conceal(vmx_concealment const& concealment) noexcept {
        state_.concealment = concealment;
    }
    /// Sets what memory is restricted. While TraceEn is 1 the current output region is not checked
    /// again. Source: OUT-115, PRG-097.
    constexpr void change_restricted(topa::restricted_memory const& restricted) noexcept {
        state_.options.output.restricted = restricted;
        if (output_active_) { output_.change_restricted(restricted); }
    }
    /// Sets the clocks without timing packets for the time between.
    constexpr void set_clocks(clocks const& clocks) noexcept { state_.clocks = clocks; }
    /// Sets the last IP of earlier packets. TraceEn must be 0. Source: GEN-011.
    constexpr void set_last_ip(uint64_t ip) noexcept { state_.writer.last_ip = ip; }

    /// Stores up to `max_bytes` bytes of the buffer, independently of the options.
    template <memory_port Memory>
    constexpr auto drain(Memory& memory, size_t max_bytes = ~size_t{0}) noexcept -> port_fault {
        if (auto const fault = complete_pending(memory); fault.happened) { return fault; }
        return store(memory, max_bytes);
    }

private:
    friend struct detail::unit_codec;

    enum class pending_action : uint8_t {
        none,
        start_output,  ///< TraceEn is 1, and output has not begun
        flush,         ///< TraceEn was cleared, and bytes are not stored yet
        save,          ///< the same, by an XSAVES that the caller retries
    };

    /// The buffer, for an operation that may set TraceEn: output starts before packets are
    /// generated, because PADs align them to the address of the first byte. Source: GEN-010.
    template <memory_port Memory>
    struct starting_sink {
        trace_unit& unit;
        Memory& memory;
        port_fault fault{};  ///< of the start

        constexpr auto append(byte_view bytes) noexcept -> bool {
            return unit.queue_.append(bytes);
        }
        constexpr auto append(wide_bits bytes, size_t count) noexcept -> bool {
            return unit.queue_.append(bytes, count);
        }
        constexpr void begin_output() noexcept { fault = unit.begin_output(memory); }
    };

    generator_state state_;
    output output_{};
    totals total_{};
    access::ia32_rtit_ctl ctl_at_start_{};  ///< when output began; constant while TraceEn is 1
    bool output_active_ = false;            ///< `output_` was started, and not stopped
    pending_action pending_ = pending_action::none;
    byte_queue<Depth> queue_{};

    /// Handles an action after what is pending.
    ///
    /// noinline: inlined, branches take 12 % more instructions (g++ 12).
    template <class Action, memory_port Memory>
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto on_slow_path(Action const& e, Memory& memory) noexcept -> port_fault {
        if (auto const fault = complete_pending(memory); fault.happened) { return fault; }
        if constexpr (detail::may_set_trace_en<Action>) {
            starting_sink<Memory> sink{*this, memory};
            detail::generate(state_, e, sink);
            return drain_after_operation(memory, sink);
        } else {
            detail::generate(state_, e, queue_);
            return drain_after_operation(memory);
        }
    }
    /// The same after an operation that may have started output.
    template <memory_port Memory>
    constexpr auto drain_after_operation(Memory& memory, starting_sink<Memory> const& sink) noexcept
        -> port_fault {
        return sink.fault.happened ? sink.fault : drain_after_operation(memory);
    }
    /// Stores bytes after an operation, and starts or ends output if TraceEn changed.
    template <memory_port Memory>
    constexpr auto drain_after_operation(Memory& memory) noexcept -> port_fault {
        if (state_.ctl<ctl::TraceEn>() != output_active_) [[unlikely]] {
            return on_trace_en_changed(memory);
        }
        if (queue_.empty()) { return {}; }
        byte_view const all = queue_.front();
        if (all.size() <= state_.options.drained_at_once && !state_.in_overflow &&
            output_.put_few(all)) [[likely]] {
            queue_.drop(all.size());
            total_.stored += all.size();
            return {};
        }
        return store(memory, state_.options.drained_at_once);
    }
    template <memory_port Memory>
    constexpr auto store(Memory& memory, size_t max_bytes) noexcept -> port_fault {
        bool const was_triggered = state_.trigger_en();
        port_fault fault{};
        while (!queue_.empty() && max_bytes != 0 && !fault.happened) {
            auto const result = output_.write(state_.msrs, memory, queue_.front().first(max_bytes));
            queue_.drop(result.taken);
            max_bytes -= result.taken;
            total_ += result;
            fault = result.fault;
            end_overflow_if_drained();
        }
        if (was_triggered != state_.trigger_en()) { detail::refresh_cache(state_); }
        return fault;
    }
    constexpr void end_overflow_if_drained() noexcept {
        if (queue_.size() <= state_.options.overflow_ends_at) {
            detail::end_overflow(state_, queue_);
        }
    }

    // -------------------------------------------------------------- TraceEn rises and falls

    /// Clears TraceEn as XSAVES at `at` does, and stores all bytes. Complete if no port fails.
    template <memory_port Memory>
    constexpr auto begin_save(uint64_t at, uint64_t next, Memory& memory,
                              action::time_within moments) noexcept -> port_fault {
        bool const is_repeated = pending_ == pending_action::save;
        if (auto const fault = complete_pending(memory); fault.happened) { return fault; }
        if (is_repeated) { return {}; }
        (void)detail::run_within(state_, moments, queue_, [&] {
            detail::apply_effect(state_, {.state = access::disabled(state_.msrs)}, at, next,
                                 queue_);
            return true;
        });
        auto const fault = drain_after_operation(memory);
        if (fault.happened) { pending_ = pending_action::save; }
        return fault;
    }

    /// Completes the pending action of an earlier operation.
    template <memory_port Memory>
    constexpr auto complete_pending(Memory& memory) noexcept -> port_fault {
        return pending_ == pending_action::none ? port_fault{} : run_pending(memory);
    }
    template <memory_port Memory>
    constexpr auto run_pending(Memory& memory) noexcept -> port_fault {
        if (is_flushing()) { return flush(memory); }
        pending_ = pending_action::none;
        ctl_at_start_ = state_.msrs.ctl;
        (void)start_output(memory);  // storing bytes reports the same fault again
        align_after_buffer();
        return {};
    }
    /// Begins or ends output after TraceEn has changed.
    ///
    /// noinline: inlined, branches take 2 % more instructions (g++ 12).
    template <memory_port Memory>
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto on_trace_en_changed(Memory& memory) noexcept -> port_fault {
        if (output_active_) { return flush(memory); }
        ctl_at_start_ = state_.msrs.ctl;
        raise_preserved_pmi(memory);
        auto const fault = start_output(memory);
        return fault.happened ? fault : store(memory, state_.options.drained_at_once);
    }
    /// TraceEn rose, and packets are generated next: starts output. If the port cannot read the
    /// entry, OutputOffset decides where they begin. A fabric has no address, nor has output that
    /// an error ended: packets begin at a multiple. Source: GEN-010.
    template <memory_port Memory>
    constexpr auto begin_output(Memory& memory) noexcept -> port_fault {
        using pointers = access::ia32_rtit_output_mask_ptrs;
        if (output_active_) {  // TraceEn fell and rose within the operation
            align_after_buffer();
            return {};
        }
        ctl_at_start_ = state_.msrs.ctl;
        raise_preserved_pmi(memory);
        auto const fault = start_output(memory, !state_.trigger_en());
        auto const first = output_.next_address();
        uint64_t const offset = state_.msrs.output.mask_ptrs.get<pointers::OutputOffset>();
        detail::count_from_address(state_, first ? first.value.value : fault.happened ? offset : 0);
        return fault;
    }
    /// Aligns the next packet by the address at which it will be stored, if that is known.
    constexpr void align_after_buffer() noexcept {
        auto const next = output_.next_address();
        if (next) { detail::align_to_address(state_, next.value.value + queue_.size()); }
    }
    /// Raises the PMI that enabling pends: `access` has set the bit of IA32_PERF_GLOBAL_STATUS.
    /// Source: OUT-086, OUT-089.
    template <memory_port Memory>
    constexpr void raise_preserved_pmi(Memory& memory) noexcept {
        if (!access::pends_preserved_pmi(state_.caps, state_.msrs)) { return; }
        ++total_.pmis;
        if constexpr (memory_port_members<Memory>::has_raise) { memory.raise(); }
    }
    template <memory_port Memory>
    constexpr auto start_output(Memory& memory, bool stops_at_once = false) noexcept -> port_fault {
        using status = access::ia32_rtit_status;
        output_active_ = true;
        auto& msrs = state_.msrs;
        auto const ctl_now = msrs.ctl;
        msrs.ctl = ctl_at_start_;
        // Tracing may have ended already, as in a TraceStop range; its packets are still stored.
        bool const has_ended = stops_at_once ||
                               (!state_.trigger_en() && (!queue_.empty() || state_.in_overflow));
        if (has_ended) { msrs.status = msrs.status.with(status::TriggerEn{true}); }
        auto const fault = output_.start(state_.caps, msrs, memory, state_.options.output);
        if (has_ended) { msrs.status = msrs.status.with(status::TriggerEn{false}); }
        msrs.ctl = ctl_now;
        detail::refresh_cache(state_);
        return fault;
    }
    /// Stores all bytes and ends output, after TraceEn was cleared.
    template <memory_port Memory>
    constexpr auto flush(Memory& memory) noexcept -> port_fault {
        if (!is_flushing()) { pending_ = pending_action::flush; }
        if (!output_active_) {
            if (auto const fault = start_output(memory); fault.happened) { return fault; }
        }
        end_overflow_if_drained();
        if (auto const fault = store(memory, ~size_t{0}); fault.happened) { return fault; }
        output_.stop(state_.msrs);
        output_active_ = false;
        pending_ = pending_action::none;
        return {};
    }
    constexpr void drop_buffer() noexcept {
        total_.lost += queue_.size();
        queue_.clear();
        output_active_ = false;
        pending_ = pending_action::none;
    }
};

}  // namespace ptspec::engine

#undef PTSPEC_ATTRIBUTE
