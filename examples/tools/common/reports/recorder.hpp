// SPDX-License-Identifier: BSL-1.0
#pragma once

// Keeps what a walker reports, for a report that may be in another thread.

#include "records.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace reports {

/// Records what a report wants. Calls `flush(records)`, if it is not empty, at 16384 records.
class recorder {
public:
    /// `offset` is that of the walk in the stream. `code` knows the executing thread.
    template <class Code>
    recorder(wanted const& of, report const& to, std::uint64_t offset, Code const& code,
             std::function<void(records&)> flush = {})
        : of_{of},
          to_{to},
          offset_{offset},
          thread_{code.changing_thread()},
          may_move_{!code.is_one_thread()},
          may_have_news_{thread_ != nullptr || of.times || of.window},
          flush_{std::move(flush)} {
        auto const* const constant = code.constant_thread();
        if (thread_ == nullptr) { set_symbols(constant == nullptr ? any_thread : *constant); }
    }

    /// Call this after symbols changed.
    void update_names() {
        add_sum();
        if (functions_) { functions_->forget(); }
        here_ = functions_ ? flow::function{} : flow::function{0, 0, ~std::uint64_t{0}};
    }
    /// Records the place of the code, which changes, and which edges are VM entries and exits.
    void follow(tool::walk_place const& place) { place_ = &place; }
    void time(trace::time const& when) {
        if (of_.times || of_.window) {
            when_ = when;
            is_time_recorded_ = false;
        }
    }
    void executed(flow::executed const& one) {
        record_context(of_.window);
        add(one);
    }
    void block(flow::executed_block const& one) {
        if (one.ip - same_begin_ < same_size_) [[likely]] {
            sum_.count += one.count;
            return;
        }
        begin_sum(one);
    }
    void edge(flow::edge const& one) {
        if (!of_.edges && is_jump(one)) {
            last_jump_ = one.from;
            return;
        }
        add_branch(one);
    }
    void start(std::uint64_t ip, std::uint32_t space) {
        record_context(true);
        add(records::start{ip, space});
    }
    void stop(flow::stop const& one) {
        record_context(true);
        auto stop = one;
        stop.may_move = may_move_;
        add(stop);
    }
    void event(trace::event const& one) {
        if (!of_.events || one.what != trace::event_type::ptwrite) { return; }
        record_context(true);
        add(records::written{one.ip, one.packet.as<packet::ptw>().payload()});
    }
    void gap(flow::gap const& one) {
        record_context(true);
        auto moved = one;
        moved.offset += offset_;
        add(moved);
    }

    /// Records known runs again without a walk: for one thread, where place and time do not matter.
    void repeat_with(recorded_runs& known) {
        runs_ = &known;
        all_ = records{known.steps()};
    }
    [[nodiscard]] auto runs() const -> flow::run_table* {
        return runs_ != nullptr ? &runs_->table() : nullptr;
    }
    void begin_run() {
        is_run_begin_ = true;
        same_size_ = 0;
    }
    auto keep_run(std::uint32_t index) -> bool {
        constexpr std::uint64_t max_count = ~std::uint32_t{0};
        auto steps = all_.steps_from(run_first_);
        if (!steps || sum_.count > max_count) { return false; }
        auto rest = sum_;
        if (steps->empty()) {
            rest = {run_ip_, rest.count - sum_before_run_};
        } else if (sum_before_run_ != 0) {
            auto& first = steps->front();
            auto step = all_.steps()[first.number];
            step.ip = run_ip_;
            first = {all_.steps().number_of(step),
                     static_cast<std::uint32_t>(first.count - sum_before_run_)};
        }
        runs_->keep(index,
                    {.ip = run_ip_,
                     .begin = here_.begin,
                     .end = here_.end,
                     .last_jump = last_jump_,
                     .rest_ip = rest.ip,
                     .rest = static_cast<std::uint32_t>(rest.count)},
                    *steps);
        return true;
    }
    void repeat_run(std::uint32_t index) {
        auto const& from = runs_->at(index);
        enter(from.ip);
        if (from.count == 0) {
            if (sum_.count == 0) { sum_.ip = from.ip; }
            sum_.count += from.rest;
        } else {
            all_.add(sum_, runs_->steps_of(from), from.count);
            sum_ = {from.rest_ip, from.rest};
        }
        here_.begin = from.begin;
        here_.end = from.end;
        last_jump_ = from.last_jump;
        same_size_ = 0;
    }
    /// What was recorded.
    [[nodiscard]] auto all() -> records& {
        add_sum();
        record_place();
        return all_;
    }

private:
    static constexpr std::size_t most = 16384;

    [[nodiscard]] auto has_news(bool of_time) const -> bool {
        return (thread_ != nullptr && (!has_thread_ || !(*thread_ == last_thread_))) ||
               (of_time && !is_time_recorded_);
    }
    /// Records the thread and, if it is wanted, the time, where they have changed.
    void record_context(bool needs_time) {
        if (place_ != nullptr) { record_place(); }
        if (may_have_news_ && has_news(needs_time)) { add_news(needs_time); }
    }
    void add_news(bool needs_time) {
        add_sum();
        if (thread_ != nullptr && (!has_thread_ || !(*thread_ == last_thread_))) {
            last_thread_ = *thread_;
            has_thread_ = true;
            all_.add(last_thread_);
            set_symbols(last_thread_);
        }
        if (!is_time_recorded_ && needs_time) {
            is_time_recorded_ = true;
            all_.add(when_);
        }
    }
    void set_symbols(thread_id thread) {
        here_ = {0, 0, ~std::uint64_t{0}};
        same_size_ = 0;
        if (!of_.functions) { return; }
        auto const* const names = to_.symbols_of(thread);
        has_symbols_ = names != nullptr;
        if (names == nullptr) { return; }
        functions_.emplace(*names);
        here_ = {};
    }
    /// A block that begins a sum, or is one of another function than the last.
    [[gnu::noinline]] void begin_sum(flow::executed_block const& one) {
        enter(one.ip);
        record_context(of_.window);
        if (is_run_begin_) {
            is_run_begin_ = false;
            run_ip_ = one.ip;
            run_first_ = all_.size();
            sum_before_run_ = sum_.count;
        }
        if (of_.blocks) { return add(one); }
        if (sum_.count == 0) { sum_.ip = one.ip; }
        sum_.count += one.count;
        if (of_.window || thread_ != nullptr || place_ != nullptr) { return; }
        same_begin_ = here_.begin;
        same_size_ = here_.end - here_.begin;
    }
    void enter(std::uint64_t ip) {
        if (has_symbols_ && !here_.contains(ip)) { enter_function(ip); }
    }
    /// The next instruction is one of another function than the last: after a jump, or the next in
    /// memory.
    void enter_function(std::uint64_t ip) {
        record_context(false);
        if (!has_symbols_) { return; }
        if (sum_.count != 0) {
            bool const is_next = ip == here_.end;
            add_step({.from = is_next ? 0 : last_jump_,
                      .to = ip,
                      .kind = flow::instruction_class::direct_jump});
        }
        here_ = functions_->range_at(ip);
    }
    [[gnu::noinline]] void add_branch(flow::edge const& one) {
        record_context(true);
        add_step(one);
    }
    void add_step(flow::edge const& one) {
        if (place_ != nullptr) {  // later reports may change the step
            flush_if_full();
            step_at_ = all_.size();
        }
        all_.add(sum_, one);
        end_sum();
        if (place_ == nullptr) { flush_if_full(); }
    }
    void end_sum() {
        sum_.count = 0;
        same_size_ = 0;
    }
    void record_place() {
        if (place_ == nullptr) { return; }
        bool const changes_nr = last_place_.has_nr && place_->has_nr &&
                                last_place_.non_root != place_->non_root;
        if (changes_nr && step_at_ < all_.size() && step_at_ + 1 == all_.size() &&
            sum_.count == 0) {
            all_.set_transition(step_at_,
                                place_->non_root ? vm_transition::entry : vm_transition::exit);
        }
        bool const is_other = !has_place_ || last_place_.is_wanted != place_->is_wanted ||
                              last_place_.is_known != place_->is_known;
        last_place_ = *place_;
        if (!is_other) { return; }
        add_sum();
        has_place_ = true;
        all_.add(records::place{place_->is_wanted, place_->is_known});
    }
    void add_sum() {
        if (sum_.count == 0) { return; }
        all_.add(sum_);
        end_sum();
    }
    void add(records::other const& one) {
        add_sum();
        all_.add(one);
        flush_if_full();
    }
    void flush_if_full() {
        if (all_.size() >= most && flush_) [[unlikely]] { flush_(all_); }
    }

    static constexpr thread_id any_thread{no_process, no_process, 0};

    wanted of_;
    report const& to_;
    std::uint64_t offset_;
    thread_id const* thread_;  ///< that executes, if it changes; or nullptr
    bool may_move_;            ///< it may continue on another processor
    bool may_have_news_;       ///< threads or times are recorded
    bool has_symbols_ = false;
    std::optional<traced::address_names> functions_{};
    flow::function here_{0, 0, ~std::uint64_t{0}};  ///< of the last instruction
    std::function<void(records&)> flush_;
    /// Blocks at these addresses are part of the same sum as the last.
    std::uint64_t same_begin_ = 0;
    std::uint64_t same_size_ = 0;
    std::uint64_t last_jump_ = 0;
    thread_id last_thread_{};
    bool has_thread_ = false;  ///< `last_thread_` is recorded
    trace::time when_{};
    bool is_time_recorded_ = true;  ///< `when_` is recorded
    records::sum sum_{};            ///< not yet recorded
    records all_{};
    tool::walk_place const* place_ = nullptr;
    tool::walk_place last_place_{};
    bool has_place_ = false;   ///< `last_place_` is recorded
    std::size_t step_at_ = 0;  ///< of the last edge
    recorded_runs* runs_ = nullptr;
    bool is_run_begin_ = false;  ///< the next block is the first one of a run
    std::uint64_t run_ip_ = 0;
    std::size_t run_first_ = 0;         ///< the number of records before the run
    std::uint64_t sum_before_run_ = 0;  ///< instructions that were not yet recorded
};

/// The sinks of a walker: one for each kind of report.
struct instruction_recorder {
    recorder& to;

    void instruction(flow::executed const& one) { to.executed(one); }
    void gap(flow::gap const& one) { to.gap(one); }
};
struct block_recorder {
    recorder& to;

    void block(flow::executed_block const& one) { to.block(one); }
    void edge(flow::edge const& one) { to.edge(one); }
    void start(std::uint64_t ip, std::uint32_t space) { to.start(ip, space); }
    void stop(flow::stop const& one) { to.stop(one); }
    void event(trace::event const& one) { to.event(one); }
    void gap(flow::gap const& one) { to.gap(one); }
    auto runs() -> flow::run_table* { return to.runs(); }
    void begin_run() { to.begin_run(); }
    auto keep_run(std::uint32_t index) -> bool { return to.keep_run(index); }
    void repeat_run(std::uint32_t index) { to.repeat_run(index); }
};

/// One that takes times, too.
template <class Sink>
struct timed : Sink {
    void time(trace::time const& when) { this->to.time(when); }
};

}  // namespace reports
