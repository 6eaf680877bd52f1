// SPDX-License-Identifier: BSL-1.0
#pragma once

// What to trace, and into which buffer: `ring=16x64K`.

#include "../common/pc_notation.hpp"
#include "../common/trace_request.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace msr_plan {

using namespace ptspec;
using trace_request::bytes_of;
using trace_request::number_of;
using trace_request::request_of;
using trace_request::string_of;

using pc_notation::region_address;
using pc_notation::region_size_of;
using pc_notation::table_address;

/// A buffer: a ring with its regions and tables, a single range, or the trace transport subsystem.
struct buffer {
    config::output_scheme scheme = config::output_scheme::topa;
    driver::buffer_recipe recipe = driver::buffer_recipe::streaming;
    std::vector<topa::region> regions{};
    std::vector<std::vector<topa::entry>> entries{};
    std::vector<driver::table_page> pages{};
    driver::ring ring{};
    driver::output_registers start{};
};

/// Builds the tables of the regions of a buffer. Throws with the rule that they break.
inline void build_tables(buffer& in, cpu::capabilities const& caps) {
    auto const of = topa::limits::of(caps);
    std::size_t const per_table = of.many_entries ? 511 : 1;
    std::size_t const count = (in.regions.size() + per_table - 1) / per_table;
    for (std::size_t i = 0; i < count; ++i) { in.entries.emplace_back(512); }
    for (std::size_t i = 0; i < count; ++i) {
        in.pages.push_back({table_address + 0x1000 * i, in.entries[i].data()});
    }
    auto const built = driver::build_ring(in.recipe, in.regions.data(), in.regions.size(),
                                          in.pages.data(), in.pages.size(), of);
    if (!built) {
        throw tool::failure{"the buffer breaks " + string_of(rule_id{built.broken}.view()) + ": " +
                            string_of(describe(built.broken))};
    }
    in.ring = built.ring;
    in.start = driver::output_at_start(in.ring);
}

/// `ring=16x64K`, `circular=`, `stop=`, `interrupt=`, `range=64K`, or `fabric`.
inline auto buffer_of(std::string const& word, cpu::capabilities const& caps) -> buffer {
    buffer made;
    std::size_t const equals = word.find('=');
    std::string const name = word.substr(0, equals);
    std::string const value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (word == "fabric") {
        made.scheme = config::output_scheme::fabric;
        return made;
    }
    if (name == "range") {
        made.scheme = config::output_scheme::single_range;
        auto const range = single_range::build({.base = region_address, .bytes = bytes_of(value)});
        if (range.broken != rule::none) { throw tool::failure{"a range has 128 bytes to 4 GB"}; }
        made.start = {range.base, range.pointers};
        return made;
    }
    using enum driver::buffer_recipe;
    if (name == "ring") {
        made.recipe = streaming;
    } else if (name == "circular") {
        made.recipe = circular;
    } else if (name == "stop") {
        made.recipe = stop_on_full;
    } else if (name == "interrupt") {
        made.recipe = interrupt_and_stop;
    } else {
        throw tool::failure{tool::quoted(word) + ": no such buffer; see --help"};
    }
    std::size_t const times = value.find('x');
    auto const count = times == std::string::npos ? 1 : number_of(value.substr(0, times), 10);
    auto const size = region_size_of(
        bytes_of(times == std::string::npos ? value : value.substr(times + 1)));
    if (count == 0 || count > 4096) { throw tool::failure{"a buffer has 1 to 4096 regions"}; }
    std::uint64_t const first = (region_address + topa::bytes_in(size) - 1) / topa::bytes_in(size) *
                                topa::bytes_in(size);
    for (std::uint64_t i = 0; i < count; ++i) {
        made.regions.push_back({first + i * topa::bytes_in(size), size});
    }
    build_tables(made, caps);
    return made;
}

}  // namespace msr_plan
