// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/record.hpp>
#include <ptspec/trace/time_conversion.hpp>

namespace ptspec::file::perf_data {

using trace::time_conversion;

/// The conversion of the TSC to the times of records. Unknown where the file has none, or numbers
/// that no processor can have.
///
/// Source: drivers.md, 4.3.
[[nodiscard]] constexpr auto time_conversion_of(auxtrace_info_record const& info) noexcept
    -> time_conversion {
    bool const is_known = info.CAP_USER_TIME_ZERO != 0 && info.TIME_SHIFT < 64 &&
                          info.TIME_MULT <= 0xFFFF'FFFF;
    if (!is_known) { return {}; }
    return {.shift = static_cast<uint16_t>(info.TIME_SHIFT),
            .mult = static_cast<uint32_t>(info.TIME_MULT),
            .zero = info.TIME_ZERO};
}

}  // namespace ptspec::file::perf_data
