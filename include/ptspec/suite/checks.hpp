// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/enumeration.hpp>
#include <ptspec/suite/checks/interrupts.hpp>
#include <ptspec/suite/checks/kinds.hpp>
#include <ptspec/suite/checks/single_range.hpp>
#include <ptspec/suite/checks/state.hpp>
#include <ptspec/suite/checks/topa_errors.hpp>

/// All checks.
namespace ptspec::suite {

/// A group of checks and its name.
template <class... Checks>
struct group {
    text name{};
};

template <class... Checks>
[[nodiscard]] constexpr auto group_of(text name, type_list<Checks...>) noexcept
    -> group<Checks...> {
    return {name};
}

/// Calls `take` with each group, in the order in which they run: what reads only, what writes MSRs
/// while TraceEn is 0, what sets TraceEn, and what executes snippets.
constexpr void for_each_group(auto take) {
    take(group_of("enumeration", checks::enumeration_checks{}));
    take(group_of("legality", checks::legality_checks{}));
    take(group_of("enabling", checks::enabling_checks{}));
    take(group_of("branches", checks::branch_checks{}));
    take(group_of("single range", checks::single_range_checks{}));
    take(group_of("ToPA", checks::topa_checks{}));
    take(group_of("ToPA errors", checks::topa_error_checks{}));
    take(group_of("interrupts", checks::interrupt_checks{}));
    take(group_of("filters", checks::filter_checks{}));
    take(group_of("values", checks::value_checks{}));
    take(group_of("time", checks::time_checks{}));
    take(group_of("state", checks::state_checks{}));
    take(group_of("kind", checks::kind_checks{}));
}

/// Calls `take.template operator()<Check>(group)` with each check.
constexpr void for_each_check(auto take) {
    for_each_group([&]<class... Checks>(group<Checks...> one) {
        (..., take.template operator()<Checks>(one.name));
    });
}

[[nodiscard]] constexpr auto check_count() noexcept -> unsigned {
    unsigned count = 0;
    for_each_check([&]<class>(text) { ++count; });
    return count;
}

}  // namespace ptspec::suite
