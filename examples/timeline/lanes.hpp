// SPDX-License-Identifier: BSL-1.0
#pragma once

// The lanes of a trace, and the event types that each shows.

#include <ptspec/trace/events.hpp>

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

struct event_facts {
    std::string_view name;
    lane where;
};

/// The name of each event type, as in `trace::event_type`, and its lane.
inline constexpr event_facts event_types[] = {
    {"branches", lane::none},
    {"indirect_branch", lane::none},
    {"enabled", lane::tracing},
    {"disabled", lane::tracing},
    {"async_branch", lane::interrupts},
    {"async_disabled", lane::interrupts},
    {"paging", lane::context},
    {"vmcs", lane::context},
    {"exec_mode", lane::other},
    {"transaction", lane::transactions},
    {"overflow", lane::overflow},
    {"resumed", lane::other},
    {"trace_stop", lane::tracing},
    {"ptwrite", lane::ptwrite},
    {"exstop", lane::power},
    {"mwait", lane::power},
    {"pwre", lane::power},
    {"pwrx", lane::power},
    {"pebs_group", lane::pebs},
    {"pebs_item", lane::pebs},
    {"pebs_end", lane::pebs},
    {"event_data", lane::event_trace},
    {"control_flow", lane::event_trace},
    {"trigger", lane::event_trace},
    {"frequency", lane::frequency},
    {"maintenance", lane::other},
    {"psb", lane::psb},
    {"damage", lane::damage},
    {"synced", lane::other},
    {"resynced", lane::other},
    {"lost", lane::damage},
    {"unknown", lane::other},
};
inline constexpr std::size_t event_type_count = sizeof event_types / sizeof *event_types;
static_assert(event_type_count == static_cast<std::size_t>(trace::event_type::need_input));

}  // namespace timeline
