// SPDX-License-Identifier: BSL-1.0

// pt_flow: the executed instructions of a trace. See `pt_flow --help`.

#include "calls.hpp"
#include "images.hpp"
#include "covered.hpp"
#include "listing.hpp"
#include "streams.hpp"

#include "../common/raw_trace.hpp"

namespace {

using namespace ptspec;

constexpr std::string_view usage =
    R"(usage: pt_flow [--instructions | --runs | --blocks | --edges | --calls | --folded |
                --drcov | --bitmap SIZE] [--cpu F/M/S] [--filter FIRST,LAST]..
               [--binary FILE[@ADDRESS]].. [--image FILE@ADDRESS]..
               [--pages FILE.mem FILE.addr].. TRACE
       pt_flow [--instructions | --runs | --blocks | --edges | --calls | --folded]
               [--cpu F/M/S] [--tid N] [--symfs DIRECTORY] PERF.DATA

Prints what a trace says was executed: a raw trace, with code from images, or the threads of a
perf.data file, with code from the files that its MMAP records name.

  --instructions            the address of each instruction
  --runs                    instructions that follow each other in memory, the default:
                            `run START LAST n=N mode=M` for N instructions, the first at START, the
                            last at LAST, in code of M bits
  --blocks                  runs that end at branches: `block START LAST n=N mode=M`
  --edges                   branches and events: `edge FROM TO`, with `not-taken` or `event`
  --calls                   a tree of calls: a line for each call, and for its end, with the number
                            of instructions of the call and of what it called
  --folded                  the number of instructions in each stack of functions, as flame graphs
                            take it: `main;puts 12`
  --drcov                   the blocks that executed, as a file of DynamoRIO's drcov, version 2
  --bitmap SIZE             counts of edges, a byte each, at the index that flow::coverage documents
  --binary FILE[@ADDRESS]   an ELF file, whose symbols name functions; the address is that of the
                            first byte of a PIE or shared object
  --image FILE@ADDRESS      a file with code, at this address
  --pages FILE.mem FILE.addr
                            pages of 4096 bytes one after the other, and a text file with a line
                            `0xADDRESS` for each, with ` unmapped` after it if the page is absent
  --tid N                   only the trace of this thread
  --symfs DIRECTORY         where the files with code are, as they are below /
  --cpu FAMILY/MODEL[/STEPPING]
                            apply the workarounds for the errata of this processor
  --filter FIRST,LAST       an address range that is traced, up to four times: for processors that
                            may not send where a branch leaves it (SKL014; see --cpu)
  -h, --help                print this text

A line `gap REASON offset=O from=F to=T` is printed where it is not known what was executed: packets
were lost (overflow), the trace is damaged (damage), code is not in an image (missing-code) or is no
instruction (no-instruction), or trace and code do not match (wrong-turn, endless-loop, no-target).

Example:
  $ printf 'psb\nfup ip=0x1000\npsbend\ntnt.8 bits=T\n' | pt_asm | pt_flow -
  gap missing-code offset=0x15 from=0x1000 missing=0x1000

Exit status: 0; 1 there are gaps, or there is no PSB; 2 wrong usage, or an unreadable file.
)";

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

struct settings {
    form what = form::runs;
    std::size_t bitmap_size = 0;
    flow::walk_options walk{};
    std::string trace{};
    pt_flow::images code{};
    bool has_images = false;
    std::optional<std::uint64_t> tid{};
    std::string symfs{};
    bool has_cpu = false;
    trace_file::opened* in = nullptr;
};

/// A power of two from 8 to 2^31; `64K` is 65536.
auto bitmap_size_of(std::string const& text) -> std::size_t {
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

auto parse(tool::command_line& line) -> settings {
    constexpr std::uint64_t any = ~std::uint64_t{0};
    settings given;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            std::exit(0);
        }
        if (line.is("--instructions")) {
            given.what = form::instructions;
        } else if (line.is("--runs")) {
            given.what = form::runs;
        } else if (line.is("--blocks")) {
            given.what = form::blocks;
        } else if (line.is("--edges")) {
            given.what = form::edges;
        } else if (line.is("--calls")) {
            given.what = form::calls;
        } else if (line.is("--folded")) {
            given.what = form::folded;
        } else if (line.is("--drcov")) {
            given.what = form::drcov;
        } else if (line.is("--bitmap")) {
            given.what = form::bitmap;
            given.bitmap_size = bitmap_size_of(line.value());
        } else if (line.is("--binary")) {
            given.code.add_binary("--binary", line.value());
            given.has_images = true;
        } else if (line.is("--image")) {
            given.code.add_file("--image", line.value());
            given.has_images = true;
        } else if (line.is("--pages")) {
            auto const memory = line.value();
            given.code.add_pages(memory, line.value());
            given.has_images = true;
        } else if (line.is("--cpu")) {
            given.walk.quirks = tool::take_cpu(line);
            given.has_cpu = true;
        } else if (line.is("--tid")) {
            given.tid = tool::number_of(line, "a number", any);
        } else if (line.is("--symfs")) {
            given.symfs = line.value();
        } else if (line.is("--filter")) {
            auto const found = tool::numbers_of(line, "FIRST,LAST", ',', {any, any}, 2);
            auto& how = given.walk;
            if (how.filter_count == std::size(how.filters)) {
                throw tool::failure{"there are at most four filters"};
            }
            how.filters[how.filter_count++] = {found[0], found[1]};
        } else if (line.is_operand() && given.trace.empty()) {
            given.trace = line.argument();
        } else {
            line.refuse();
        }
    }
    if (given.trace.empty()) { throw tool::failure{"needs a trace; see --help"}; }
    return given;
}

/// Walks the trace.
template <class Sink>
void walk_trace(settings& given, flow::block_cache& cache, Sink& to) {
    auto code = given.code.spans();
    flow::walker walk{code, cache, given.walk};
    auto& in = *given.in;
    std::vector<std::uint8_t> piece(std::size_t{1} << 20);
    bool is_first = true;
    bool is_last = false;
    while (walk.run(to) == flow::walk_end::need_input) {
        auto const count = is_last ? 0 : in.read(piece.data(), piece.size());
        if (is_first) { tool::require_raw_trace(given.trace, {piece.data(), count}); }
        is_first = false;
        is_last = count < piece.size();
        if (count == 0) {
            walk.finish();
        } else {
            (void)walk.feed(borrowed_bytes{piece.data(), count});
        }
    }
}
/// Prints a listing, and returns the exit status.
template <class Listing>
auto print(settings& given, flow::block_cache& cache) -> int {
    tool::output out;
    Listing to{{pt_flow::line_writer{out}}};
    walk_trace(given, cache, to);
    to.end();
    out.close();
    return to.gaps == 0 ? 0 : 1;
}
/// Prints a report of calls, and returns the exit status.
template <class Report>
auto print_calls(settings& given, flow::block_cache& cache) -> int {
    tool::output out;
    Report to{out, given.code.names()};
    std::vector<flow::frame> frames(pt_flow::most_frames);
    flow::call_stack stack{frames.data(), frames.size(), to};
    walk_trace(given, cache, stack);
    to.end();
    out.close();
    return to.gaps == 0 ? 0 : 1;
}
auto print_drcov(settings& given, flow::block_cache& cache) -> int {
    pt_flow::covered_blocks to{given.code.modules()};
    walk_trace(given, cache, to);
    tool::output out;
    to.write(out);
    out.close();
    return to.gaps == 0 ? 0 : 1;
}
auto print_bitmap(settings& given, flow::block_cache& cache) -> int {
    std::vector<std::uint8_t> counts(given.bitmap_size);
    std::vector<flow::path> storage(std::size_t{1} << 14);
    flow::path_cache paths{storage.data(), storage.size()};
    pt_flow::edge_and_gap_counts to{counts.data(), counts.size(), &paths};
    walk_trace(given, cache, to);
    tool::output out;
    out.write({reinterpret_cast<char const*>(counts.data()), counts.size()});
    out.close();
    return to.gaps == 0 ? 0 : 1;
}

/// Walks the streams of a perf.data file, and returns the exit status. `make(code)` makes the sink.
template <class Make>
auto print_streams(settings const& given, trace_file::container const& file, pt_flow::processes& of,
                   flow::block_cache& cache, tool::output& out, Make const& make) -> int {
    std::uint64_t gaps = 0;
    bool is_found = false;
    for (auto const& one : file.streams) {
        if (given.tid && one.tid != given.tid) { continue; }
        is_found = true;
        if (file.streams.size() > 1 && !given.tid) { out.write(one.label() + "\n"); }
        auto how = given.walk;
        if (!given.has_cpu) { how.quirks = one.how.clock.quirks; }
        pt_flow::traced_code code{of, one};
        auto to = make(code);
        pt_flow::walk_stream(one, code, cache, how, to);
        to.end();
        gaps += to.gaps;
    }
    if (!is_found) { throw tool::failure{file.name + ": has no trace of this thread"}; }
    out.close();
    file.check();
    return gaps == 0 ? 0 : 1;
}
auto print_perf_data(settings const& given, trace_file::container const& file,
                     flow::block_cache& cache) -> int {
    pt_flow::binaries files{given.symfs};
    pt_flow::processes of{file::perf_data::open(file.from->bytes()), files};
    tool::output out;
    auto const listed = [&](auto const& make) {
        return print_streams(given, file, of, cache, out, make);
    };
    auto const lines = [&]<class Listing>() {
        return listed([&](auto&) { return Listing{{pt_flow::line_writer{out}}}; });
    };
    auto const calls = [&]<class Report>() {
        return listed([&](auto& code) { return pt_flow::calls_by_thread<Report>{out, of, code}; });
    };
    switch (given.what) {
        case form::instructions: return lines.operator()<pt_flow::instruction_listing>();
        case form::runs: return lines.operator()<pt_flow::run_listing>();
        case form::blocks: return lines.operator()<pt_flow::block_listing>();
        case form::edges: return lines.operator()<pt_flow::edge_listing>();
        case form::calls: return calls.operator()<pt_flow::call_tree>();
        case form::folded: return calls.operator()<pt_flow::folded_stacks>();
        case form::drcov:
        case form::bitmap: break;
    }
    throw tool::failure{"--drcov and --bitmap take a raw trace"};
}

auto run_tool(tool::command_line& line) -> int {
    auto given = parse(line);
    std::vector<flow::block> storage(std::size_t{1} << 16);
    flow::block_cache cache{storage.data(), storage.size()};
    trace_file::opened in{given.trace, false};
    if (!in.is_raw()) {
        if (given.has_images) { throw tool::failure{"a perf.data file names the files itself"}; }
        return print_perf_data(given, in.streams(), cache);
    }
    if (given.tid) { throw tool::failure{"--tid takes a perf.data file"}; }
    given.in = &in;
    switch (given.what) {
        case form::instructions: return print<pt_flow::instruction_listing>(given, cache);
        case form::runs: return print<pt_flow::run_listing>(given, cache);
        case form::blocks: return print<pt_flow::block_listing>(given, cache);
        case form::edges: return print<pt_flow::edge_listing>(given, cache);
        case form::calls: return print_calls<pt_flow::call_tree>(given, cache);
        case form::folded: return print_calls<pt_flow::folded_stacks>(given, cache);
        case form::drcov: return print_drcov(given, cache);
        case form::bitmap: return print_bitmap(given, cache);
    }
    return tool::failed;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_flow", count, arguments, run_tool);
}
