// SPDX-License-Identifier: BSL-1.0

// pt_trace: traces programs on Linux with Intel PT, without perf. See `pt_trace --help`.
//
//   pt_trace.cpp   the command line, and what is reported
//   recording.hpp  the events of the kernel, and the perf.data file
//   live.hpp       prints what executes, in another thread
//   live_walk.hpp  what executes, from the rounds of a file that grows
//   running.hpp    a process that already runs
//   filters.hpp    address filters by the names of functions
//   control.hpp    commands of another program

#include "control.hpp"
#include "filters.hpp"
#include "live.hpp"
#include "recording.hpp"
#include "running.hpp"
#include "../common/find_program.hpp"
#include "../common/progress.hpp"
#include "../common/tool.hpp"
#include "../common/trace_request.hpp"

#include <ptspec/ports/perf_event.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>

namespace {

using namespace pt_trace;

constexpr std::string_view usage = R"(usage: pt_trace [OPTION...] PROGRAM [ARGUMENT...]
       pt_trace [OPTION...] -p PID
       pt_trace [OPTION...] -a [PROGRAM [ARGUMENT...]]
       pt_trace --why

Traces a program, and what it starts, with the Intel PT of this machine, into a perf.data file:
`pt_flow --calls perf.data` prints its calls, and perf reads it, too.

  -p PID                    the threads that a process has now, until they end or Ctrl-C; not those
                            that they make
  -a                        all processes, while PROGRAM runs or until Ctrl-C
  --cpu LIST                with -a: only these processors: 0,2-3
  -o FILE                   the perf.data file; the default is perf.data. An existing one becomes
                            FILE.old
  --ctl WORDS               what to trace, separated by commas:
                              mtc[=FREQ], cyc[=THRESHOLD]  more timing packets. By default MTCs,
                                              every 8 cycles of the crystal clock
                              notsc, nomtc    fewer
                              psb=SIZE        the PSB period: 2K to 64K
                              noretcomp, notnt, ptw, event, pwr_evt
                              os              kernel code, too; kernel: only kernel code
  --filter WHAT             only this code: FUNCTION of the program, FILE:FUNCTION, or kernel
                            addresses A-B; repeatable
  --calls                   print the calls while the program runs; also --folded, --instructions,
                            --runs, --blocks, --edges and --drcov, with --times, --dso and
                            --stack-by, as pt_flow has them. Of user code; --folded and --drcov at
                            the end. If printing is slower than the program, it continues after the
                            program has ended; Ctrl-C then ends it. No trace is lost by that
  --to FILE                 print there; the default is standard output
  --stop-at FUNCTION        where it begins, tracing ends until the kernel switches to the thread
                            again; also FILE:FUNCTION and A-B
  --snapshot                only the last bytes of the trace, of each processor or thread: for long
                            runs that end where it becomes interesting, as by a crash. SIGUSR2 ends
                            the recording, also without this option; the program continues
  --aux SIZE                the area of trace of each processor or thread (4M): a power of 2
  --data SIZE               the area of records (512K)
  --control fifo:CTL[,ACK]  begin disabled; a line `enable`, `disable` or `stop` in the FIFO CTL
                            does so, and `ack` in ACK answers it, as with perf record
  --why                     say whether this machine can be traced by this user, or why it cannot
  -h, --help                print this text

What is lost is said: trace where this program was too slow, records, and what could not be read.

Exit status: that of the program, 128 and its signal if one ended it; 2 if nothing was recorded; 3
instead of 0 if something is lost.
)";

struct arguments {
    std::string output = "perf.data";
    targets of{};
    int process = 0;
    bool asks_why = false;
    perf_event::area_sizes sizes{.data = std::size_t{1} << 19};
    std::string words{};
    std::string control{};
    std::vector<std::string> filters{};
    std::vector<std::string> stops{};
    std::vector<std::string> program{};
    bool is_live = false;  ///< prints what executes
    reports::report_options report{};
    std::string to = "-";  ///< the file that is printed to
};

/// The size of an area, such as 4M.
auto size_of(tool::command_line& line) -> std::size_t {
    auto const bytes = trace_request::bytes_of(line.value());
    if (bytes == 0) { throw tool::failure{line.argument() + " 0: an area has a page or more"}; }
    return static_cast<std::size_t>(bytes);
}
/// `0,2-3`.
auto cpus_of(std::string const& list) -> std::vector<int> {
    std::vector<int> all;
    for (auto const part : tool::words_of(list, ",")) {
        std::string const word{part};
        auto const dash = word.find('-');
        bool const good = word.find_first_not_of("0123456789-") == std::string::npos &&
                          word.size() <= 11 && dash != 0 && dash + 1 != word.size();
        if (!good) { throw tool::failure{tool::quoted(word) + ": no processor"}; }
        int const first = std::stoi(word);
        int const last = dash == std::string::npos ? first : std::stoi(word.substr(dash + 1));
        for (int cpu = first; cpu <= last && all.size() < 8192; ++cpu) { all.push_back(cpu); }
    }
    return all;
}
/// What the words ask for. By default with TSC and, where the processor has them, MTCs and a PSB
/// period as perf has it: without MTCs, perf and pt_flow do not know which code had been mapped. A
/// snapshot begins at a PSB: it has more of them.
auto config_of(std::string const& words, bool is_snapshot, cpu::capabilities const& caps)
    -> config::trace_config {
    std::string all = "user,tsc";
    auto const mtc = config::mtc_period::of_crystal_cycles(8);
    auto const psb = config::psb_period::of_bytes(16384);
    if (caps.supports(mtc)) { all += ",mtc=3"; }
    if (caps.supports(psb) && !is_snapshot) { all += ",psb=16K"; }
    bool has_tsc = true, has_mtc = caps.supports(mtc), has_user = true;
    for (auto const& word : tool::words_of(words, " ,")) {
        if (word == "notsc") {
            has_tsc = has_mtc = false;
        } else if (word == "nomtc") {
            has_mtc = false;
        } else if (word == "kernel") {
            has_user = false;
            all += ",os";
        } else {
            (all += ",") += word;
        }
    }
    auto made = trace_request::request_of(all).config;
    made.tsc = has_tsc;
    made.mtc = made.mtc && has_mtc;
    made.user = has_user;
    return made;
}

/// Throws if what is asked for cannot be printed while the program runs.
void check_report(arguments const& given) {
    if (!given.is_live && given.to != "-") {
        throw tool::failure{"--to needs what is printed, such as --calls"};
    }
    if (!given.is_live) { return; }
    given.report.check();
    if (given.of.is_system_wide) {
        throw tool::failure{"with -a, the order of processors is known only at the end: leave out "
                            "-a, or record, and print with pt_flow"};
    }
    if (given.report.what == reports::form::bitmap) {
        throw tool::failure{"--bitmap: record, and print with pt_flow"};
    }
}

auto parse(tool::command_line& line) -> arguments {
    arguments given;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            std::exit(0);
        }
        if (reports::take_option(line, given.report)) {
            given.is_live = true;
            continue;
        }
        if (line.is("-o")) {
            given.output = line.value();
        } else if (line.is("-p")) {
            auto const number = line.value();
            given.process = std::atoi(number.c_str());
            if (given.process <= 0) { throw tool::failure{tool::quoted(number) + ": no process"}; }
        } else if (line.is("-a")) {
            given.of.is_system_wide = true;
        } else if (line.is("--cpu")) {
            given.of.cpus = cpus_of(line.value());
        } else if (line.is("--ctl")) {
            given.words += "," + line.value();
        } else if (line.is("--filter")) {
            given.filters.push_back(line.value());
        } else if (line.is("--stop-at")) {
            given.stops.push_back(line.value());
        } else if (line.is("--snapshot")) {
            given.sizes.is_snapshot = true;
        } else if (line.is("--aux")) {
            given.sizes.aux = size_of(line);
        } else if (line.is("--data")) {
            given.sizes.data = size_of(line);
        } else if (line.is("--control")) {
            given.control = line.value();
        } else if (line.is("--to")) {
            given.to = line.value();
        } else if (line.is("--why")) {
            given.asks_why = true;
        } else if (line.is_operand()) {
            given.program = line.rest();
            break;
        } else {
            line.refuse();
        }
    }
    if (given.asks_why) { return given; }
    if (given.output == "-") { throw tool::failure{"-o needs a file, which is written twice"}; }
    bool const has_program = !given.program.empty();
    if (given.process != 0 && (has_program || given.of.is_system_wide)) {
        throw tool::failure{"-p takes neither a program nor -a"};
    }
    if (!has_program && given.process == 0 && !given.of.is_system_wide) {
        throw tool::failure{"needs a program, -p or -a; see --help"};
    }
    if (!given.of.cpus.empty() && !given.of.is_system_wide) {
        throw tool::failure{"--cpu needs -a"};
    }
    check_report(given);
    return given;
}

std::sig_atomic_t volatile interrupts = 0;
void interrupt(int) { interrupts = interrupts + 1; }
std::sig_atomic_t volatile is_enough = 0;
void end_recording(int) { is_enough = 1; }

/// Why this machine cannot be traced, and what to do.
auto why_not(perf_event::trace_result const& of) -> std::string {
    auto const why = describe(of.what);
    std::string text{why.data(), why.size()};
    using enum perf_event::failure;
    bool const has_none = of.what == no_intel_pt || of.what == no_intel_pt_in_guest ||
                          of.what == no_pmu || of.what == no_sysfs;
    if (has_none) { text += "; pt_record records programs without Intel PT"; }
    return text;
}
/// Whether this user can trace itself.
auto print_why() -> int {
    auto const pmu = perf_event::read_pmu();
    auto done = pmu.result;
    perf_event::perf_trace trace;
    if (done) { done = trace.open({.config = {.user = true}}, pmu.pmu, {}); }
    if (done) { done = trace.map({}); }
    tool::print((done ? "this machine can be traced" : why_not(done)) + "\n");
    return done ? 0 : 1;
}

auto report(totals const& all, std::string const& file) -> bool {
    tool::print_error(file + ": " + std::to_string(all.bytes) + " bytes of trace");
    for (std::size_t i = 0; i < all.gaps.size(); ++i) {
        if (all.gaps[i] == 0) { continue; }
        auto const why = describe(static_cast<perf_event::loss>(i));
        tool::print_error("trace is lost " + std::to_string(all.gaps[i]) +
                          " times: " + std::string{why.data(), why.size()});
    }
    if (all.lost_records != 0) {
        tool::print_error(std::to_string(all.lost_records) +
                          " records are lost: --data SIZE makes the area larger");
    }
    if (all.bad_records != 0) {
        tool::print_error(std::to_string(all.bad_records) + " records cannot be read");
    }
    if (all.skipped != 0) {
        tool::print_error(std::to_string(all.skipped) + " bytes of the area have no record");
    }
    if (all.not_enabled != 0) {
        tool::print_error("tracing could not continue after a loss: " +
                          std::to_string(all.not_enabled) + " times");
    }
    return all.is_complete();
}

/// How much is recorded, and how often trace was lost.
auto status_of(totals const& all) -> std::string {
    std::uint64_t losses = 0;
    for (auto const count : all.gaps) { losses += count; }
    auto const kilobytes = std::to_string(all.bytes >> 10);
    return kilobytes + " KB of trace, lost " + std::to_string(losses) + " times";
}

/// Executes a command of --control. Returns true for `stop`.
auto obey(std::string const& command, recording& all) -> bool {
    if (command == "enable") {
        all.enable();
    } else if (command == "disable") {
        all.disable();
    } else if (command != "stop") {
        tool::print_error("--control: " + tool::quoted(command) + ": no such command");
    }
    return command == "stop";
}

/// The filters of the kernel. Throws if they are more than the processor has.
auto filters_of(arguments const& given, perf_event::pmu const& pmu) -> std::string {
    if (given.filters.size() + given.stops.size() > pmu.max_filters) {
        throw tool::failure{"this processor has " + std::to_string(pmu.max_filters) +
                            " address filters"};
    }
    std::string all;
    auto const add = [&](std::string_view action, std::string const& what) {
        auto const file = given.process != 0 ? "/proc/" + std::to_string(given.process) + "/exe"
                          : !given.program.empty() ? tool::find_program(given.program[0])
                                                   : std::string{};
        all += (all.empty() ? "" : ",") + std::string{action} + filter_of(what, file);
    };
    for (auto const& one : given.filters) { add("filter ", one); }
    for (auto const& one : given.stops) { add("stop ", one); }
    return all;
}

/// Makes the process of a program, and names what is traced.
void set_targets(arguments& given, perf_event::program& child) {
    if (!given.program.empty()) {
        std::vector<char*> words;
        for (auto& one : given.program) { words.push_back(one.data()); }
        words.push_back(nullptr);
        tool::set_ignored_signals(SIG_DFL);  // those of the program
        auto const started = child.start(words.data());
        tool::set_ignored_signals(SIG_IGN);
        require(started);
    }
    if (given.process != 0) {
        given.of.threads = threads_of(given.process);
        if (given.of.threads.empty()) {
            throw tool::failure{std::to_string(given.process) + ": there is no such process"};
        }
    } else if (!given.of.is_system_wide) {
        given.of.program = child.thread();
    }
}

/// How a recording ended.
struct end_of_recording {
    int status = 0;           ///< of waitpid(2)
    bool is_running = false;  ///< the program
};

/// Records until the program, or what is traced, has ended, or a signal or command ends it.
auto record(recording& all, perf_event::program& child, bool has_program,
            std::optional<control>& commands, bool shows_status) -> end_of_recording {
    tool::status_line line;
    int status = 0;
    bool is_running = has_program;
    bool has_ended = false;
    while (!has_ended && is_enough == 0 && (has_program ? interrupts < 2 : interrupts == 0)) {
        bool const is_any = all.read(100, commands ? commands->descriptor() : -1);
        if (shows_status) {
            line.show([&] { return status_of(all.so_far()); });
        }
        for (std::string command; commands && !(command = commands->next()).empty();) {
            has_ended = obey(command, all) || has_ended;
            commands->answer();
        }
        bool const is_done = has_program &&
                             ::waitpid(child.thread(), &status, WNOHANG) == child.thread();
        is_running = is_running && !is_done;
        has_ended = has_ended || (has_program ? is_done : !is_any);
    }
    if (is_running && interrupts >= 2) {
        (void)::kill(child.thread(), SIGKILL);
        status = child.wait();
        is_running = false;
    }
    return {status, is_running};
}

auto run_tool(tool::command_line& line) -> int {
    auto given = parse(line);
    if (given.asks_why) { return print_why(); }
    auto const pmu = perf_event::read_pmu();
    if (!pmu.result) { throw tool::failure{why_not(pmu.result)}; }
    auto const wanted = config_of(given.words, given.sizes.is_snapshot, pmu.pmu.caps);
    if (given.is_live && wanted.os) {
        throw tool::failure{"code of the kernel cannot be printed while it executes: record, and "
                            "print with pt_flow --kernel"};
    }
    if (given.is_live && !wanted.tsc) {
        throw tool::failure{"without TSC packets, no thread is known: leave out notsc"};
    }
    trace_request::require(check(pmu.pmu.caps, wanted));
    auto const filters = filters_of(given, pmu.pmu);
    std::optional<control> commands;
    if (!given.control.empty()) { commands.emplace(given.control); }

    perf_event::program child;
    set_targets(given, child);
    bool const has_program = !given.program.empty();
    bool const at_exec = has_program && !given.of.is_system_wide && !commands;
    auto const begin = at_exec ? perf_event::begin::at_exec : perf_event::begin::at_enable;
    recording all{
        {.config = wanted, .begin = begin}, pmu.pmu, given.of, given.sizes, filters, given.is_live};
    all.begin(given.output);
    std::optional<live_printer> printer;
    if (given.is_live) {
        printer.emplace(all.file().path(), all.file().size(), given.report, given.to);
        all.watch([&](std::uint64_t size, std::uint64_t tsc) { printer->publish(size, tsc); });
    }
    std::vector<int> running;
    if (given.process != 0) { running.push_back(given.process); }
    if (given.of.is_system_wide) { running = all_processes(); }
    for (auto const one : running) { write_process(one, all.file()); }

    (void)std::signal(SIGINT, interrupt);
    (void)std::signal(SIGTERM, interrupt);
    (void)std::signal(SIGUSR2, end_recording);
    if (!at_exec && !commands) { all.enable(); }
    if (has_program) { require(child.run()); }
    auto const ended = record(all, child, has_program, commands, !given.is_live || given.to != "-");
    auto const& found = all.finish();
    auto const interrupts_before = interrupts;
    bool const is_recorded = report(found, given.output);
    bool const is_known = !printer ||
                          printer->finish([&] { return interrupts != interrupts_before; });
    bool const is_complete = is_recorded && is_known;
    int const status = ended.is_running ? child.wait() : ended.status;
    int const result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result == 0 && !is_complete ? 3 : result;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_trace", count, arguments, run_tool);
}
