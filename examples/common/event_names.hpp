// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of events, as `trace::event_type` spells them.

#include <ptspec/trace/event_name.hpp>

#include <string_view>

namespace events {

constexpr auto name_of(ptspec::trace::event_type which) -> std::string_view {
    auto const name = ptspec::trace::name_of(which);
    return {name.data(), name.size()};
}

}  // namespace events
