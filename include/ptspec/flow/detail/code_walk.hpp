// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/block_finder.hpp>
#include <ptspec/flow/detail/reports.hpp>
#include <ptspec/flow/detail/run_loop.hpp>
#include <ptspec/flow/detail/run_recorder.hpp>
#include <ptspec/flow/gap_counts.hpp>
#include <ptspec/flow/sink.hpp>
#include <ptspec/flow/walk_options.hpp>
#include <ptspec/trace/psb_plus.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::flow::detail {

/// A position in code. Packets move it, and what executed is reported to a sink.
///
/// Most functions return false if code is missing that the caller wants to supply. The same call
/// then continues.
///
/// Source: PKT-275..277, GEN-101, GEN-110..114, GEN-130..139.
template <code_source Code>
class code_walk {
public:
    constexpr code_walk(Code& code, block_cache& cache, walk_options const& options) noexcept
        : blocks_{code, cache, options.ips}, options_{options} {
        if (!options.continues) { lose_branches(); }
    }

    /// True if tracing is on and the IP is known.
    [[nodiscard]] constexpr auto is_known() const noexcept -> bool { return state_ == tracing::on; }
    [[nodiscard]] constexpr auto is_off() const noexcept -> bool { return state_ == tracing::off; }
    /// True if branches of the last TNT wait for a TIP.
    [[nodiscard]] constexpr auto has_branches() const noexcept -> bool { return left_.count != 0; }
    [[nodiscard]] constexpr auto missing() const noexcept -> uint64_t { return blocks_.missing(); }
    constexpr void skip_missing() noexcept { skipped_ = blocks_.missing(); }
    [[nodiscard]] constexpr auto space() const noexcept -> uint32_t { return space_; }
    constexpr void set_space(uint32_t space) noexcept { space_ = space; }
    [[nodiscard]] constexpr auto gaps() const noexcept -> gap_counts const& { return gaps_; }
    /// The packet that moves the position next.
    constexpr void set_packet(uint64_t offset, [[maybe_unused]] trace::time const& when) {
        offset_ = offset;
        if constexpr (changes_of<Code> != space_changes::at_paging) {
            walked_.when = when;
            update_space();
        }
    }

    /// Forgets all but the address space.
    constexpr void restart() noexcept {
        begin(tracing::unknown);
        has_target_ = has_paging_ = lost_calls_ = false;
        gap_ = {};
        gaps_ = {};
        walked_ = {};
        forget_width();
        lose_branches();
    }

    /// Continues at an IP.
    constexpr void go(uint64_t ip) noexcept {
        ip_ = ip;
        slot_ = blocks_.cache().slot_of(ip);
    }
    /// Tracing is on at an IP. If a gap ends there, its size includes the packet `lost`.
    template <class Sink>
    constexpr void resume(uint64_t ip, Sink& sink, lost_packet lost = {}) {
        close_gap(sink, true, ip, lost);
        begin(tracing::on);
        settle_paging();
        go(ip);
        if constexpr (takes_starts<Sink>) { sink.start(ip, space_); }
    }
    /// Tracing is off.
    template <class Sink>
    constexpr void leave(Sink& sink, lost_packet lost = {}) {
        close_gap(sink, false, 0, lost);
        begin(tracing::off);
        lost_calls_ = false;
        settle_paging();
    }

    /// A gap begins, which is reported when an IP after it is known. Returns true.
    ///
    /// noinline: inlined, a walk of blocks takes 4 % more instructions (g++ 12).
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto lose(gap_reason why, rule broken = rule::none) noexcept -> bool {
        if (gap_.why == gap_reason::none) {
            gap_ = {.why = why,
                    .broken = broken,
                    .has_from = is_known(),
                    .from = is_known() ? ip_ : 0,
                    .missing = has_missing(why) ? blocks_.missing() : 0,
                    .offset = left_.count != 0 && first_tnt_ < offset_ ? first_tnt_ : offset_};
        }
        begin(tracing::unknown);
        lost_calls_ = why != gap_reason::overflow;
        if (!lost_calls_ || why == gap_reason::damage) { walked_.has_lost_packets = true; }
        return true;
    }
    template <class Sink>
    constexpr void close_gap(Sink& sink, bool is_known, uint64_t ip, lost_packet lost = {}) {
        if (gap_.why != gap_reason::none) [[unlikely]] { end_gap(sink, is_known, ip, lost); }
    }

    /// Counts the bytes before this offset as a gap, because no packet of them was read.
    constexpr void count_unread(uint64_t end) noexcept {
        if (gap_.why == gap_reason::none) { gaps_.add_bytes(0, end); }
    }

    /// Called at a PSB, after which the processor has no return addresses.
    constexpr void clear_returns() noexcept {
        returns_.clear();
        lost_calls_ = false;
    }
    constexpr void forget_width() noexcept { width_ = code_width::bits_64; }
    constexpr void set_width(packet::mode_exec const& packet) noexcept {
        walked_.state.take(packet);
        width_ = width_of(walked_.state.code_bits);
    }
    /// A PIP. It applies at the next MOV CR3 or far transfer, or with `settle_paging`.
    constexpr void set_paging(packet::pip const& packet) noexcept {
        paging_ = packet;
        has_paging_ = true;
    }
    constexpr void set_vmcs(packet::vmcs const& packet) noexcept { walked_.state.take(packet); }
    /// False if a PSB+ may change the address space.
    [[nodiscard]] constexpr auto agrees_with(trace::psb_plus const& read) const noexcept -> bool {
        return !has_spaces<Code> || (walked_.agrees_with(read) && !has_paging_);
    }
    /// The address space changes here if a PIP came before.
    constexpr void settle_paging() {
        if (!has_paging_) [[likely]] { return; }
        has_paging_ = walked_.has_lost_packets = false;
        walked_.state.take(paging_);
        update_space();
    }

    /// A TNT. For sinks that take runs, its branches are collected with the branches of the next
    /// TNTs, and walked by `flush`.
    template <class Sink>
    constexpr auto add_branches(packet::branches more, Sink& sink) -> bool {
        if (!is_known()) { return true; }
        bool const merges = merges_tnts(sink);
        if (merges) {
            if (left_.count + more.count > packet::marked_branches::max_count &&
                !walk_branches(sink)) {
                later_ = more;
                return false;
            }
            if (left_.count == 0) { first_tnt_ = offset_; }
        }
        append(more);
        return merges || walk_branches(sink);
    }
    /// Continues `add_branches` after missing code was supplied.
    template <class Sink>
    constexpr auto continue_branches(Sink& sink) -> bool {
        if (!walk_branches(sink)) { return false; }
        append(later_);
        later_ = {};
        return true;
    }
    /// Walks over the branches that are collected.
    template <class Sink>
    [[nodiscard]] constexpr auto flush(Sink& sink) -> bool {
        return !merges_tnts(sink) || left_.count == 0 || walk_branches(sink);
    }
    /// Walks over the branches of TNTs. Stops at a branch whose TIP comes after the TNT: PKT-275.
    template <class Sink>
    constexpr auto walk_branches(Sink& sink) -> bool {
        if constexpr (uses_runs<Sink, Code>) {
            if (may_repeat(sink)) { return walk_run(run_end::none, 0, sink) != walked::missing; }
        }
        while (left_.count != 0) {
            auto const next = walk_branch(sink);
            if (next != walked::branch) { return next != walked::missing; }
        }
        return true;
    }
    /// A TIP. If the code does not lead to its branch, the walk resumes at its target.
    template <class Sink>
    constexpr auto add_target(packet::ip_bytes form, uint64_t target, Sink& sink) -> bool {
        if (!has_target_) {
            bool const has_to = form != packet::ip_bytes::suppressed;
            if constexpr (uses_runs<Sink, Code>) {
                if (has_to && may_repeat(sink)) {
                    auto const end = walk_run(run_end::tip, target, sink);
                    if (end == walked::branch) { return true; }
                    if (end == walked::missing) { return false; }
                }
            }
            if (!flush(sink)) { return false; }
            if (is_known() && !walk_target(has_to, target, sink)) { return false; }
            if (!is_known() && has_to) { resume(target, sink, lost_packet{form}); }
        }
        has_target_ = true;  // in case code is missing for the branches that wait
        if (left_.count != 0 && !walk_branches(sink)) { return false; }
        has_target_ = false;
        return true;
    }
    /// A TIP.PGE.
    template <class Sink>
    constexpr void add_start(bool has_ip, uint64_t ip, Sink& sink) {
        if (!has_ip) { return leave(sink); }
        // The PSB+ before it may have the same IP: GEN-176.
        bool const has_started = is_known() && ip_ == ip && left_.count == 0;
        if (!has_started) { resume(ip, sink); }
    }
    /// A TIP.PGD.
    template <class Sink>
    constexpr auto add_end(packet::ip_bytes form, uint64_t target, Sink& sink) -> bool {
        bool const has_to = form != packet::ip_bytes::suppressed;
        if constexpr (uses_runs<Sink, Code>) {
            if (may_repeat(sink)) {
                auto const how = has_to ? run_end::tip_pgd_out : run_end::tip_pgd;
                auto const end = walk_run(how, has_to ? target : 0, sink);
                if (end == walked::branch) { leave(sink); }
                if (end == walked::branch || end == walked::missing) {
                    return end == walked::branch;
                }
            }
        }
        if (!flush(sink) || (is_known() && !walk_to_end(has_to, target, sink))) { return false; }
        leave(sink, lost_packet{form});
        return true;
    }
    /// Walks to the first occurrence of an IP. Nothing is reported if the code does not lead there.
    template <class Sink>
    constexpr auto walk_until(uint64_t ip, Sink& sink) -> bool {
        using enum gap_reason;
        if (left_.count != 0) { return lose(wrong_turn); }
        auto const error = find_way_to(ip);
        bool const is_sure = options_.has_tnt ||
                             blocks_.leads_to_packet({ip_, space_, width_}, slot_, may_pop(),
                                                     options_.has_compressed_rets);
        if (error == endless_loop || (error == wrong_turn && is_sure)) { return lose(error); }
        for (;;) {
            if (ip_ == ip) { return is_sure || lose_until(ip, sink); }
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }  // the cache does not keep it
            bool const is_here = report_before(*at, ip, sink);
            bool const is_end = !is_here && at->branch > branch_kind::direct;
            if (is_end) { return lose_at(*at, sink) && lose_until(ip, sink); }
            is_here ? go(ip) : void(pass(*at, sink));
        }
    }
    [[nodiscard]] constexpr auto find_way_to(uint64_t ip) -> gap_reason {
        return blocks_.find_way({ip_, space_, width_}, slot_, ip);
    }
    /// Walks over the next instruction of a class, up to the next branch that has a packet.
    template <class Sink>
    constexpr auto walk_over(instruction_class kind, Sink& sink) -> bool {
        loop_guard loop{ip_};
        for (;;) {
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }
            if (at->branch > branch_kind::direct) { return true; }
            bool const is_it = at->kind == kind;
            if (loop.ends(pass(*at, sink), ip_)) { return lose(gap_reason::endless_loop); }
            if (is_it) { return true; }
        }
    }

    /// Reads the packets of runs, as long as they need no binding. `bytes`, `room`, `offset` and
    /// `last_ip` are as in `trace::skips_packets`; `binds` applies TIP.PGE and TIP.PGD to the
    /// binder.
    template <class Binds, takes_runs Sink>
    constexpr auto read_runs(uint8_t const* bytes, size_t room, uint64_t offset, uint64_t last_ip,
                             Binds& binds, Sink& sink) -> trace::skipped_packets {
        bool const is_plain = gap_.why == gap_reason::none && !has_target_ && later_.count == 0 &&
                              left_.count <= packet::marked_branches::max_count;
        bool const may_read = is_off() ? has_runs(sink) : may_repeat(sink) && binds.takes_branches;
        if (!is_plain || !may_read) { return {}; }
        return detail::read_runs<packet::all>(*this, binds, sink, bytes, room, offset, last_ip);
    }
    // What the loop over packets of runs calls.
    [[nodiscard]] constexpr auto position() const noexcept -> run_position {
        return {ip_, packet::marked_branches::of(left_), first_tnt_, is_known()};
    }
    constexpr void set_position(run_position const& here) noexcept {
        unsigned const count = highest_bit(here.branches);
        left_ = {count, here.branches};
        first_tnt_ = here.first_tnt;
        go(here.ip);
        state_ = here.is_on ? tracing::on : tracing::off;
    }
    [[nodiscard]] constexpr auto place_in(run_table& runs) noexcept -> uint64_t {
        return runs.place_of(space_, width_, blocks_.cache().generation());
    }
    /// Tracing starts, where no run with this key is known.
    template <takes_runs Sink>
    constexpr void start_run(run_key const& key, Sink& sink) {
        if constexpr (takes_starts<Sink>) { sink.start(key.to, space_); }
        if constexpr (!repeats_runs<Sink>) {
            auto const made = start_of(key, space_, sink);
            run* const place = made.is_part ? nullptr : sink.runs()->find_or_place(key).place;
            if (place != nullptr) { (void)sink.runs()->insert(*place, made, sink); }
        }
    }
    constexpr void apply_returns(run_log& waiting) noexcept {
        if (waiting.clears) {
            returns_.clear();
            lost_calls_ = waiting.clears = false;
        }
        for (unsigned i = 0; i < waiting.count; ++i) {
            detail::apply_returns(*waiting.runs[i], returns_, options_, width_);
        }
        waiting.count = 0;
    }
    [[nodiscard]] constexpr auto takes_returns(run const& one) const noexcept -> bool {
        return detail::takes_returns(one, returns_, options_, width_);
    }
    /// Walks over a run from a position. `offset` is that of the packet that ends it.
    ///
    /// noinline: the loop calls it rarely.
    template <takes_runs Sink>
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto walk_run(run_position here, run_end end, uint64_t to, uint64_t offset,
                            run_log& waiting, Sink& sink) -> run_position {
        apply_returns(waiting);
        set_position(here);
        offset_ = offset;
        bool const is_whole = walk_run(end, to, sink) == walked::branch;
        here = position();
        here.has_stopped = !is_whole;
        return here;
    }

private:
    using tracing = trace::tracing;

    /// Reports the gap, which ends at `ip` if it is known.
    ///
    /// noinline: inlined, a walk of blocks takes 0.2 % more instructions (g++ 12).
    template <class Sink>
    PTSPEC_ATTRIBUTE(noinline)
    constexpr void end_gap([[maybe_unused]] Sink& sink, bool is_known, uint64_t ip,
                           lost_packet lost) {
        gap_.has_to = is_known;
        gap_.to = ip;
        gap_.to_is_target = is_known && lost.size() != 0;
        gaps_.add(gap_, offset_ + lost.size());
        if constexpr (takes_gaps<Sink>) { sink.gap(gap_); }
        gap_ = {};
    }

    constexpr void update_space() {
        if constexpr (has_spaces<Code>) {
            bool const is_in_tnt = left_.count != 0;
            walked_.offset = is_in_tnt ? tnt_offset_ : offset_;
            walked_.branches = is_in_tnt ? tnt_count_ - left_.count : 0;
            space_ = blocks_.code().space_of(walked_);
        }
    }
    /// Forgets the return stack and the branches: they are not valid after this point.
    constexpr void begin(tracing state) noexcept {
        state_ = state;
        returns_.clear();
        left_ = later_ = {};
    }
    constexpr void go(uint64_t ip, uint32_t slot) noexcept {
        ip_ = ip;
        slot_ = slot;
    }
    /// The block at the current IP; nullptr if there is none: then call `lose_code`.
    [[nodiscard]] constexpr auto here() -> block const* {
        return blocks_.at(slot_, {ip_, space_, width_});
    }
    /// Returns false if the caller wants to supply the code.
    constexpr auto lose_code() noexcept -> bool {
        auto const why = blocks_.reason();
        bool const is_gap = !has_missing(why) || options_.missing == on_missing_code::gap ||
                            blocks_.missing() == skipped_;
        return is_gap && lose(why);
    }

    /// Executes a block that has no packet: it falls through, or ends with a direct jump or call.
    /// Returns true if it jumped.
    template <class Sink>
    constexpr auto pass(block const& passed, Sink& sink) -> bool {
        report(passed, sink);
        if (passed.branch == branch_kind::none) {
            if (has_paging_ && passed.kind == instruction_class::mov_to_cr3) { settle_paging(); }
            go(passed.end(), passed.slot_after);
            return false;
        }
        report_edge(passed, passed.target, true, sink);
        if (passed.pushes) { returns_.push(passed.end()); }
        go(passed.target, passed.slot_target);
        return true;
    }

    // --------------------------------------------------------------------------- branches

    /// Branches are collected from several TNTs, to walk more of them at once.
    template <class Sink>
    [[nodiscard]] static constexpr auto merges_tnts([[maybe_unused]] Sink& sink) -> bool {
        if constexpr (takes_runs<Sink> && changes_of<Code> == space_changes::at_paging) {
            return sink.runs() != nullptr;
        } else {
            return false;
        }
    }
    constexpr void append(packet::branches more) noexcept {
        if (!is_known()) { return; }
        if (left_.count + more.count > 64) {
            (void)lose(gap_reason::wrong_turn);
            return;
        }
        left_ = {left_.count + more.count, left_.bits << more.count | more.bits};
        if constexpr (has_spaces<Code>) {
            tnt_offset_ = offset_;
            tnt_count_ = left_.count;
        }
    }
    /// Walks over the next branch of a TNT.
    template <class Sink>
    constexpr auto walk_branch(Sink& sink) -> walked {
        if constexpr (changes_of<Code> == space_changes::at_branches) { update_space(); }
        loop_guard loop{ip_};
        block const* at = nullptr;
        for (;;) {
            at = here();
            if (at == nullptr) { return lose_code() ? walked::lost : walked::missing; }
            if (at->branch > branch_kind::direct) { break; }
            if (loop.ends(pass(*at, sink), ip_)) { return lose_at(gap_reason::endless_loop); }
        }
        bool const is_taken = (left_.bits >> (left_.count - 1) & 1) != 0;
        if (at->branch == branch_kind::conditional) {
            left_.count -= 1;
            report(*at, sink);
            uint64_t const target = is_taken ? at->target : at->end();
            report_edge(*at, target, is_taken, sink);
            go(target, is_taken ? at->slot_target : at->slot_after);
            return walked::branch;
        }
        if (at->branch == branch_kind::indirect) { return walked::waits; }
        if (at->branch != branch_kind::near_return || !is_taken) {
            return lose_at(gap_reason::wrong_turn);
        }
        if (returns_.size() == 0) {
            return lose_at(lost_calls_ ? gap_reason::missing_call : gap_reason::wrong_turn);
        }
        left_.count -= 1;
        report(*at, sink);
        uint64_t const target = options_.ips.popped(returns_.take(), width_);
        report_edge(*at, target, true, sink);
        go(target);
        return walked::branch;
    }
    template <takes_runs Sink>
    [[nodiscard]] constexpr auto has_runs(Sink& sink) const -> bool {
        return sink.runs() != nullptr && !has_paging_ && options_.has_tnt;
    }
    /// True if the branches that are left may be those of a run.
    template <takes_runs Sink>
    [[nodiscard]] constexpr auto may_repeat(Sink& sink) const -> bool {
        return has_runs(sink) && is_known() && left_.count <= packet::marked_branches::max_count;
    }
    /// Walks over the branches that are left, up to and including the branch of the packet that
    /// ends the run. Repeats the run, or parts of it, and records it. `waits` and `lost`: the
    /// caller walks what is left.
    ///
    /// noinline: it is called from several places, and the loop over packets calls it rarely.
    template <takes_runs Sink>
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto walk_run(run_end end, uint64_t to, Sink& sink) -> walked {
        auto& runs = *sink.runs();
        auto const find = [&](run_key const& key) {
            return runs.find_or_place(key, [&](run const& one) { return takes_returns(one); });
        };
        bool is_cut = false;
        for (;;) {
            if (end == run_end::none && left_.count == 0) { return walked::branch; }
            run_key key{ip_, to, packet::marked_branches::of(left_),
                        place_in(runs) | underlying(end)};
            bool const is_long = key.is_long();
            unsigned rest = 0;
            auto got = is_cut && is_long ? run_lookup{} : find(key);
            if (got.known == nullptr && got.place == nullptr && is_long) {
                is_cut = true;
                key = key.start();
                rest = left_.count - run_key::short_branches;
                got = find(key);
            }
            if (got.known == nullptr) {
                auto const next = got.place != nullptr ? record(key, rest, got.place, sink)
                                                       : walk_over(key, rest, sink, [] {});
                if (next != walked::branch || rest == 0) { return next; }
                continue;
            }
            run& known = *got.known;
            detail::repeat(known, runs, sink);
            detail::apply_returns(known, returns_, options_, width_);
            go(known.next);
            left_.count -= known.taken;
            if (!known.is_part && rest == 0) { return walked::branch; }
        }
    }
    /// Walks over the branches of a run, after which `rest` are left, and over that of the packet
    /// that ends it. Calls `walked_one` after each of the first.
    template <class Out, class WalkedOne>
    constexpr auto walk_over(run_key const& key, unsigned rest, Out& out,
                             WalkedOne const& walked_one) -> walked {
        while (left_.count > rest) {
            auto const next = walk_branch(out);
            if (next != walked::branch) { return next; }
            walked_one();
        }
        auto const end = key.end();
        if (end == run_end::none) { return walked::branch; }
        bool const is_done = end == run_end::tip
                                 ? walk_target(true, key.to, out)
                                 : walk_to_end(end == run_end::tip_pgd_out, key.to, out);
        if (!is_done) { return walked::missing; }
        return is_known() ? walked::branch : walked::lost;
    }
    /// The same, and stores the run.
    template <takes_runs Sink>
    constexpr auto record(run_key const& key, unsigned rest, run* place, Sink& sink) -> walked {
        run_recorder<Sink> here{sink};
        auto const next = walk_over(key, rest, here, [&] { here.end_branch(ip_); });
        here.store(key, next == walked::branch, ip_, place);
        return next;
    }
    constexpr auto lose_at(gap_reason why) noexcept -> walked {
        (void)lose(why);
        return walked::lost;
    }

    /// Walks to the branch whose target is in a TIP.
    template <class Sink>
    constexpr auto walk_target(bool has_to, uint64_t target, Sink& sink) -> bool {
        loop_guard loop{ip_};
        for (;;) {
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }
            if (at->branch <= branch_kind::direct) {
                if (loop.ends(pass(*at, sink), ip_)) { return lose(gap_reason::endless_loop); }
                continue;
            }
            bool const returns = at->branch == branch_kind::near_return;
            if (!options_.has_tnt && is_unsure(*at, may_pop())) { return lose_at(*at, sink); }
            if (!returns && at->branch != branch_kind::indirect) {
                return lose(gap_reason::wrong_turn);
            }
            report(*at, sink);
            if (returns) {
                (void)returns_.pop(target, trace::popped_bits(width_), options_.on_ret_mismatch);
            }
            if (at->pushes) { returns_.push(at->end()); }
            if (has_to) { report_edge(*at, target, true, sink); }
            settle_paging();
            if (!has_to) { return lose(gap_reason::no_target); }
            go(target);
            return true;
        }
    }
    /// Walks to the branch, or the MOV CR3, at which tracing ends.
    template <class Sink>
    constexpr auto walk_to_end(bool has_to, uint64_t target, Sink& sink) -> bool {
        loop_guard loop{ip_};
        for (;;) {
            block const* const at = here();
            if (at == nullptr) { return lose_code(); }
            bool ends = true;
            if (!options_.has_tnt && is_unsure(*at, may_pop())) { return lose_at(*at, sink); }
            if (at->branch == branch_kind::direct) {
                ends = has_to ? target == at->target : is_outside_filters(options_, at->target);
            } else if (at->branch == branch_kind::none) {
                // GEN-243: this MOV CR3 has no PIP. The walk has passed those that have one.
                ends = at->kind == instruction_class::mov_to_cr3 &&
                       (!has_to || target == at->end());
            } else if (at->branch == branch_kind::interrupt ||
                       (at->branch == branch_kind::conditional && has_to && target != at->target &&
                        target != at->end())) {
                return lose(gap_reason::wrong_turn);
            }
            if (!ends) {
                if (loop.ends(pass(*at, sink), ip_)) { return lose(gap_reason::endless_loop); }
                continue;
            }
            report(*at, sink);
            bool const is_taken = at->branch != branch_kind::conditional || target == at->target;
            if (has_to && at->branch != branch_kind::none) {
                report_edge(*at, target, is_taken, sink);
            }
            if (!has_to) { report_stop(*at, sink); }
            return true;
        }
    }
    constexpr void lose_branches() noexcept {
        if (!options_.has_branches) { (void)lose(gap_reason::no_branches); }
    }
    /// True if a RET may be compressed: then it has no packet.
    [[nodiscard]] constexpr auto may_pop() const noexcept -> bool {
        return options_.has_compressed_rets && (lost_calls_ || returns_.size() != 0);
    }
    /// Executes a block; it is not known where its branch leads.
    template <class Sink>
    constexpr auto lose_at(block const& last, Sink& sink) -> bool {
        report(last, sink);
        go(last.last());
        return lose(gap_reason::no_tnt);
    }
    /// The IP of an event may be reached again after its first occurrence: the gap ends there.
    template <class Sink>
    constexpr auto lose_until(uint64_t ip, Sink& sink) -> bool {
        (void)lose(gap_reason::no_tnt);
        resume(ip, sink);
        return true;
    }

    block_finder<Code> blocks_;
    walk_options options_;
    uint64_t ip_ = 0;  ///< the next instruction, if `is_known()`
    uint32_t slot_ = 0;
    uint32_t space_ = 0;
    code_width width_ = code_width::bits_64;
    tracing state_ = tracing::unknown;  ///< `unknown` also if only the IP is not known
    bool has_target_ = false;           ///< the branch of the present TIP was walked
    bool has_paging_ = false;           ///< `paging_`, which does not apply yet
    bool lost_calls_ = false;   ///< the processor may have return addresses from before or in a gap
    packet::branches left_{};   ///< of the last TNTs
    packet::branches later_{};  ///< of a TNT after the last ones
    uint64_t skipped_ = uint64_t{1} << 63;  ///< initially no canonical address
    uint64_t offset_ = 0;
    uint64_t first_tnt_ = ~uint64_t{0};  ///< of the first TNT whose branches are collected
    uint64_t tnt_offset_ = 0;            ///< of the TNT whose branches are left
    unsigned tnt_count_ = 0;  ///< its branches, and the branches that were left before it
    gap gap_{};               ///< that has no end yet
    gap_counts gaps_{};
    packet::pip paging_{};
    walk_state walked_{};
    trace::return_stack returns_{};
};

}  // namespace ptspec::flow::detail

#undef PTSPEC_ATTRIBUTE
