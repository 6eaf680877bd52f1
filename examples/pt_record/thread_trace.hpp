// SPDX-License-Identifier: BSL-1.0
#pragma once

// The trace of one thread: from executed blocks of instructions to packets in a file.

#include "recording.hpp"

#include <ptspec/engine/packets/generator.hpp>
#include <ptspec/ports/growing_file.hpp>
#include <ptspec/x86/decode.hpp>
#include <ptspec/x86/event.hpp>

#include <cstdint>

namespace pt_record {

namespace event = ptspec::engine::event;
using x86::instruction_class;

/// What may distinguish the beginning of a block from that of most.
enum class rare_case : std::uint8_t {
    handler = 1,  ///< the address of a signal handler
    changed = 2,  ///< other code was executed at the same addresses
    restart = 4,  ///< QEMU may continue with it within another block
};

/// Instructions that execute in sequence; only the last one can branch. Each execution reads the
/// members up to `end`, so they share a cache line.
struct alignas(64) code_block {
    std::uint64_t first = 0;  ///< the address of the first instruction
    x86::successors after{};  ///< of the last instruction
    /// The block may end before its last instruction, which crosses a page: QEMU 7.2 lists it, too.
    bool last_may_not_run = false;
    std::uint8_t cases = 0;   ///< a set of `rare_case`
    std::uint32_t count = 0;  ///< the number of instructions
    x86::execution end{};     ///< the last instruction

    [[nodiscard]] auto has(rare_case which) const -> bool {
        return (cases & static_cast<std::uint8_t>(which)) != 0;
    }
    void set(rare_case which) { cases |= static_cast<std::uint8_t>(which); }
    [[nodiscard]] auto holds(std::uint64_t ip) const -> bool { return first <= ip && ip <= end.at; }
};

/// A block of one instruction, or of the last one of several.
inline void end_block(code_block& to, x86::decoded const& last, std::uint64_t at, std::size_t size,
                      x86::code_width width = x86::code_width::bits_64) {
    to.end = {.what = last.what, .at = at, .after = {.width = width}};
    if (!last) { to.end.what.length = static_cast<std::uint8_t>(size); }
    to.after = x86::successors_of(to.end.what, at, width);
}

/// True for an instruction after which the kernel executes.
[[nodiscard]] constexpr auto enters_kernel(instruction_class of) -> bool {
    return of == instruction_class::syscall || of == instruction_class::sysenter ||
           of == instruction_class::software_interrupt;
}

/// A signal as the thread sees it: execution was interrupted at `at`, and continues at `to`.
struct delivered_signal {
    std::uint64_t at = 0;
    std::uint64_t to = 0;
    bool is_fault = false;  ///< of the instruction at `at`
    std::uint8_t vector = 0;
    std::uint64_t cr2 = 0;
};

/// The number and the hash of the instructions that a thread executed: FNV-1a over their addresses
/// as 64-bit words, as a decoder finds them. A string instruction with REP counts once, however
/// often it repeats; an instruction that was interrupted or raised a fault, and INT n, do not.
class instruction_log {
public:
    /// An instruction begins.
    void add(std::uint64_t ip, bool repeats) {
        if (last_repeats_ && repeats && last_ == ip) { return; }
        complete_last();
        last_ = ip;
        last_repeats_ = repeats;
        has_last_ = true;
    }
    /// A signal interrupted the thread before the instruction at `ip`, or within it.
    void interrupt(std::uint64_t ip, bool is_fault) {
        if (last_ == ip && (is_fault || last_repeats_)) { drop_last(); }
    }
    /// The last instruction did not execute.
    void drop_last() { has_last_ = last_repeats_ = false; }
    [[nodiscard]] auto write(char const* path) -> bool {
        complete_last();
        std::FILE* const to = std::fopen(path, "we");
        if (to == nullptr) { return false; }
        std::fprintf(to, "instructions %llu hash %016llx\n",
                     static_cast<unsigned long long>(count_),
                     static_cast<unsigned long long>(hash_));
        return std::fclose(to) == 0;
    }

private:
    void complete_last() {
        if (!has_last_) { return; }
        has_last_ = false;
        ++count_;
        hash_ = (hash_ ^ last_) * 0x100'0000'01B3;
    }

    std::uint64_t count_ = 0;
    std::uint64_t hash_ = 0xCBF2'9CE4'8422'2325;
    std::uint64_t last_ = 0;
    bool has_last_ = false;
    bool last_repeats_ = false;
};

class thread_trace {
public:
    /// Starts the trace of a thread that executes at `ip`. The file was created.
    void start(settings const& how, std::uint64_t ip) {
        using ctl = reg::ia32_rtit_ctl;
        auto const of = recording_processor();
        auto const value = how.msrs.ctl;
        is_timed_ = value.get<ctl::TSCEn>() || value.get<ctl::MTCEn>() || value.get<ctl::CYCEn>();
        has_cyc_ = value.get<ctl::CYCEn>();
        ticks_per_art_ = of.leaf_15_ebx.raw / of.leaf_15_eax.raw;
        ticks_between_ = value.get<ctl::MTCEn>() ? ticks_per_art_ << value.get<ctl::MTCFreq>()
                                                 : tsc_mhz;
        unit_ = engine::generator{of, how.state(), user_code, ip, how.options()};
        if (is_timed_) {
            tsc_ = host_nanoseconds() * tsc_mhz / 1000;
            report_at_ = 0;
            unit_.set_clocks({.art = tsc_ / ticks_per_art_, .tsc = tsc_, .tsc_at_edge = tsc_});
        }
        (void)unit_.start(value, file);
    }
    /// Starts again after `finish_in_kernel`.
    void restart(settings const& how, std::uint64_t ip) {
        on(event::far_transfer{0, ip, user_code});
        (void)unit_.start(how.msrs.ctl, file);
    }

    /// The block has executed, or a part of it if `signal` interrupted it, and the instruction at
    /// `to` is the next.
    [[gnu::always_inline]] void run(code_block const& block, std::uint64_t to) {
        pass(block);
        if (x86::take_near_event(block.after, to, [this](auto const& one) { on(one); }))
            [[likely]] {
            return;
        }
        run_rarely(block, to);
    }
    /// The block has executed, or a part of it, and a signal interrupted it.
    void run(code_block const& block, delivered_signal const& signal) {
        auto const which = block.end.what.which;
        if (enters_kernel(which) &&
            !(signal.is_fault && signal.at != block.end.at && block.holds(signal.at))) {
            pass(block);
            return visit_kernel(block, signal.to);
        }
        if (signal.is_fault && block.holds(signal.at)) {
            pass(block);  // counts the whole block: an upper bound
        } else {
            run(block, signal.at);
        }
        deliver(signal);
    }
    /// A signal interrupted the thread between two blocks.
    void deliver(delivered_signal const& signal) {
        using enum event::kernel_visit::reason;
        visit_kernel(signal, signal.is_fault ? exception : interrupt);
    }
    /// Code has changed: shows an interrupt before the instruction at `ip`.
    void mark(std::uint64_t ip) { deliver({.at = ip, .to = ip}); }
    /// The thread ends before the instruction at `ip`.
    void finish_at(std::uint64_t ip) {
        on(event::sequential{ip});
        unit_.stop(file);
    }
    /// The thread ends in a system call.
    void finish_in_kernel(code_block const& block) {
        pass(block);
        on(event::kernel_visit{.at = block.end.at, .returns = false});
        unit_.stop(file);
    }

    [[nodiscard]] auto instructions() const -> std::uint64_t { return instructions_; }

    ports::growing_file file{};
    std::uint64_t unexplained = 0;  ///< transfers whose reason is not known

private:
    static constexpr engine::execution_context user_code{.cpl = 3, .IF = true};

    template <class Event>
    void on(Event const& one) {
        unit_.on(one, file);
    }
    /// The same for all but near branches.
    [[gnu::noinline]] void run_rarely(code_block const& block, std::uint64_t to) {
        auto const& end = block.end;
        auto const which = end.what.which;
        if (enters_kernel(which)) { return visit_kernel(block, to); }
        x86::execution now = end;
        now.to = to;
        if (x86::leads_on(now)) [[likely]] {
            x86::take_event(now, [this](auto const& one) { on(one); });
            return;
        }
        if (block.last_may_not_run && to == end.at) { return on(event::sequential{to}); }
        // The reason is unknown. The trace shows an exception at the last instruction.
        ++unexplained;
        visit_kernel({.at = end.at, .to = to, .is_fault = true},
                     event::kernel_visit::reason::exception);
    }
    void pass(code_block const& block) {
        instructions_ += block.count;
        if (is_timed_) [[unlikely]] { pass_time(block.count); }
    }
    [[gnu::noinline]] void pass_time(std::uint64_t cycles) {
        tsc_ += cycles;
        cycles_ += cycles;
        if (has_cyc_ || tsc_ >= report_at_) { report_time(); }
    }
    void report_time() {
        on(event::time{cycles_, tsc_ / ticks_per_art_, tsc_});
        cycles_ = 0;
        report_at_ = tsc_ - tsc_ % ticks_between_ + ticks_between_;
    }
    void visit_kernel(code_block const& block, std::uint64_t to) {
        using enum event::kernel_visit::reason;
        bool const is_interrupt = block.end.what.which == instruction_class::software_interrupt;
        visit_kernel({.at = block.end.at, .to = to, .vector = block.end.what.vector},
                     is_interrupt ? exception : system_call);
    }
    [[gnu::noinline]] void visit_kernel(delivered_signal const& of,
                                        event::kernel_visit::reason why) {
        event::kernel_visit visit{
            .at = of.at, .to = of.to, .why = why, .vector = of.vector, .cr2 = of.cr2};
        if (!is_timed_) { return on(visit); }
        // Time passes in the kernel.
        visit.returns = false;
        on(visit);
        std::uint64_t const now = host_nanoseconds() * tsc_mhz / 1000;
        bool const waits = now > tsc_ + 4 * ticks_between_;
        if (waits) {  // the processor is idle meanwhile
            report_time();
            on(event::halt{});
        } else if (now > tsc_) {
            cycles_ += now - tsc_;
        }
        tsc_ = now > tsc_ ? now : tsc_;
        report_time();
        if (waits) { on(event::wake{.reason = event::wake_reason::interrupt}); }
        on(event::far_transfer{0, of.to, user_code});
    }

    engine::generator unit_{{}, {}, {}, 0};
    std::uint64_t instructions_ = 0;
    bool is_timed_ = false;
    bool has_cyc_ = false;
    std::uint64_t tsc_ = 0;
    std::uint64_t cycles_ = 0;     ///< that passed since the last report
    std::uint64_t report_at_ = 0;  ///< the time-stamp counter at the next report
    std::uint64_t ticks_per_art_ = 1;
    std::uint64_t ticks_between_ = 1;
};

}  // namespace pt_record
