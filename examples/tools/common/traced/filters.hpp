// SPDX-License-Identifier: BSL-1.0
#pragma once

// The address filters of a perf.data file, as a walk needs them.

#include "processes.hpp"

#include <ptspec/file/perf_data/address_filter.hpp>

namespace traced {

/// Adds the ranges that a stream was traced in, unless options have some. Only processors with
/// SKL014 need them.
inline auto with_filters(flow::walk_options options, processes const& in,
                         trace_file::recording const& how) -> flow::walk_options {
    if (options.filter_count != 0 || !options.quirks.has(cpu::quirk::skl014)) { return options; }
    std::vector<flow::ip_range> ranges;
    file::perf_data::address_filter_reader all{
        {reinterpret_cast<std::uint8_t const*>(how.filter.data()), how.filter.size()}};
    while (auto const one = all.next()) {
        if (one.is_stop) { continue; }
        std::string const path{reinterpret_cast<char const*>(one.file.data()), one.file.size()};
        if (path.empty()) {
            ranges.push_back({one.address, one.address + (one.size - 1)});
        } else {
            in.add_places_of(path, one.address, one.size, ranges);
        }
    }
    if (ranges.size() > std::size(options.filters)) {
        tool::print_error("the address filters are at more than four places: they are not used");
        return options;
    }
    for (auto const& one : ranges) { options.filters[options.filter_count++] = one; }
    return options;
}

}  // namespace traced
