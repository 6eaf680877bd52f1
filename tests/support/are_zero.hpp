// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace ptspec::test {

/// True if every value equals a default-constructed one.
template <class... Values>
constexpr auto are_zero(Values const&... values) -> bool {
    return ((values == Values{}) && ...);
}

}  // namespace ptspec::test
