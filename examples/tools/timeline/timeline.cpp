// SPDX-License-Identifier: BSL-1.0

// timeline: draws Intel PT traces over time, as one HTML page. See `timeline --help`.

#include "call_lanes.hpp"
#include "page.hpp"
#include "part.hpp"
#include "../common/clock_options.hpp"
#include "../common/numbers.hpp"
#include "../common/tool.hpp"
#include "../common/trace_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace timeline;

constexpr std::string_view usage = R"(usage: timeline [OPTION...] -o OUT.html TRACE...

Draws Intel PT traces over time, as one HTML page that loads nothing else. TRACE is a raw trace, or
a perf.data file with one or more streams, of processors or threads. It may be - for standard input,
and so may OUT.html for standard output.

  -o OUT.html        the page
  --title TEXT       its title; the default names the first trace
  --stream N         draw only this stream of a file; pt_dump --streams lists them
  --winipt           the files are those of the Intel PT driver of Windows, with a stream a thread
  --no-sync          read from the first byte instead of from the first PSB; up to the first PSB
                     IPs, the mode of the code and transactions are unknown
  --mtc-freq N       IA32_RTIT_CTL.MTCFreq, 0 to 15
  --tsc-ratio B/A    CPUID.15H EBX/EAX, the ratio of the TSC to the crystal clock, as in 168/2
  --non-turbo R      MSR_PLATFORM_INFO[15:8], the ratio of the TSC to the bus clock
  --cyc-thresh N     IA32_RTIT_CTL.CycThresh, 0 to 15
  --ctl VALUE        IA32_RTIT_CTL, in hexadecimal: which packets the trace can have, and these
                     fields
  --tsc-hz HZ        the frequency of the TSC: the page then has seconds instead of ticks
  --calls            draw also the calls of each thread of a perf.data file, whose records name the
                     files with code, or of a raw trace, with code from these options:
  --binary FILE[@ADDRESS]
                     an ELF file, whose symbols name functions; the address is that of the first
                     byte of a PIE or shared object
  --image FILE@ADDRESS
                     a file with code, at this address: in hexadecimal, as all addresses
  --pages FILE.mem FILE.addr
                     pages of 4096 bytes one after the other, and a text file with a line
                     `0xADDRESS` for each, with ` unmapped` after it if the page is absent
  --symfs DIRECTORY, --vdso FILE, --kernel FILE, --kallsyms FILE, --guest-symfs DIRECTORY,
  --guest-kernel FILE, --guest-kallsyms FILE
                     where the code of a perf.data file is: see pt_flow --help
  --time A-B         draw only the calls from time A to B, also A- and -B: since the first time of
                     the page, as in 1.5ms-2ms; s, ms, us, ns or ticks
  --from A, --to B   draw only the calls from byte A of a trace to byte B
  --records FILE, --attr FILE
                     a ring of perf that belongs to a raw trace: see pt_dump --help. Records need a
                     PERF_RECORD_TIME_CONV for times
  --only root|guest, --vmcs ADDRESS, --cr3 VALUE
                     without --calls: count and list only the branches and events there, as the
                     last PIP or VMCS packet before says: in VMX root or non-root operation (NR),
                     with this VMCS, with this CR3. What is left out is counted on stderr
  --quiet            do not count gaps of --calls on stderr: of each reason, and the addresses
                     without code
  -h, --help         print this text

For each trace the page has lanes over time: where it is traced, CR3, branches, the frequency of the
core, PSBs, overflows, damage, interrupts, PTWRITE and other events. The wheel zooms, dragging pans;
? in the page lists all keys. A trace without TSC packets is drawn over the offset in the trace.

Without --tsc-ratio and --mtc-freq, MTCs give no time; without --non-turbo, CYCs give none until the
clock is calibrated. Where neither gives a time, the page draws the order of events, not time, and
says so. Of a perf.data file these numbers, the errata of the processor and the frequency of the TSC
are known; an option replaces what the file says. All traces of a page have the same TSC.

Where bytes of a stream are missing, tracing is unknown up to the next PSB; offsets count only the
bytes that are there. The page says how often AUX records of the kernel report this, and that
tracing was off for a while.

With --calls, a lane has a bar for each call: it spans the time from the call to the return, and
lies below that of its caller. Bars have the name of the function, and the number of instructions
with those of the functions it called. Functions that were called before the trace begin with it.
Calls between two packets are placed by their number of instructions. Where tracing was disabled in
between, as in the kernel, an instruction counts as one tick. A page takes 60,000 bars; where there
are more calls, short ones that follow each other are one bar, `12 x NAME` or `12 calls`, and their
number is on stderr: --time draws each call of a short part. A stream has up to 64 threads, with up
to 255 levels each. Where it is not known what was executed, as after an overflow or without code,
the lane is hatched; that is no damage.

Counts are exact. The page lists the first 6000 events of each lane, divided by the number of
traces, and says where there are more.

Example:
  $ printf '\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\43' | timeline -o - - | head -n 1
  <!doctype html>

Exit status: 0 no damage; 1 damage, which the page shows, or damaged records of a perf.data file,
which are skipped and counted on stderr, or a page with --calls but without one, or with --only but
without an event: stderr has the reason; 2 wrong usage, a file that is empty, has no Intel PT or
cannot be read, or output that cannot be written; 3 no PSB. With several traces the worst status is
returned, in the order 2, 3, 1. With status 2 no page is written, except for the streams of a file
that is cut or damaged: those that can be read are drawn.
)";

enum status : std::uint8_t { clean = 0, damaged = 1, failed = tool::failed, no_psb = 3 };

/// The most traces on a page.
constexpr std::size_t max_traces = 256;
/// The most bars of calls, in all traces.
constexpr std::size_t max_bars = 60'000;

struct settings {
    std::string out{};
    std::string title{};
    bool has_title = false;
    trace::clock_options clock{};
    std::uint64_t tsc_hz = 0;
    trace_file::given_options given{};
    std::optional<std::uint64_t> stream{};
    bool winipt = false;
    bool sync = true;
    bool is_quiet = false;  ///< without counts of gaps
    calls::options calls{};
    timeline::part part{};
    tool::place_filter places{};
    trace_file::ring_files ring{};
};

/// The argument of the current option, a number up to `most`.
auto number(tool::command_line& line, std::uint64_t least, std::uint64_t most) -> std::uint64_t {
    return tool::number_of(line,
                           "a number from " + std::to_string(least) + " to " + std::to_string(most),
                           most, least);
}

/// The status for several traces: the worst in the order no_psb, damaged.
auto status_of(std::vector<stream> const& all) -> status {
    status worst = clean;
    for (auto const& one : all) {
        if (!one.is_read()) { return no_psb; }
        if (one.lane_count(static_cast<std::size_t>(lane::damage)) != 0) { worst = damaged; }
    }
    return worst;
}

/// A file of one trace or more.
struct source {
    std::string name{};
    std::optional<trace_file::opened> raw{};
    trace_file::container all{};
    std::vector<trace_file::stream const*> streams{};
    std::vector<std::uint8_t> piped{};  ///< the bytes of a pipe that is read twice
};

/// Opens a file, and reads the streams of a file of several. Other files are opened again when they
/// are read, except for pipes.
auto open_source(std::string const& name, settings const& how) -> source {
    source made;
    made.name = name == "-" ? "standard input" : name;
    made.raw.emplace(name, how.winipt, how.ring);
    if (how.out != "-" && made.raw->is(how.out)) {
        throw tool::failure{name + ": the page would overwrite this trace"};
    }
    if (made.raw->is_raw()) { made.raw->check_format(); }
    if (!made.raw->is_raw()) {
        made.all = made.raw->streams();
        made.raw.reset();
        for (auto const* one : made.all.selected(how.stream)) {
            if (one->bytes() != 0) { made.streams.push_back(one); }
        }
        if (made.streams.empty()) { made.all.check(); }
        if (made.streams.empty()) { throw tool::unreadable{name + ": the streams are empty"}; }
        if (how.calls.is_on) { calls::require_processes(made.all, how.calls); }
        return made;
    }
    if (how.stream) { throw tool::unreadable{made.name + ": a raw trace has no streams"}; }
    bool const is_regular = made.raw->size() != 0 && name != "-";
    if (is_regular) { made.raw.reset(); }  // files are not open all at once
    return made;
}

/// Calls `read(bytes)` for the pieces of a raw trace.
template <class Read>
void for_each_raw_piece(source& from, bool is_read_again, Read const& read) {
    if (!from.piped.empty()) { return read(byte_view{from.piped}); }
    constexpr std::size_t piece_bytes = std::size_t{1} << 18;
    bool const is_pipe = from.raw.has_value();
    if (!from.raw) { from.raw.emplace(from.name, false); }
    auto& file = *from.raw;
    std::vector<std::uint8_t> piece(piece_bytes);
    while (!file.at_end()) {
        auto const count = file.read(piece.data(), piece.size());
        byte_view const bytes{piece.data(), count};
        if (is_pipe && is_read_again) {
            from.piped.insert(from.piped.end(), bytes.begin(), bytes.end());
        }
        if (count != 0) { read(bytes); }
    }
    from.raw.reset();
}
auto read_raw(source& from, settings const& how, limits most) -> stream {
    stream one{from.name, how.clock, most, how.sync, how.places};
    for_each_raw_piece(from, how.calls.is_on, [&](byte_view bytes) { one.feed(bytes); });
    if (one.bytes() == 0) { throw tool::unreadable{from.name + ": the file is empty"}; }
    one.finish();
    return one;
}

/// The name of a lane. The page shows what follows the last slash, so the label has none.
auto lane_name(std::string const& file, trace_file::stream const& of) -> std::string {
    auto label = of.label();
    std::replace(label.begin(), label.end(), '/', '_');
    return file + ' ' + label;
}

auto read_stream(trace_file::stream const& from, std::string const& file, settings const& how,
                 limits most) -> stream {
    stream one{lane_name(file, from), trace_file::clock_of(from, how.clock, how.given), most,
               how.sync, how.places};
    one.label = from.label();
    trace_file::for_each_piece(
        from, [&](byte_view bytes) { one.feed(bytes); },
        [&](trace_file::gap const& which) { one.skip_gap(which.reason); },
        [&](trace_file::partial const&) { one.tell_partial(); });
    one.finish();
    return one;
}

/// The frequency of the TSC that the conversion of a file has, in Hz.
auto frequency_of(trace::time_conversion const& to_ns) -> std::uint64_t {
    constexpr double ns_per_s = 1e9;
    double ticks = 1;  // in `mult` ns
    for (unsigned i = 0; i < to_ns.shift; ++i) { ticks *= 2; }
    double const hz = to_ns.mult == 0 ? 0 : ticks * ns_per_s / to_ns.mult;
    return hz < 1 || hz > 1e12 ? 0 : static_cast<std::uint64_t>(hz + 0.5);
}

/// The clock of a page.
struct page_clock {
    trace::clock_options clock{};
    std::uint64_t tsc_hz = 0;
};

/// Completes the clock of the page from that of the first stream that has one.
void take_page_clock(std::vector<source> const& all, trace_file::given_options given,
                     page_clock& page) {
    bool const is_given = page.tsc_hz != 0;
    bool has_clock = false;
    for (auto const& file : all) {
        for (auto const* one : file.streams) {
            if (!has_clock && one->how.is_known) {
                page.clock = trace_file::clock_of(*one, page.clock, given);
                has_clock = true;
            }
            auto const hz = frequency_of(one->how.to_ns);
            if (is_given || hz == 0) { continue; }
            if (page.tsc_hz == 0) { page.tsc_hz = hz; }
            auto const apart = hz < page.tsc_hz ? page.tsc_hz - hz : hz - page.tsc_hz;
            if (apart > page.tsc_hz / 1000) {
                throw tool::failure{file.name + ": its TSC has another frequency than that of the "
                                                "files before it; draw it on another page"};
            }
        }
    }
}

/// The first TSC of a page.
auto first_time_of(std::vector<stream> const& all) -> std::uint64_t {
    std::uint64_t first = ~std::uint64_t{0};
    for (auto const& one : all) {
        if (one.is_timed()) { first = std::min(first, one.first_time()); }
    }
    return first;
}

/// Draws the calls of streams. Bars that one stream does not need are given to the others.
class call_drawer {
public:
    call_drawer(settings& how, std::size_t streams, calls::window part)
        : how_{how}, part_{part}, streams_left_{streams} {}

    auto raw(source& from, stream const& of) -> std::string {
        calls::recorder found{next_bars(), part_, [this](calls::thread_id) -> auto& {
                                  return how_.calls.code.images.names();
                              }};
        traced::traced_code code{how_.calls.code.images.spans()};
        auto const limits = trace_file::with_limits({}, how_.given, nullptr);
        calls::walk steps{code, how_.clock, limits, found};
        for_each_raw_piece(from, false, [&](byte_view bytes) { steps.feed(bytes); });
        steps.finish();
        return text(of, found, [this](calls::thread_id, calls::bar const& one) {
            return calls::name_of(how_.calls, one);
        });
    }
    auto of_stream(trace_file::stream const& from, calls::process_code& code, stream const& of)
        -> std::string {
        calls::recorder found{next_bars(), part_, [&](calls::thread_id thread) -> auto& {
                                  return code.names_of(thread);
                              }};
        auto const clock = trace_file::clock_of(from, how_.clock, how_.given);
        auto const limits = trace_file::with_limits({}, how_.given, &from);
        calls::walk_stream(from, code, clock, limits, found);
        return text(of, found, [&](calls::thread_id thread, calls::bar const& one) {
            return code.name_of(thread, one);
        });
    }

    [[nodiscard]] auto found() const -> tool::walk_summary const& { return found_; }

    /// Says how many calls have no bar of their own.
    void report_merged() const {
        if (calls_ != bars_) {
            tool::print_error(std::to_string(calls_) + " calls and gaps are merged into " +
                              std::to_string(bars_) +
                              " bars, which a page takes: --time draws each call of a short part");
        }
    }

private:
    static constexpr std::size_t least_bars = 256;

    [[nodiscard]] auto next_bars() const -> std::size_t {
        return std::max(bars_left_ / streams_left_, least_bars);
    }
    template <class NameOf>
    auto text(stream const& of, calls::recorder const& from, NameOf const& name_of) -> std::string {
        found_.add(from.summary(of.bytes()));
        found_.has_psb = found_.has_psb && of.is_read();
        bars_left_ -= std::min(bars_left_, from.result().all().size());
        --streams_left_;
        for (auto const& one : from.result().all()) { calls_ += one.count; }
        bars_ += from.result().all().size();
        std::string out;
        call_lanes{out, of, from, name_of}.append();
        return out;
    }

    settings& how_;
    calls::window part_;
    std::size_t streams_left_;
    std::size_t bars_left_ = max_bars;
    tool::walk_summary found_{};
    std::uint64_t calls_ = 0;  ///< and gaps
    std::uint64_t bars_ = 0;   ///< of them
};

/// The calls of all streams as data of the page, and what was found of them.
struct drawn_calls {
    std::vector<std::string> text{};
    tool::walk_summary found{};
};

auto calls_of(std::vector<source>& sources, std::vector<stream> const& streams, settings& how,
              std::uint64_t tsc_hz) -> drawn_calls {
    struct drawn {
        source* file;
        trace_file::stream const* from;  ///< nullptr: a raw trace
        calls::process_code* code;
        std::size_t index;
    };
    std::vector<drawn> all;
    std::vector<std::unique_ptr<calls::process_code>> code;
    for (auto& file : sources) {
        if (file.streams.empty()) {
            all.push_back({&file, nullptr, nullptr, all.size()});
            continue;
        }
        code.push_back(std::make_unique<calls::process_code>(file.all, how.calls));
        for (auto const* one : file.streams) {
            all.push_back({&file, one, code.back().get(), all.size()});
        }
    }
    tool::stable_sort(all, [&](drawn const& one, drawn const& two) {
        return streams[one.index].bytes() < streams[two.index].bytes();
    });
    call_drawer draw{how, all.size(), how.part.window(first_time_of(streams), tsc_hz)};
    drawn_calls made{.text = std::vector<std::string>(all.size())};
    for (auto const& one : all) {
        auto const& of = streams[one.index];
        made.text[one.index] = one.from == nullptr ? draw.raw(*one.file, of)
                                                   : draw.of_stream(*one.from, *one.code, of);
    }
    made.found = draw.found();
    draw.report_merged();
    return made;
}

/// Says why bars or events are missing. Returns whether there is none.
auto report_found(settings const& how, tool::walk_summary found, std::uint64_t first_time,
                  std::uint64_t tsc_hz) -> bool {
    // The times of --time count from the first one of the page.
    if (first_time <= found.first_time) {
        found.first_time -= first_time;
        found.last_time -= first_time;
    }
    bool const has_streams = !how.calls.code.has_images;
    tool::walk_request asked;
    asked.what = how.calls.is_on ? "calls" : "events";
    asked.has_bytes = how.part.from || how.part.to;
    asked.to_ns.frequency = tsc_hz;
    asked.user_code = has_streams ? "see --symfs, or --binary of a raw trace"
                                  : "give --binary, --image or --pages";
    asked.kernel_code = has_streams ? "give --kernel" : "";
    asked.is_quiet = how.is_quiet;
    tool::print_summary(found, asked);
    return found.printed == 0;
}

[[noreturn]] void refuse_count() {
    throw tool::failure{"a page takes at most " + std::to_string(max_traces) + " traces"};
}

/// Reports what could not be read of files that were drawn. Returns the exit status.
auto report_errors(std::vector<source> const& all) -> int {
    int found = clean;
    for (auto const& file : all) {
        if (file.all.print_warnings()) { found = std::max<int>(found, damaged); }
        if (file.all.error.empty()) { continue; }
        tool::print_error(file.name + ": " + file.all.error);
        found = failed;
    }
    return found;
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
        } else if (trace_file::take_rate_option(line, how.clock, how.given)) {
            continue;
        } else if (line.is("--stream")) {
            how.stream = number(line, 0, 0xFFFF'FFFF);
        } else if (line.is("--winipt")) {
            how.winipt = true;
        } else if (line.is("--quiet")) {
            how.is_quiet = true;
        } else if (line.is("--no-sync")) {
            how.sync = false;
        } else if (line.is("--tsc-hz")) {
            how.tsc_hz = number(line, 1, 1'000'000'000'000);
        } else if (auto const option = line.argument(); take_part(line, how.part)) {
            how.calls.given = option;
        } else if (calls::take_option(line, how.calls) ||
                   tool::take_place_option(line, how.places) ||
                   trace_file::take_ring_option(line, how.ring)) {
            continue;
        } else {
            line.refuse();
        }
    }
    how.calls.check();
    how.ring.check();
    if (how.ring.is_given() && files.size() != 1) {
        throw tool::failure{"--records belongs to one trace"};
    }
    if (how.calls.is_on && how.places.is_on()) {
        throw tool::failure{"--only, --vmcs and --cr3 are for events and branches: leave out "
                            "--calls"};
    }
    how.part.check();
    if (!has_out) { throw tool::failure{"nowhere to write: give -o OUT.html; see --help"}; }
    if (files.empty()) {
        throw tool::failure{"nothing to read: give a trace, or - for standard input; see --help"};
    }
    if (files.size() > max_traces) { refuse_count(); }
    if (std::count(files.begin(), files.end(), "-") > 1) {
        throw tool::failure{"standard input can be read once"};
    }

    std::vector<source> sources;
    std::size_t count = 0;
    for (auto const& name : files) {
        sources.push_back(open_source(name, how));
        count += std::max<std::size_t>(sources.back().streams.size(), 1);
        if (count > max_traces) { refuse_count(); }
    }
    auto const most = limits_of(count);
    std::vector<stream> streams;
    streams.reserve(count);
    for (auto& file : sources) {
        if (file.streams.empty()) { streams.push_back(read_raw(file, how, most)); }
        for (auto const* one : file.streams) {
            streams.push_back(read_stream(*one, file.name, how, most));
        }
    }
    page_clock page{how.clock, how.tsc_hz};
    take_page_clock(sources, how.given, page);
    if (!how.has_title) {
        auto const& name = sources.front().name;
        auto const slash = name.rfind('/');
        how.title = "Trace " + (slash == std::string::npos ? name : name.substr(slash + 1));
        if (streams.size() > 1) {
            how.title += " and " + std::to_string(streams.size() - 1) + " more";
        }
    }
    std::string data;
    page_data to{data, how.title, page.clock, page.tsc_hz};
    auto drawn = how.calls.is_on ? calls_of(sources, streams, how, page.tsc_hz) : drawn_calls{};
    drawn.text.resize(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) { to.add(streams[i], drawn.text[i]); }
    to.end();

    tool::output out{how.out};
    write_page(out, how.title, data);
    out.close();
    std::uint64_t left_out = 0, unknown = 0;
    for (auto const& one : streams) {
        left_out += one.places().left_out();
        unknown += one.places().unknown();
        if (how.calls.is_on) { continue; }
        drawn.found.bytes += one.bytes();
        drawn.found.printed += one.events_there();
        drawn.found.has_psb = drawn.found.has_psb && one.is_read();
    }
    drawn.found.elsewhere = left_out;
    if (how.places.is_on()) {
        tool::print_error("left out: " + std::to_string(left_out) + " events (" +
                          std::to_string(unknown) + " where the place is not known)");
    }
    bool const is_asked = how.calls.is_on || how.places.is_on();
    bool const is_nothing = is_asked &&
                            report_found(how, drawn.found, first_time_of(streams), page.tsc_hz);
    int const of_files = report_errors(sources);
    if (of_files == failed) { return failed; }
    auto const worst = std::max<int>({status_of(streams), of_files, is_nothing ? damaged : clean});
    if (worst == no_psb) {
        tool::print_error("a trace has no PSB to begin at: no Intel PT, or its begin is missing; "
                          "--no-sync reads from the first byte");
    }
    return worst;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("timeline", count, arguments, run);
}
