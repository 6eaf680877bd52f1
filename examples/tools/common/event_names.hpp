// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of events, as `trace::event_type` spells them, and of gaps.

#include <ptspec/flow/sink.hpp>
#include <ptspec/trace/event_name.hpp>

#include <string_view>

namespace events {

constexpr auto name_of(ptspec::trace::event_type which) -> std::string_view {
    auto const name = ptspec::trace::name_of(which);
    return {name.data(), name.size()};
}

constexpr auto name_of_gap(ptspec::flow::gap_reason why) -> std::string_view {
    using enum ptspec::flow::gap_reason;
    switch (why) {
        case none: return "none";
        case overflow: return "overflow";
        case damage: return "damage";
        case missing_code: return "missing-code";
        case no_instruction: return "no-instruction";
        case wrong_turn: return "wrong-turn";
        case missing_call: return "missing-call";
        case endless_loop: return "endless-loop";
        case no_target: return "no-target";
        case no_tnt: return "no-tnt";
        case no_branches: return "no-branches";
        case missing_trace: return "missing-trace";
        case no_time: return "no-time";
    }
    return "";
}

}  // namespace events
