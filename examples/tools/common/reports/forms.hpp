// SPDX-License-Identifier: BSL-1.0
#pragma once

// The forms in which tools print what was executed.

#include "../clock_options.hpp"
#include "../numbers.hpp"
#include "../tool.hpp"
#include "../walk_summary.hpp"
#include "call_tree.hpp"
#include "covered.hpp"
#include "folded_stacks.hpp"
#include "listing.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reports {

enum class form : std::uint8_t {
    instructions,
    runs,
    blocks,
    edges,
    calls,
    folded,
    drcov,
    bitmap,
};

/// What is printed, and how.
struct report_options {
    form what = form::runs;
    std::size_t bitmap_size = 0;
    bool times = false;  ///< of calls
    flow::stack_choice stack_by = flow::stack_choice::by_returns;
    std::string dso{};  ///< the file whose calls are printed; empty: all

    /// Throws if options contradict each other.
    void check() const {
        if (times && what != form::calls) { throw tool::failure{"--times needs --calls"}; }
        if (!dso.empty() && what != form::calls) { throw tool::failure{"--dso needs --calls"}; }
    }
};

namespace detail {

/// A power of two from 8 to 2^31; `64K` is 65536.
inline auto bitmap_size_of(std::string const& text) -> std::size_t {
    std::string_view digits{text};
    unsigned shift = 0;
    if (digits.ends_with('K')) { shift = 10; }
    if (digits.ends_with('M')) { shift = 20; }
    if (shift != 0) { digits.remove_suffix(1); }
    auto const found = tool::parse_number(digits, std::uint64_t{1} << 31 >> shift);
    auto const size = found ? *found << shift : 0;
    if (size < 8 || (size & (size - 1)) != 0) {
        throw tool::failure{"--bitmap takes a power of two from 8 to 2048M"};
    }
    return static_cast<std::size_t>(size);
}

}  // namespace detail

/// Takes an option that says what is printed, and how. Returns false when it is another option.
inline auto take_option(tool::command_line& line, report_options& to) -> bool {
    constexpr std::pair<std::string_view, form> forms[] = {
        {"--instructions", form::instructions},
        {"--runs", form::runs},
        {"--blocks", form::blocks},
        {"--edges", form::edges},
        {"--calls", form::calls},
        {"--folded", form::folded},
        {"--drcov", form::drcov},
        {"--bitmap", form::bitmap},
    };
    for (auto const& [option, what] : forms) {
        if (!line.is(option)) { continue; }
        to.what = what;
        if (what == form::bitmap) { to.bitmap_size = detail::bitmap_size_of(line.value()); }
        return true;
    }
    if (line.is("--times")) {
        to.times = true;
    } else if (line.is("--dso")) {
        to.dso = line.value();
        if (to.dso.starts_with("./")) { to.dso.erase(0, 2); }
    } else if (line.is("--stack-by")) {
        auto const how = line.value();
        if (how != "returns" && how != "ptwrite") {
            throw tool::failure{"--stack-by takes returns or ptwrite"};
        }
        to.stack_by = how == "ptwrite" ? flow::stack_choice::by_ptwrite
                                       : flow::stack_choice::by_returns;
    } else {
        return false;
    }
    return true;
}

/// A report of calls. `names_of(thread)` are its symbols, `ranges_of(thread)` the addresses of
/// the functions that are printed, if only some are.
template <class NamesOf, class RangesOf>
auto calls_report(report_options const& given, tool::output& to,
                  trace_file::conversion const& to_ns, bool has_titles, NamesOf names_of,
                  RangesOf ranges_of) -> std::unique_ptr<report> {
    auto const of = wanted{.times = given.times};
    using printer = std::unique_ptr<call_printer>;
    auto const report_by = [&](bool is_at_once, auto const& make) {
        return std::make_unique<calls_by_thread>(to, of, has_titles, is_at_once, given.stack_by,
                                                 names_of, make);
    };
    if (given.what == form::folded) {
        auto const make = [&to, names_of](thread_id which) -> printer {
            return std::make_unique<folded_stacks>(to, names_of(which));
        };
        return report_by(false, make);
    }
    call_format const how{given.times, to_ns, {}};
    auto const make = [&to, names_of, ranges_of, how](thread_id which) -> printer {
        auto of_thread = how;
        of_thread.only = ranges_of(which);
        return std::make_unique<call_tree>(to, names_of(which), of_thread);
    };
    return report_by(true, make);
}
/// A listing; nullptr for other forms.
inline auto listing_of(report_options const& given, tool::output& to) -> std::unique_ptr<report> {
    switch (given.what) {
        case form::instructions: return std::make_unique<instruction_listing>(to);
        case form::runs: return std::make_unique<run_listing>(to);
        case form::blocks: return std::make_unique<block_listing>(to);
        case form::edges: return std::make_unique<edge_listing>(to);
        case form::bitmap: return std::make_unique<edge_counts>(to, given.bitmap_size);
        default: return nullptr;
    }
}

/// The report for the wanted form. `Processes` has the names of functions.
template <class Processes>
auto report_of_threads(report_options const& given, tool::output& to,
                       trace_file::conversion const& to_ns, Processes& of)
    -> std::unique_ptr<report> {
    auto made = listing_of(given, to);
    if (made != nullptr) { return made; }
    if (given.what == form::drcov) {
        auto const module_of = [&of](thread_id which, std::uint64_t address) {
            return of.module_at(which.pid, address, which.image);
        };
        return std::make_unique<covered_blocks>(to, module_of);
    }
    auto const names_of = [&of](thread_id which) -> auto& {
        if constexpr (requires { of.guest_names(); }) {
            if (which.is_guest) { return of.guest_names(); }
        }
        return of.names_of(which.pid, which.image);
    };
    auto const ranges_of = [&of, &given](thread_id which) {
        if (given.dso.empty()) { return std::vector<flow::ip_range>{}; }
        auto ranges = of.ranges_of(which.pid, given.dso, which.image);
        if (ranges.empty()) { ranges.push_back({~std::uint64_t{0}, ~std::uint64_t{0}}); }
        return ranges;
    };
    return calls_report(given, to, to_ns, true, names_of, ranges_of);
}

/// What a report prints, for messages.
inline auto name_of(report_options const& given) -> std::string {
    switch (given.what) {
        case form::edges:
        case form::bitmap: return "edges";
        case form::calls: return given.dso.empty() ? "calls" : "calls of " + given.dso;
        case form::drcov: return "blocks of files";
        case form::folded: return "stacks";
        default: return "instructions";
    }
}

}  // namespace reports
