// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/rule.hpp>
#include <ptspec/trace/time.hpp>

namespace ptspec::trace {

/// A clock of an event reader: `clock` or `no_clock`. A constraint, so that `event_reader{bytes}`
/// does not take the bytes for a clock.
template <class Clock>
concept event_clock = requires(Clock const& clock) {
    { clock.now() } -> same_as<time>;
};

/// The clock of an event reader that computes no times. It generates no instructions.
struct no_clock {
    template <class Packet>
    [[nodiscard]] constexpr auto add(Packet const&) const noexcept -> rule {
        return rule::none;
    }
    constexpr void pass() const noexcept {}
    constexpr void lose() const noexcept {}
    [[nodiscard]] constexpr auto now() const noexcept -> time { return {}; }
    [[nodiscard]] constexpr auto now_without_cyc() const noexcept -> time { return {}; }
    [[nodiscard]] constexpr auto now_of_psb_plus() const noexcept -> time { return {}; }
};

}  // namespace ptspec::trace
