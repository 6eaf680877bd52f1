// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/machine_code.hpp>
#include <support/random_moments.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// A processor that runs machine code with random outcomes. It records its trace and the
// instructions that were executed while tracing.
namespace ptspec::test::machine_code {

namespace action = engine::action;

/// A memory port that appends every stored byte to a stream.
struct recorder {
    using ignores_pmis = recorder;

    std::vector<std::uint8_t> stream{};

    auto load(std::uint64_t) const noexcept -> port_value { return {}; }
    auto store(std::uint64_t, byte_view bytes) noexcept -> std::size_t {
        stream.insert(stream.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
};

/// Instructions that libipt omits. Where a TIP.PGD without IP directly follows the PIP of a MOV
/// CR3, libipt takes it for the end of tracing by that MOV, although a MOV CR3 that ends tracing
/// has no PIP (GEN-243). In fact a later far branch or MOV CR3 ended tracing.
struct omitted_ips {
    std::size_t at;  ///< after this many instructions
    std::size_t count;
};

/// What was executed and traced between two overflows.
struct stretch {
    std::vector<std::uint64_t> ips{};
    /// How many of them are in packets that were not lost; all of them in the last stretch.
    std::size_t certain = 0;
    /// The code has another width than the last MODE.Exec before the overflow reported. libipt
    /// decodes with the old width up to the next MODE.Exec.
    bool lost_mode = false;
    std::vector<omitted_ips> omitted_by_libipt{};
};

/// The configuration of a run.
struct plan {
    programs::setting with{};
    engine::model_options how{};
    bool overflows = false;  ///< also force overflows while the buffer has room
};

/// A random configuration, on a processor of this kind; for `manual`, with random options.
inline auto random_plan(dice& from, engine::model_kind_info const& of) -> plan {
    using trace::ret_mismatch;
    plan made;
    auto& with = made.with;
    with = programs::random_setting(from);
    with.branch_en = true;
    with.psb_freq = 0;
    with.counted = false;
    for (unsigned i = 0; i < 2; ++i) {
        // Whole functions, so that no conditional branch leaves a range: libipt expects an IP
        // there.
        auto const which = static_cast<code::segment>(from.roll(code::segments));
        with.range_kind[i] = from.chance(75) ? 0 : from.chance(85) ? 1 : 2;
        auto const first = static_cast<unsigned>(from.roll(code::functions));
        auto const count = 1 + from.roll(code::functions - first);
        with.from[i] = code::function(which, first);
        with.to[i] = with.from[i] + count * code::page - 1;
    }
    made.overflows = from.chance(60);
    auto& how = made.how;
    how = of.options;
    if (of.which == engine::model_kind::manual) {
        how.tnt_capacity = from.chance(30) ? 47 : 6;
        how.pads = from.chance(20) ? trace::pad_policy::within_words : trace::pad_policy::none;
        how.has_tsx = from.chance(50);
        how.defers_tips = with.dis_retc && from.chance(20);
        how.psb_on_every_enable = from.chance(20);
        how.psb_after_pge = from.chance(20);
        how.pip_for_same_cr3 = from.chance(80);
        how.vmcs_before_pip = from.chance(20);
        how.psb_after_overflow = from.chance(30) ? engine::psb_after_ovf::always
                                                 : engine::psb_after_ovf::where_needed;
        bool const may_be_short = !made.overflows && from.chance(30);
        how.ips = may_be_short ? trace::ip_choice::shortest : trace::ip_choice::as_processors;
    }
    // libipt pops its stack only on compressed RETs, and takes the last IP as 0 after an OVF.
    how.on_ret_mismatch = from.chance(50) ? ret_mismatch::keep : ret_mismatch::clear;
    if (made.overflows && from.chance(60)) {
        how.drained_at_once = static_cast<std::size_t>(4 + from.roll(12));
        how.overflow_ends_at = static_cast<std::size_t>(from.roll(100));
    }
    return made;
}

class machine {
public:
    machine(plan const& what, code const& program, dice& from)
        : plan_{what}, code_{program}, dice_{from}, unit_{initial_unit(what)} {}

    /// Executes this many steps, with TraceEn set at the start and cleared at the end.
    void run(unsigned steps) {
        auto const first = unit_.ip();
        is_refused_ = !write_ctl(plan_.with.word(), first - 2, first);
        for (unsigned i = 0; i < steps; ++i) { step(); }
        if (lost_) { end_overflow(); }
        abort_transaction();
        if (unit_.state().code.cpl != 0) { interrupt(); }
        is_finished_ = write_ctl(plan_.with.word() & ~std::uint64_t{1}, unit_.ip(), unit_.ip() + 2);
        done_.back().certain = done_.back().ips.size();
    }
    [[nodiscard]] auto trace() const -> std::vector<std::uint8_t> const& { return memory_.stream; }
    [[nodiscard]] auto executed() const -> std::vector<stretch> const& { return done_; }
    /// True when no access faulted.
    [[nodiscard]] auto succeeded() const -> bool { return is_finished_ && !is_refused_; }

private:
    /// The packets of any event have room beside those after which an overflow ends.
    static constexpr std::size_t buffer_bytes = 512;
    using unit = engine::trace_unit<buffer_bytes>;
    using status = reg::ia32_rtit_status;

    /// The interrupted IP and mode, pushed on kernel entry.
    struct frame {
        std::uint64_t ip;
        engine::execution_context code;
    };

    static auto initial_unit(plan const& what) -> unit {
        access::msr_state now;
        now.output.base = {0x100'0000};
        now.output.mask_ptrs = {0xFF'FFFF};
        for (unsigned i = 0; i < 2; ++i) { now.addr[i] = {{what.with.from[i]}, {what.with.to[i]}}; }
        now.cr3_match = {what.with.cr3_match};
        return {
            cpu::preset::P_FUT, now, {.cr3 = 0x1000}, code::function(code::kernel, 0), what.how};
    }

    plan plan_;
    code const& code_;
    dice& dice_;
    recorder memory_{};
    unit unit_;
    std::vector<stretch> done_ = std::vector<stretch>(1);
    std::vector<std::uint64_t> calls_[code::segments];
    std::vector<frame> entries_{};
    std::uint64_t fallback_ = 0;  ///< fallback address of the transaction; 0: none
    unsigned depth_ = 0;          ///< nesting depth of transactions
    std::uint64_t art_ = 0;
    random_moments moments_{};
    engine::code_width reported_width_ = engine::code_width::bits_64;
    std::size_t pip_at_ = 0;    ///< number of instructions before the last PIP
    bool had_psb_ = false;      ///< the last event produced a PSB+
    bool has_packets_ = false;  ///< of the last event, without its moments
    bool lost_ = false;         ///< in an overflow that was forced
    bool is_refused_ = false;
    bool is_finished_ = false;

    // -------------------------------------------------------------------------------- the unit

    [[nodiscard]] auto is_traced() -> bool {
        return unit_.state().enables().packet() && !unit_.state().in_overflow;
    }
    /// Executes an action, and begins a new stretch when an overflow ended.
    template <class Act>
    void track_overflow(Act const& act) {
        bool const lost = unit_.state().in_overflow;
        auto const stored = memory_.stream.size();
        act();
        lost_ = lost_ && unit_.state().in_overflow;
        bool const was_lost = lost || (memory_.stream.size() != stored && ends_with_ovf());
        if (was_lost && !unit_.state().in_overflow) {
            done_.emplace_back();
            pip_at_ = 0;
            bool const is_on = unit_.state().enables().packet();
            done_.back().lost_mode = is_on && unit_.state().code.width != reported_width_;
        }
        if (is_traced()) { reported_width_ = unit_.state().code.width; }
    }
    /// True if the packets that end a trace were lost, in an overflow that ended with it.
    [[nodiscard]] auto ends_with_ovf() const -> bool {
        auto const& all = memory_.stream;
        using ctl = reg::ia32_rtit_ctl;
        return !unit_.state().ctl<ctl::TraceEn>() && all.size() >= 2 &&
               all[all.size() - 2] == 0x02 && all.back() == 0xF3;
    }
    template <class Event>
    void on(Event const& e) {
        auto const before = bytes();
        auto const since_psb = bytes_since_psb();
        auto const takes = moments_.draw([this](std::uint64_t n) { return dice_.roll(n); }, true);
        has_packets_ = has_packets_without_moments(e);
        track_overflow([&] {
            is_refused_ = static_cast<bool>(unit_.on(e, memory_, takes).happened) || is_refused_;
        });
        art_ = std::max(art_, unit_.state().clocks.art);
        // Passing time produces no packet with a libipt event, except a PSB+.
        bool const is_time = same_as<Event, action::elapsed>;
        had_psb_ = bytes_since_psb() - since_psb != bytes() - before;
        if (had_psb_ || (has_packets_ && !is_time)) { pip_at_ = 0; }
    }
    /// True if an event has packets, or bits of a TNT, besides the MTCs and CYCs of its moments.
    template <class Event>
    [[nodiscard]] auto has_packets_without_moments(Event const& e) -> bool {
        auto trial = unit_;
        recorder unused;
        (void)trial.on(e, unused);
        return trial.total().stored + trial.buffered().size() != bytes() ||
               trial.state().writer.tnt.count != unit_.state().writer.tnt.count;
    }
    [[nodiscard]] auto bytes_since_psb() -> std::uint64_t {
        return unit_.msrs().status.get<status::PacketByteCnt>();
    }
    [[nodiscard]] auto bytes() const -> std::uint64_t {
        return unit_.total().stored + unit_.buffered().size();
    }
    /// Executes the instruction at the current IP as event `e`. When the event has a FUP with the
    /// IP of this instruction, a decoder reports the FUP before the instruction.
    template <class Event>
    void execute(instruction const& what, Event const& e, bool has_own_fup = false) {
        bool const traced = is_traced();
        if (traced) { done_.back().ips.push_back(what.at); }
        auto const pip_at = pip_at_;
        execute_flow(e, traced, has_own_fup ? 1 : 0);
        if (!traced || unit_.state().in_overflow) { return; }
        bool const stays_enabled = unit_.state().enables().packet();
        if (!unit_.state().enables().context && pip_at != 0) {
            auto& now = done_.back();
            now.omitted_by_libipt.push_back({pip_at, now.ips.size() - pip_at});
        }
        bool const is_pip = what.what == op::mov_cr3 && stays_enabled && has_packets_;
        if (is_pip && !had_psb_) { pip_at_ = done_.back().ips.size(); }
        if (unit_.state().writer.tnt.count != 0) { pip_at_ = 0; }
    }
    /// Executes an event that control flow packets describe while tracing is on.
    template <class Event>
    void execute_flow(Event const& e, bool traced, std::size_t uncertain) {
        auto const stretches = done_.size();
        on(e);
        bool const is_recorded = traced && has_packets_ && unit_.state().writer.tnt.count == 0 &&
                                 !plan_.how.defers_tips && done_.size() == stretches;
        if (is_recorded && !unit_.state().in_overflow) {
            done_.back().certain = done_.back().ips.size() - uncertain;
        }
    }
    /// An event that is not caused by an instruction.
    template <class Event>
    void interrupt_by(Event const& e) {
        execute_flow(e, is_traced(), 0);
    }
    auto write_ctl(std::uint64_t value, std::uint64_t here, std::uint64_t next) -> bool {
        bool fine = false;
        pip_at_ = 0;
        track_overflow([&] {
            fine = unit_
                       .wrmsr({.index = reg::ia32_rtit_ctl::address,
                               .value = value,
                               .at = here,
                               .next = next},
                              memory_)
                       .what == engine::access_outcome::done;
        });
        return fine;
    }

    // -------------------------------------------------------------------------------- steps

    void step() {
        if (fallback_ != 0 && dice_.chance(10)) { return abort_transaction(); }
        switch (dice_.roll(120)) {
            case 0:
            case 1: return interrupt();
            case 2: return fault();
            case 3: return dice_.chance(50) ? system_management() : execute_here();
            case 4: return dice_.chance(20) ? on(action::psb_due{}) : execute_here();
            case 5:
            case 6: return time_passes();
            case 7: return dice_.chance(30) ? stop_clock() : execute_here();
            case 8: return on(action::ratio{static_cast<std::uint8_t>(8 + dice_.roll(40))});
            case 9: return force_overflow();
            default: return execute_here();
        }
    }
    void execute_here() {
        auto const* const found = code_.at(unit_.ip());
        if (found == nullptr) {
            is_refused_ = true;
            return;
        }
        auto const& here = *found;
        switch (here.what) {
            case op::plain: return execute(here, action::sequential{here.next});
            case op::conditional: {
                bool const taken = dice_.chance(50);
                return execute(here, action::conditional{taken ? here.to : here.next, taken});
            }
            case op::jump: return execute(here, action::direct_jump{here.to});
            case op::call:
                push(here.next);
                return execute(here, action::direct_call{here.next, here.to});
            case op::call_next: return execute(here, action::direct_call{here.next, here.next});
            case op::jump_indirect: return execute(here, action::indirect_jump{anywhere()});
            case op::call_indirect:
                push(here.next);
                return execute(here, action::indirect_call{here.next, anywhere()});
            case op::ret: return execute(here, action::near_return{popped()});
            case op::far_jump:
            case op::syscall:
            case op::sysret:
            case op::iret: return change_level(here);
            case op::int_n: {
                abort_transaction();
                if (unit_.ip() != here.at) { return; }
                enter(here.next);
                return interrupt_by(
                    action::software_interrupt{here.at, kernel_entry(), kernel_code(), 0x80});
            }
            case op::mov_cr3: {
                abort_transaction();
                if (unit_.ip() != here.at) { return; }
                auto const cr3 = 0x1000 * dice_.roll(3) | dice_.roll(0x1000) |
                                 std::uint64_t{dice_.chance(50)} << 63;
                return execute(here, action::mov_cr3{here.at, here.next, cr3});
            }
            case op::wrmsr: return write_msr(here);
            case op::mwait:
            case op::hlt: return sleep(here);
            case op::ptwrite:
                return execute(here,
                               action::ptwrite{here.at, here.next, dice_.roll(~std::uint64_t{0}),
                                               here.is_64_bit},
                               true);
            case op::xbegin: {
                if (depth_++ == 0) { fallback_ = here.to; }
                return execute(here, action::transaction_begin{here.at, here.next}, true);
            }
            case op::xend:
                if (fallback_ == 0) { return execute(here, action::sequential{here.next}); }
                if (--depth_ == 0) { fallback_ = 0; }
                return execute(here, action::transaction_end{here.at, here.next}, true);
        }
    }
    void push(std::uint64_t next) { calls_[code::segment_of(next)].push_back(next); }
    auto anywhere() -> std::uint64_t { return code_.any_in(code::segment_of(unit_.ip()), dice_); }
    auto popped() -> std::uint64_t {
        auto& calls = calls_[code::segment_of(unit_.ip())];
        if (calls.empty()) { return anywhere(); }
        auto const top = calls.back();
        calls.pop_back();
        return dice_.chance(90) ? top : anywhere();
    }

    // -------------------------------------------------------------------------------- transfers

    auto kernel_entry() -> std::uint64_t {
        return code::function(code::kernel, static_cast<unsigned>(dice_.roll(code::functions)));
    }
    auto kernel_code() -> engine::execution_context {
        auto code = unit_.state().code;
        code.cpl = 0;
        code.width = engine::code_width::bits_64;
        return code;
    }
    auto user_code(code::segment where) -> engine::execution_context {
        auto made = unit_.state().code;
        made.cpl = 3;
        made.width = where == code::user_64 ? engine::code_width::bits_64
                                            : engine::code_width::bits_32;
        return made;
    }
    void enter(std::uint64_t back) { entries_.push_back({back, unit_.state().code}); }
    void interrupt() {
        abort_transaction();
        enter(unit_.ip());
        interrupt_by(action::interrupt{unit_.ip(), kernel_entry(), kernel_code(), 0x20});
    }
    void fault() {
        abort_transaction();
        enter(unit_.ip());
        interrupt_by(action::exception{unit_.ip(), kernel_entry(), kernel_code(), 14, 0x5000});
    }
    void abort_transaction() {
        if (fallback_ == 0) { return; }
        auto const to = fallback_;
        fallback_ = 0;
        depth_ = 0;
        interrupt_by(action::transaction_abort{unit_.ip(), to});
    }
    /// SYSCALL, SYSRET, IRET, and the far JMP between 64-bit and 32-bit user code.
    void change_level(instruction const& here) {
        abort_transaction();
        if (unit_.ip() != here.at) { return; }
        if (here.what == op::syscall) {
            enter(here.next);
            return execute(here, action::far_transfer{here.at, kernel_entry(), kernel_code(),
                                                      action::far_kind::syscall});
        }
        if (here.what == op::far_jump) {
            auto const where = code::segment_of(here.at) == code::user_64 ? code::user_32
                                                                          : code::user_64;
            return execute(
                here, action::far_transfer{here.at, code_.any_in(where, dice_), user_code(where)});
        }
        auto const kind = here.what == op::iret ? action::far_kind::iret : action::far_kind::plain;
        bool const goes_back = !entries_.empty() && dice_.chance(80);
        if (goes_back) {
            auto const back = entries_.back();
            bool const fits = here.what == op::iret || back.code.cpl == 3;
            if (fits) {
                entries_.pop_back();
                auto code = back.code;
                code.cr3 = unit_.state().code.cr3;
                return execute(here, action::far_transfer{here.at, back.ip, code, kind});
            }
        }
        auto const where = dice_.chance(60) ? code::user_64 : code::user_32;
        if (entries_.size() > 64) { entries_.clear(); }
        execute(here,
                action::far_transfer{here.at, code_.any_in(where, dice_), user_code(where), kind});
    }
    void system_management() {
        abort_transaction();
        if (unit_.msrs().in_smm) { return; }
        auto const here = unit_.ip();
        auto const back = unit_.state().code;
        engine::execution_context handler = back;
        handler.cpl = 0;
        handler.real_mode = true;
        handler.width = engine::code_width::bits_16;
        interrupt_by(action::smi{here, 0x8000, handler});
        on(action::rsm{here, back});
        if (dice_.chance(30)) { return dice_.chance(50) ? interrupt() : system_management(); }
    }
    /// WRMSR that clears or sets TraceEn, or writes another MSR.
    void write_msr(instruction const& here) {
        abort_transaction();
        if (unit_.ip() != here.at) { return; }
        auto const now = unit_.msrs();
        using ctl = reg::ia32_rtit_ctl;
        bool const is_on = now.ctl.get<ctl::TraceEn>();
        bool const stopped = now.status.get<status::Stopped>();
        if (is_on && !stopped && dice_.chance(50)) {
            return execute(here, action::sequential{here.next});
        }
        if (is_on) {
            is_refused_ = !write_ctl(now.ctl.with(ctl::TraceEn{false}).raw, here.at, here.next) ||
                          is_refused_;
        } else {
            if (stopped || dice_.chance(30)) {
                track_overflow([&] {
                    (void)unit_.wrmsr(
                        {.index = status::address, .value = 0, .at = here.at, .next = here.next},
                        memory_);
                });
            }
            is_refused_ = !write_ctl(now.ctl.with(ctl::TraceEn{true}).raw, here.at, here.next) ||
                          is_refused_;
        }
    }

    // -------------------------------------------------------------------------------- sleep, time

    void sleep(instruction const& here) {
        abort_transaction();
        if (unit_.ip() != here.at) { return; }
        auto const state = static_cast<std::uint8_t>(1 + dice_.roll(6));
        bool const is_hlt = here.what == op::hlt;
        if (is_hlt) {
            execute(here, action::halt{here.at, here.next}, true);
        } else {
            action::mwait asleep{.at = here.at, .next = here.next, .hints = 0x20};
            asleep.thread = {state, 0};
            asleep.is_io = dice_.chance(10);
            execute(here, asleep, true);
        }
        while (dice_.chance(40)) {
            if (dice_.chance(30)) { on(action::psb_due{}); }
            time_passes();
            if (lost_ && dice_.chance(50)) { end_overflow(); }
        }
        auto const deepest = static_cast<std::uint8_t>(is_hlt ? 1 : state);
        bool const by_interrupt = is_hlt || dice_.chance(50);
        on(action::wake{deepest, deepest,
                        by_interrupt ? action::wake_reason::interrupt
                                     : action::wake_reason::store});
        if (by_interrupt) { interrupt(); }
    }
    void time_passes() {
        // Few MTCs at a time, so that no overflow begins and ends within one event, also where each
        // packet takes 8 bytes.
        art_ += dice_.roll(dice_.chance(5) ? 12 : 6);
        on(action::elapsed{dice_.roll(60), art_, 2 * art_});
    }
    void stop_clock() {
        on(action::clock_stop{unit_.ip()});
        if (dice_.chance(50)) { time_passes(); }
        on(action::clock_resume{});
    }
    void force_overflow() {
        if (lost_) { return end_overflow(); }
        if (!plan_.overflows || !dice_.chance(40)) { return execute_here(); }
        on(action::overflow{});
        lost_ = unit_.state().in_overflow;
    }
    void end_overflow() {
        lost_ = false;
        on(action::overflow_end{unit_.ip()});
    }
};

}  // namespace ptspec::test::machine_code
