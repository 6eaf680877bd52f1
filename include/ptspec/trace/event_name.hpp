// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/events.hpp>

namespace ptspec::trace {

namespace detail {

template <class Indices>
struct event_names;
template <size_t... Index>
struct event_names<index_list<Index...>> {
    static constexpr text all[sizeof...(Index)] = {
        name_of_enumerator<static_cast<event_type>(Index)>()...};
};

}  // namespace detail

/// The name of a type of events, as `event_type` spells it; empty for other values.
[[nodiscard]] constexpr auto name_of(event_type which) noexcept -> text {
    constexpr size_t count = size_t{underlying(event_type::end)} + 1;
    using names = detail::event_names<make_index_list<count>>;
    return underlying(which) < count ? names::all[underlying(which)] : text{};
}

}  // namespace ptspec::trace
