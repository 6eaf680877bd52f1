// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of events, as `trace::event_type` spells them.

#include <ptspec/trace/events.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace events {

inline constexpr std::size_t type_count = ptspec::underlying(ptspec::trace::event_type::end) + 1;

namespace detail {

template <std::size_t... Types>
constexpr auto names_of(std::index_sequence<Types...>)
    -> std::array<std::string_view, sizeof...(Types)> {
    constexpr auto view = [](ptspec::text name) {
        return std::string_view{name.data(), name.size()};
    };
    return {view(ptspec::name_of_enumerator<static_cast<ptspec::trace::event_type>(Types)>())...};
}
inline constexpr auto names = names_of(std::make_index_sequence<type_count>{});

}  // namespace detail

constexpr auto name_of(ptspec::trace::event_type which) -> std::string_view {
    return detail::names[ptspec::underlying(which)];
}
static_assert(name_of(ptspec::trace::event_type::end) == "end");

}  // namespace events
