// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/event.hpp>

namespace ptspec::trace {

namespace detail {

template <class Type, class Indices>
struct event_names;
template <class Type, size_t... Index>
struct event_names<Type, index_list<Index...>> {
    static constexpr text all[sizeof...(Index)] = {
        name_of_enumerator<static_cast<Type>(Index)>()...};
};

}  // namespace detail

/// The name of a type of events, as `event_type` spells it; empty for other values.
template <same_as<event_type> Type>  // a plain function adds 7 % to including events.hpp
[[nodiscard]] constexpr auto name_of(Type value) noexcept -> text {
    constexpr size_t count = size_t{underlying(Type::end)} + 1;
    using names = detail::event_names<Type, make_index_list<count>>;
    return underlying(value) < count ? names::all[underlying(value)] : text{};
}

}  // namespace ptspec::trace
