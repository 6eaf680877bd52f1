// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/event.hpp>

namespace ptspec::trace::detail {

/// The events of a reader, from their packets until `next` returns them, in order.
///
/// Events are *pending* while their IP is unknown, then *held* until it is known whether the
/// `resumed` events among them happened (GEN-343, APL12), then *ready* to be returned.
///
/// Shape:  [first, ready) are ready, the next `held` are held, the rest up to `count` is pending.
template <unsigned Room>
struct event_queue {
    static constexpr unsigned max_aside = 2;  ///< those of an INIT: FUP and PIP

    unsigned first = 0;
    unsigned ready = 0;
    unsigned held = 0;
    unsigned count = 0;
    event all[Room]{};
    unsigned aside_count = 0;
    event aside[max_aside]{};

    [[nodiscard]] constexpr auto end() const noexcept -> event const* { return all + Room; }
    [[nodiscard]] constexpr auto has_ready() const noexcept -> bool { return first != ready; }
    /// The next ready event. It stays valid until `compact`.
    [[nodiscard]] constexpr auto take() noexcept -> event const& { return all[first++]; }
    /// True if all events are ready.
    [[nodiscard]] constexpr auto is_ready() const noexcept -> bool { return ready == count; }
    [[nodiscard]] constexpr auto first_pending() const noexcept -> unsigned { return ready + held; }

    /// Removes the events before `ready`, which were returned.
    constexpr void compact() noexcept {
        unsigned const waiting = count - ready;
        for (unsigned i = 0; i < waiting; ++i) { all[i] = all[ready + i]; }
        first = ready = 0;
        count = waiting;
    }
    /// Events up to `end` were written after the others, and are ready.
    constexpr void set_end_of_ready(event const* end) noexcept {
        count = ready = static_cast<unsigned>(end - all);
    }
    /// Appends a pending event.
    constexpr void put(event const& one) noexcept {
        all[count] = one;
        ++count;
    }
    /// Inserts an event, which is complete, at `place`.
    constexpr void insert(unsigned place, event const& one) noexcept {
        for (unsigned i = count; i > place; --i) { all[i] = all[i - 1]; }
        all[place] = one;
        ++count;
        ++held;
    }
    /// Returns an event before all others, when none is ready.
    constexpr void put_first(event const& one) noexcept {
        for (unsigned i = count; i > 0; --i) { all[i] = all[i - 1]; }
        all[0] = one;
        ++count;
        ready = 1;
    }
    /// Makes all pending events ready. With `in_doubt` they are held.
    constexpr void complete(bool in_doubt) noexcept {
        held = in_doubt ? count - ready : 0;
        if (!in_doubt) { ready = count; }
    }
    /// Makes the held events ready.
    constexpr void release() noexcept {
        ready += held;
        held = 0;
    }
    constexpr void set_ip_of_pending(uint64_t ip) noexcept {
        for (unsigned i = first_pending(); i < count; ++i) {
            all[i].has_ip = true;
            all[i].ip = ip;
        }
    }
    constexpr void set_time_of_pending(time when) noexcept {
        for (unsigned i = first_pending(); i < count; ++i) { all[i].when = when; }
    }
    /// Removes the IPs of events that are not pending. Before the first PSB the last IP is unknown,
    /// so a compressed IP cannot be expanded.
    constexpr void hide_ips() noexcept {
        for (unsigned i = 0; i < first_pending(); ++i) {
            all[i].has_ip = all[i].has_to = false;
            all[i].ip = all[i].to = 0;
        }
    }
    /// Removes the pending events; `restore_pending` or `restore_held` appends them again. Returns
    /// false if there are too many.
    constexpr auto set_aside_pending() noexcept -> bool {
        unsigned const begin = first_pending();
        if (count - begin > max_aside) { return false; }
        for (; begin + aside_count < count; ++aside_count) {
            aside[aside_count] = all[begin + aside_count];
        }
        count = begin;
        return true;
    }
    constexpr void restore_pending() noexcept {
        for (unsigned i = 0; i < aside_count; ++i) { put(aside[i]); }
        aside_count = 0;
    }
    /// Inserts the events before the pending ones, as held.
    constexpr void restore_held() noexcept {
        for (unsigned i = 0; i < aside_count; ++i) { insert(first_pending(), aside[i]); }
        aside_count = 0;
    }
    [[nodiscard]] constexpr auto ends_in_mode() const noexcept -> bool {
        return count > first_pending() && all[count - 1].what == event_type::exec_mode;
    }
    /// The index of the last `resumed` from `begin` on that is not pending, or `first_pending()`.
    [[nodiscard]] constexpr auto last_resumed(unsigned begin) const noexcept -> unsigned {
        unsigned place = first_pending();
        for (unsigned i = begin; i < first_pending(); ++i) {
            if (all[i].what == event_type::resumed) { place = i; }
        }
        return place;
    }
    /// Removes the held events `resumed` that did not happen: the last one, or all.
    constexpr void withdraw(bool all_of_them) noexcept {
        unsigned const end = first_pending();
        unsigned kept = all_of_them ? ready : last_resumed(ready);
        for (unsigned i = kept; i < count; ++i) {
            if (i < end && all[i].what == event_type::resumed) { continue; }
            all[kept] = all[i];
            ++kept;
        }
        held -= count - kept;
        count = kept;
    }
    /// Changes the pending compound event to `resumed`: its FUP belongs to the OVF. A MODE.Exec
    /// after it stays pending.
    constexpr void resume_at_fup() noexcept {
        unsigned const begin = first_pending();
        bool const has_mode = ends_in_mode();
        for (unsigned i = begin; i < count; ++i) {
            if (all[i].what == event_type::async_branch) { all[i].what = event_type::resumed; }
        }
        held = count - has_mode - ready;
    }
    /// Makes the held events other than `resumed` ready. If there are none, makes the first
    /// `resumed` ready.
    constexpr void release_some() noexcept {
        unsigned const end = first_pending();
        for (unsigned i = 0; i < end; ++i) {
            if (all[i].what == event_type::resumed) { continue; }
            event const one = all[i];
            for (unsigned place = i; place > ready; --place) { all[place] = all[place - 1]; }
            all[ready] = one;
            ++ready;
        }
        if (ready == 0) { ready = 1; }
        held = end - ready;
    }
};

}  // namespace ptspec::trace::detail
