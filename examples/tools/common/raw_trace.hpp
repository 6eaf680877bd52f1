// SPDX-License-Identifier: BSL-1.0
#pragma once

// What is not a raw trace.

#include "tool.hpp"

#include <ptspec/file/perf_data/records.hpp>

#include <string>

namespace tool {

/// True for the first bytes of a perf.data file, of either byte order or the old format.
inline auto is_perf_data(ptspec::byte_view bytes) -> bool {
    using header = ptspec::file::perf_data::file_header;
    std::uint64_t const magic = ptspec::file::load<header>(bytes).magic;
    return magic == header::magic_value || magic == header::swapped_magic_value ||
           magic == header::old_magic_value;
}
/// Refuses a perf.data file where a raw trace is needed: its streams would be mixed.
inline void require_raw_trace(std::string const& name_of_file, ptspec::byte_view bytes) {
    if (is_perf_data(bytes)) {
        throw failure{name_of_file + ": is a perf.data file, not a raw trace; pt_dump and timeline "
                                     "read these"};
    }
}

}  // namespace tool
