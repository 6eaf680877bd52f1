// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/block_cache.hpp>
#include <ptspec/flow/sink.hpp>
#include <ptspec/trace/events.hpp>
#include <ptspec/trace/return_stack.hpp>

/// The executed instructions of a trace.
namespace ptspec::flow {

/// What a walker does where code is absent.
enum class on_missing_code : uint8_t {
    gap,   ///< reports a gap, and resumes at the next IP of a packet
    stop,  ///< returns; the caller supplies the code and calls again
};

/// IPs from `first` to `last`, inclusive, as IA32_RTIT_ADDRn_A and B have them.
struct ip_range {
    uint64_t first = 0;
    uint64_t last = 0;

    [[nodiscard]] constexpr auto contains(uint64_t ip) const noexcept -> bool {
        return ip - first <= last - first;
    }
};

struct walk_options {
    on_missing_code missing = on_missing_code::gap;
    ip_form ips{};  ///< of packets
    cpu::quirk_set quirks{};
    /// The address ranges that are traced, for processors with SKL014: a TIP.PGD may lack its IP
    /// where a direct branch leaves them.
    ip_range filters[4] = {};
    unsigned filter_count = 0;
};

/// Why a walker returned.
enum class walk_end : uint8_t {
    end,           ///< the end of the trace
    need_input,    ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    missing_code,  ///< the bytes at `missing()` are absent; the walk continues there
};

/// Walks the code that a trace describes, and reports what executed to a sink.
///
/// Branches that need no binding go from the reader to the walk; other packets become events first.
/// Code is decoded once into blocks. Straight code is reported when a packet shows that it was
/// executed. An IP of an event is reached at its first occurrence.
///
/// After damage, lost packets, absent code, or a packet that contradicts the code there is a gap;
/// the walk resumes at the next packet with an IP.
///
/// Shape:  a value of at most 4 KB. It borrows the trace, the source and the cache.
/// Source: PKT-275..277, GEN-101, GEN-110..114, GEN-130..139; those of `trace::event_reader`.
template <code_source Code, trace::event_clock Clock = trace::no_clock>
class walker {
public:
    /// Walks a whole trace from its first PSB on.
    constexpr walker(borrowed_bytes whole, Code& code, block_cache& cache, walk_options how = {},
                     Clock clock = {}) noexcept
        : reader_{whole, clock, how.quirks}, code_{&code}, cache_{&cache}, how_{how} {}
    /// Walks a trace that arrives in chunks.
    constexpr walker(Code& code, block_cache& cache, walk_options how = {},
                     Clock clock = {}) noexcept
        : reader_{clock, how.quirks}, code_{&code}, cache_{&cache}, how_{how} {}

    /// Gives the next chunk: at the start, and after `walk_end::need_input`. At other times it
    /// returns false and changes nothing.
    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        return reader_.feed(chunk);
    }
    /// Ends the trace: no more chunks follow.
    constexpr void finish() noexcept { reader_.finish(); }

    /// Walks until the end of the trace or of the chunk, or until code is missing.
    template <sink Sink>
    constexpr auto run(Sink& to) noexcept -> walk_end {
        for (;;) {
            if (!proceed(to)) { return walk_end::missing_code; }
            trace::event const* const next = reader_.next_after(direct<Sink>{this, &to});
            if (next == nullptr) { return walk_end::missing_code; }
            if (next->what == trace::event_type::need_input) { return walk_end::need_input; }
            event_ = *next;
            offset_ = next->offset;
            waits_ = waiting::event;
            if (next->what == trace::event_type::end) {
                waits_ = waiting::none;
                close_gap(to, {});
                return walk_end::end;
            }
        }
    }

    /// The linear address whose page is absent: after `walk_end::missing_code`.
    [[nodiscard]] constexpr auto missing() const noexcept -> uint64_t { return missing_; }
    /// The address space of the code.
    [[nodiscard]] constexpr auto space() const noexcept -> uint32_t { return space_; }
    /// Sets the address space of the code that follows.
    constexpr void set_space(uint32_t space) noexcept { space_ = space; }
    /// The clock, which may have read ahead.
    [[nodiscard]] constexpr auto clock() const noexcept -> Clock const& { return reader_.clock(); }

private:
    using event_type = trace::event_type;

    /// What continues when the caller has supplied code.
    enum class waiting : uint8_t { none, branches, branch, disable, event };

    /// Takes branches from the reader.
    template <class Sink>
    struct direct {
        walker* to;
        Sink* sink;
        bool stopped = false;

        [[nodiscard]] constexpr auto has_stopped() const noexcept -> bool { return stopped; }

        template <class Packet>
        constexpr auto branches(Packet const& which, trace::at where, Clock& clock) noexcept
            -> bool {
            clock.pass();
            to->offset_ = where.offset;
            if (!to->add_branches(which.taken(), *sink)) { return stop(waiting::branches); }
            return true;
        }
        constexpr auto branch(packet::tip const& which, trace::at where, Clock& clock) noexcept
            -> bool {
            clock.pass();
            to->offset_ = where.offset;
            if (!to->walk_target(which.has_ip(), where.ip, *sink)) {
                to->wait_for(which.has_ip(), where.ip);
                return stop(waiting::branch);
            }
            return true;
        }
        constexpr auto disable(packet::tip_pgd const& which, trace::at where, Clock& clock) noexcept
            -> bool {
            clock.pass();
            to->offset_ = where.offset;
            if (!to->walk_disabled(which.has_ip(), where.ip, *sink)) {
                to->wait_for(which.has_ip(), where.ip);
                return stop(waiting::disable);
            }
            return true;
        }
        constexpr auto enable(packet::tip_pge const& which, trace::at where, Clock& clock) noexcept
            -> bool {
            clock.pass();
            to->offset_ = where.offset;
            to->enable(which.has_ip(), where.ip, *sink);
            return true;
        }

    private:
        constexpr auto stop(waiting what) noexcept -> bool {
            to->waits_ = what;
            stopped = true;
            return false;
        }
    };

    constexpr void wait_for(bool has_to, uint64_t to) noexcept {
        event_.has_to = has_to;
        event_.to = to;
    }
    /// Continues what waits for code. Returns false if code is missing.
    template <class Sink>
    constexpr auto proceed(Sink& to) noexcept -> bool {
        bool is_done = true;
        switch (waits_) {
            case waiting::none: return true;
            case waiting::branches: is_done = walk_branches(to); break;
            case waiting::branch: is_done = walk_target(event_.has_to, event_.to, to); break;
            case waiting::disable: is_done = walk_disabled(event_.has_to, event_.to, to); break;
            case waiting::event: is_done = apply_event(to); break;
        }
        if (!is_done) { return false; }
        waits_ = waiting::none;
        return true;
    }

    // --------------------------------------------------------------------------- position

    constexpr void go(uint64_t ip) noexcept {
        ip_ = ip;
        slot_ = cache_->slot_of(ip);
    }
    constexpr void go(uint64_t ip, uint32_t slot) noexcept {
        ip_ = ip;
        slot_ = slot;
    }
    /// Tracing is on at an IP.
    template <class Sink>
    constexpr void resume(uint64_t ip, Sink& to) noexcept {
        close_gap(to, {true, ip});
        is_known_ = true;
        is_off_ = false;
        in_overflow_ = false;
        returns_.clear();
        left_ = {};
        settle_paging();
        go(ip);
    }
    template <class Sink>
    constexpr void enable(bool has_ip, uint64_t ip, Sink& to) noexcept {
        if (has_ip) { return resume(ip, to); }
        leave(to);
    }
    /// Tracing is off.
    template <class Sink>
    constexpr void leave(Sink& to) noexcept {
        close_gap(to, {});
        is_known_ = false;
        is_off_ = true;
        in_overflow_ = false;
        returns_.clear();
        left_ = {};
        settle_paging();
    }

    struct known_ip {
        bool is_known = false;
        uint64_t ip = 0;
    };
    /// A gap begins, which is reported when an IP after it is known. Returns true.
    [[gnu::noinline]] constexpr auto lose(gap_reason why, rule broken = rule::none) noexcept
        -> bool {
        if (gap_.why == gap_reason::none) {
            gap_ = {.why = why,
                    .broken = broken,
                    .has_from = is_known_,
                    .from = is_known_ ? ip_ : 0,
                    .missing = why == gap_reason::missing_code ? missing_ : 0,
                    .offset = offset_};
        }
        is_known_ = false;
        is_off_ = false;
        returns_.clear();
        left_ = {};
        return true;
    }
    template <class Sink>
    constexpr void close_gap([[maybe_unused]] Sink& to, [[maybe_unused]] known_ip after) noexcept {
        if (gap_.why == gap_reason::none) [[likely]] { return; }
        gap_.has_to = after.is_known;
        gap_.to = after.ip;
        if constexpr (takes_gaps<Sink>) { to.gap(gap_); }
        gap_ = {};
    }

    // --------------------------------------------------------------------------- blocks

    [[nodiscard]] constexpr auto block_at(uint64_t ip, uint32_t slot) noexcept -> block const* {
        block_key const key{ip, space_, width_};
        block const* const found = cache_->find(slot, key);
        return found != nullptr ? found : decode_at(slot, key);
    }
    /// The block at the current IP; nullptr if there is none: then call `lose_code`.
    [[nodiscard]] constexpr auto here() noexcept -> block const* { return block_at(ip_, slot_); }
    [[gnu::noinline]] constexpr auto decode_at(uint32_t slot, block_key key) noexcept
        -> block const* {
        auto const got = decode_block(*code_, key, how_.ips);
        block_error_ = got.error;
        missing_ = got.missing;
        return got.error == block_error::none ? cache_->insert(slot, got.made) : nullptr;
    }
    /// Returns false if the caller wants to supply the code.
    constexpr auto lose_code() noexcept -> bool {
        if (block_error_ == block_error::no_instruction) {
            return lose(gap_reason::no_instruction);
        }
        return how_.missing == on_missing_code::gap && lose(gap_reason::missing_code);
    }

    /// Finds a loop that has no packet: its IPs repeat.
    class loop_guard {
    public:
        constexpr explicit loop_guard(uint64_t ip) noexcept : mark_{ip} {}
        /// After a jump to `ip`.
        constexpr auto repeats(uint64_t ip) noexcept -> bool {
            if (ip == mark_) { return true; }
            if (++steps_ == most_) {
                steps_ = 0;
                most_ *= 2;
                mark_ = ip;
            }
            return false;
        }

    private:
        uint64_t mark_;
        uint64_t steps_ = 0;
        uint64_t most_ = 16;
    };

    /// Reports the first `count` instructions of a block, of `size` bytes.
    template <class Sink>
    constexpr void report(block const& of, unsigned count, unsigned size, unsigned last_length,
                          Sink& to) noexcept {
        bool const is_whole = count == of.count;
        if constexpr (takes_instructions<Sink>) {
            executed one{of.key.ip, of.key.space, 0, instruction_class::other, of.key.width};
            uint64_t lengths = of.lengths[0];
            for (unsigned i = 0; i < count; ++i) {
                if (i == 16) { lengths = of.lengths[1]; }
                one.length = lengths & 15;
                lengths >>= 4;
                if (i + 1 == count && is_whole) { one.which = of.which; }
                to.instruction(one);
                one.ip += one.length;
            }
        }
        if constexpr (takes_blocks<Sink>) {
            to.block(executed_block{.ip = of.key.ip,
                                    .last = of.key.ip + size - last_length,
                                    .space = of.key.space,
                                    .size = size,
                                    .count = count,
                                    .which = is_whole ? of.which : instruction_class::other,
                                    .width = of.key.width});
        }
    }
    template <class Sink>
    constexpr void report(block const& of, Sink& to) noexcept {
        report(of, of.count, of.size, of.last_length, to);
    }
    /// Reports a branch at the end of a block.
    template <class Sink>
    constexpr void report_edge([[maybe_unused]] block const& of, [[maybe_unused]] uint64_t target,
                               [[maybe_unused]] bool is_taken, [[maybe_unused]] Sink& to) noexcept {
        if constexpr (takes_edges<Sink>) {
            to.edge(edge{.from = of.last(),
                         .to = target,
                         .after = of.end(),
                         .space = of.key.space,
                         .which = of.which,
                         .is_taken = is_taken});
        }
    }
    /// Executes a block that has no packet: it falls through, or ends with a direct jump or call.
    /// Returns true if it jumped.
    template <class Sink>
    constexpr auto pass(block const& of, Sink& to) noexcept -> bool {
        report(of, to);
        if (of.passage == passage::falls) {
            if (has_paging_ && of.which == instruction_class::mov_to_cr3) { settle_paging(); }
            go(of.end(), of.slot_after);
            return false;
        }
        report_edge(of, of.target, true, to);
        if (of.pushes) { returns_.push(of.end()); }
        go(of.target, of.slot_target);
        return true;
    }

    // --------------------------------------------------------------------------- packets
    // Each returns false if code is missing that the caller wants to supply.

    template <class Sink>
    constexpr auto add_branches(packet::branches taken, Sink& to) noexcept -> bool {
        if (!is_known_) { return true; }
        if (left_.count != 0) { return lose(gap_reason::wrong_turn); }
        left_ = taken;
        return walk_branches(to);
    }
    /// Walks over the branches of a TNT. Stops at a branch whose TIP comes after the TNT: PKT-275.
    template <class Sink>
    constexpr auto walk_branches(Sink& to) noexcept -> bool {
        while (left_.count != 0) {
            loop_guard guard{ip_};
            block const* at = nullptr;
            for (;;) {
                at = here();
                if (at == nullptr) { return lose_code(); }
                if (at->passage > passage::jumps) { break; }
                if (pass(*at, to) && guard.repeats(ip_)) { return lose(gap_reason::endless_loop); }
            }
            bool const is_taken = (left_.bits >> (left_.count - 1) & 1) != 0;
            if (at->passage == passage::conditional) {
                left_.count -= 1;
                report(*at, to);
                uint64_t const target = is_taken ? at->target : at->end();
                report_edge(*at, target, is_taken, to);
                go(target, is_taken ? at->slot_target : at->slot_after);
            } else if (at->passage == passage::returns) {
                if (!is_taken || returns_.size() == 0) { return lose(gap_reason::wrong_turn); }
                left_.count -= 1;
                report(*at, to);
                uint64_t const target = returns_.take();
                report_edge(*at, target, true, to);
                go(target);
            } else {
                return at->passage == passage::targets || lose(gap_reason::wrong_turn);
            }
        }
        return true;
    }
    /// Walks to the branch whose target a TIP has.
    template <class Sink>
    constexpr auto walk_target(bool has_to, uint64_t target, Sink& to) noexcept -> bool {
        if (!is_known_) {
            if (has_to && !in_overflow_) { resume(target, to); }
            return true;
        }
        loop_guard guard{ip_};
        for (;;) {
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }
            if (at->passage <= passage::jumps) {
                if (pass(*at, to) && guard.repeats(ip_)) { return lose(gap_reason::endless_loop); }
                continue;
            }
            bool const returns = at->passage == passage::returns;
            if (!returns && at->passage != passage::targets) {
                return lose(gap_reason::wrong_turn);
            }
            report(*at, to);
            if (returns && returns_.size() != 0) { (void)returns_.take(); }  // GEN-133
            if (at->pushes) { returns_.push(at->end()); }
            if (has_to) { report_edge(*at, target, true, to); }
            settle_paging();
            if (!has_to) { return lose(gap_reason::no_target); }
            go(target);
            return walk_branches(to);
        }
    }
    /// Walks to the branch, or the MOV CR3, at which tracing ends.
    template <class Sink>
    constexpr auto walk_disabled(bool has_to, uint64_t target, Sink& to) noexcept -> bool {
        if (!is_known_) {
            leave(to);
            return true;
        }
        loop_guard guard{ip_};
        for (;;) {
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }
            bool ends = false;
            switch (at->passage) {
                case passage::falls:
                    ends = at->which == instruction_class::mov_to_cr3 &&
                           (!has_to || target == at->end());
                    break;
                case passage::jumps:
                    ends = has_to ? target == at->target : is_outside_filters(at->target);
                    break;
                case passage::conditional:
                    if (has_to && target != at->target && target != at->end()) {
                        return lose(gap_reason::wrong_turn);
                    }
                    ends = true;
                    break;
                case passage::returns:
                case passage::targets: ends = true; break;
                case passage::interrupts: return lose(gap_reason::wrong_turn);
            }
            if (!ends) {
                if (pass(*at, to) && guard.repeats(ip_)) { return lose(gap_reason::endless_loop); }
                continue;
            }
            report(*at, to);
            if (has_to && at->passage != passage::falls) {
                bool const is_taken = at->passage != passage::conditional || target == at->target;
                report_edge(*at, target, is_taken, to);
            }
            leave(to);
            return true;
        }
    }
    [[nodiscard]] constexpr auto is_outside_filters(uint64_t ip) const noexcept -> bool {
        if (!how_.quirks.has(cpu::quirk::skl014) || how_.filter_count == 0) { return false; }
        for (unsigned i = 0; i < how_.filter_count; ++i) {
            if (how_.filters[i].contains(ip)) { return false; }
        }
        return true;
    }
    /// Walks to the first occurrence of an IP. Nothing is reported if the code does not lead there.
    template <class Sink>
    constexpr auto walk_until(uint64_t ip, Sink& to) noexcept -> bool {
        if (left_.count != 0) { return lose(gap_reason::wrong_turn); }
        auto const error = find_way_to(ip);
        if (error == gap_reason::wrong_turn || error == gap_reason::endless_loop) {
            return lose(error);
        }
        for (;;) {
            if (ip_ == ip) { return true; }
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }  // the cache does not keep it
            if (ip - at->key.ip < at->size && report_up_to(*at, ip, to)) { return true; }
            (void)pass(*at, to);
        }
    }
    [[nodiscard]] constexpr auto find_way_to(uint64_t ip) noexcept -> gap_reason {
        loop_guard guard{ip_};
        uint64_t here = ip_;
        uint32_t slot = slot_;
        while (here != ip) {
            block const* const at = block_at(here, slot);
            if (at == nullptr) {
                return block_error_ == block_error::no_instruction ? gap_reason::no_instruction
                                                                   : gap_reason::missing_code;
            }
            if (ip - at->key.ip < at->size && instructions_before(*at, ip) != 0) { break; }
            if (at->passage > passage::jumps) { return gap_reason::wrong_turn; }
            bool const jumps = at->passage == passage::jumps;
            here = jumps ? at->target : at->end();
            slot = jumps ? at->slot_target : at->slot_after;
            if (jumps && here != ip && guard.repeats(here)) { return gap_reason::endless_loop; }
        }
        return gap_reason::none;
    }
    /// The number of instructions of a block before an IP in it; 0 if no instruction begins there.
    [[nodiscard]] static constexpr auto instructions_before(block const& of, uint64_t ip) noexcept
        -> unsigned {
        uint64_t at = of.key.ip;
        unsigned i = 0;
        for (; i < of.count && at < ip; ++i) { at += of.length_of(i); }
        return at == ip ? i : 0;
    }
    /// Reports the instructions of a block before an IP. False if no instruction begins there.
    template <class Sink>
    constexpr auto report_up_to(block const& of, uint64_t ip, Sink& to) noexcept -> bool {
        unsigned const count = instructions_before(of, ip);
        if (count == 0) { return false; }
        report(of, count, static_cast<unsigned>(ip - of.key.ip), of.length_of(count - 1), to);
        go(ip);
        return true;
    }

    // --------------------------------------------------------------------------- events

    template <class Sink>
    constexpr auto apply_event(Sink& to) noexcept -> bool {
        if (!walk_event(to)) { return false; }
        if constexpr (takes_events<Sink>) { to.event(event_); }
        return true;
    }
    template <class Sink>
    constexpr auto walk_event(Sink& to) noexcept -> bool {
        auto const& e = event_;
        switch (e.what) {
            case event_type::branches: return add_branches(e.branches(), to);
            case event_type::indirect_branch: return walk_target(e.has_to, e.to, to);
            case event_type::disabled: return walk_disabled(e.has_to, e.to, to);
            case event_type::enabled: enable(e.has_ip, e.ip, to); return true;
            case event_type::async_branch: return interrupt(to);
            case event_type::async_disabled:
                if (is_known_ && !walk_until(e.ip, to)) { return false; }
                if (is_known_ && e.has_to) { report_interrupt(to); }
                leave(to);
                return true;
            case event_type::overflow:
                (void)lose(gap_reason::overflow);
                in_overflow_ = true;
                return true;
            case event_type::resumed:
                if (is_known_) { (void)lose(gap_reason::damage); }
                if (e.has_ip) { resume(e.ip, to); }
                return true;
            case event_type::psb: return psb(to);
            case event_type::exec_mode: set_width(e.packet.as<packet::mode_exec>()); return true;
            case event_type::paging:
                state_.take(e.packet.as<packet::pip>());
                has_paging_ = true;
                if (!is_known_ || e.is_status || e.has_ip) { settle_paging(); }
                return true;
            case event_type::damage:
                // A wrong time changes no IP.
                if (e.error == packet::error::none && packet::unbound_kinds.has(e.packet.kind())) {
                    return true;
                }
                return lose(gap_reason::damage, e.broken);
            case event_type::resynced:
            case event_type::lost:
                if (is_known_) { (void)lose(gap_reason::damage); }
                return true;
            case event_type::ptwrite:
            case event_type::transaction:
            case event_type::exstop:
            case event_type::mwait:
            case event_type::pwre:
            case event_type::pebs_end:
            case event_type::control_flow:
            case event_type::trigger: return visit(to);
            default: return true;
        }
    }
    /// An event at an IP that does not change the flow.
    template <class Sink>
    constexpr auto visit(Sink& to) noexcept -> bool {
        auto const& e = event_;
        if (!e.has_ip || e.is_status) { return true; }
        if (!is_known_) {
            if (!in_overflow_ && !is_off_) { resume(e.ip, to); }
            return true;
        }
        return left_.count != 0 || find_way_to(e.ip) == gap_reason::wrong_turn ||
               walk_until(e.ip, to);
    }
    /// An event at `event_.ip`, whose handler is at `event_.to`.
    template <class Sink>
    constexpr auto interrupt(Sink& to) noexcept -> bool {
        if (!is_known_) { resume(event_.ip, to); }
        if (!walk_until(event_.ip, to)) { return false; }
        if (!event_.has_to) { return lose(gap_reason::no_target); }
        if (!is_known_) {
            resume(event_.to, to);
        } else {
            report_interrupt(to);
            go(event_.to);
        }
        settle_paging();
        return true;
    }
    template <class Sink>
    constexpr void report_interrupt([[maybe_unused]] Sink& to) noexcept {
        if constexpr (takes_edges<Sink>) {
            to.edge(edge{.from = event_.ip,
                         .to = event_.to,
                         .after = event_.ip,
                         .space = space_,
                         .is_asynchronous = true});
        }
    }
    template <class Sink>
    constexpr auto psb(Sink& to) noexcept -> bool {
        if (in_overflow_) { return true; }  // `resumed` follows
        if (!event_.has_ip) {
            leave(to);
            return true;
        }
        if (is_known_ && !walk_until(event_.ip, to)) { return false; }
        if (is_known_) {
            returns_.clear();
        } else {
            resume(event_.ip, to);
        }
        return true;
    }
    constexpr void set_width(packet::mode_exec const& which) noexcept {
        state_.take(which);
        width_ = state_.code_bits == 16   ? code_width::bits_16
                 : state_.code_bits == 32 ? code_width::bits_32
                                          : code_width::bits_64;
    }
    /// The address space changes here, if a PIP said so.
    constexpr void settle_paging() noexcept {
        if (!has_paging_) [[likely]] { return; }
        has_paging_ = false;
        if constexpr (requires { code_->space_of(state_); }) { space_ = code_->space_of(state_); }
    }

    trace::event_reader<Clock, trace::no_hook, packet::all, 20> reader_;
    Code* code_;
    block_cache* cache_;
    walk_options how_;
    uint64_t ip_ = 0;  ///< the next instruction, if `is_known_`
    uint32_t slot_ = 0;
    uint32_t space_ = 0;
    code_width width_ = code_width::bits_64;
    bool is_known_ = false;     ///< tracing is on, and the IP is known
    bool is_off_ = false;       ///< tracing is off
    bool in_overflow_ = false;  ///< an event says where tracing resumes
    bool has_paging_ = false;   ///< a PIP, which applies at the next MOV CR3 or far transfer
    waiting waits_ = waiting::none;
    block_error block_error_ = block_error::none;
    packet::branches left_{};  ///< of the last TNT
    uint64_t missing_ = 0;
    uint64_t offset_ = 0;
    gap gap_{};
    trace::execution_state state_{};
    trace::event event_{};
    trace::return_stack returns_{};
};

}  // namespace ptspec::flow
