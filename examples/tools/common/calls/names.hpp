// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of the functions of bars.

#include "frame_names.hpp"
#include "recorder.hpp"
#include "../event_names.hpp"
#include "../traced/processes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace calls {

/// A name of bounded length.
inline auto shortened(std::string name) -> std::string {
    constexpr std::size_t most = 120;
    return name.size() <= most ? name : name.substr(0, most - 3) + "...";
}

/// The name of the function with an address, or its place or address.
inline auto name_of_function(std::uint64_t address, traced::symbols const& names) -> std::string {
    if (auto const* const found = names.at(address)) { return shortened(found->name); }
    auto place = names.place_of(address);
    return place.empty() ? tool::hex(address) : shortened(std::move(place));
}

/// The name of a bar's function, or its place or address, or what a gap or stop is.
inline auto name_of(bar const& one, traced::symbols const& names) -> std::string {
    if (one.kind == bar_kind::gap) {
        if (one.function == missing_trace) { return "missing trace"; }
        return std::string{events::name_of_gap(static_cast<flow::gap_reason>(one.function))};
    }
    if (one.kind == bar_kind::stopped) {
        return std::string{name_of(static_cast<flow::stop_reason>(one.function))};
    }
    auto name = name_of_function(one.function, names);
    if (one.kind != bar_kind::tail_call) { return name; }
    return name + " [tail of " + name_of_function(one.replaced, names) + "]";
}

/// `PID/TID`; empty for a raw trace.
inline auto label_of(thread_id which) -> std::string {
    if (which == any_thread) { return ""; }
    auto const number = [](std::uint32_t value) {
        return value == traced::no_process ? std::string{"?"} : std::to_string(value);
    };
    return number(which.pid) + '/' + number(which.tid) + (which.is_guest ? " guest" : "");
}

}  // namespace calls
