// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace ptspec::ports {

/// Whether a device or a file was opened.
struct [[nodiscard]] open_result {
    /// errno: ENOENT, ENXIO no such file, processor or module; EACCES, EPERM not allowed.
    int error = 0;

    constexpr explicit operator bool() const noexcept { return error == 0; }
};

}  // namespace ptspec::ports
