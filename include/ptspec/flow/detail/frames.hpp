// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/frame.hpp>

/// Stacks of frames that share a storage.
namespace ptspec::flow::detail {

/// The storage of frames, and of the stacks that do not execute. When it is full, the stack that
/// was left first is dropped, or else the oldest frame of the only stack.
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

    /// The stack that executes.
    flow::stack now{};

    [[nodiscard]] constexpr auto newest() noexcept -> flow::frame& { return frames_[now.newest]; }
    /// Frame `i` of the stack that executes, counted from the newest.
    [[nodiscard]] constexpr auto at(size_t i) const noexcept -> flow::frame const& {
        uint32_t index = now.newest;
        for (; i != 0; --i) { index = frames_[index].caller; }
        return frames_[index];
    }
    /// The number of frames above the newest of a stack that fits, plus 1; 0: none fits.
    template <class Fits>
    [[nodiscard]] constexpr auto find(flow::stack const& in, Fits const& fits) const -> uint32_t {
        uint32_t index = in.newest;
        for (uint32_t i = 0; i < in.size; ++i) {
            if (fits(frames_[index])) { return i + 1; }
            index = frames_[index].caller;
        }
        return 0;
    }
    [[nodiscard]] constexpr auto dropped_stacks() const noexcept -> uint64_t { return dropped_; }
    [[nodiscard]] constexpr auto has_stacks() const noexcept -> bool { return max_stacks_ != 0; }
    /// Finds a frame of another stack that returns to `ip`: the newest of one of them, or any if
    /// `is_any`. Returns the place of the stack; `stack::none`: there is none.
    [[nodiscard]] constexpr auto find_other(uint64_t ip, bool is_any, uint32_t& count) const
        -> uint32_t {
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            flow::stack const& one = stacks_[i];
            if (!one.is_used || one.size == 0) { continue; }
            if (frames_[one.newest].after == ip) {
                count = 1;
                return i;
            }
            if (!is_any) { continue; }
            count = find(one, [&](flow::frame const& of) { return of.after == ip; });
            if (count != 0) { return i; }
        }
        return flow::stack::none;
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
    /// Continues on a new stack: in the place of one that is not used, or that was left first.
    constexpr void enter_new(uint64_t name) noexcept {
        uint32_t place = 0;
        for (uint32_t i = 0; i < max_stacks_; ++i) {
            if (!stacks_[i].is_used) {
                place = i;
                break;
            }
            if (stacks_[i].left_at < stacks_[place].left_at) { place = i; }
        }
        drop(stacks_[place]);
        enter(place);
        now.is_used = true;
        now.name = name;
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
                (first == flow::stack::none || stacks_[i].left_at < stacks_[first].left_at)) {
                first = i;
            }
        }
        if (first != flow::stack::none) { return drop(stacks_[first]); }
        uint32_t const index = now.oldest;
        now.oldest = frames_[index].callee;
        --now.size;
        ++now.dropped;
        give_back(index);
    }
    constexpr void drop(flow::stack& one) noexcept {
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
};

}  // namespace ptspec::flow::detail
