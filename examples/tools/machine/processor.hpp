// SPDX-License-Identifier: BSL-1.0
#pragma once

// A processor of the machine: its trace unit, and the code that it executes.

#include "block.hpp"
#include "guest.hpp"
#include "performance_monitoring.hpp"
#include "settings.hpp"

#include <ptspec/access/pt_msrs.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <cstdint>

namespace machine {

namespace action = engine::action;

/// An event that has begun: the next instruction is not known yet.
struct pending_event {
    enum class what : std::uint8_t { none, fault, interrupt, software_interrupt, smi, rsm, init };
    what which = what::none;
    std::uint8_t vector = 0;
    std::uint64_t at = 0;  ///< of a fault and of INT n the instruction, else the next one
    std::uint64_t cr2 = 0;
};

class processor {
public:
    processor(unsigned number, settings const& how)
        : how_{how},
          number_{number},
          guest_{number},
          memory_{number},
          unit_{how.caps, guest_.context(), guest_.ip(), how.options} {
        set_ratio();
    }

    // ------------------------------------------------------------------- instructions that access

    auto rdmsr(std::uint32_t index, std::uint64_t& value) -> machine_access {
        if (index == reg::msr_platform_info::address) {
            value = how_.caps.platform_info.raw;
            return MACHINE_DONE;
        }
        if (index == reg::ia32_perf_capabilities::address) {
            value = 0;
            return MACHINE_DONE;
        }
        if (auto const* const word = monitoring_.find(index)) {
            value = *word;
            return MACHINE_DONE;
        }
        if (!is_ours(index)) { return MACHINE_NOT_OURS; }
        memory_.flush();
        auto const read = unit_.rdmsr({index});
        value = read.value;
        if (index == reg::ia32_perf_global_status::address) { value |= overflowed_; }
        return read ? MACHINE_DONE : MACHINE_FAULT;
    }
    auto wrmsr(std::uint32_t index, std::uint64_t value) -> machine_access {
        if (monitoring_.find(index) != nullptr) {
            monitoring_.write(index, value);
            watch();
            return MACHINE_DONE;
        }
        if (!is_ours(index)) { return MACHINE_NOT_OURS; }
        std::uint64_t const at = guest_.ip();
        std::uint64_t const next = at + length_at(at);
        if (previous_ != nullptr && previous_->end.at == at) { count(*previous_); }
        if (is_tracing()) {
            reach(at);
        } else {
            enter_context();
        }
        pass_time();
        auto const done = unit_.wrmsr(
            {.index = {index}, .value = value, .at = {at}, .next = {next}}, memory_);
        memory_.flush();
        if (!done.took_effect()) { return MACHINE_FAULT; }
        if (index == reg::ia32_perf_global_status_reset::address) { overflowed_ &= ~value; }
        previous_ = nullptr;
        watch();
        return MACHINE_DONE;
    }
    auto rdpmc(std::uint32_t index, std::uint64_t& value, unsigned& length) -> machine_access {
        length = static_cast<unsigned>(length_at(guest_.ip()));
        return monitoring_.rdpmc(index, value) ? MACHINE_DONE : MACHINE_FAULT;
    }
    /// PTWRITE executes, the last instruction of its block.
    void ptwrite(std::uint64_t operand) { operand_ = operand; }

    // ------------------------------------------------------------------- execution

    /// A watched block begins.
    void enter(code_block const& next) {
        auto const* const previous = previous_;
        if (pending_.which != pending_event::what::none) {
            complete_pending(next.first);
        } else if (previous != nullptr && resumes_within(*previous, next.first)) {
            count(part_of(*previous, next.first));
        } else if (previous != nullptr) {
            complete(*previous, next.first);
            if (is_halted_) { wake(action::wake_reason::store); }  // MWAIT, and no interrupt
        }
        previous_ = &next;
        has_left_ = false;
        if (counts_) { block_cpl_ = guest_.cpl(); }
    }
    /// Copies the block that executes, before the emulator drops its blocks.
    void keep_block() {
        if (previous_ == nullptr) { return; }
        copy_ = *previous_;
        previous_ = &copy_;
    }
    /// An exception or interrupt begins.
    void interrupt(std::uint8_t vector, bool is_instruction, bool is_external) {
        memory_.flush();
        if (!guest_.is_watched()) { return; }
        std::uint64_t const at = guest_.ip();
        if (pending_.which != pending_event::what::none) {
            // Raised by the delivery of another, or before its handler's first instruction.
            if (at != pending_.at) { complete_pending(at); }
        } else if (is_instruction) {
            if (previous_ != nullptr) { count(*previous_); }
        } else {
            // A fault is within the block or at its successor, an interrupt at the successor.
            bool const is_within = previous_ != nullptr && previous_->holds(at) &&
                                   (!is_external || has_left_);
            if (previous_ != nullptr && !is_within) { complete(*previous_, at); }
            if (is_within) { count(part_of(*previous_, at)); }
        }
        using what = pending_event::what;
        pending_ = {is_external ? what::interrupt
                                : (is_instruction ? what::software_interrupt : what::fault),
                    vector, at, guest_.cr2()};
        previous_ = nullptr;
        has_left_ = false;
    }
    void event(machine_event of) {
        if (of != MACHINE_LEFT_BLOCK) { memory_.flush(); }
        using what = pending_event::what;
        switch (of) {
            case MACHINE_POWER_ON:
                if (pending_.which == what::init) {
                    machine_set_traced(number_,
                                       is_tracing() || counts_ ? 1 : 0);  // QEMU cleared it
                    return;
                }
                unit_.warm_reset(guest_.context(), guest_.ip());
                set_ratio();
                previous_ = nullptr;
                pending_ = {};
                monitoring_ = {};
                overflowed_ = 0;
                is_halted_ = has_left_ = false;
                watch();
                return;
            case MACHINE_INIT:
                if (is_tracing()) { reach(guest_.ip()); }
                previous_ = nullptr;
                pending_ = {what::init, 0, guest_.ip()};
                return;
            case MACHINE_SIPI:
                if (pending_.which == what::init) { complete_init(guest_.ip(), true); }
                on(action::sipi{guest_.ip(), guest_.context(),
                                static_cast<std::uint8_t>(guest_.code_base() >> 12)});
                watch();
                return;
            case MACHINE_SMI:
                if (!is_tracing()) { return on(action::smi{.next = guest_.ip()}); }
                reach(guest_.ip());
                pending_ = {what::smi, 0, guest_.ip()};
                previous_ = nullptr;
                return;
            case MACHINE_LEFT_BLOCK: has_left_ = true; return;
            case MACHINE_RSM:
                previous_ = nullptr;
                pending_ = {};
                if (!unit_.state().msrs.smram_trace_en) { return on(action::rsm{}); }
                pending_ = {what::rsm};
                machine_set_traced(number_, 1);  // the next block completes the RSM
                return;
        }
    }

    [[nodiscard]] auto is_tracing() const -> bool {
        return unit_.state().msrs.ctl.template get<reg::ia32_rtit_ctl::TraceEn>();
    }
    [[nodiscard]] auto total() const -> engine::totals const& { return unit_.total(); }
    /// Actions after which the output did not reach memory; the unit stores the bytes later.
    [[nodiscard]] auto faults() const -> std::uint64_t { return faults_ + memory_.faults(); }
    /// Transfers to an address that neither the code nor an event explains.
    [[nodiscard]] auto unexplained() const -> std::uint64_t { return unexplained_; }
    [[nodiscard]] auto pmis() const -> std::uint64_t { return memory_.pmis(); }

private:
    [[nodiscard]] static auto is_ours(std::uint32_t index) -> bool {
        return access::is_pt_msr({index}) || index == reg::ia32_perf_global_status::address ||
               index == reg::ia32_perf_global_status_reset::address ||
               index == reg::ia32_perf_global_status_set::address;
    }
    template <class Action>
    void on(Action const& one) {
        faults_ += unit_.on(one, memory_).happened ? 1 : 0;
    }
    /// The length of the instruction at an offset: WRMSR may have prefixes.
    [[nodiscard]] auto length_at(std::uint64_t at) const -> std::uint64_t {
        std::uint8_t bytes[x86::instruction::max_bytes] = {};
        if (machine_code(number_, at + guest_.code_base(), bytes, sizeof bytes) == 0) { return 2; }
        auto const found = x86::decode(byte_view{bytes}, guest_.width());
        return found ? found.instruction.length : 2;
    }
    /// Requests calls of `enter` while TraceEn is 1 or a counter is enabled.
    void watch() {
        bool const is_watched = is_tracing() || monitoring_.counts();
        if (!guest_.is_watched()) {  // other code has executed since
            previous_ = nullptr;
            pending_ = {};
        }
        machine_set_traced(number_, is_watched ? 1 : 0);
        counts_ = monitoring_.counts();
        limit_ = 0;
    }
    /// Sets the IP and the context of the unit, which has no actions while TraceEn is 0.
    void enter_context() {
        on(action::far_transfer{unit_.ip(), guest_.ip(), guest_.context()});
        flags_ = guest_.flags();
    }
    /// The last block has executed up to the instruction at an offset.
    void reach(std::uint64_t at) {
        if (previous_ == nullptr) { return; }
        if (!previous_->holds(at)) { complete(*previous_, at); }
        on(action::sequential{at});
        previous_ = nullptr;
    }
    /// Advances the time by the instructions of a block. The emulator's clock is read once in 256
    /// instructions and estimated in between: to read it after each block makes traced code a third
    /// slower.
    void pass_time_of(code_block const& block) {
        instructions_ += block.count;
        if (instructions_ < limit_) { return; }
        if (instructions_ >= max_unread) { return pass_time(); }
        set_time(read_tsc_ + how_.tsc_of(instructions_));
    }
    /// Reads the emulator's clock.
    void pass_time() {
        instructions_ = 0;
        read_tsc_ = machine_tsc(number_);
        set_time(read_tsc_);
    }
    /// Sets the time-stamp counter, which never decreases. The core clock counts while this
    /// processor executes or waits for its turn, and stops while it is halted.
    void set_time(std::uint64_t now) {
        tsc_ = now > tsc_ ? now : tsc_;
        auto const passed = how_.cycles_at(tsc_);
        std::uint64_t const cycles = is_halted_ ? 0 : passed - cycles_;
        cycles_ = passed;
        report_time(cycles, how_.art_at(tsc_));
    }
    /// Reports the time to the unit, in steps of four MTC periods if MTCs are enabled: the unit
    /// drains its buffer after each step, and the MTCs of a longer step would overflow it.
    void report_time(std::uint64_t cycles, std::uint64_t art) {
        constexpr std::uint64_t max_steps = 4096;
        auto const& ctl = unit_.state().msrs.ctl;
        bool const has_mtc = is_tracing() && ctl.get<reg::ia32_rtit_ctl::MTCEn>();
        std::uint64_t const period = std::uint64_t{1} << ctl.get<reg::ia32_rtit_ctl::MTCFreq>();
        std::uint64_t const steps = has_mtc ? (art - art_) / (4 * period) : 0;
        if (steps <= max_steps) {
            std::uint64_t const in_step = cycles / (steps + 1);
            for (std::uint64_t i = 0; i < steps; ++i) {
                art_ += 4 * period;
                cycles -= in_step;
                on(action::elapsed{in_step, art_, how_.tsc_at(art_)});
            }
        }
        art_ = art;
        on(action::elapsed{cycles, art, tsc_});
        limit_ = max_unread;
        if (ctl.get<reg::ia32_rtit_ctl::CYCEn>()) {
            limit_ = 0;  // each block has its cycles
        } else if (has_mtc) {
            auto const until_mtc = how_.instructions_in(period - art % period);
            limit_ = instructions_ + until_mtc < max_unread ? instructions_ + until_mtc
                                                            : max_unread;
        }
    }
    void set_ratio() { on(action::ratio{how_.core_to_bus()}); }
    /// True if the emulator left a block and continues inside it, as after a change of the code or
    /// a device access.
    [[nodiscard]] auto resumes_within(code_block const& block, std::uint64_t to) const -> bool {
        if (has_left_ && block.holds(to)) { return true; }
        if (block.last_may_not_run && to == block.end.at) { return true; }
        bool const branches = block.after.kind != x86::instruction_class::other;
        bool const repeats = block.end.instruction.repeats && to == block.end.at;
        return block.holds(to) && !branches && !repeats && block.count > 1;
    }
    static auto changes_context(x86::instruction_class of) -> bool {
        using enum x86::instruction_class;
        return of == far_jump || of == far_call || of == far_return || of == iret ||
               of == syscall || of == sysret || of == sysenter || of == sysexit || of == rsm ||
               of == software_interrupt;
    }
    /// True if the code executes in the context that the unit knows. Equal flags of the emulator
    /// decide most cases: to build the context for each block took 5 % of the time.
    [[nodiscard]] auto keeps_context() -> bool {
        if (guest_.flags() == flags_) { return true; }
        flags_ = guest_.flags();
        auto const after = guest_.context();
        auto const& before = unit_.state().code;
        return before.cpl == after.cpl && before.width == after.width && before.cr3 == after.cr3;
    }
    /// A block has executed; the instruction at `to` executes next.
    void complete(code_block const& block, std::uint64_t to) {
        count(block);
        if (!is_tracing()) { return; }
        pass_time_of(block);
        using enum x86::instruction_class;
        auto const kind = block.after.kind;
        if (keeps_context() &&
            simulate::take_near_action(block.after, to, [this](auto const& one) { on(one); })) {
            return;
        }
        auto const after = guest_.context();
        simulate::execution now = block.end;
        now.to = to;
        now.after = after;
        now.operand = kind == mov_to_cr3 ? after.cr3 : operand_;
        if (kind == mwait) {
            std::uint8_t const hints = guest_.mwait_hints();
            auto const c_state = static_cast<std::uint8_t>((hints / 16 + 1) % 16);
            on(action::mwait{.at = block.end.at,
                             .next = to,
                             .hints = hints,
                             .thread = {c_state, static_cast<std::uint8_t>(hints % 16)}});
            is_halted_ = c_state != 0;
            return;
        }
        if (changes_context(kind) || kind == mov_to_cr3 || simulate::leads_on(now)) {
            simulate::take_action(now, [this](auto const& one) { on(one); });
            is_halted_ = kind == hlt;
            return;
        }
        ++unexplained_;  // traced as an interrupt
        on(action::interrupt{.next = block.end.next(), .to = to, .after = after});
    }
    void wake(action::wake_reason reason) {
        pass_time();
        is_halted_ = false;
        on(action::wake{.last = 1, .deepest = 1, .reason = reason});
    }
    void complete_init(std::uint64_t to, bool waits_for_sipi) {
        auto const of = pending_;
        pending_ = {};
        flags_ = guest_.flags();
        pass_time();
        if (is_halted_) { wake(action::wake_reason::interrupt); }
        on(action::init{of.at, to, guest_.context(), waits_for_sipi});
    }
    void complete_pending(std::uint64_t to) {
        auto const after = guest_.context();
        flags_ = guest_.flags();
        using what = pending_event::what;
        if (pending_.which == what::init) { return complete_init(to, false); }
        auto const of = pending_;
        pending_ = {};
        if (of.which == what::rsm) {
            on(action::rsm{to, after});
            return watch();
        }
        if (!is_tracing()) { return; }
        pass_time();
        if (is_halted_) { wake(action::wake_reason::interrupt); }
        switch (of.which) {
            case what::fault: return on(action::exception{of.at, to, after, of.vector, of.cr2});
            case what::software_interrupt:
                return on(action::software_interrupt{of.at, to, after, of.vector});
            case what::interrupt: return on(action::interrupt{of.at, to, after, of.vector});
            case what::smi: on(action::smi{of.at, to, after}); return watch();
            case what::init: break;
            case what::rsm:
            case what::none: return;
        }
    }
    /// The instructions of a block before the one at an offset.
    [[nodiscard]] auto part_of(code_block const& block, std::uint64_t end) const -> code_block {
        code_block part;
        part.first = block.first;
        if (!counts_) { return part; }  // nothing uses the count
        for (auto at = block.first; at < end; at += length_at(at)) { ++part.count; }
        return part;
    }
    void count(code_block const& block) {
        if (!counts_) { return; }
        using enum x86::instruction_class;
        auto const kind = block.after.kind;
        std::uint64_t const branches = conditional <= kind && kind <= software_interrupt ? 1 : 0;
        constexpr unsigned branches_per_miss = 16;  // by choice: the emulator predicts nothing
        branches_ += branches;
        std::uint64_t const misses = branches != 0 && branches_ % branches_per_miss == 0 ? 1 : 0;
        event_counts const more{.instructions = block.count,
                                .cycles = block.count * how_.cycles_per_instruction,
                                .reference_cycles = how_.tsc_of(block.count),
                                .branches = branches,
                                .mispredicted = misses};
        bool raises = false;
        overflowed_ |= monitoring_.count(more, block_cpl_, raises);
        if (raises) { memory_.raise(); }
    }

    static constexpr std::uint64_t max_unread = 256;

    settings const& how_;
    unsigned number_;
    guest_state guest_;
    guest_port memory_;
    engine::trace_unit<> unit_;
    performance_monitoring monitoring_{};
    code_block const* previous_ = nullptr;  ///< the block that executes
    code_block copy_{};                     ///< `previous_`, after the emulator dropped its blocks
    pending_event pending_{};
    std::uint64_t operand_ = 0;       ///< of the last PTWRITE
    std::uint64_t cycles_ = 0;        ///< of the core clock at the last report
    std::uint64_t tsc_ = 0;           ///< at the last report
    std::uint64_t art_ = 0;           ///< at the last report
    std::uint64_t branches_ = 0;      ///< that were counted
    std::uint64_t overflowed_ = 0;    ///< counters, as bits of IA32_PERF_GLOBAL_STATUS
    std::uint64_t read_tsc_ = 0;      ///< when the clock was read
    std::uint64_t instructions_ = 0;  ///< since then
    std::uint64_t limit_ = 0;         ///< of instructions: then the time is reported
    std::uint32_t flags_ = 0;         ///< the emulator's flags of the context that the unit knows
    bool has_left_ = false;           ///< the emulator left the block before its end
    bool counts_ = false;             ///< a counter counts
    unsigned block_cpl_ = 0;          ///< of the block that executes
    bool is_halted_ = false;
    std::uint64_t faults_ = 0, unexplained_ = 0;
};

}  // namespace machine
