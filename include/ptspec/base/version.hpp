// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/one_copy.hpp>

#define PTSPEC_VERSION_MAJOR 0
#define PTSPEC_VERSION_MINOR 1
#define PTSPEC_VERSION_PATCH 0

namespace ptspec {

/// The version of these headers. Before 1.0 a minor version may change the API.
struct version_number {
    int major_version;
    int minor_version;
    int patch_version;

    friend constexpr auto operator==(version_number const&, version_number const&)
        -> bool = default;
};

inline constexpr version_number version{PTSPEC_VERSION_MAJOR, PTSPEC_VERSION_MINOR,
                                        PTSPEC_VERSION_PATCH};

}  // namespace ptspec
