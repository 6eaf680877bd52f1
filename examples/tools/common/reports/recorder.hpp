// SPDX-License-Identifier: BSL-1.0
#pragma once

// Keeps what a walker reports, for a report that may be in another thread.

#include "report.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace reports {

/// What a walker reported, in order.
class records {
public:
    struct start {
        std::uint64_t ip;
        std::uint32_t space;
    };

    /// By PTWRITE.
    struct written {
        std::uint64_t ip;
        std::uint64_t payload;
    };
    /// Instructions in several blocks, the first at `ip`.
    struct sum {
        std::uint64_t ip = 0;
        std::uint64_t count = 0;
    };

    /// A branch or event, after these instructions.
    struct step {
        sum before;
        flow::edge edge;
        vm_transition transition = vm_transition::none;
    };
    /// Where what follows is executed.
    struct place {
        bool is_wanted = true;
        bool is_known = true;
    };
    using record = std::variant<step, flow::executed, flow::executed_block, sum, flow::gap, start,
                                flow::stop, trace::time, thread_id, written, place>;

    void add(record const& one) { all_.push_back(one); }
    [[nodiscard]] auto all() const -> std::vector<record> const& { return all_; }
    [[nodiscard]] auto size() const -> std::size_t { return all_.size(); }
    void clear() { all_.clear(); }
    /// The last step becomes a VM entry or exit, if it is still here.
    void set_transition(std::size_t step_at, vm_transition what) {
        if (auto* const found = std::get_if<step>(&all_.at(step_at))) { found->transition = what; }
    }

    /// Passes all records to a report. `shows(time)` is false outside of the wanted times.
    template <class Shows>
    void replay(report& to, Shows const& shows) const {
        bool const has_transitions = !to.is_filtered || to.wants().edges;
        for (auto const& any : all_) {
            if (auto const* const where = std::get_if<place>(&any)) {
                to.is_in_place = where->is_wanted;
                to.is_place_known = where->is_known;
            } else if (!to.is_in_place && leave_out(any, to.others, to.is_place_known)) {
                continue;
            } else if (auto const* const step_of = std::get_if<step>(&any)) {
                if (step_of->before.count != 0) {
                    to.found.executed(step_of->before.count, to.is_shown);
                    to.executed(step_of->before.ip, step_of->before.count);
                }
                to.transition = step_of->transition;
                // A guest continues after its exit and entry.
                bool const is_other = to.transition != vm_transition::none;
                if (has_transitions || !is_other) { to.edge(step_of->edge); }
            } else if (auto const* const instruction = std::get_if<flow::executed>(&any)) {
                to.found.executed(1, to.is_shown);
                to.instruction(*instruction);
            } else if (auto const* const block = std::get_if<flow::executed_block>(&any)) {
                to.found.executed(block->count, to.is_shown);
                to.block(*block);
            } else if (auto const* const all = std::get_if<sum>(&any)) {
                to.found.executed(all->count, to.is_shown);
                to.executed(all->ip, all->count);
            } else if (auto const* const gap = std::get_if<flow::gap>(&any)) {
                to.is_shown ? to.found.gap(*gap) : to.found.executed(1, false);
                to.gap(*gap);
            } else if (auto const* const begin = std::get_if<start>(&any)) {
                to.start(begin->ip, begin->space);
            } else if (auto const* const end = std::get_if<flow::stop>(&any)) {
                to.stop(*end);
            } else if (auto const* const when = std::get_if<trace::time>(&any)) {
                to.is_shown = shows(*when);
                to.found.time(*when);
                to.time(*when);
            } else if (auto const* const which = std::get_if<thread_id>(&any)) {
                to.thread(*which);
            } else {
                auto const& value = std::get<written>(any);
                to.written(value.ip, value.payload);
            }
        }
    }

private:
    /// Counts a record of code outside of the place. False for a time or thread, which is reported.
    static auto leave_out(record const& any, left_out& to, bool is_known) -> bool {
        std::uint64_t instructions = 0;
        if (auto const* const step_of = std::get_if<step>(&any)) {
            instructions = step_of->before.count;
            to.branches += 1;
        } else if (std::holds_alternative<flow::executed>(any)) {
            instructions = 1;
        } else if (auto const* const block = std::get_if<flow::executed_block>(&any)) {
            instructions = block->count;
        } else if (auto const* const all = std::get_if<sum>(&any)) {
            instructions = all->count;
        } else if (std::holds_alternative<flow::gap>(any)) {
            to.gaps += 1;
        }
        to.instructions += instructions;
        to.unknown += is_known ? 0 : instructions;
        return !std::holds_alternative<trace::time>(any) && !std::holds_alternative<thread_id>(any);
    }

    std::vector<record> all_{};
};

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
        if (has_symbols_ && !here_.contains(one.ip)) { enter_function(one.ip); }
        record_context(of_.window);
        if (of_.blocks) { return add(one); }
        if (sum_.count == 0) { sum_.ip = one.ip; }
        sum_.count += one.count;
        if (of_.window || thread_ != nullptr || place_ != nullptr) { return; }
        same_begin_ = here_.begin;
        same_size_ = here_.end - here_.begin;
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
        all_.add(records::step{sum_, one});
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
    void add(records::record const& one) {
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
};

/// One that takes times, too.
template <class Sink>
struct timed : Sink {
    void time(trace::time const& when) { this->to.time(when); }
};

}  // namespace reports
