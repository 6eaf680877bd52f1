// SPDX-License-Identifier: BSL-1.0
#pragma once

// The lanes of a trace, and the event types that each shows.

#include "../common/event_names.hpp"

#include <ptspec/trace/events.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace timeline {

using namespace ptspec;

/// The events of a lane. `none` are counted only: branches and the end of the trace.
enum class lane : std::uint8_t {
    tracing,
    context,
    psb,
    overflow,
    damage,
    interrupts,
    ptwrite,
    power,
    frequency,
    transactions,
    pebs,
    event_trace,
    other,
    none,
};
inline constexpr std::size_t lanes = static_cast<std::size_t>(lane::none);

/// The names of the lanes, in their order. The page has a title for each.
inline constexpr std::string_view lane_names[lanes] = {
    "tracing", "context",   "psb",          "overflow", "damage",      "interrupts", "ptwrite",
    "power",   "frequency", "transactions", "pebs",     "event_trace", "other"};

/// The lane of the events of a type.
constexpr auto lane_of(trace::event_type which) -> lane {
    using enum trace::event_type;
    switch (which) {
        case enabled:
        case disabled:
        case trace_stop: return lane::tracing;
        case async_branch:
        case async_disabled: return lane::interrupts;
        case paging:
        case vmcs: return lane::context;
        case exec_mode:
        case resumed:
        case maintenance:
        case synced:
        case resynced:
        case unknown: return lane::other;
        case transaction: return lane::transactions;
        case overflow: return lane::overflow;
        case ptwrite: return lane::ptwrite;
        case exstop:
        case mwait:
        case pwre:
        case pwrx: return lane::power;
        case pebs_group:
        case pebs_item:
        case pebs_end: return lane::pebs;
        case event_data:
        case control_flow:
        case trigger: return lane::event_trace;
        case frequency: return lane::frequency;
        case psb: return lane::psb;
        case damage:
        case note:
        case lost: return lane::damage;
        case branches:
        case indirect_branch:
        case need_input:
        case end: break;
    }
    return lane::none;
}
inline constexpr std::size_t event_type_count = underlying(trace::event_type::need_input);

/// The types of events of a whole trace, except its end.
inline constexpr auto event_types = [] {
    std::array<trace::event_type, event_type_count> all{};
    for (std::size_t i = 0; i < all.size(); ++i) { all[i] = static_cast<trace::event_type>(i); }
    return all;
}();

}  // namespace timeline
