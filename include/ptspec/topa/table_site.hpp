// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/table.hpp>

namespace ptspec::topa {

/// The address of a table, and the limits of its processor.
struct table_site {
    phys_addr base;
    topa::limits limits;

    constexpr table_site(phys_addr table, topa::limits processor = {}) noexcept
        : base{table}, limits{processor} {}
    /// The cast avoids a warning inside this header when the address is an int.
    constexpr table_site(integral auto table, topa::limits processor = {}) noexcept
        : base{static_cast<uint64_t>(table)}, limits{processor} {}
};

namespace detail {

/// A site, or the address of a table.
template <class At>
concept table_site_like = convertible_to<At const&, table_site>;

constexpr auto is_known(table_site const& at) noexcept -> bool {
    return ptspec::detail::is_known(at.base.value);
}
constexpr auto is_known(region const& wanted) noexcept -> bool {
    return ptspec::detail::is_known(wanted.base.value);
}
constexpr auto is_known(phys_addr const& address) noexcept -> bool {
    return ptspec::detail::is_known(address.value);
}
constexpr auto is_known(integral auto const& number) noexcept -> bool {
    return ptspec::detail::is_known(number);
}

/// Stops the build when an argument of a builder is not a constant.
constexpr void require_constants(auto const&... arguments) {
    if (!(is_known(arguments) && ...)) {
        build_error::a_run_time_table_needs_try_ring_or_its_like();
    }
}

}  // namespace detail

}  // namespace ptspec::topa
