// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/byte_queue.hpp>
#include <ptspec/engine/generator.hpp>
#include <ptspec/engine/output.hpp>

namespace ptspec::engine {

/// What an access did. A `fault` is that of a port, as `trace_unit::on` returns it.
struct [[nodiscard]] access_done {
    access::verdict outcome{};
    port_fault fault{};

    constexpr explicit operator bool() const noexcept { return outcome && !fault; }
};
/// What XSAVES stored.
struct [[nodiscard]] xsaves_done {
    access::xsave_pt_state image{};  ///< only without a fault
    port_fault fault{};

    constexpr explicit operator bool() const noexcept { return !fault; }
};
/// What XRSTORS did.
struct [[nodiscard]] xrstors_done {
    access::xrstors_result outcome{};
    port_fault fault{};

    constexpr explicit operator bool() const noexcept { return outcome && !fault; }
};

/// How many bytes went where since the unit was made.
struct totals {
    uint64_t stored = 0;
    uint64_t lost = 0;
    uint64_t pmis = 0;  ///< interrupts that were raised

    friend constexpr auto operator==(totals const&, totals const&) -> bool = default;
};

/// A logical processor's trace unit: what the processor does goes in, packets at physical addresses,
/// status bits and interrupts come out.
///
/// A value. Memory, fabric and interrupts are ports, which are passed with each operation; see
/// `output` for what they may do. Between the packets and the memory there is a buffer of `Depth`
/// bytes, from which `model_options::drained_at_once` leave after each operation. Where it is full
/// an overflow begins.
///
/// A failing port loses and repeats nothing: what is not out stays in the buffer. `on` returns what
/// is in the way, and the operation has happened. There is one exception: what clears TraceEn is
/// complete only when all bytes are out. Until then every operation first tries again and, where that
/// fails, does nothing.
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
        : generator{of, msrs, code, ip, how} {}

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
    [[nodiscard]] constexpr auto msrs() noexcept -> access::msr_state const& {
        sync();
        return msrs_;
    }
    [[nodiscard]] constexpr auto total() const noexcept -> totals const& { return total_; }
    /// Bytes that are in the buffer.
    [[nodiscard]] constexpr auto buffered() const noexcept -> byte_queue<Depth> const& {
        return queue_;
    }
    /// The rule by which output ended by itself since TraceEn rose: none while it has not.
    [[nodiscard]] constexpr auto why_ended() const noexcept -> rule { return output_.why(); }

    /// Something happens.
    template <class Event, memory_port Memory>
        requires requires(generator& to, Event const& e, byte_queue<Depth>& sink) {
            to.on(e, sink);
        }
    constexpr auto on(Event const& e, Memory& memory) noexcept -> port_fault {
        if (owes_flush_) [[unlikely]] {
            if (auto const fault = flush(memory)) { return fault; }
        }
        generator::on(e, queue_);
        return done(memory);
    }

    /// RDMSR at the privilege level of what runs.
    [[nodiscard]] constexpr auto rdmsr(uint32_t index) noexcept -> access::read_result {
        sync();
        return generator::rdmsr(index);
    }
    /// WRMSR by the instruction at `at`.
    template <memory_port Memory>
    constexpr auto wrmsr(uint32_t index, uint64_t value, uint64_t at, uint64_t next,
                         Memory& memory) noexcept -> access_done {
        if (auto const fault = begin(memory)) { return {{}, fault}; }
        auto const outcome = generator::wrmsr(index, value, at, next, queue_);
        return {outcome, done(memory)};
    }
    /// XSAVES of component 8 by the instruction at `at`. Where a port fails it has not happened, but
    /// for the packets; made again it stores what it would have.
    ///
    /// Source: GEN-184, REG-142, PRG-110.
    template <memory_port Memory>
    constexpr auto xsaves(uint64_t at, uint64_t next, Memory& memory) noexcept -> xsaves_done {
        if (!owes_flush_) {
            sync();
            saved_ctl_ = msrs_.ctl;
            take({.state = access::detail::disabled(msrs_)}, at, next, queue_);
            if (auto const fault = done(memory)) { return {{}, fault}; }
        } else if (auto const fault = flush(memory)) {
            return {{}, fault};
        }
        auto before = msrs_;
        before.ctl = saved_ctl_;
        return {access::xsaves(of_, before).image, {}};
    }
    /// XRSTORS of component 8. Source: GEN-184, REG-143..146.
    template <memory_port Memory>
    constexpr auto xrstors(access::xsave_pt_state const& image, uint64_t at, uint64_t next,
                           Memory& memory) noexcept -> xrstors_done {
        if (auto const fault = begin(memory)) { return {{}, fault}; }
        auto const outcome = generator::xrstors(image, at, next, queue_);
        return {outcome, done(memory)};
    }
    template <memory_port Memory>
    constexpr auto xrstors_init(uint64_t next, Memory& memory) noexcept -> xrstors_done {
        if (auto const fault = begin(memory)) { return {{}, fault}; }
        return {generator::xrstors_init(next), {}};
    }
    /// A warm reset: what is in the buffer is lost. Source: GEN-291, REG-091..093.
    constexpr void warm_reset(running const& after, uint64_t ip) noexcept {
        sync();
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
        if (is_set<ctl::TraceEn>() && !puts_out_) { return start(memory); }
        return store(memory, most);
    }

private:
    output output_{};
    totals total_{};
    access::ia32_rtit_ctl saved_ctl_{};  ///< by an XSAVES that is not complete
    bool puts_out_ = false;              ///< TraceEn was 1 when `output_` was last told
    bool owes_flush_ = false;            ///< TraceEn has fallen, and bytes are not out
    byte_queue<Depth> queue_{};

    constexpr void sync() noexcept {
        sync_status();
        if (puts_out_) { output_.sync(msrs_); }
    }
    template <memory_port Memory>
    constexpr auto begin(Memory& memory) noexcept -> port_fault {
        return owes_flush_ ? flush(memory) : port_fault{};
    }
    /// An operation is done: bytes leave the buffer.
    template <memory_port Memory>
    constexpr auto done(Memory& memory) noexcept -> port_fault {
        if (is_set<ctl::TraceEn>() != puts_out_) [[unlikely]] {
            return puts_out_ ? flush(memory) : start(memory);
        }
        if (queue_.empty() && !loses_) [[likely]] { return {}; }
        return store(memory, how_.drained_at_once);
    }
    /// TraceEn has risen.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of branches
    constexpr auto
    start(Memory& memory) noexcept -> port_fault {
        puts_out_ = true;
        // Tracing that began in a TraceStop range has ended already, and its packets go out.
        bool const has_ended = !triggers() && !queue_.empty();
        if (has_ended) { msrs_.status = msrs_.status.with(status::TriggerEn{true}); }
        auto const fault = output_.start(of_, msrs_, memory, how_.output);
        if (has_ended) { msrs_.status = msrs_.status.with(status::TriggerEn{false}); }
        settle();
        return fault ? fault : store(memory, how_.drained_at_once);
    }
    /// TraceEn has fallen.
    template <memory_port Memory>
    [[gnu::noinline]]  // as above
    constexpr auto
    flush(Memory& memory) noexcept -> port_fault {
        owes_flush_ = true;
        if (queue_.size() <= how_.overflow_ends_at) { end_overflow(queue_); }
        if (auto const fault = store(memory, ~size_t{0})) { return fault; }
        output_.stop(msrs_);
        owes_flush_ = puts_out_ = false;
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
            total_.stored += went.stored;
            total_.lost += went.lost;
            total_.pmis += went.pmis;
            fault = went.why_not_all;
            if (queue_.size() <= how_.overflow_ends_at) { end_overflow(queue_); }
        }
        if (triggered != triggers()) { settle(); }
        return fault;
    }
    constexpr void stop_at_once() noexcept {
        total_.lost += queue_.size();
        queue_.clear();
        auto unused = msrs_;
        output_.stop(unused);
        puts_out_ = owes_flush_ = false;
    }
};

}  // namespace ptspec::engine
