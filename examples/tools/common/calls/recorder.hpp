// SPDX-License-Identifier: BSL-1.0
#pragma once

// Makes the bars of a flame chart from what a walker reports.

#include "bars.hpp"
#include "../traced/processes.hpp"
#include "../walk_summary.hpp"

#include <ptspec/flow/call_stack.hpp>
#include <ptspec/flow/code.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <memory>
#include <utility>
#include <vector>

namespace calls {

using namespace ptspec;
using traced::thread_id;

/// The part of a trace whose calls are recorded: from a TSC to another, or from an offset in bytes.
struct window {
    bool is_time = false;
    std::uint64_t first = 0;
    std::uint64_t last = ~std::uint64_t{0};
};

/// The thread of a raw trace.
inline constexpr thread_id any_thread{0xFFFF'FFFE, 0xFFFF'FFFE, 0};

/// The function of a bar where the file lacks bytes of the trace.
inline constexpr std::uint64_t missing_trace = 255;

/// The sink of a walk: records the calls of each thread as bars.
///
/// The instructions that a packet reports were executed between the time of the packet before and
/// its own. Calls between them are interpolated by the number of instructions. Where tracing was
/// disabled in between, an instruction takes one TSC tick.
class recorder {
public:
    /// The symbols of a thread.
    using symbols_of = std::function<traced::symbols const&(thread_id)>;

    recorder(std::size_t max_bars, window part, symbols_of names)
        : part_{part}, names_of_{std::move(names)}, bars_{max_bars} {}
    recorder(recorder const&) = delete;
    auto operator=(recorder const&) -> recorder& = delete;

    /// Takes bars before the end of the trace, see `bars::pass_on`. Not before `is_ready()`.
    struct receiver {
        std::function<bool()> is_ready{};
        std::function<bool(moment const&, moment const&)> is_same{};
        std::function<void(bar const&)> take{};
    };
    /// Passes bars on that ended, as often as there are `batch` bars. None are merged.
    void pass_on_to(receiver to, std::size_t batch) {
        receiver_ = std::move(to);
        bars_.set_batch(batch);
    }

    /// Says whether the trace is that of one thread. Only then is a start of tracing at another IP
    /// than that of the last stop the call of a signal handler.
    void set_one_thread(bool is_one_thread) { is_one_thread_ = is_one_thread; }
    /// Moves to the packet whose branches or event follow, at an offset in the trace, and to the
    /// thread that executes.
    void move_to(std::uint64_t offset, trace::time const& when, thread_id thread) {
        place_offsets();
        if (is_new_time_) { place_times(time_.now); }
        if (count_ != reached_.count) { reached_ = {count_, offset_.now, time_.now}; }
        offset_.now = std::max(offset_.now, offset << fraction_bits);
        set_time(when);
        if (pending_.size() >= max_pending) { place_times(estimate()); }
        if (bars_.is_full() && pending_.empty()) { merge(); }
        if (!(thread_ == thread) || lanes_.empty()) { change_to(thread); }
    }
    // What a walker calls: the functions of a sink.
    void block(flow::executed_block const& one) {
        if (lane_ == nullptr) { return; }
        lane_->stack.execute(one.ip);
        count_ += one.count;
        lane_->instructions += one.count;
    }
    void edge(flow::edge const& one) {
        if (lane_ != nullptr) { lane_->stack.edge(one); }
    }
    void start(std::uint64_t ip, std::uint32_t space) {
        end_run();
        if (is_trace_missing_) {
            is_trace_missing_ = false;
            for_each_lane([&](lane& one) { add_gap(one, missing_trace); });
        }
        if (lane_ != nullptr) { lane_->stack.start(ip, space); }
        reached_ = {count_, offset_.now, time_.now};
    }
    void stop(flow::stop const& one) {
        if (lane_ == nullptr) { return; }
        auto stop = one;
        stop.may_move = !is_one_thread_;
        lane_->stack.stop(stop);
    }
    void gap(flow::gap const& one) {
        summary_.gap(one);
        end_run();
        if (lane_ == nullptr) { return; }
        add_gap(*lane_, static_cast<std::uint64_t>(one.why));
        lane_->stack.gap(one);
        reached_ = {count_, offset_.now, time_.now};
    }
    /// Ends what is known of all threads, because bytes of the trace are missing.
    void lose() {
        summary_.gap({.why = flow::gap_reason::missing_trace});
        end_run();
        is_trace_missing_ = true;
        for_each_lane([](lane& one) { one.stack.gap({}); });
    }
    /// Ends all bars at the end of the trace.
    void finish() {
        end_run();
        for_each_lane([&](lane& one) {
            while (!one.open.empty()) { close_last(one); }
        });
        end_run();
        bars_.finish([this](bar& one) {
            if (one.is_first) { one.level = lane_of(one).lowest; }
        });
    }

    [[nodiscard]] auto symbols_of_thread(thread_id thread) const -> traced::symbols const& {
        return names_of_(thread);
    }
    /// The bars are sorted by lane, and callers precede what they call.
    [[nodiscard]] auto result() const -> bars const& { return bars_; }
    /// The threads, by lane.
    [[nodiscard]] auto threads() const -> std::vector<thread_id> const& { return threads_; }
    /// Threads without a lane, because there are too many.
    [[nodiscard]] auto threads_left_out() const -> std::size_t {
        return lanes_.size() - threads_.size();
    }
    [[nodiscard]] auto instructions() const -> std::uint64_t { return count_; }
    [[nodiscard]] auto gaps() const -> std::uint64_t { return summary_.gaps(); }
    /// What was found in all bytes of the trace. Without bars in the wanted part, all is outside.
    [[nodiscard]] auto summary(std::uint64_t bytes) const -> tool::walk_summary {
        auto made = summary_;
        made.bytes = bytes;
        made.printed = bars_.passed_on();
        for (auto const& one : bars_.all()) {
            made.printed += is_function(one.kind) && !one.is_unwanted ? 1U : 0U;
        }
        bool const is_part = part_.first != 0 || part_.last != ~std::uint64_t{0};
        made.executed(count_, made.printed != 0 || !is_part);
        if (has_time_) {
            made.has_time = true;
            made.first_time = first_time_;
            made.last_time = first_time_ + (time_.now >> fraction_bits);
        }
        return made;
    }
    /// Calls above the highest level.
    [[nodiscard]] auto left_out() const -> std::uint64_t { return left_out_ + bars_.left_out(); }
    /// True if a TSC came. Times count from the first one.
    [[nodiscard]] auto has_time() const -> bool { return has_time_; }
    [[nodiscard]] auto first_time() const -> std::uint64_t { return first_time_; }

private:
    static constexpr std::size_t max_lanes = 64;
    static constexpr std::size_t max_frames = 4096;
    static constexpr std::size_t max_stacks = 255;
    static constexpr std::size_t max_pending = std::size_t{1} << 17;
    static constexpr std::uint64_t max_ticks = std::uint64_t{1} << 53;

    struct lane;
    /// Takes the calls of a thread.
    struct call_sink {
        using ignores_gaps = call_sink;

        recorder& to;
        lane& of;

        void call(flow::call const& one) { to.add_call(of, one); }
        void returned(flow::call_return const& one) { to.leave(of, one); }
        void switched(flow::stack_switch const& one) { to.change_stack(of, one); }
        auto function_at(std::uint64_t ip) -> flow::function { return of.names.range_at(ip); }
        auto stack_use_at(std::uint64_t ip) -> flow::stack_use { return of.names.stack_use_at(ip); }
    };
    /// A frame of a stack that does not execute.
    struct left_frame {
        std::uint64_t function;
        std::uint64_t replaced;
        bar_kind kind;
    };
    struct lane {
        lane(recorder& to, thread_id which, std::uint32_t index)
            : thread{which}, number{index}, names{to.names_of_(which)}, sink{to, *this} {}
        lane(lane const&) = delete;
        auto operator=(lane const&) -> lane& = delete;

        thread_id thread;
        std::uint32_t number;
        traced::address_names names;
        call_sink sink;
        std::vector<flow::frame> frames = std::vector<flow::frame>(max_frames);
        std::vector<flow::stack> stacks = std::vector<flow::stack>(max_stacks);
        flow::call_stack<call_sink> stack{frames.data(), frames.size(), stacks.data(),
                                          stacks.size(), sink};
        std::vector<std::size_t> open{};                          ///< bars, callers first
        std::map<std::uint32_t, std::vector<left_frame>> left{};  ///< by the number of the stack
        std::uint64_t above = 0;  ///< open calls above the highest level
        std::int32_t lowest = 0;  ///< the level of the last function from before the trace
        std::uint64_t instructions = 0;
        bool has_begun = false;
        bool has_returned = false;  ///< the function that executes called the one before
        moment first{};
        bool is_stopped = false;
        bool stop_has_bar = false;
    };
    /// The begin or the end of a bar, whose time, and maybe whose offset, is not known yet.
    struct pending {
        std::size_t bar;
        bool is_end;
        std::uint64_t count;
    };
    /// Positions between the last placed instruction and the current packet.
    struct run {
        std::uint64_t count = 0;  ///< instructions up to `before`
        std::uint64_t before = 0;
        std::uint64_t now = 0;
    };
    /// The last place at which it is known what is executed.
    struct reached {
        std::uint64_t count = 0;
        std::uint64_t offset = 0;
        std::uint64_t time = 0;
    };

    // ------------------------------------------------------------------------------ lanes

    void change_to(thread_id thread) {
        auto& found = lanes_[{thread.pid, thread.tid, thread.is_guest}];
        if (found == nullptr && threads_.size() < max_lanes) {
            auto const number = static_cast<std::uint32_t>(threads_.size());
            found = std::make_unique<lane>(*this, thread, number);
            threads_.push_back(thread);
        }
        lane_ = found.get();
        thread_ = thread;
    }
    template <class Body>
    void for_each_lane(Body const& body) {
        for (auto const& [thread, one] : lanes_) {
            if (one != nullptr) { body(*one); }
        }
    }
    void merge() {
        if (receiver_.take && !receiver_.is_ready()) { return; }
        for_each_lane([](lane& one) { one.open.clear(); });
        receiver_.take ? bars_.pass_on(receiver_.is_same, receiver_.take) : bars_.merge();
        for (std::size_t i = 0; i < bars_.all().size(); ++i) {
            if (bars_[i].is_open) { lane_of(bars_[i]).open.push_back(i); }
        }
    }
    auto lane_of(bar const& one) -> lane& {
        auto const thread = threads_[one.lane];
        return *lanes_[{thread.pid, thread.tid, thread.is_guest}];
    }

    // ------------------------------------------------------------------------------ bars

    auto open(lane& in, std::uint64_t function, std::int32_t level, bar_kind kind) -> bar& {
        bar made;
        made.begin.instructions = in.instructions;
        made.function = function;
        made.lane = in.number;
        made.level = level;
        made.kind = kind;
        made.is_open = true;
        in.open.push_back(bars_.add(made));
        return bars_[in.open.back()];
    }
    /// The newest open bar begins or ends at the current instruction.
    void set_place(lane const& in, bool is_end) {
        pending_.push_back({in.open.back(), is_end, count_});
    }
    [[nodiscard]] auto level_above(lane const& in) -> std::int32_t {
        return in.open.empty() ? in.lowest : bars_[in.open.back()].level + 1;
    }
    void add_call(lane& in, flow::call const& one) {
        auto const& frame = one.frame;
        if (frame.kind == flow::frame_kind::stopped) { return open_stop(in, frame.why); }
        bool const is_root = frame.kind == flow::frame_kind::unseen && in.open.empty();
        if (is_root && in.above == 0) { return open_before(in, frame.to); }
        auto const level = level_above(in);
        if (level >= max_levels - 1 || in.above != 0) {  // the highest level is that of gaps
            ++left_out_;
            ++in.above;
            return;
        }
        open(in, frame.to, level, kind_of(frame.kind)).replaced = frame.replaced;
        set_place(in, false);
    }
    void open_stop(lane& in, flow::stop_reason why) {
        in.is_stopped = true;
        in.stop_has_bar = !in.open.empty() && in.above == 0 && level_above(in) < max_levels - 1;
        if (!in.stop_has_bar) { return; }
        open(in, static_cast<std::uint64_t>(why), level_above(in), bar_kind::stopped);
        set_place(in, false);
    }
    [[nodiscard]] static auto kind_of(flow::frame_kind kind) -> bar_kind {
        switch (kind) {
            case flow::frame_kind::event: return bar_kind::event;
            case flow::frame_kind::system_call: return bar_kind::system_call;
            case flow::frame_kind::tail_call: return bar_kind::tail_call;
            case flow::frame_kind::unseen: return bar_kind::before;
            default: return bar_kind::call;
        }
    }
    void leave(lane& in, flow::call_return const& one) {
        if (in.is_stopped) {
            in.is_stopped = false;
            if (in.stop_has_bar) { close_last(in); }
            return;
        }
        in.has_returned = one.from != 0 && !one.is_tail_call;
        auto left = one.frames == 0 ? 1 : one.frames;
        for (; left != 0 && in.above != 0; --left) { --in.above; }
        for (; left != 0 && !in.open.empty(); --left) { close_last(in); }
    }
    /// Ends the bars of the stack that is left, and continues those of the one that is entered.
    void change_stack(lane& in, flow::stack_switch const& one) {
        auto& left = in.left[one.left];
        left.clear();
        for (auto const index : in.open) {
            auto const& of = bars_[index];
            left.push_back({of.function, of.replaced, of.kind});
        }
        in.above = 0;
        while (!in.open.empty()) { close_last(in); }
        auto& entered = in.left[one.entered];
        if (one.is_new) { entered.clear(); }
        for (auto const& frame : entered) {
            open(in, frame.function, level_above(in), frame.kind).replaced = frame.replaced;
            set_place(in, false);
        }
        in.has_returned = false;
    }
    void close_last(lane& in) {
        auto& one = bars_[in.open.back()];
        one.is_open = false;
        one.end.instructions = in.instructions;
        one.instructions = one.end.instructions - one.begin.instructions;
        set_place(in, true);
        in.open.pop_back();
    }
    /// The function that is executed was called before the trace.
    void open_before(lane& in, std::uint64_t ip) {
        if (!in.has_begun) {
            in.has_begun = true;
            in.first = {in.instructions, offset_.before, time_.before};
        } else if (in.lowest == -max_levels || !in.has_returned) {
            open(in, ip, in.lowest, bar_kind::before);
            return set_place(in, false);
        } else {
            --in.lowest;  // the function that returned to it was called in it
        }
        open(in, ip, in.lowest, bar_kind::before).begin = in.first;
    }
    void add_gap(lane& in, std::uint64_t reason) {
        for (auto const index : in.open) { bars_[index].is_unsure = true; }
        bar made;
        made.begin = {in.instructions, reached_.offset, reached_.time};
        made.end = {in.instructions, offset_.now, time_.now};
        made.function = reason;
        made.lane = in.number;
        made.level = level_above(in);
        made.kind = bar_kind::gap;
        made.is_first = in.open.empty() && !in.has_begun;
        finish_bar(made);
        (void)bars_.add(made);
    }
    void finish_bar(bar& one) const {
        one.longest = bars::size(one.begin, one.end);
        if (part_.is_time && !has_time_) { return; }
        auto const at = [this](moment const& when) {
            return part_.is_time ? first_time_ + (when.time >> fraction_bits)
                                 : when.offset >> fraction_bits;
        };
        one.is_unwanted = at(one.begin) > part_.last || at(one.end) < part_.first;
    }

    // ------------------------------------------------------------------------------ positions

    /// Sets the time of the packet, but not back. The TSC of a guest is no time of the host.
    void set_time(trace::time const& when) {
        if (!when.is_absolute() || when.is_guest) { return; }
        is_new_time_ = !has_time_;
        if (!has_time_) { first_time_ = when.tsc; }
        has_time_ = true;
        auto const ticks = when.tsc > first_time_ ? when.tsc - first_time_ : 0;
        auto const next = std::min(ticks, max_ticks) << fraction_bits;
        is_new_time_ = is_new_time_ || next > time_.now;
        time_.now = std::max(time_.now, next);
    }
    /// A time estimate: one tick for each instruction since the last known time.
    [[nodiscard]] auto estimate() const -> std::uint64_t {
        auto const ticks = has_time_ ? std::min(count_ - time_.count, max_ticks / 2) : 0;
        return time_.before + (ticks << fraction_bits);
    }
    /// Tracing was disabled, or packets were lost, between the last instruction and this packet.
    void end_run() {
        auto const end = std::min(estimate(), time_.now);
        if (count_ != offset_.count) { reached_.offset = offset_.now; }
        if (count_ != time_.count) { reached_.time = end; }
        reached_.count = count_;
        place_offsets();
        place_times(end);
        time_.before = std::max(time_.before, time_.now);
    }
    /// The position of instruction `count`, by interpolation up to `end`.
    [[nodiscard]] auto position(run const& in, std::uint64_t count, std::uint64_t end) const
        -> std::uint64_t {
        auto const all = count_ - in.count;
        if (end <= in.before) { return in.before; }
        if (count - in.count >= all) { return end; }
        auto const size = end - in.before;
        auto const part = static_cast<double>(size) * static_cast<double>(count - in.count) /
                          static_cast<double>(all);
        return in.before + std::min(size, static_cast<std::uint64_t>(part));
    }
    /// Sets the offsets of what the last packet reported.
    void place_offsets() {
        for (; placed_ != pending_.size(); ++placed_) {
            auto const& one = pending_[placed_];
            end_of(one).offset = position(offset_, one.count, offset_.now);
        }
        offset_.before = offset_.now;
        offset_.count = count_;
    }
    /// Sets the times of what was executed up to the time `end`.
    void place_times(std::uint64_t end) {
        for (auto const& one : pending_) {
            end_of(one).time = position(time_, one.count, end);
            if (one.is_end) { finish_bar(bars_[one.bar]); }
        }
        pending_.clear();
        placed_ = 0;
        time_.before = std::max(time_.before, end);
        time_.count = count_;
        is_new_time_ = false;
    }
    auto end_of(pending const& one) -> moment& {
        auto& of = bars_[one.bar];
        return one.is_end ? of.end : of.begin;
    }

    window part_;
    symbols_of names_of_;
    bars bars_;
    receiver receiver_{};
    std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::unique_ptr<lane>> lanes_{};
    std::vector<thread_id> threads_{};
    lane* lane_ = nullptr;  ///< of `thread_`; nullptr: it has none
    thread_id thread_{};
    std::uint64_t count_ = 0;  ///< instructions of all threads
    run offset_{};
    run time_{};
    bool is_new_time_ = false;  ///< the current packet is the first one with this time
    reached reached_{};
    std::vector<pending> pending_{};
    std::size_t placed_ = 0;  ///< of `pending_`, those whose offset is placed
    bool has_time_ = false;
    std::uint64_t first_time_ = 0;
    tool::walk_summary summary_{};  ///< only the gaps
    bool is_one_thread_ = false;
    bool is_trace_missing_ = false;  ///< since the last instruction
    std::uint64_t left_out_ = 0;
};

}  // namespace calls
