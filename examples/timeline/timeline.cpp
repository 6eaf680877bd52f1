// SPDX-License-Identifier: BSL-1.0

// timeline: draws Intel PT traces over time, as one HTML page. See `timeline --help`.

#include "page.hpp"
#include "../common/tool.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace timeline;

constexpr std::string_view usage = R"(usage: timeline [OPTION...] -o OUT.html TRACE...

Draws raw Intel PT traces over time, as one HTML page that loads nothing else. TRACE may be - for
standard input, and so may OUT.html for standard output.

  -o OUT.html        the page
  --title TEXT       its title; the default names the first trace
  --mtc-freq N       IA32_RTIT_CTL.MTCFreq, 0 to 15
  --tsc-ratio B/A    CPUID.15H EBX/EAX, the ratio of the TSC to the crystal clock, as in 168/2
  --non-turbo R      MSR_PLATFORM_INFO[15:8], the ratio of the TSC to the bus clock
  --cyc-thresh N     IA32_RTIT_CTL.CycThresh, 0 to 15
  --tsc-hz HZ        the frequency of the TSC: the page then has seconds instead of ticks
  -h, --help         print this text

For each trace the page has lanes over time: where it is traced, CR3, branches, the frequency of the
core, PSBs, overflows, damage, interrupts, PTWRITE and other events. The wheel zooms, dragging pans;
? in the page lists all keys. A trace without TSC packets is drawn over the offset in the trace.

Without --tsc-ratio and --mtc-freq, MTCs give no time; without --non-turbo, CYCs give none until the
clock is calibrated. The page says so.

Counts are exact. The page lists the first 6000 events of each lane, divided by the number of
traces, and says where there are more.

Example:
  $ printf '\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\43' | timeline -o - - | head -n 1
  <!doctype html>

Exit status: 0 no damage; 1 damage, which the page shows; 2 wrong usage, a file that is empty or
cannot be read, or output that cannot be written; 3 no PSB. With several traces the worst status is
returned, in the order 2, 3, 1. With status 2 no page is written.
)";

enum status : std::uint8_t { clean = 0, damaged = 1, failed = tool::failed, no_psb = 3 };

/// The most traces on a page.
constexpr std::size_t most_traces = 256;

struct settings {
    std::string out{};
    std::string title{};
    bool has_title = false;
    trace::clock_options clock{};
    std::uint64_t tsc_hz = 0;
};

/// The number that the whole text is, up to `most`.
auto parse_number(std::string_view text, std::uint64_t most, std::uint64_t& value) -> bool {
    auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && stop == text.data() + text.size() && value <= most;
}
/// The argument of the current option, a number up to `most`.
auto number(tool::command_line& line, std::uint64_t least, std::uint64_t most) -> std::uint64_t {
    auto const option = line.argument();
    std::uint64_t value = 0;
    if (!parse_number(line.value(), most, value) || value < least) {
        throw tool::failure{option + " takes a number from " + std::to_string(least) + " to " +
                            std::to_string(most)};
    }
    return value;
}
void set_tsc_ratio(tool::command_line& line, trace::clock_options& how) {
    constexpr std::uint64_t most = 0xFFFF'FFFF;
    auto const text = line.value();
    auto const slash = text.find('/');
    std::uint64_t numerator = 0;
    std::uint64_t denominator = 0;
    if (slash == std::string::npos ||
        !parse_number(std::string_view{text}.substr(0, slash), most, numerator) ||
        !parse_number(std::string_view{text}.substr(slash + 1), most, denominator) ||
        numerator == 0 || denominator == 0) {
        throw tool::failure{"--tsc-ratio takes CPUID.15H EBX/EAX, as in 168/2"};
    }
    how.tsc_numerator = static_cast<std::uint32_t>(numerator);
    how.tsc_denominator = static_cast<std::uint32_t>(denominator);
}

/// The status for several traces: the worst in the order no_psb, damaged.
auto status_of(std::vector<stream> const& all) -> status {
    status worst = clean;
    for (auto const& one : all) {
        if (!one.has_psb()) { return no_psb; }
        if (one.lane_count(static_cast<std::size_t>(lane::damage)) != 0) { worst = damaged; }
    }
    return worst;
}

auto read_file(std::string const& name, settings const& how, limits most) -> stream {
    constexpr std::size_t piece_bytes = std::size_t{1} << 18;
    tool::input file{name};
    if (how.out != "-" && file.is(how.out)) {
        throw tool::failure{name + ": the page would overwrite this trace"};
    }
    stream one{name == "-" ? "standard input" : name, how.clock, most};
    std::vector<std::uint8_t> piece(piece_bytes);
    while (!file.at_end()) {
        auto const count = file.read(piece.data(), piece.size());
        if (count != 0) { one.feed(byte_view{piece.data(), count}); }
    }
    if (one.bytes() == 0) { throw tool::unreadable{file.name() + ": the file is empty"}; }
    one.finish();
    return one;
}

auto run(tool::command_line& line) -> int {
    settings how;
    std::vector<std::string> files;
    bool has_out = false;
    while (line.next()) {
        if (line.is_operand()) {
            files.push_back(line.argument());
        } else if (line.is_help()) {
            tool::print(usage);
            return clean;
        } else if (line.is("-o")) {
            how.out = line.value();
            has_out = true;
        } else if (line.is("--title")) {
            how.title = line.value();
            how.has_title = true;
        } else if (line.is("--mtc-freq")) {
            how.clock.mtc_freq = static_cast<std::uint8_t>(number(line, 0, 15));
        } else if (line.is("--tsc-ratio")) {
            set_tsc_ratio(line, how.clock);
        } else if (line.is("--non-turbo")) {
            how.clock.max_non_turbo_ratio = static_cast<std::uint8_t>(number(line, 1, 255));
        } else if (line.is("--cyc-thresh")) {
            how.clock.cyc_thresh = static_cast<std::uint8_t>(number(line, 0, 15));
        } else if (line.is("--tsc-hz")) {
            how.tsc_hz = number(line, 1, 1'000'000'000'000);
        } else {
            line.refuse();
        }
    }
    if (!has_out) { throw tool::failure{"nowhere to write: give -o OUT.html; --help tells more"}; }
    if (files.empty()) {
        throw tool::failure{"nothing to read: give a trace, or - for standard input; --help tells "
                            "more"};
    }
    if (files.size() > most_traces) {
        throw tool::failure{"a page takes at most " + std::to_string(most_traces) + " traces"};
    }

    auto const most = limits_of(files.size());
    std::vector<stream> streams;
    streams.reserve(files.size());
    for (auto const& name : files) { streams.push_back(read_file(name, how, most)); }
    if (!how.has_title) {
        auto const& name = streams.front().name();
        auto const slash = name.rfind('/');
        how.title = "Trace " + (slash == std::string::npos ? name : name.substr(slash + 1));
        if (streams.size() > 1) {
            how.title += " and " + std::to_string(streams.size() - 1) + " more";
        }
    }
    std::string data;
    page_data to{data, how.title, how.clock, how.tsc_hz};
    for (auto const& one : streams) { to.add(one); }
    to.end();

    tool::output out{how.out};
    write_page(out, how.title, data);
    out.close();
    auto const worst = status_of(streams);
    if (worst == no_psb) { tool::print_error("a trace has no PSB to begin at"); }
    return worst;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("timeline", count, arguments, run);
}
