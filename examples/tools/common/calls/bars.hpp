// SPDX-License-Identifier: BSL-1.0
#pragma once

// The calls of a trace as bars of a flame chart: a bounded number of them, however long the trace.

#include "../tool.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace calls {

/// Positions have fractions: several instructions share a packet, and packets share a time.
inline constexpr unsigned fraction_bits = 10;

/// A point of the execution of a thread.
///
/// Units:  `offset` in 1/1024 bytes of the trace, `time` in 1/1024 TSC ticks since the first TSC.
struct moment {
    std::uint64_t instructions = 0;  ///< of the thread, before it
    std::uint64_t offset = 0;
    std::uint64_t time = 0;
};

enum class bar_kind : std::uint8_t {
    call,
    system_call,
    event,      ///< an interrupt, exception or VM exit
    before,     ///< a function whose call was not traced: before the trace, or in a gap
    gap,        ///< it is not known what was executed
    tail_call,  ///< a function to which its caller jumped, in the frame of the caller
    stopped,    ///< tracing was disabled, as in the kernel where only user code is traced
};

/// Whether a bar is that of a function.
constexpr auto is_function(bar_kind kind) -> bool {
    return kind != bar_kind::gap && kind != bar_kind::stopped;
}

/// A call, or several that follow each other at the same level.
struct bar {
    moment begin{};
    moment end{};
    std::uint64_t function = 0;  ///< its address; of several calls, that of the longest; of a gap,
                                 ///< a flow::gap_reason; stopped: a flow::stop_reason
    std::uint64_t replaced = 0;  ///< of a tail call, the function that jumped
    std::uint64_t longest = 0;   ///< the size of the longest call
    std::uint64_t instructions = 0;  ///< with those of the functions it calls
    std::uint64_t count = 1;         ///< calls
    std::uint32_t lane = 0;
    std::int32_t level = 0;  ///< that of its caller plus 1
    bar_kind kind = bar_kind::call;
    bool is_open = false;      ///< it has not returned
    bool is_mixed = false;     ///< several functions
    bool is_unsure = false;    ///< packets were lost inside of it: it may have ended before its end
    bool is_first = false;     ///< a gap before the first function of the lane
    bool is_unwanted = false;  ///< it is removed by the next `merge`
};

/// Levels are between `-max_levels` and `max_levels`, without the latter.
inline constexpr std::int32_t max_levels = 256;

/// Bars of a trace of unknown length. When there are too many, neighbours of the same caller become
/// one bar, as long as that is not longer than a resolution, which doubles.
class bars {
public:
    explicit bars(std::size_t max_bars) : max_bars_{max_bars}, full_{2 * max_bars} {}

    /// Returns its index, which is valid up to the next `merge`.
    auto add(bar const& one) -> std::size_t {
        all_.push_back(one);
        return all_.size() - 1;
    }
    [[nodiscard]] auto operator[](std::size_t index) -> bar& { return all_[index]; }
    [[nodiscard]] auto all() const -> std::vector<bar> const& { return all_; }
    [[nodiscard]] auto is_full() const -> bool { return all_.size() >= full_; }
    /// Calls within this number of instructions and ticks are merged; 0: no calls are.
    [[nodiscard]] auto resolution() const -> std::uint64_t { return resolution_; }
    [[nodiscard]] auto left_out() const -> std::uint64_t { return left_out_; }
    /// The bars of functions that `pass_on` gave away.
    [[nodiscard]] auto passed_on() const -> std::uint64_t { return passed_on_; }

    /// Sorts the bars by lane and begin, callers before what they call, and merges if there are too
    /// many.
    void merge() {
        auto const rest = std::remove_if(all_.begin(), all_.end(),
                                         [](bar const& one) { return one.is_unwanted; });
        all_.erase(rest, all_.end());
        sort();
        if (resolution_ != 0) { merge_once(); }
        while (all_.size() > max_bars_ && resolution_ < max_resolution) {
            resolution_ = resolution_ == 0 ? 1 : 2 * resolution_;
            merge_once();
        }
        full_ = 2 * std::max(max_bars_, all_.size());
    }
    /// Sorts the bars, and gives those that ended to `take(bar)`, callers before what they call.
    /// Open ones stay. So does a bar with the same begin, by `is_same(moment, moment)`, as a caller
    /// that stays or that may still be found: by begins alone, their order could not be restored.
    template <class IsSame, class Take>
    void pass_on(IsSame const& is_same, Take const& take) {
        sort();
        auto const limit = full_ / 2;
        std::size_t kept = 0;
        moment const* first = nullptr;   // of the lane
        moment const* caller = nullptr;  // the last open bar of the lane
        std::vector<bar> rest;
        auto lane = ~std::uint32_t{0};
        for (auto const& one : all_) {
            if (one.lane != lane) { first = caller = nullptr; }
            lane = one.lane;
            if (first == nullptr) { first = &one.begin; }
            bool const is_tied = is_same(one.begin, *first) ||
                                 (caller != nullptr && is_same(one.begin, *caller));
            if (one.is_open) { caller = &one.begin; }
            if (one.is_open || one.is_first || (is_tied && kept < limit)) {
                kept += one.is_open ? 0 : 1;
                rest.push_back(one);
            } else {
                passed_on_ += is_function(one.kind) ? 1 : 0;
                take(one);
            }
        }
        all_ = std::move(rest);
        if (all_.size() >= full_ / 2) { full_ *= 2; }
    }
    /// `pass_on` is for this number of bars.
    void set_batch(std::size_t count) { full_ = count; }
    /// Sorts and merges the bars when all of them are there, and none is open, after
    /// `complete(bar)` for each. Leaves out the highest levels if there are still too many.
    template <class Complete>
    void finish(Complete const& complete) {
        for (auto& one : all_) { complete(one); }
        merge();
        std::vector<std::int32_t> lowest;  // of each lane
        for (auto const& one : all_) {
            if (one.lane >= lowest.size()) { lowest.resize(one.lane + 1, max_levels); }
            lowest[one.lane] = std::min(lowest[one.lane], one.level);
        }
        for (auto limit = max_levels; all_.size() > max_bars_ && limit > 1; limit /= 2) {
            auto const rest = std::remove_if(all_.begin(), all_.end(), [&](bar const& one) {
                return one.level - lowest[one.lane] >= limit;
            });
            left_out_ += static_cast<std::uint64_t>(all_.end() - rest);
            all_.erase(rest, all_.end());
        }
    }

    /// Instructions or ticks, whichever are more.
    [[nodiscard]] static auto size(moment const& begin, moment const& end) -> std::uint64_t {
        auto const ticks = end.time > begin.time ? (end.time - begin.time) >> fraction_bits : 0;
        return std::max(end.instructions - begin.instructions, ticks);
    }

private:
    static constexpr std::uint64_t max_resolution = std::uint64_t{1} << 62;
    static constexpr std::size_t none = ~std::size_t{0};

    void sort() {
        // Functions from before the trace are found when they return to their callers: these bars
        // begin first, and come last.
        auto const key = [](bar const& one) {
            auto const level = one.is_first                   ? -max_levels - 1
                               : one.kind == bar_kind::before ? one.level
                                                              : max_levels;
            return std::tuple{one.lane, one.begin.instructions, level};
        };
        auto const precedes = [&](bar const& one, bar const& two) { return key(one) < key(two); };
        if (std::is_sorted(all_.begin(), all_.end(), precedes)) { return; }  // of one thread
        tool::stable_sort(all_, precedes);
    }
    void merge_once() {
        std::vector<std::size_t> callers;                     // of each bar that is kept
        std::vector<std::size_t> last(2 * max_levels, none);  // by level
        std::size_t kept = 0;
        std::uint32_t lane = 0;
        for (auto const& one : all_) {
            if (one.lane != lane) { std::fill(last.begin(), last.end(), none); }
            lane = one.lane;
            auto const level = static_cast<std::size_t>(one.level + max_levels);
            auto const caller = level == 0 ? none : last[level - 1];
            auto const before = last[level];
            if (before != none && callers[before] == caller && fits(all_[before], one)) {
                append(all_[before], one);
                continue;
            }
            callers.push_back(caller);
            last[level] = kept;
            all_[kept++] = one;
        }
        all_.resize(kept);
    }
    [[nodiscard]] auto fits(bar const& one, bar const& next) const -> bool {
        return !one.is_open && !next.is_open &&
               (one.kind == bar_kind::gap) == (next.kind == bar_kind::gap) &&
               size(one.begin, next.end) <= resolution_;
    }
    static void append(bar& to, bar const& next) {
        to.is_mixed = to.is_mixed || next.is_mixed || to.function != next.function;
        to.is_unsure = to.is_unsure || next.is_unsure;
        if (next.longest > to.longest) {
            to.longest = next.longest;
            to.function = next.function;
            to.replaced = next.replaced;
            to.kind = next.kind;
        }
        to.count += next.count;
        to.instructions += next.instructions;
        to.end.instructions = std::max(to.end.instructions, next.end.instructions);
        to.end.offset = std::max(to.end.offset, next.end.offset);
        to.end.time = std::max(to.end.time, next.end.time);
    }

    std::size_t max_bars_;
    std::size_t full_;
    std::uint64_t resolution_ = 0;
    std::uint64_t left_out_ = 0;
    std::uint64_t passed_on_ = 0;
    std::vector<bar> all_{};
};

}  // namespace calls
