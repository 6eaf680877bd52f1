// SPDX-License-Identifier: BSL-1.0
#pragma once

// A trace cut into slices of equal size, and what happened in each.

#include "lanes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace timeline {

/// What happened in a slice.
///
/// Units:  `time` and `on_ticks` in TSC ticks, `on_bytes` in bytes, `cycles` in core clock cycles.
struct slice {
    std::uint64_t time = 0;  ///< of the first event
    bool has_time = false;
    std::uint32_t context = 0;  ///< the number of the last new CR3; 0: none
    std::uint64_t conditional = 0;
    std::uint64_t indirect = 0;
    std::uint64_t cycles = 0;
    std::uint64_t on_ticks = 0;  ///< traced
    std::uint64_t on_bytes = 0;  ///< traced
    std::array<std::uint64_t, lanes> events{};

    /// Adds the slice that follows.
    void add(slice const& next) {
        if (!has_time) { time = next.time; }
        has_time = has_time || next.has_time;
        if (next.context != 0) { context = next.context; }
        conditional += next.conditional;
        indirect += next.indirect;
        cycles += next.cycles;
        on_ticks += next.on_ticks;
        on_bytes += next.on_bytes;
        for (std::size_t i = 0; i < lanes; ++i) { events[i] += next.events[i]; }
    }
};

/// The slices of a trace of unknown size. Their size is a power of two, and doubles when there are
/// too many, so that memory is bounded.
class slices {
public:
    /// `max_slices` is a power of two, at least 2.
    explicit slices(std::size_t max_slices) : max_slices_{max_slices} {}

    /// The slice with the byte at `offset`.
    auto at(std::uint64_t offset) -> slice& {
        while (offset >> shift_ >= max_slices_) { merge(); }
        auto const index = static_cast<std::size_t>(offset >> shift_);
        if (index >= all_.size()) { all_.resize(index + 1); }
        return all_[index];
    }
    /// Counts the bytes from `begin` up to `end` as traced.
    void add_traced(std::uint64_t begin, std::uint64_t end) {
        if (begin >= end) { return; }
        (void)at(end - 1);  // no slice changes its size below
        while (begin < end) {
            std::uint64_t const next = ((begin >> shift_) + 1) << shift_;
            std::uint64_t const until = std::min(next, end);
            at(begin).on_bytes += until - begin;
            begin = until;
        }
    }
    /// Completes the slices of a trace of `bytes` bytes, whose last event is at `last`. A slice
    /// without a time begins when the next one does. Returns the times of the first event and of
    /// the last.
    auto finish(std::uint64_t bytes, std::uint64_t last)
        -> std::pair<std::uint64_t, std::uint64_t> {
        if (bytes != 0) { (void)at(bytes - 1); }
        auto const [first, highest] = drop_times_out_of_order();
        last = std::max(last, highest);
        std::uint64_t next = last;
        for (auto one = all_.rbegin(); one != all_.rend(); ++one) {
            one->time = one->has_time ? one->time : next;
            one->on_ticks = std::min(one->on_ticks, next - one->time);
            next = one->time;
        }
        std::uint32_t context = 0;
        for (auto& one : all_) {
            context = one.context != 0 ? one.context : context;
            one.context = context;
        }
        return {first, last};
    }
    /// The time of an event at `offset`, within the times of its slice.
    [[nodiscard]] auto time_of(std::uint64_t time, std::uint64_t offset, std::uint64_t last) const
        -> std::uint64_t {
        auto const index = static_cast<std::size_t>(offset >> shift_);
        if (index >= all_.size()) { return last; }
        auto const end = index + 1 < all_.size() ? all_[index + 1].time : last;
        return std::clamp(time, all_[index].time, end);
    }

    [[nodiscard]] auto all() const -> std::vector<slice> const& { return all_; }
    [[nodiscard]] auto bytes_of_slice() const -> std::uint64_t {
        return std::uint64_t{1} << shift_;
    }

private:
    /// Damaged bytes can be read as a TSC. Keeps the longest ascending sequence of times. Returns
    /// the first of them and the last.
    auto drop_times_out_of_order() -> std::pair<std::uint64_t, std::uint64_t> {
        constexpr std::size_t none = ~std::size_t{0};
        std::vector<std::size_t> ends;  // of the sequences of each length, the one that ends lowest
        std::vector<std::size_t> before(all_.size(), none);
        for (std::size_t i = 0; i < all_.size(); ++i) {
            if (!all_[i].has_time) { continue; }
            auto const place = std::upper_bound(
                ends.begin(), ends.end(), all_[i].time,
                [this](std::uint64_t time, std::size_t end) { return time < all_[end].time; });
            if (place != ends.begin()) { before[i] = *(place - 1); }
            if (place == ends.end()) {
                ends.push_back(i);
            } else {
                *place = i;
            }
        }
        for (auto& one : all_) { one.has_time = false; }
        if (ends.empty()) { return {0, 0}; }
        std::size_t first = ends.back();
        for (std::size_t i = first; i != none; i = before[i]) {
            all_[i].has_time = true;
            first = i;
        }
        return {all_[first].time, all_[ends.back()].time};
    }
    void merge() {
        std::size_t const count = (all_.size() + 1) / 2;
        for (std::size_t i = 0; i < count; ++i) {
            slice sum = all_[2 * i];
            if (2 * i + 1 < all_.size()) { sum.add(all_[2 * i + 1]); }
            all_[i] = sum;
        }
        all_.resize(count);
        ++shift_;
    }

    std::size_t max_slices_;
    unsigned shift_ = 4;  ///< slices of at least 16 bytes
    std::vector<slice> all_{};
};

}  // namespace timeline
