// SPDX-License-Identifier: BSL-1.0
#pragma once

// Keeps what a walker reports, for a report that may be in another thread.

#include "report.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

namespace pt_flow {

/// What a walker reported, in order.
class records {
public:
    struct start {
        std::uint64_t ip;
        std::uint32_t space;
    };
    struct stop {
        std::uint64_t ip;
        std::uint32_t space;
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
    };
    using record = std::variant<step, flow::executed, flow::executed_block, sum, flow::gap, start,
                                stop, trace::time, thread_id>;

    void add(record const& one) { all_.push_back(one); }
    [[nodiscard]] auto size() const -> std::size_t { return all_.size(); }
    void clear() { all_.clear(); }

    /// Passes all records to a report. `shows(time)` is false outside of the wanted times.
    template <class Shows>
    void replay(report& to, Shows const& shows) const {
        for (auto const& any : all_) {
            if (auto const* const step_of = std::get_if<step>(&any)) {
                if (step_of->before.count != 0) {
                    to.executed(step_of->before.ip, step_of->before.count);
                }
                to.edge(step_of->edge);
            } else if (auto const* const instruction = std::get_if<flow::executed>(&any)) {
                to.instruction(*instruction);
            } else if (auto const* const block = std::get_if<flow::executed_block>(&any)) {
                to.block(*block);
            } else if (auto const* const all = std::get_if<sum>(&any)) {
                to.executed(all->ip, all->count);
            } else if (auto const* const gap = std::get_if<flow::gap>(&any)) {
                to.gaps += to.is_shown ? 1 : 0;
                to.gap(*gap);
            } else if (auto const* const begin = std::get_if<start>(&any)) {
                to.start(begin->ip, begin->space);
            } else if (auto const* const end = std::get_if<stop>(&any)) {
                to.stop(end->ip, end->space);
            } else if (auto const* const when = std::get_if<trace::time>(&any)) {
                to.is_shown = shows(*when);
                to.time(*when);
            } else {
                to.thread(std::get<thread_id>(any));
            }
        }
    }

private:
    std::vector<record> all_{};
};

/// Records what a report wants. Calls `flush(records)`, if it is not empty, at 16384 records.
class recorder {
public:
    /// `offset` is that of the walk in the stream. `thread` is the executing thread, which changes;
    /// or nullptr. `is_one_thread`: the stream has all of one.
    recorder(wanted const& of, std::uint64_t offset, thread_id const* thread, bool is_one_thread,
             std::function<void(records&)> flush = {})
        : of_{of},
          offset_{offset},
          thread_{thread},
          has_stops_{is_one_thread},
          flush_{std::move(flush)},
          only_sums_{!of.blocks && !of.window && thread == nullptr} {}

    void time(trace::time const& when) {
        if (of_.times || of_.window) {
            when_ = when;
            is_told_ = false;
        }
    }
    void executed(flow::executed const& one) {
        tell(of_.window);
        add(one);
    }
    void block(flow::executed_block const& one) {
        if (only_sums_) [[likely]] {
            if (sum_.count == 0) { sum_.ip = one.ip; }
            sum_.count += one.count;
            return;
        }
        tell(of_.window);
        if (of_.blocks) { return add(one); }
        if (sum_.count == 0) { sum_.ip = one.ip; }
        sum_.count += one.count;
    }
    void edge(flow::edge const& one) {
        if (!of_.edges && is_jump(one)) { return; }
        tell(true);
        all_.add(records::step{sum_, one});
        sum_.count = 0;
        flush_if_full();
    }
    void start(std::uint64_t ip, std::uint32_t space) {
        tell(true);
        add(records::start{ip, space});
    }
    /// In a stream of one processor, the thread may continue on another processor.
    void stop(std::uint64_t ip, std::uint32_t space) {
        if (!has_stops_) { return; }
        tell(true);
        add(records::stop{ip, space});
    }
    void gap(flow::gap const& one) {
        tell(true);
        auto moved = one;
        moved.offset += offset_;
        add(moved);
    }
    /// What was recorded.
    [[nodiscard]] auto all() -> records& {
        add_sum();
        return all_;
    }

private:
    static constexpr std::size_t most = 16384;

    [[nodiscard]] static auto is_jump(flow::edge const& one) -> bool {
        using enum flow::instruction_class;
        constexpr auto bit = [](flow::instruction_class which) {
            return std::uint64_t{1} << static_cast<unsigned>(which);
        };
        constexpr auto jumps = bit(conditional) | bit(direct_jump);
        return !one.is_asynchronous && (bit(one.kind) & jumps) != 0;
    }
    [[nodiscard]] auto has_news(bool of_time) const -> bool {
        return (thread_ != nullptr && (!has_thread_ || !(*thread_ == last_thread_))) ||
               (of_time && !is_told_);
    }
    /// Records the thread and, if it is wanted, the time, where they have changed.
    void tell(bool needs_time) {
        if (!has_news(needs_time)) { return; }
        add_sum();
        if (thread_ != nullptr && (!has_thread_ || !(*thread_ == last_thread_))) {
            last_thread_ = *thread_;
            has_thread_ = true;
            all_.add(last_thread_);
        }
        if (!is_told_ && needs_time) {
            is_told_ = true;
            all_.add(when_);
        }
    }
    void add_sum() {
        if (sum_.count == 0) { return; }
        all_.add(sum_);
        sum_.count = 0;
    }
    void add(records::record const& one) {
        add_sum();
        all_.add(one);
        flush_if_full();
    }
    void flush_if_full() {
        if (all_.size() >= most && flush_) [[unlikely]] { flush_(all_); }
    }

    wanted of_;
    std::uint64_t offset_;
    thread_id const* thread_;
    bool has_stops_;
    std::function<void(records&)> flush_;
    bool only_sums_;  ///< of blocks, without their times and threads
    thread_id last_thread_{};
    bool has_thread_ = false;  ///< `last_thread_` is recorded
    trace::time when_{};
    bool is_told_ = true;  ///< `when_` is recorded
    records::sum sum_{};   ///< not yet recorded
    records all_{};
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
    void stop(std::uint64_t ip, std::uint32_t space) { to.stop(ip, space); }
    void gap(flow::gap const& one) { to.gap(one); }
};

}  // namespace pt_flow
