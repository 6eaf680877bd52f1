// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the options of pt_dump select.

#include "../common/clock_options.hpp"
#include "../common/numbers.hpp"
#include "../common/place_filter.hpp"
#include "../common/trace_file.hpp"
#include "../common/walk_summary.hpp"

#include <ptspec/engine/check_options.hpp>
#include <ptspec/ptspec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace calls {
struct options;
struct process_code;
}  // namespace calls

namespace pt_dump {

using namespace ptspec;

enum class form : std::uint8_t { listing, summary, check, events, chrome_trace, streams };

/// What the processes of a timeline share.
struct timeline_state {
    bool is_continued = false;  ///< an event has been written
    bool has_ns = false;        ///< the times of a process are converted
    bool has_ticks = false;     ///< but those of another process are not
    std::uint64_t calls = 0;    ///< and gaps
    std::uint64_t slices = 0;   ///< of them
    std::uint64_t calls_left_out = 0;
    std::uint64_t threads_left_out = 0;
};

struct settings {
    trace::reader_options how{};
    form what = form::listing;
    bool pads = true;
    std::vector<engine::model_kind> kinds{};  ///< candidates for --check; empty: all but manual
    bool json = false;
    bool several = false;  ///< more than one input
    unsigned jobs = 1;
    cpu::quirk_set quirks{};
    bool time = false;
    trace::clock_options clock{};
    trace_file::conversion to_ns{};
    bool is_after_gap = false;              ///< the bytes follow a gap of their stream
    bool winipt = false;                    ///< files are those of the driver of Windows
    std::optional<std::uint64_t> stream{};  ///< the stream to read, if only one
    trace_file::given_options given{};
    tool::place_filter places{};
    trace_file::ring_files ring{};
    timeline_state* shared = nullptr;
    calls::options* calls = nullptr;           ///< nullptr: without calls
    std::optional<std::size_t> max_slices{};   ///< of the calls of a stream
    calls::process_code* code = nullptr;       ///< of the file with the stream `from`
    trace_file::stream const* from = nullptr;  ///< nullptr: a raw trace
    unsigned* inputs = nullptr;                ///< how many traces were begun, this one included
    tool::walk_summary* found = nullptr;       ///< of all inputs, with places or calls
    bool is_quiet = false;                     ///< without counts of gaps

    /// True if what is printed for a packet depends on all packets before it.
    [[nodiscard]] auto is_sequential() const -> bool {
        return time || places.is_on() || what == form::events || what == form::chrome_trace;
    }
};

/// The settings for a stream of a file. The command line takes precedence over the file.
inline auto settings_for(settings how, trace_file::stream const& from) -> settings {
    how.clock = trace_file::clock_of(from, how.clock, how.given);
    how.quirks = how.clock.quirks;
    how.clock.guest_tsc.near_by = how.clock.tsc_reference;
    if (!how.to_ns.is_known()) { how.to_ns.perf = from.how.to_ns; }
    return how;
}

inline auto take_stream(tool::command_line& line) -> std::uint64_t {
    return tool::number_of(line, "the number of a stream; --streams lists them", 0xFFFF'FFFF);
}

inline auto take_jobs(tool::command_line& line) -> unsigned {
    return static_cast<unsigned>(tool::number_of(line, "a number from 1 to 256", 256, 1));
}

}  // namespace pt_dump
