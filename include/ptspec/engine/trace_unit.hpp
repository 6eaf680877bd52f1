// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/access_result.hpp>
#include <ptspec/engine/byte_queue.hpp>
#include <ptspec/engine/packets/generator.hpp>
#include <ptspec/engine/output/output.hpp>

namespace ptspec::engine {

namespace detail {

struct unit_state;

}  // namespace detail

/// A logical processor's trace unit: what the processor does goes in, packets at physical addresses,
/// status bits and interrupts come out.
///
/// A value. Memory, fabric and interrupts are ports, which are passed with each operation; see
/// `output` for what they may do. Between the packets and the memory there is a buffer of `Depth`
/// bytes, from which `model_options::drained_at_once` leave after each operation. Where it is full
/// an overflow begins.
///
/// A failing port loses and repeats nothing: what is not out stays in the buffer. `on` returns what
/// is in the way, and the operation has happened. Only what clears TraceEn waits until all is out:
/// until then the unit `is_flushing`; operations first try again and, if that fails, do nothing.
///
/// Shape:  at most 2 KB beside the buffer.
/// Source: SDM vol. 3, "Intel Processor Trace"; GEN-003, GEN-004, GEN-183, GEN-184, GEN-225..232,
///         OUT-132, PRG-061, PRG-110.
template <size_t Depth = 1024>
class trace_unit : private generator {
    static_assert(Depth >= trace::writer_state::most_bytes,
                  "the buffer holds the packets of any operation");

public:
    /// A processor behind a cold reset.
    constexpr explicit trace_unit(cpu::capabilities const& of, running const& code = {},
                                  uint64_t ip = 0, model_options const& how = {}) noexcept
        : generator{of, access::msr_state{}, code, ip, how} {}
    /// A processor in the midst of its work. Where TraceEn is 1 output begins with the first
    /// operation.
    constexpr trace_unit(cpu::capabilities const& of, access::msr_state const& msrs,
                         running const& code, uint64_t ip, model_options const& how = {}) noexcept
        : generator{of, msrs, code, ip, how},
          debt_{is_set<ctl::TraceEn>() ? debt::start : debt::nothing} {}

    using generator::calls;
    using generator::clocks_now;
    using generator::conceal;
    using generator::conceals;
    using generator::enables_now;
    using generator::events_are_traced;
    using generator::how;
    using generator::ip;
    using generator::of;
    using generator::outcome_of_load;
    using generator::overflows;
    using generator::pending;
    using generator::runs;
    using generator::set_clocks;
    using generator::why_shut_down;

    /// The MSRs, up to date.
    [[nodiscard]] constexpr auto msrs() const noexcept -> access::msr_state {
        auto now = msrs_;
        now.status = status_now();
        if (puts_out_) { output_.sync(now); }
        return now;
    }
    [[nodiscard]] constexpr auto total() const noexcept -> totals const& { return total_; }
    /// Bytes that are in the buffer.
    [[nodiscard]] constexpr auto buffered() const noexcept -> byte_queue<Depth> const& {
        return queue_;
    }
    /// True where TraceEn has fallen and bytes are not out: a port failed.
    [[nodiscard]] constexpr auto is_flushing() const noexcept -> bool {
        return debt_ == debt::flush || debt_ == debt::save;
    }
    /// The rule by which output ended by itself since TraceEn rose: none while it has not.
    [[nodiscard]] constexpr auto why_ended() const noexcept -> rule { return output_.why(); }

    /// Something happens.
    template <class Event, memory_port Memory>
        requires takes_event<generator, Event, byte_queue<Depth>>
    constexpr auto on(Event const& e, Memory& memory) noexcept -> port_fault {
        if constexpr (requires { take_quietly(e); }) {
            if (debt_ == debt::nothing && take_quietly(e)) [[likely]] {
                return queue_.empty() ? port_fault{} : done(memory);
            }
        }
        return on_with_care(e, memory);
    }
    template <class Other, class Memory>
    void on(Other const&, Memory&) = delete;  // an event is a struct of engine::event

    /// RDMSR at the privilege level of what runs. Source: REG-011, PRG-034.
    [[nodiscard]] constexpr auto rdmsr(uint32_t index) noexcept -> access::read_result {
        bool const lags = how_.msrs_lag && is_set<ctl::TraceEn>();
        if (puts_out_ && !lags) { output_.sync(msrs_); }
        return generator::rdmsr(index);
    }
    /// WRMSR by the instruction at `at`.
    template <memory_port Memory>
    constexpr auto wrmsr(uint32_t index, uint64_t value, uint64_t at, uint64_t next,
                         Memory& memory) noexcept -> access_result {
        if (auto const fault = begin(memory)) { return detail::not_begun(fault); }
        auto const outcome = generator::wrmsr(index, value, at, next, queue_);
        return detail::judged(outcome, done(memory));
    }
    /// XSAVES of component 8 by the instruction at `at`. Where a port fails nothing is stored, and
    /// TraceEn is 0; made again it stores what it would have.
    ///
    /// Source: GEN-184, REG-142, PRG-110.
    template <memory_port Memory>
    constexpr auto xsaves(uint64_t at, uint64_t next, Memory& memory) noexcept -> xsaves_result {
        bool const is_again = debt_ == debt::save;
        bool const was_on = is_again || is_set<ctl::TraceEn>();
        if (auto const fault = begin(memory)) { return {detail::not_begun(fault)}; }
        if (!is_again) {
            take({.state = access::detail::disabled(msrs_)}, at, next, queue_);
            if (auto const fault = done(memory)) {
                debt_ = debt::save;
                return {detail::not_begun(fault)};
            }
        }
        auto before = msrs_;
        if (was_on) { before.ctl = ctl_at_start_; }
        return {{}, access::xsaves(of_, before).image};
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <memory_port Memory>
    constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at, uint64_t next,
                           Memory& memory) noexcept -> xrstors_result {
        if (auto const fault = begin(memory)) { return {detail::not_begun(fault)}; }
        auto const loaded = generator::xrstors(image, at, next, queue_);
        return {detail::judged(loaded.effect.verdict, done(memory)), loaded.refused_msr,
                loaded.why_refused};
    }
    template <memory_port Memory>
    constexpr auto xrstors_init(uint64_t next, Memory& memory) noexcept -> xrstors_result {
        if (auto const fault = begin(memory)) { return {detail::not_begun(fault)}; }
        return {detail::judged(generator::xrstors_init(next).effect.verdict, {})};
    }
    /// A warm reset: what is in the buffer is lost. Source: GEN-291, REG-091..093.
    constexpr void warm_reset(running const& after, uint64_t ip) noexcept {
        msrs_ = msrs();
        generator::warm_reset(after, ip);
        stop_at_once();
    }
    constexpr void cold_reset(running const& after, uint64_t ip) noexcept {
        generator::cold_reset(after, ip);
        stop_at_once();
    }

    /// Up to `most` bytes leave the buffer, whatever the options say.
    template <memory_port Memory>
    constexpr auto drain(Memory& memory, size_t most = ~size_t{0}) noexcept -> port_fault {
        if (auto const fault = begin(memory)) { return fault; }
        return store(memory, most);
    }

private:
    friend struct detail::unit_state;

    enum class debt : uint8_t {
        nothing,
        start,  ///< TraceEn is 1, and `output_` does not know
        flush,  ///< TraceEn has fallen, and bytes are not out
        save,   ///< the same, by an XSAVES that is to be made again
    };

    output output_{};
    totals total_{};
    access::ia32_rtit_ctl ctl_at_start_{};  ///< of output; it stays so while TraceEn is 1
    bool puts_out_ = false;                 ///< `output_` has begun, and has not been told to stop
    debt debt_ = debt::nothing;
    byte_queue<Depth> queue_{};

    /// What comes before an operation.
    template <memory_port Memory>
    constexpr auto begin(Memory& memory) noexcept -> port_fault {
        return debt_ == debt::nothing ? port_fault{} : pay(memory);
    }
    template <memory_port Memory>
    constexpr auto pay(Memory& memory) noexcept -> port_fault {
        if (is_flushing()) { return flush(memory); }
        debt_ = debt::nothing;
        ctl_at_start_ = msrs_.ctl;
        (void)start(memory);  // a fault is met again when bytes are stored
        return {};
    }
    template <class Event, memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of branches
    constexpr auto
    on_with_care(Event const& e, Memory& memory) noexcept -> port_fault {
        if (auto const fault = begin(memory)) { return fault; }
        generator::on(e, queue_);
        return done(memory);
    }
    /// What comes behind an operation: bytes leave the buffer.
    template <memory_port Memory>
    constexpr auto done(Memory& memory) noexcept -> port_fault {
        if (is_set<ctl::TraceEn>() != puts_out_) [[unlikely]] { return turn(memory); }
        if (queue_.empty()) { return {}; }
        byte_view const all = queue_.front();
        if (all.size() <= how_.drained_at_once && !loses_ && output_.put_few(all)) [[likely]] {
            queue_.drop(all.size());
            total_.stored += all.size();
            return {};
        }
        return store(memory, how_.drained_at_once);
    }
    /// TraceEn has changed.
    template <memory_port Memory>
    [[gnu::noinline]]  // as above
    constexpr auto
    turn(Memory& memory) noexcept -> port_fault {
        if (puts_out_) { return flush(memory); }
        ctl_at_start_ = msrs_.ctl;
        auto const fault = start(memory);
        return fault ? fault : store(memory, how_.drained_at_once);
    }
    /// Output begins where the MSRs say.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of branches
    constexpr auto
    start(Memory& memory) noexcept -> port_fault {
        puts_out_ = true;
        auto const ctl_now = msrs_.ctl;
        msrs_.ctl = ctl_at_start_;
        // Tracing may have ended already, as it does in a TraceStop range, and its packets go out.
        bool const has_ended = !triggers() && (!queue_.empty() || loses_);
        if (has_ended) { msrs_.status = msrs_.status.with(status::TriggerEn{true}); }
        auto const fault = output_.start(of_, msrs_, memory, how_.output);
        if (has_ended) { msrs_.status = msrs_.status.with(status::TriggerEn{false}); }
        msrs_.ctl = ctl_now;
        settle();
        return fault;
    }
    /// TraceEn has fallen.
    template <memory_port Memory>
    [[gnu::noinline]]  // as above
    constexpr auto
    flush(Memory& memory) noexcept -> port_fault {
        if (!is_flushing()) { debt_ = debt::flush; }
        if (!puts_out_) {
            if (auto const fault = start(memory)) { return fault; }
        }
        if (queue_.size() <= how_.overflow_ends_at) { end_overflow(queue_); }
        if (auto const fault = store(memory, ~size_t{0})) { return fault; }
        output_.stop(msrs_);
        puts_out_ = false;
        debt_ = debt::nothing;
        return {};
    }
    template <memory_port Memory>
    [[gnu::noinline]]  // as above
    constexpr auto
    store(Memory& memory, size_t most) noexcept -> port_fault {
        bool const triggered = triggers();
        port_fault fault{};
        while (!queue_.empty() && most != 0 && !fault) {
            auto const went = output_.write(msrs_, memory, queue_.front().first(most));
            queue_.drop(went.taken);
            most -= went.taken;
            total_ += went;
            fault = went.why_not_all;
            if (queue_.size() <= how_.overflow_ends_at) { end_overflow(queue_); }
        }
        if (triggered != triggers()) { settle(); }
        return fault;
    }
    constexpr void stop_at_once() noexcept {
        total_.lost += queue_.size();
        queue_.clear();
        puts_out_ = false;
        debt_ = debt::nothing;
    }
};

}  // namespace ptspec::engine
