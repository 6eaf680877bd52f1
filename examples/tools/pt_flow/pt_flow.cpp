// SPDX-License-Identifier: BSL-1.0

// pt_flow: the executed instructions of a trace. See `pt_flow --help`.

#include "../common/traced/filters.hpp"
#include "../common/traced/processes.hpp"
#include "cover.hpp"
#include "../common/reports/forms.hpp"
#include "options.hpp"
#include "../common/walk_limits.hpp"
#include "recordings.hpp"
#include "walk.hpp"
#include "../common/recorded/recording.hpp"

#include <filesystem>
#include <functional>

namespace {

using namespace ptspec;
using reports::form;
using pt_flow::settings;

constexpr std::string_view usage =
    R"(usage: pt_flow [FORM] [OPTION...] TRACE
       pt_flow [FORM] [OPTION...] PERF.DATA
       pt_flow [FORM] [OPTION...] DIRECTORY

Prints what a trace says was executed: a raw trace, with code from images; the threads of a
perf.data file, with code from the files that its MMAP records name; or those of a directory of
pt_record --raw, which has the code, also that of JIT compilers.

Forms of output:
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
  --drcov                   the blocks that executed, as a file of DynamoRIO's drcov, version 2: of
                            all threads, like the next one
  --bitmap SIZE             counts of edges, a byte each, at the index that flow::coverage documents

What is walked and printed; all by default:
  --times                   with --calls: add columns before the instructions. Of the line of a call
                            its time; of the line where it ends, the time, and the time and the
                            cycles of the core clock that it took. Where CYC packets are off, cycles
                            are 0
  --time A-B                print what was executed from time A to B; also A- and -B
  --from A, --to B          walk only the bytes from the PSB at or before byte A of the trace to the
                            one at or after byte B
  --tid N                   only the trace of this thread
  --stream N                only this stream, by its number in pt_dump --streams
  --stack-by returns|ptwrite
                            with --calls and --folded: how a thread with several stacks, such as
                            those of fibers, shows which one executes: by the addresses to which it
                            returns, the default, or by PTWRITE, whose payload is the stack's number
  --dso FILE                with --calls: only calls of functions of this file, a path or its end
  --only root|guest, --vmcs ADDRESS, --cr3 VALUE
                            only what was executed there, as PIP and VMCS packets say: in VMX root
                            or non-root operation (NR), with this VMCS, with this CR3. After lost
                            packets the place is not known up to the next PIP. What is left out is
                            counted on stderr
  --jobs N                  walk in up to N threads; by default in one for each processor. The
                            output does not depend on it
  --quiet                   do not count gaps on stderr at the end: of each reason, and the
                            addresses without code

Code of a raw trace:
  --binary FILE[@ADDRESS]   an ELF file, whose symbols name functions; the address is that of the
                            first byte of a PIE or shared object
  --image FILE@ADDRESS      a file with code, at this address: in hexadecimal, as all addresses
  --pages FILE.mem FILE.addr
                            pages of 4096 bytes one after the other, and a text file with a line
                            `0xADDRESS` for each, with ` unmapped` after it if the page is absent

Code of a perf.data file:
  --symfs DIRECTORY         where the files with code are, as they are below /. A file with another
                            build id than the recorded one is not used. Files are also taken from
                            ~/.debug, where perf keeps them, symbols from /usr/lib/debug and, for
                            the code of JIT compilers, from perf-PID.map in /tmp
  --vdso FILE               the vDSO of the recorded kernel, unless it is that of the running one
  --kernel FILE             the code of the kernel: a copy of /proc/kcore, as `perf record --kcore`
                            makes it, or vmlinux, without modules
                            The copy may be of any time: TEXT_POKE records change it. Code of BPF
                            programs, and their names, are in the perf.data file
  --kallsyms FILE           the names of its functions: a copy of /proc/kallsyms. Of a directory of
                            `perf record --kcore` both are known
  --guest-symfs DIRECTORY, --guest-kernel FILE, --guest-kallsyms FILE
                            the same for guests. There is one kernel for all guests. Files are
                            those that MMAP records of guests name; where two processes of guests
                            have different files at an address, its code is missing. Calls in a
                            guest are those of a thread `PID/TID guest`. Not with --drcov

A raw trace whose processes a ring of perf describes, for those who call perf_event_open:
  --records FILE            the bytes of the data area, from a record to another: PERF_RECORD_MMAP2,
                            SWITCH, AUX and others; TRACE is the AUX area. Times of records need
                            --perf-clock, or a PERF_RECORD_TIME_CONV among the records
  --attr FILE               the struct perf_event_attr of the event

How the trace is read; of a perf.data file this is known:
  --cpu FAMILY/MODEL[/STEPPING]
                            apply the workarounds for the errata of this processor
  --filter FIRST,LAST       an address range that is traced, up to four times: for processors that
                            may not send where a branch leaves it (SKL014; see --cpu)
  --ret pop|keep            whether a RET that is not compressed pops a return address. By default
                            it does; where trace and code then do not match and no time is needed,
                            a part is also walked with `keep`. What fits better is said on stderr
  --ctl VALUE               IA32_RTIT_CTL of a raw trace, in hexadecimal. Without BranchEn the trace
                            is one gap (no-branches). With DisTNT, code is known up to a branch
                            whose outcome is not certain: a conditional one, or a RET that may be
                            compressed (no-tnt). A perf.data file says it itself
  --mtc-freq N, --cyc-thresh N, --tsc-ratio B/A, --non-turbo R, --tsc-reference TSC,
  --begins-in-guest, --guest-tsc OFFSET,MULTIPLIER, --monotonic, --tsc-hz HZ,
  --perf-clock SHIFT,MULT,ZERO
                            for times: see pt_dump --help
  -h, --help                print this text

Times are in seconds where the frequency of the TSC is known, in its ticks where it is not. Those of
a perf.data file are the times of perf.

A line `gap REASON offset=O from=F to=T` is printed where it is not known what was executed: packets
were lost (overflow), the trace is damaged (damage), code is not in an image (missing-code), depends
on a time or process that the file does not say (no-time) or is no instruction (no-instruction), a
RET returns from a CALL that is in a gap (missing-call), or trace and code do not match (wrong-turn,
endless-loop, no-target). Or the trace has no packets for it: see --ctl. `edge - TO` after a gap
no-tnt is the target of an indirect branch. An edge that changes NR ends with vm-entry or vm-exit.

Where nothing but gaps is printed, stderr has the reason: no code, tracing is off, nothing in the
range of --time or where --only selects. So it has if all counts of --bitmap are 0, --drcov has no
block, or --calls and --folded have only lines of threads.

Example:
  $ printf 'psb\nfup ip=0x1000\npsbend\ntnt.8 bits=T\n' | pt_asm | pt_flow - 2>&1
  gap missing-code offset=0x15 from=0x1000 missing=0x1000
  pt_flow: no code for 1 address: 0x1000; give --binary, --image or --pages
  pt_flow: no instructions: only gaps: missing-code 1

Exit status: 0; 1 there are gaps, there is no PSB, nothing else is printed, or records of a
perf.data file are damaged: these are skipped, and their bytes counted on stderr; 2 wrong usage, or
an unreadable file.
)";

/// Walks the bytes that are wanted. Returns false if the trace has no PSB.
template <class Code>
auto walk(settings const& given, std::vector<pt_flow::stretch> all, Code& code,
          pt_flow::walk_settings const& how, pt_flow::report& to) -> bool {
    bool const has_psb = all.empty() || std::any_of(all.begin(), all.end(),
                                                    [](auto& one) { return one.has_psb(); });
    to.found.has_psb = to.found.has_psb && has_psb;
    if (given.has_bytes()) {
        for (auto& one : all) { one.keep(given.from, given.to); }
    }
    for (auto const& one : all) { to.found.bytes += one.size(); }
    if (auto* const edges = dynamic_cast<pt_flow::edge_counts*>(&to)) {
        pt_flow::cover_edges(all, code, how, *edges);
    } else if (auto* const blocks = dynamic_cast<pt_flow::covered_blocks*>(&to)) {
        pt_flow::cover(all, code, how, *blocks);
    } else {
        pt_flow::walk(all, code, how, to);
    }
    return has_psb;
}

/// What is asked of a walk. `user_code` and `kernel_code` say what helps where code is missing.
auto request_of(settings const& given, std::string user_code, std::string kernel_code)
    -> tool::walk_request {
    tool::walk_request made;
    made.what = reports::name_of(given.report);
    made.has_bytes = given.has_bytes();
    made.to_ns = given.walk.to_ns;
    made.user_code = std::move(user_code);
    made.kernel_code = std::move(kernel_code);
    made.is_quiet = given.is_quiet;
    return made;
}
void report_no_psb(std::string const& name) {
    tool::print_error(name +
                      ": has no PSB: no Intel PT, or its begin is missing: nothing is known");
}

void print_notes(std::vector<std::string>& notes) {
    for (auto const& one : std::exchange(notes, {})) { tool::print_error(one); }
}

/// Says what --only, --vmcs and --cr3 left out.
void report_left_out(settings const& given, pt_flow::left_out const& all) {
    if (!given.walk.places.is_on()) { return; }
    auto const counted = [](std::uint64_t count, std::string_view what) {
        return std::to_string(count) + ' ' + std::string{what} + (count == 1 ? "" : "s");
    };
    tool::print_error("left out: " + counted(all.instructions, "instruction") + " (" +
                      std::to_string(all.unknown) + " where the place is not known), " +
                      counted(all.branches, "edge") + ", " + counted(all.gaps, "gap"));
}

/// Says what a report did not find, after what it printed, and returns the exit status.
auto report_found(reports::report const& of, tool::walk_request const& asked, tool::output& out)
    -> int {
    out.flush();
    auto found = of.found;
    found.elsewhere = of.others.instructions + of.others.gaps;
    tool::print_summary(found, asked);
    return found.is_complete() ? 0 : 1;
}

/// Prints what a raw trace says, and returns the exit status.
auto print_raw(settings& given, trace_file::opened& in, tool::output& out) -> int {
    auto const bytes = in.whole();
    traced::traced_code code{given.code.images.spans()};
    code.select(given.walk.places);
    auto to = listing_of(given.report, out);
    if (given.report.what == form::drcov) {
        to = std::make_unique<pt_flow::covered_blocks>(
            out,
            [&](pt_flow::thread_id, std::uint64_t at) { return given.code.images.module_at(at); });
    } else if (to == nullptr) {
        auto const names_of = [&](pt_flow::thread_id) -> auto& {
            return given.code.images.names();
        };
        auto const all = [](pt_flow::thread_id) { return std::vector<flow::ip_range>{}; };
        to = calls_report(given.report, out, given.walk.to_ns, false, names_of, all);
    }
    tool::progress bar{bytes->bytes().size()};
    auto how = given.walk;
    how.options = trace_file::with_limits(how.options, given.given, nullptr);
    how.bar = &bar;
    std::vector<pt_flow::stretch> all;
    all.emplace_back(0).add(bytes->bytes());
    bool const has_psb = walk(given, std::move(all), code, how, *to);
    print_notes(to->notes);
    to->end();
    report_left_out(given, to->others);
    if (!has_psb) { report_no_psb(in.name()); }
    return report_found(*to, request_of(given, "give --binary, --image or --pages", ""), out);
}

/// One trace of a file or directory. `walk(report, jobs, bar)` walks it.
struct source {
    std::string label;
    std::uint64_t size = 0;
    bool is_divided = false;  ///< for coverage, `walk` takes several jobs
    trace_file::conversion to_ns{};
    /// Returns false if there is no PSB.
    std::function<bool(pt_flow::report&, unsigned, tool::progress*)> walk;
};

/// Prints the coverage of several traces, and returns the exit status. Traces that are divided are
/// walked one after the other, the others in parallel.
template <class Processes>
auto print_coverage(settings const& given, std::vector<source> const& all, Processes& of,
                    tool::walk_request const& asked, tool::output& out) -> int {
    using pt_flow::coverage_report;
    auto const make_report = [&] {
        auto made = report_of_threads(given.report, out, all[0].to_ns, of);
        return std::unique_ptr<coverage_report>{&dynamic_cast<coverage_report&>(*made.release())};
    };
    auto const to = make_report();
    std::uint64_t size = 0;
    for (auto const& one : all) { size += one.size; }
    tool::progress bar{size};
    std::uint64_t done = 0;
    struct walked {
        bool has_psb = true;
        std::vector<std::string> notes{};
    };
    std::vector<walked> results(all.size());
    auto const walk_into = [&](coverage_report& into, std::size_t i, unsigned jobs, auto* with) {
        bool const has_psb = all[i].walk(into, jobs, with);
        results[i] = {has_psb, std::exchange(into.notes, {})};
    };
    std::vector<std::size_t> whole;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].is_divided) {
            whole.push_back(i);
            continue;
        }
        walk_into(*to, i, given.walk.jobs, all.size() == 1 ? &bar : nullptr);
        bar.at(done += all[i].size);
    }
    auto const jobs = std::min(given.walk.jobs, to->max_jobs());
    std::vector<std::unique_ptr<coverage_report>> reports(jobs);  // the first one is `to`
    auto const make = [&](unsigned number, std::size_t i) {
        auto& own = reports[number];
        if (number != 0 && own == nullptr) { own = make_report(); }
        walk_into(number == 0 ? *to : *own, whole[i], 1, all.size() == 1 ? &bar : nullptr);
        return whole[i];
    };
    tool::in_order(whole.size(), jobs, make, [&](std::size_t i) { bar.at(done += all[i].size); });
    for (auto const& one : reports) {
        if (one != nullptr) { to->add(*one); }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        print_notes(results[i].notes);
        if (!results[i].has_psb) { report_no_psb(all[i].label); }
    }
    to->end();
    report_left_out(given, to->others);
    return report_found(*to, asked, out);
}

/// Prints several traces, and returns the exit status: coverage of all, or each after its label.
/// Then they are walked in parallel.
template <class Processes>
auto print_all(settings const& given, std::vector<source> const& all, Processes& of,
               tool::walk_request const& asked, tool::output& out) -> int {
    if (!given.report.dso.empty() && !of.executes(given.report.dso)) {
        throw tool::failure{given.report.dso + ": no process executes this file"};
    }
    if (given.report.what == form::drcov || given.report.what == form::bitmap) {
        return print_coverage(given, all, of, asked, out);
    }
    auto const jobs = given.walk.jobs;
    std::uint64_t size = 0;
    for (auto const& one : all) { size += one.size; }
    tool::progress bar{size};
    if (all.size() == 1) {
        auto const to = report_of_threads(given.report, out, all[0].to_ns, of);
        bool const has_psb = all[0].walk(*to, jobs, &bar);
        print_notes(to->notes);
        if (!has_psb) { report_no_psb(all[0].label); }
        to->end();
        report_left_out(given, to->others);
        return report_found(*to, asked, out);
    }
    struct printed {
        tool::output text = tool::output::temporary();
        tool::walk_summary found{};
        pt_flow::left_out others{};
        std::vector<std::string> notes{};
    };
    auto const make = [&](unsigned, std::size_t i) {
        printed made;
        made.text.write(all[i].label + "\n");
        auto const to = report_of_threads(given.report, made.text, all[i].to_ns, of);
        all[i].walk(*to, 1, nullptr);
        to->end();
        made.found = to->found;
        made.others = to->others;
        made.notes = std::move(to->notes);
        return made;
    };
    tool::walk_summary found{};
    pt_flow::left_out others{};
    std::uint64_t done = 0;
    auto of_next = all.begin();
    tool::in_order(all.size(), jobs, make, [&](printed& one) {
        one.text.copy_to(out);
        print_notes(one.notes);
        if (!one.found.has_psb) { report_no_psb(of_next->label); }
        found.add(one.found);
        others.add(one.others);
        bar.at(done += of_next->size);
        ++of_next;
    });
    out.flush();
    report_left_out(given, others);
    found.elsewhere = others.instructions + others.gaps;
    tool::print_summary(found, asked);
    return found.is_complete() ? 0 : 1;
}

/// How to walk a stream of a perf.data file.
auto walk_of(settings const& given, trace_file::stream const& of) -> pt_flow::walk_settings {
    auto how = given.walk;
    how.clock = trace_file::clock_of(of, how.clock, given.given);
    how.clock.guest_tsc.near_by = how.clock.tsc_reference;
    how.options.quirks = how.clock.quirks;
    how.options = trace_file::with_limits(how.options, given.given, &of);
    if (!how.to_ns.is_known()) { how.to_ns.perf = of.how.to_ns; }
    return how;
}
auto print_perf_data(settings const& given, trace_file::container const& file, tool::output& out)
    -> int {
    traced::binaries files{given.code.files};
    traced::processes in{file::perf_data::open(file.from->bytes()), files};
    std::vector<source> all;
    for (auto const* const one : file.selected(given.stream)) {
        if (given.tid && one->tid != given.tid) { continue; }
        auto how = walk_of(given, *one);
        how.options = traced::with_filters(how.options, in, one->how);
        auto const walk_it = [&given, &in, one, how](auto& to, auto jobs, auto* bar) {
            auto with = how;
            with.jobs = jobs;
            with.bar = bar;
            traced::traced_code code{in, *one};
            code.select(with.places);
            return walk(given, pt_flow::stretches_of(*one), code, with, to);
        };
        bool const is_divided = pt_flow::is_divided(traced::traced_code{in, *one}, how,
                                                    one->bytes());
        all.push_back({one->label(), one->bytes(), is_divided, how.to_ns, walk_it});
    }
    if (all.empty() && !given.tid) { file.check(); }
    if (all.empty()) { throw tool::failure{file.name + ": has no trace of this thread"}; }
    bool const is_damaged = file.print_warnings();
    auto asked = request_of(given, "see --symfs",
                            given.code.files.kernel.empty() ? "give --kernel" : "see --kernel");
    asked.to_ns = all.front().to_ns;
    return std::max(print_all(given, all, in, asked, out), is_damaged ? 1 : 0);
}

/// How to walk raw output of pt_record.
auto walk_of(settings const& given, pt_record::raw_output const& of) -> pt_flow::walk_settings {
    auto how = given.walk;
    auto const said = of.settings();
    auto const number = [&](char const* key, std::uint64_t most) {
        auto const found = said.find(key);
        auto const value = found == said.end() ? std::nullopt
                                               : tool::parse_number(found->second, most);
        return value.value_or(0);
    };
    auto& clock = how.clock;
    constexpr std::uint64_t any = 0xFFFF'FFFF;
    if (!given.given.mtc_freq) {
        clock.mtc_freq = static_cast<std::uint8_t>(number("mtc_freq", 15));
    }
    if (clock.tsc_numerator == 0) {
        clock.tsc_numerator = static_cast<std::uint32_t>(number("ratio_numerator", any));
        clock.tsc_denominator = static_cast<std::uint32_t>(number("ratio_denominator", any));
    }
    if (clock.max_non_turbo_ratio == 0) {
        clock.max_non_turbo_ratio = static_cast<std::uint8_t>(number("nominal", 255));
    }
    clock.tsc_age = trace::tsc_age_of(clock.tsc_numerator, clock.tsc_denominator);
    if (!how.to_ns.is_known()) { how.to_ns.frequency = pt_record::tsc_mhz * 1'000'000; }
    return how;
}
auto print_recording(settings const& given, tool::output& out) -> int {
    if (given.stream) { throw tool::failure{"--stream takes a perf.data file"}; }
    traced::binaries files{given.code.files};
    pt_flow::recorded_processes in{given.trace, files};
    auto const how = walk_of(given, in.files());
    std::vector<source> all;
    for (auto const& one : in.files().threads()) {
        if (given.tid && one.tid != given.tid) { continue; }
        auto const path = in.files().path_of(one, "pt");
        auto const walk_it = [&given, &in, &how, one, path](auto& to, auto, auto* bar) {
            auto with = how;
            with.bar = bar;
            tool::input file{path};
            trace_file::memory const bytes{file, std::string_view{}};
            pt_flow::thread_id const which{static_cast<std::uint32_t>(one.process), one.tid, 0};
            pt_flow::recorded_code code{in.code_of(one.process), which, bytes.bytes()};
            std::vector<pt_flow::stretch> whole;
            whole.emplace_back(0).add(bytes.bytes());
            return walk(given, std::move(whole), code, with, to);
        };
        std::error_code ignored;
        auto const size = std::filesystem::file_size(path, ignored);
        all.push_back(
            {"tid " + std::to_string(one.tid), ignored ? 0 : size, false, how.to_ns, walk_it});
    }
    if (all.empty()) { throw tool::failure{given.trace + ": has no trace of this thread"}; }
    auto asked = request_of(given, "the recording does not have it", "");
    asked.to_ns = all.front().to_ns;
    return print_all(given, all, in, asked, out);
}

/// Takes the copies of kcore and kallsyms from a directory of perf record --kcore.
void take_kcore_directory(settings& given) {
    namespace files = std::filesystem;
    std::error_code ignored;
    auto const directory = files::path{given.trace} / "kcore_dir";
    auto const take = [&](std::string& to, char const* name) {
        auto const path = directory / name;
        if (to.empty() && files::is_regular_file(path, ignored)) { to = path.string(); }
    };
    bool const is_given = !given.code.files.kernel.empty();
    take(given.code.files.kernel, "kcore");
    given.code.files.kernel_is_of_start = !is_given && !given.code.files.kernel.empty();
    take(given.code.files.kallsyms, "kallsyms");
}

auto run_tool(tool::command_line& line) -> int {
    auto given = pt_flow::parse(line, usage);
    if (given.report.what == form::drcov && given.code.files.has_guest()) {
        throw tool::failure{"--drcov has no code of guests: leave out --guest-symfs, "
                            "--guest-kernel and --guest-kallsyms"};
    }
    take_kcore_directory(given);
    tool::output out;
    if (pt_record::raw_output::is_there(given.trace)) {
        if (given.code.has_images) { throw tool::failure{"a recording has its code"}; }
        if (given.walk.places.is_on()) {
            throw tool::failure{"a recording has no PIPs: leave out --only, --vmcs and --cr3"};
        }
        int const status = print_recording(given, out);
        out.close();
        return status;
    }
    trace_file::opened in{given.trace, false, given.ring};
    if (!in.is_raw()) {
        if (given.code.has_images) {
            throw tool::failure{"a perf.data file names the files itself"};
        }
        auto const file = in.streams();
        int const status = print_perf_data(given, file, out);
        out.close();
        file.check();
        return status;
    }
    if (given.tid || given.stream || !given.report.dso.empty()) {
        throw tool::failure{"--tid, --stream and --dso need a perf.data file"};
    }
    in.check_format();
    int const status = print_raw(given, in, out);
    out.close();
    return status;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_flow", count, arguments, run_tool);
}
