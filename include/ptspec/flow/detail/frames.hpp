// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/frame.hpp>

/// Stacks of frames that share a storage.
namespace ptspec::flow::detail {

/// The storage of frames, and of the stacks that do not execute. When it is full, the stack that
/// was left first is dropped, that of the start last, or else the oldest frame of the only stack.
///
/// A template on the sink of the call stack, so that only programs with one compile its functions.
template <class Sink>
class frames {
public:
    constexpr frames(flow::frame* storage, size_t max_frames, flow::stack* stacks,
                     size_t max_stacks) noexcept
        : frames_{storage},
          max_frames_{static_cast<uint32_t>(max_frames)},
          stacks_{stacks},
          max_stacks_{static_cast<uint32_t>(max_stacks)} {
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            stacks_[i] = {};
            stacks_[i].number = i + 1;
        }
        now.is_used = true;
    }

    static constexpr uint32_t all = ~uint32_t{0};

    /// The stack that executes.
    flow::stack now{};

    [[nodiscard]] constexpr auto newest() noexcept -> flow::frame& { return frames_[now.newest]; }
    /// Frame `i` of the stack that executes, counted from the newest.
    [[nodiscard]] constexpr auto at(size_t i) const noexcept -> flow::frame const& {
        uint32_t index = now.newest;
        for (; i != 0; --i) { index = frames_[index].caller; }
        return frames_[index];
    }
    /// The number of frames above the newest of a stack that fits, plus 1; 0: none of the `limit`
    /// newest fits.
    template <class Fits>
    [[nodiscard]] constexpr auto find(flow::stack const& in, Fits const& fits,
                                      uint32_t limit = all) const -> uint32_t {
        uint32_t index = in.newest;
        uint32_t const last = in.size < limit ? in.size : limit;
        for (uint32_t i = 0; i < last; ++i) {
            if (fits(frames_[index])) { return i + 1; }
            index = frames_[index].caller;
        }
        return 0;
    }
    [[nodiscard]] constexpr auto dropped_stacks() const noexcept -> uint64_t { return dropped_; }
    [[nodiscard]] constexpr auto has_stacks() const noexcept -> bool { return max_stacks_ != 0; }
    /// Whether there may be other stacks.
    [[nodiscard]] constexpr auto has_others() const noexcept -> bool { return switches_ != 0; }
    /// The same for a frame of a function. The root counts as the oldest frame.
    [[nodiscard]] constexpr auto find_function(flow::stack const& in, uint64_t entry,
                                               uint32_t limit = all) const -> uint32_t {
        auto const count = find(
            in, [&](flow::frame const& of) { return of.function.entry == entry; }, limit);
        if (count != 0 || in.size >= limit || in.dropped != 0 || !in.has_root) { return count; }
        return in.root.function.entry == entry ? in.size + 1 : 0;
    }
    /// Finds another stack by `find(stack, limit)`, which returns the number of frames above the
    /// one that is wanted, plus 1, or 0: the stack with the fewest; of several, the one that was
    /// left first. Sets `count` to the result. Returns the place of the stack; `stack::none`: none.
    template <class Find>
    [[nodiscard]] constexpr auto find_other(Find const& find, uint32_t limit, uint32_t& count) const
        -> uint32_t {
        uint32_t place = flow::stack::none;
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            if (!stacks_[i].is_used) { continue; }
            uint32_t const found = find(stacks_[i], limit);
            if (found == 0) { continue; }
            bool const is_better = place == flow::stack::none || found < limit ||
                                   stacks_[i].left_at < stacks_[place].left_at;
            if (is_better) { place = i; }
            limit = count = found;
        }
        return place;
    }
    /// The place of the stack with this name.
    [[nodiscard]] constexpr auto find_named(uint64_t name) const noexcept -> uint32_t {
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            if (stacks_[i].is_used && stacks_[i].name == name) { return i; }
        }
        return flow::stack::none;
    }
    /// Continues on the stack at a place.
    constexpr void enter(uint32_t place) noexcept {
        now.left_at = ++switches_;
        flow::stack const left = now;
        now = stacks_[place];
        stacks_[place] = left;
    }
    /// Continues on a new stack: in the place of one that is not used, or that is dropped first.
    constexpr void enter_new(uint64_t name) noexcept {
        uint32_t place = 0;
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            if (!stacks_[i].is_used) {
                place = i;
                break;
            }
            if (drops_before(stacks_[i], stacks_[place])) { place = i; }
        }
        drop(stacks_[place]);
        enter(place);
        now.is_used = true;
        now.name = name;
    }

    // ------------------------------------------------------------------------------ candidates

    /// Marks the other stacks that may be the one at `place`, by `find` and its result. If
    /// `has_returned`, the frame that was found is left, too. Call it before `enter`, and
    /// `doubt_from_here` after the frames above were left.
    template <class Find>
    constexpr void mark_candidates(uint32_t place, Find const& find, uint32_t count,
                                   bool has_returned) {
        forget_candidates();
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            flow::stack& one = stacks_[i];
            if (i == place || !one.is_used || find(one, count) != count || count > one.size) {
                continue;
            }
            one.next = one.newest;
            for (uint32_t above = 1; above < count; ++above) {
                one.next = frames_[one.next].caller;
            }
            one.kept = one.size - (count - 1);
            ++candidates_;
            if (has_returned) { return_from_next(one); }
        }
    }
    /// All frames of the stack that executes were called before the switch.
    constexpr void doubt_from_here() noexcept { base_ = candidates_ != 0 ? now.size + 1 : 0; }
    constexpr void forget_candidates() noexcept {
        base_ = 0;
        for (uint32_t i = 0; candidates_ != 0 && i < max_stacks_; ++i) { forget(stacks_[i]); }
    }
    /// Whether the newest frame was called before the switch, and another stack may be the one that
    /// executes.
    [[nodiscard]] constexpr auto is_in_doubt() const noexcept -> bool {
        return now.size + 1 == base_;
    }
    /// Whether frames of before the switch were left otherwise than by their returns.
    [[nodiscard]] constexpr auto has_left_doubt() const noexcept -> bool {
        return now.size + 1 < base_;
    }
    /// The newest frame, which is in doubt, returns to `ip`.
    constexpr void narrow(uint64_t ip) noexcept {
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            flow::stack& one = stacks_[i];
            if (one.kept == 0) { continue; }
            frames_[one.next].after == ip ? return_from_next(one) : forget(one);
        }
        base_ = candidates_ != 0 ? base_ - 1 : 0;
    }
    /// The place of a candidate that returns to `ip`; `stack::none`: there is none.
    [[nodiscard]] constexpr auto find_candidate(uint64_t ip) const noexcept -> uint32_t {
        for (uint32_t i = 0; candidates_ != 0 && i < max_stacks_; ++i) {
            if (stacks_[i].kept != 0 && frames_[stacks_[i].next].after == ip) { return i; }
        }
        return flow::stack::none;
    }
    /// The stack at a place is no candidate: it is the one that executes, and returns to `ip`.
    constexpr void choose(uint32_t place, uint64_t ip) noexcept {
        forget(stacks_[place]);
        is_in_doubt() ? narrow(ip) : forget_candidates();
    }
    /// The number of frames above the one that a candidate would return from.
    [[nodiscard]] constexpr auto above_next(uint32_t place) const noexcept -> uint32_t {
        return stacks_[place].size - stacks_[place].kept;
    }
    /// Moves the `count` newest frames of the stack at a place to the one that executes, after
    /// `report(frame)` for each, the oldest first.
    template <class Report>
    constexpr void take_frames(uint32_t place, uint32_t count, Report const& report) {
        if (count == 0) { return; }
        flow::stack& from = stacks_[place];
        uint32_t first = from.newest;
        for (uint32_t i = 1; i < count; ++i) { first = frames_[first].caller; }
        uint32_t const newest = frames_[first].caller;
        for (uint32_t i = 0, at = first; i < count; ++i, at = frames_[at].callee) {
            report(frames_[at]);
        }
        frames_[first].caller = now.newest;
        (now.size == 0 ? now.oldest : frames_[now.newest].callee) = first;
        now.newest = from.newest;
        now.size += count;
        from.newest = newest;
        from.size -= count;
    }

    constexpr void push(flow::frame const& one) noexcept {
        uint32_t const index = take_place();
        frames_[index] = one;
        frames_[index].caller = now.newest;
        if (now.size == 0) {
            now.oldest = index;
        } else {
            frames_[now.newest].callee = index;
        }
        now.newest = index;
        ++now.size;
    }
    constexpr void pop() noexcept {
        uint32_t const index = now.newest;
        now.newest = frames_[index].caller;
        --now.size;
        give_back(index);
    }
    /// Packets were lost.
    constexpr void make_unsure() noexcept {
        for (uint32_t i = now.newest, left = now.size; left != 0; --left) {
            frames_[i].is_unsure = true;
            i = frames_[i].caller;
        }
    }

private:
    /// Threads return to the stack of their start at the end: it is dropped last.
    [[nodiscard]] static constexpr auto drops_before(flow::stack const& one,
                                                     flow::stack const& other) noexcept -> bool {
        bool const is_first = one.number == 0;
        return is_first == (other.number == 0) ? one.left_at < other.left_at : !is_first;
    }
    constexpr auto take_place() noexcept -> uint32_t {
        if (free_ == flow::stack::none && used_ == max_frames_) { make_room(); }
        if (free_ == flow::stack::none) { return used_++; }
        uint32_t const index = free_;
        free_ = frames_[index].caller;
        return index;
    }
    constexpr void give_back(uint32_t index) noexcept {
        frames_[index].caller = free_;
        free_ = index;
    }
    constexpr void make_room() noexcept {
        uint32_t first = flow::stack::none;
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            bool const has_frames = stacks_[i].is_used && stacks_[i].size != 0;
            if (has_frames &&
                (first == flow::stack::none || drops_before(stacks_[i], stacks_[first]))) {
                first = i;
            }
        }
        if (first != flow::stack::none) { return drop(stacks_[first]); }
        if (base_ > 1) { --base_; }
        uint32_t const index = now.oldest;
        now.oldest = frames_[index].callee;
        --now.size;
        ++now.dropped;
        give_back(index);
    }
    constexpr void forget(flow::stack& one) noexcept {
        candidates_ -= one.kept != 0 ? 1 : 0;
        one.kept = 0;
    }
    constexpr void return_from_next(flow::stack& one) noexcept {
        if (one.kept == 1) { return forget(one); }
        --one.kept;
        one.next = frames_[one.next].caller;
    }
    constexpr void drop(flow::stack& one) noexcept {
        forget(one);
        dropped_ += one.is_used ? 1 : 0;
        for (; one.size != 0; --one.size) {
            uint32_t const index = one.newest;
            one.newest = frames_[index].caller;
            give_back(index);
        }
        uint32_t const number = one.number;
        one = {};
        one.number = number;
    }

    flow::frame* frames_;
    uint32_t max_frames_;
    flow::stack* stacks_;
    uint32_t max_stacks_;
    uint32_t used_ = 0;  ///< places that were used at least once
    uint32_t free_ = flow::stack::none;
    uint64_t switches_ = 0;
    uint64_t dropped_ = 0;
    uint32_t candidates_ = 0;  ///< stacks that may be the one that executes
    /// The frames of the stack that executes, without those that were called since the switch, plus
    /// 1; 0: there are no candidates.
    uint32_t base_ = 0;
};

}  // namespace ptspec::flow::detail
