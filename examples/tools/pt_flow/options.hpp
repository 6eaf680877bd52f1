// SPDX-License-Identifier: BSL-1.0
#pragma once

// The options of pt_flow.

#include "../common/clock_options.hpp"
#include "../common/numbers.hpp"
#include "../common/place_filter.hpp"
#include "../common/reports/forms.hpp"
#include "../common/traced/options.hpp"
#include "walk.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace pt_flow {

struct settings {
    reports::report_options report{};
    std::string trace{};
    walk_settings walk{};
    bool is_quiet = false;   ///< without counts of gaps
    std::uint64_t from = 0;  ///< bytes of the trace
    std::uint64_t to = ~std::uint64_t{0};
    traced::code_options code{};
    std::optional<std::uint64_t> tid{};
    std::optional<std::uint64_t> stream{};
    trace_file::ring_files ring{};
    trace_file::given_options given{};  ///< of the options of clocks

    [[nodiscard]] auto has_bytes() const -> bool { return from != 0 || to != ~std::uint64_t{0}; }
};

namespace detail {

/// Ticks, or seconds with up to nine digits after the point.
inline auto time_of(std::string_view text) -> std::optional<std::uint64_t> {
    constexpr std::uint64_t any = ~std::uint64_t{0};
    constexpr std::uint64_t second = 1'000'000'000;
    auto const point = text.find('.');
    if (point == std::string_view::npos) { return tool::parse_number(text, any); }
    auto digits = std::string{text.substr(point + 1)};
    if (digits.empty() || digits.size() > 9) { return std::nullopt; }
    bool const is_decimal = std::all_of(digits.begin(), digits.end(),
                                        [](char one) { return one >= '0' && one <= '9'; });
    digits.resize(9, '0');
    auto const whole = tool::parse_number(text.substr(0, point), any / second - 1);
    auto const part = tool::parse_number(digits, second);
    if (!is_decimal || !whole || !part) { return std::nullopt; }
    return *whole * second + *part;
}
/// A-B, A- or -B.
inline auto window_of(std::string const& text) -> time_window {
    time_window made;
    auto const dash = text.find('-');
    bool right = dash != std::string::npos && text.size() > 1;
    auto const take = [&](std::string_view part, std::uint64_t& to) {
        if (part.empty()) { return; }
        auto const found = time_of(part);
        right = right && found;
        if (found) { to = *found; }
    };
    if (right) {
        take(std::string_view{text}.substr(0, dash), made.first);
        take(std::string_view{text}.substr(dash + 1), made.last);
    }
    if (!right || made.first > made.last) {
        throw tool::failure{"--time takes A-B, A- or -B, in seconds with a point, or in ticks"};
    }
    return made;
}
/// Takes an option that describes the clocks. Returns false when it is another option.
inline auto take_clock_option(tool::command_line& line, settings& to) -> bool {
    struct {
        trace::clock_options& clock;
        trace_file::conversion& to_ns;
        trace_file::given_options& given;
    } clocks{to.walk.clock, to.walk.to_ns, to.given};
    return trace_file::take_clock_option(line, clocks);
}
inline void add_filter(tool::command_line& line, flow::walk_options& to) {
    auto const option = line.argument();
    auto const text = line.value();
    auto const comma = text.find(',');
    if (comma == std::string::npos) { throw tool::failure{option + " takes FIRST,LAST"}; }
    auto const first = tool::parse_address(option, std::string_view{text}.substr(0, comma));
    auto const last = tool::parse_address(option, std::string_view{text}.substr(comma + 1));
    if (to.filter_count == std::size(to.filters)) {
        throw tool::failure{"there are at most four filters"};
    }
    to.filters[to.filter_count++] = {first, last};
}

}  // namespace detail

inline auto parse(tool::command_line& line, std::string_view usage) -> settings {
    constexpr std::uint64_t any = ~std::uint64_t{0};
    settings given;
    given.walk.jobs = std::clamp(std::thread::hardware_concurrency(), 1U, 256U);
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            std::exit(0);
        }
        if (trace_file::take_ring_option(line, given.ring) ||
            tool::take_place_option(line, given.walk.places) ||
            reports::take_option(line, given.report) ||
            traced::take_code_option(line, given.code) || detail::take_clock_option(line, given)) {
            continue;
        }
        if (line.is("--cpu")) {
            given.walk.options.quirks = tool::take_cpu(line);
            given.given.quirks = true;
        } else if (line.is("--filter")) {
            detail::add_filter(line, given.walk.options);
        } else if (line.is("--ret")) {
            auto const how = line.value();
            if (how != "pop" && how != "keep") { throw tool::failure{"--ret takes pop or keep"}; }
            given.walk.options.on_ret_mismatch = how == "pop" ? trace::ret_mismatch::pop
                                                              : trace::ret_mismatch::keep;
            given.walk.tries_other_ret = false;
        } else if (line.is("--tid")) {
            given.tid = tool::number_of(line, "a number", any);
        } else if (line.is("--stream")) {
            given.stream = tool::number_of(line, "a number", any);
        } else if (line.is("--from")) {
            given.from = tool::number_of(line, "an offset in the trace", any);
        } else if (line.is("--to")) {
            given.to = tool::number_of(line, "an offset in the trace", any);
        } else if (line.is("--time")) {
            given.walk.window = detail::window_of(line.value());
        } else if (line.is("--quiet")) {
            given.is_quiet = true;
        } else if (line.is("--jobs")) {
            given.walk.jobs = static_cast<unsigned>(
                tool::number_of(line, "a number from 1 to 256", 256, 1));
        } else if (line.is_operand()) {
            if (!given.trace.empty()) { throw tool::failure{"there is one trace; see --help"}; }
            given.trace = line.argument();
        } else {
            line.refuse();
        }
    }
    if (given.trace.empty()) { throw tool::failure{"needs a trace; see --help"}; }
    given.report.check();
    if (given.from > given.to) { throw tool::failure{"--from is after --to"}; }
    given.ring.check();
    given.ring.to_ns = given.walk.to_ns.perf;
    given.walk.clock.quirks = given.walk.options.quirks;
    given.walk.clock.guest_tsc.near_by = given.walk.clock.tsc_reference;
    return given;
}

}  // namespace pt_flow
