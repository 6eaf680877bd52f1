// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// Optional members of ports, sinks, visitors and sources are found by their names. A member with
/// another signature than the expected one stops the build, instead of never being called.
namespace ptspec {

namespace detail {

/// A name that both bases have is ambiguous, whatever it names: an overload set, a template, a
/// private member. With `Type` alone it is only found if its address can be taken.
template <class Type, class Name>
struct type_and_name : Type, Name {};

template <class Type, class Name>
inline constexpr bool finds_name = requires { Name::template find<Type>(); };
template <class Type, class Name>
    requires(__is_class(Type) && !__is_final(Type))
inline constexpr bool finds_name<Type, Name> = !requires {
    Name::template find<type_and_name<Type, Name>>();
};

}  // namespace detail

/// A class has a member of this name, whether or not it can be called. Of a final class, overload
/// sets, templates and private members are not found.
///
/// Shape:  `Name` is a struct with an `int` of the name, and `find<Type>()`, which has the type of
///         `&Type::name`.
template <class Type, class Name>
concept has_member = detail::finds_name<bare_t<Type>, Name>;

/// A class says that it does without a member: `using ignores_gaps = my_sink;` in `my_sink`. A
/// derived class must repeat it: otherwise a misspelt member of that class would be ignored. In a
/// local class g++ may warn about an unused typedef: `using ignores_gaps [[maybe_unused]] = ..`.
///
/// Shape:  `Name::ignored<Type>` is the type `Type::ignores_...`.
template <class Type, class Name>
concept ignores = requires {
    requires same_as<typename Name::template ignored<bare_t<Type>>, bare_t<Type>>;
};

}  // namespace ptspec
