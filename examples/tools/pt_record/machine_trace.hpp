// SPDX-License-Identifier: BSL-1.0
#pragma once

// The trace of one processor of an emulated machine. Experimental: kernel code only, and interrupts
// are placed at the end of the block that they follow.

#include "thread_trace.hpp"

namespace pt_record {

class machine_trace {
public:
    /// Starts the trace of a processor that executes `code` at `ip`. The file was created.
    void start(settings const& how, engine::execution_context const& code, std::uint64_t ip) {
        unit_ = engine::generator{recording_processor(), how.state(), code, ip, how.options()};
        (void)unit_.start(how.msrs.ctl, file);
    }
    /// The block has executed, and the instruction at `to` is the next, in this context.
    void run(code_block const& block, std::uint64_t to, engine::execution_context const& after) {
        instructions_ += block.count;
        auto const before = unit_.state().code;
        if (before.cpl == 3 && after.cpl == 3) { return; }  // not traced
        bool const is_near = before.cpl == after.cpl && before.width == after.width;
        if (is_near &&
            simulate::take_near_action(block.after, to, [this](auto const& one) { on(one); })) {
            return;
        }
        simulate::execution now = block.end;
        now.to = to;
        now.after = after;
        now.operand = after.cr3;
        // Processors do not trace in SMM; here RSM is shown as an interrupt.
        bool const is_traced = now.instruction.kind != instruction_class::rsm;
        simulate::execution in_segment = now;
        in_segment.at -= block.base;
        in_segment.to -= block.base;
        if (is_traced && (changes_context(now.instruction.kind) ||
                          (is_near && simulate::leads_on(in_segment)))) {
            simulate::take_action(now, [this](auto const& one) { on(one); });
            return;
        }
        // An interrupt or an exception: within the block, or after its last instruction.
        bool const waits = now.instruction.kind == instruction_class::hlt ||
                           now.instruction.kind == instruction_class::mwait;
        on(action::exception{.at = waits ? now.next() : now.at, .to = to, .after = after});
    }
    /// Shows that code has changed, by an interrupt before the instruction at `ip`.
    void mark(std::uint64_t ip) {
        on(action::interrupt{.next = ip, .to = ip, .after = unit_.state().code});
    }
    void finish_at(std::uint64_t ip) {
        on(action::sequential{ip});
        unit_.stop(file);
    }
    [[nodiscard]] auto instructions() const -> std::uint64_t { return instructions_; }

    ports::growing_file file{};

private:
    /// True for an instruction after which any code in any context may execute.
    [[nodiscard]] static constexpr auto changes_context(instruction_class of) -> bool {
        using enum instruction_class;
        return of == far_jump || of == far_call || of == far_return || of == iret ||
               of == syscall || of == sysret || of == sysenter || of == sysexit ||
               of == software_interrupt;
    }
    template <class Event>
    void on(Event const& one) {
        unit_.on(one, file);
    }

    engine::generator unit_{{}, {}, {}, 0};
    std::uint64_t instructions_ = 0;
};

}  // namespace pt_record
