// SPDX-License-Identifier: BSL-1.0
#pragma once

// The trace of one thread: from executed blocks of instructions to packets in a file.

#include "../common/code_block.hpp"
#include "../common/recorded/recording.hpp"

#include <ptspec/engine/generator.hpp>
#include <ptspec/ports/growing_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace pt_record {

namespace action = ptspec::engine::action;
using x86::instruction_class;

/// What may distinguish the beginning of a block from that of most.
enum class rare_case : std::uint8_t {
    handler = 1,  ///< the address of a signal handler
    changed = 2,  ///< other code was executed at the same addresses
    restart = 4,  ///< QEMU may continue with it within another block
    check = 8,    ///< a log is written
};

/// What a block of user code has beside its instructions.
struct block_notes {
    std::uint64_t record = 0;  ///< where the journal has its code: see `begun_block`
    bool is_part = false;      ///< of a block, up to an instruction that raised a fault
    std::uint8_t cases = 0;    ///< a set of `rare_case`

    [[nodiscard]] auto has(rare_case which) const -> bool {
        return (cases & static_cast<std::uint8_t>(which)) != 0;
    }
    void set(rare_case which) { cases |= static_cast<std::uint8_t>(which); }
};
using code_block = emulated::code_block<block_notes>;

/// The context of all user code, but for its width.
inline constexpr engine::execution_context user_code{.cpl = 3, .IF = true};

/// The instructions of a block before the one at `end`, which raised a fault.
inline auto part_of_block(byte_view code, std::uint64_t first, std::uint64_t end) -> code_block {
    auto made = emulated::block_of<block_notes>(code.first(end - first), first, user_code);
    made.is_part = true;
    return made;
}

/// True for an instruction after which the kernel executes.
[[nodiscard]] constexpr auto enters_kernel(instruction_class of) -> bool {
    return of == instruction_class::syscall || of == instruction_class::sysenter ||
           of == instruction_class::software_interrupt;
}

/// True in the page of vsyscalls, which raises a fault: the kernel executes them, and returns.
[[nodiscard]] constexpr auto is_emulated(std::uint64_t ip) -> bool {
    return ip >> 12 == 0xF'FFFF'FFFF'F600;
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
    /// Returns errno, or 0. A file that is not complete is removed.
    [[nodiscard]] auto write(char const* path) -> int {
        complete_last();
        std::FILE* const to = std::fopen(path, "we");
        if (to == nullptr) { return errno; }
        std::fprintf(to, "instructions %llu hash %016llx\n",
                     static_cast<unsigned long long>(count_),
                     static_cast<unsigned long long>(hash_));
        if (std::fclose(to) == 0) { return 0; }
        int const error = errno;
        (void)::unlink(path);
        return error;
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

/// The state of a trace: a value without pointers.
struct trace_state {
    engine::generator unit{{}, {}, {}, 0};
    std::uint64_t instructions = 0;
    std::uint64_t unexplained = 0;                     ///< transfers whose reason is not known
    x86::code_width width = x86::code_width::bits_64;  ///< of the code that is next
    bool is_timed = false;
    bool has_cyc = false;
    std::uint64_t tsc = 0;
    std::uint64_t cycles = 0;     ///< that passed since the last report
    std::uint64_t report_at = 0;  ///< the time-stamp counter at the next report
    std::uint64_t ticks_per_art = 1;
    std::uint64_t ticks_between = 1;
};

/// The trace of a thread in a file.
class thread_trace {
public:
    /// Starts the trace of a thread that executes at `ip`, in code of this width. The file was
    /// created.
    void start(settings const& how, std::uint64_t ip,
               x86::code_width width = x86::code_width::bits_64) {
        using ctl = reg::ia32_rtit_ctl;
        auto const of = recording_processor();
        auto const value = how.msrs.ctl;
        state.is_timed = value.get<ctl::TSCEn>() || value.get<ctl::MTCEn>() ||
                         value.get<ctl::CYCEn>();
        state.has_cyc = value.get<ctl::CYCEn>();
        state.ticks_per_art = of.leaf_15_ebx.raw / of.leaf_15_eax.raw;
        state.ticks_between = value.get<ctl::MTCEn>()
                                  ? state.ticks_per_art << value.get<ctl::MTCFreq>()
                                  : tsc_mhz;
        auto code = user_code;
        code.width = width;
        state.width = width;
        state.unit = engine::generator{of, how.state(), code, ip, how.options()};
        if (state.is_timed) {
            state.tsc = host_nanoseconds() * tsc_mhz / 1000;
            state.report_at = 0;
            state.unit.set_clocks({.art = state.tsc / state.ticks_per_art,
                                   .tsc = state.tsc,
                                   .tsc_at_edge = state.tsc});
        }
        (void)state.unit.start(value, file);
    }
    /// Starts again after `finish_in_kernel`.
    void restart(settings const& how, std::uint64_t ip) {
        on(action::far_transfer{0, ip, user_code});
        (void)state.unit.start(how.msrs.ctl, file);
    }

    /// The block has executed, or a part of it if `signal` interrupted it, and the instruction at
    /// `to` is the next.
    [[gnu::always_inline]] void run(code_block const& block, std::uint64_t to) {
        pass(block);
        if (simulate::take_near_action(block.after, to, [this](auto const& one) { on(one); }))
            [[likely]] {
            return;
        }
        run_rarely(block, to);
    }
    /// The block has executed, and a signal interrupted it. If the signal is a fault in the block,
    /// `block` ends before the instruction that raised it.
    void run(code_block const& block, delivered_signal const& signal) {
        if (enters_kernel(block.end.instruction.kind) && !is_within(signal, block)) {
            pass(block);
            return visit_kernel(block, signal.to);
        }
        if (is_within(signal, block)) {
            pass(block);
        } else {
            run_to_signal(block, signal.at);
        }
        deliver(signal);
    }
    /// Passes over a part of a block, which has executed. The rest of the block follows.
    void run_part(code_block const& part) { pass(part); }
    /// A signal interrupted the thread between two blocks.
    void deliver(delivered_signal const& signal) {
        using enum action::kernel_visit::reason;
        visit_kernel(signal, signal.is_fault ? exception : interrupt);
    }
    /// Shows that code has changed, by an interrupt before the instruction at `ip`.
    void mark(std::uint64_t ip) { deliver({.at = ip, .to = ip}); }
    /// The thread ends before the instruction at `ip`, in a kernel that interrupted it.
    void finish_at(std::uint64_t ip) {
        on(action::kernel_visit{
            .at = ip, .cause = action::kernel_visit::reason::interrupt, .returns = false});
        state.unit.stop(file);
    }
    /// The thread ends in the kernel, which the last instruction of the block called.
    void finish_in_kernel(code_block const& block) {
        pass(block);
        on(action::kernel_visit{.at = block.end.at,
                                .cause = reason_of(block),
                                .vector = block.end.instruction.vector,
                                .returns = false});
        state.unit.stop(file);
    }
    /// The thread ends by a signal whose handler does not execute. As `run` with a signal.
    void finish_by(code_block const& block, delivered_signal const& signal) {
        using enum action::kernel_visit::reason;
        if (enters_kernel(block.end.instruction.kind) && !is_within(signal, block)) {
            return finish_in_kernel(block);
        }
        if (is_within(signal, block)) {
            pass(block);
        } else {
            run_to_signal(block, signal.at);
        }
        on(action::kernel_visit{.at = signal.at,
                                .cause = signal.is_fault ? exception : interrupt,
                                .vector = signal.vector,
                                .cr2 = signal.cr2,
                                .returns = false});
        state.unit.stop(file);
    }

    [[nodiscard]] auto instructions() const -> std::uint64_t { return state.instructions; }

    ports::growing_file file{};
    trace_state state{};

private:
    template <class Event>
    void on(Event const& one) {
        state.unit.on(one, file);
    }
    /// True if the signal is a fault of an instruction of the block, or of the one after a part.
    [[nodiscard]] static auto is_within(delivered_signal const& signal, code_block const& block)
        -> bool {
        return signal.is_fault && (block.holds(signal.at) || block.is_part);
    }
    [[nodiscard]] static auto reason_of(code_block const& block) -> action::kernel_visit::reason {
        using enum action::kernel_visit::reason;
        bool const is_interrupt = block.end.instruction.kind ==
                                  instruction_class::software_interrupt;
        return is_interrupt ? exception : system_call;
    }
    /// The code that a signal interrupts has the width of the block; its handler may have another.
    void run_to_signal(code_block const& block, std::uint64_t at) {
        auto const after = state.width;
        state.width = block.end.after.width;
        run(block, at);
        // A string instruction that was interrupted is not complete.
        if (block.end.instruction.repeats && at == block.end.at) { --state.instructions; }
        state.width = after;
    }
    /// The same for all but near branches.
    [[gnu::noinline]] void run_rarely(code_block const& block, std::uint64_t to) {
        auto const& end = block.end;
        auto const which = end.instruction.kind;
        if (enters_kernel(which)) { return visit_kernel(block, to); }
        simulate::execution now = end;
        now.to = to;
        if (simulate::leads_on(now)) [[likely]] {
            now.after.width = state.width;
            simulate::take_action(now, [this](auto const& one) { on(one); });
            return;
        }
        if (is_emulated(end.at)) {
            return visit_kernel({.at = end.at, .to = to, .is_fault = true},
                                action::kernel_visit::reason::exception);
        }
        if (block.last_may_not_run && to == end.at) { return on(action::sequential{to}); }
        // The reason is unknown. The trace shows an exception at the last instruction.
        ++state.unexplained;
        visit_kernel({.at = end.at, .to = to, .is_fault = true},
                     action::kernel_visit::reason::exception);
    }
    void pass(code_block const& block) {
        state.instructions += block.count;
        if (state.is_timed) [[unlikely]] { pass_time(block.count); }
    }
    [[gnu::noinline]] void pass_time(std::uint64_t cycles) {
        state.tsc += cycles;
        state.cycles += cycles;
        if (state.has_cyc || state.tsc >= state.report_at) { report_time(); }
    }
    void report_time() {
        on(action::elapsed{state.cycles, state.tsc / state.ticks_per_art, state.tsc});
        state.cycles = 0;
        state.report_at = state.tsc - state.tsc % state.ticks_between + state.ticks_between;
    }
    void visit_kernel(code_block const& block, std::uint64_t to) {
        visit_kernel({.at = block.end.at, .to = to, .vector = block.end.instruction.vector},
                     reason_of(block));
    }
    [[gnu::noinline]] void visit_kernel(delivered_signal const& of,
                                        action::kernel_visit::reason why) {
        action::kernel_visit visit{
            .at = of.at, .to = of.to, .cause = why, .vector = of.vector, .cr2 = of.cr2};
        auto user = state.unit.state().code;
        if (!state.is_timed && user.width == state.width) { return on(visit); }
        visit.returns = false;
        on(visit);
        if (state.is_timed) { pass_time_in_kernel(); }
        user.width = state.width;
        on(action::far_transfer{0, of.to, user});
    }
    void pass_time_in_kernel() {
        std::uint64_t const now = host_nanoseconds() * tsc_mhz / 1000;
        bool const waits = now > state.tsc + 4 * state.ticks_between;
        if (waits) {  // the processor is idle meanwhile
            report_time();
            on(action::halt{});
        } else if (now > state.tsc) {
            state.cycles += now - state.tsc;
        }
        state.tsc = now > state.tsc ? now : state.tsc;
        report_time();
        if (waits) { on(action::wake{.reason = action::wake_reason::interrupt}); }
    }
};

}  // namespace pt_record
