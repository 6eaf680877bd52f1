// SPDX-License-Identifier: BSL-1.0

// pt_record: records a program with Intel PT on a machine without Intel PT. See `pt_record --help`.
//
//   pt_record.cpp      the command line, and what is reported
//   command.hpp        the program to execute
//   qemu_plugin.cpp    the engine `qemu`: a plugin for qemu-x86_64
//   qemu_entry.hpp     how QEMU enters it
//   step.hpp           the engine `step`: ptrace
//   thread_trace.hpp   from executed blocks to packets in a file, for a thread
//   thread_state.hpp   what completes that file if the thread is killed
//   completion.hpp     completes it
//   import.hpp         how the plugin learns that QEMU ends the process
//   recording.hpp      the directory of raw output
//   process_files.hpp  the code and the events of a process in it
//   perf_file.hpp      from that directory to perf.data

#include "command.hpp"
#include "completion.hpp"
#include "perf_file.hpp"
#include "step.hpp"
#include "../common/tool.hpp"
#include "../common/trace_request.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

using namespace pt_record;

constexpr std::string_view usage =
    R"(usage: pt_record [-o FILE] [--raw DIR] [--ctl WORDS] [--kind K] [--engine E]
                 PROGRAM [ARGUMENT...]
       pt_record [-o FILE] --from DIR

Runs a program for x86-64 Linux in an emulator, and writes the trace that a processor with Intel PT
would write for its user code: every thread, and the processes that it forks. `perf script`, `perf
report` and other readers of perf.data read it.

  -o FILE                   the perf.data file; the default is perf.data. An existing one becomes
                            FILE.old
  --raw DIR                 keep the raw output in this directory, which must be new or empty: the
                            trace PID.TID.pt of each thread, and the code that each process executed
  --from DIR                make the perf.data file of raw output, as after an error
  --ctl WORDS               what to trace, separated by commas:
                              mtc[=FREQ], cyc[=THRESHOLD]  more timing packets than TSC
                              notsc           no TSC: where a program maps other code at the same
                                              addresses, perf may decode with the wrong code
                              psb=SIZE        the PSB period: 2K to 64K
                              noretcomp       no compressed RETs
                              notnt           TIPs only, no TNTs
                              filter=A-B      only IPs in this range, hexadecimal
                              stop=A-B        a TraceStop range
                              ptw             PTWRITE; event: Event Trace
  --kind K                  write the bytes as this kind of processor does: manual (the default),
                            broadwell, skylake, icelake or atom
  --engine E                qemu (the default): in QEMU's user mode; step: on this processor, one
                            instruction at a time by ptrace, about 10,000 times slower
  --qemu PATH               qemu-x86_64; the default is the one in PATH (Debian: qemu-user)
  --plugin PATH             the plugin; the default is pt_record_qemu.so beside this program
  --check                   with --raw: also write the number and the hash of all instructions, as
                            the engine executes them, to PID.TID.log
  -h, --help                print this text

Kernel code is recorded in an emulated machine: see examples/tools/machine/machine --help.

The trace of a process ends where it calls execve. If a signal kills it, the trace ends at the
instruction that raised a fault, or at the beginning of the block of instructions that the thread
executed: with FUP and TIP.PGD, as interrupts have; in a system call with its TIP.PGD.

Time is that of the host while the kernel executes, and one instruction a cycle of 3 GHz otherwise.

SIGTERM, SIGHUP and SIGINT are passed to the program; after a second one it is killed.

Exit status: that of the program, 128 and its signal if one ended it or was passed to it; 2 if
nothing was recorded; 3 instead of 0 if a trace is incomplete.
)";

enum class engine_kind : std::uint8_t { qemu, step };

struct arguments {
    std::string output = "perf.data";
    std::string raw{};   // empty: a temporary directory
    std::string from{};  // a directory of raw output; empty: record
    std::string qemu = "qemu-x86_64";
    std::string plugin{};
    engine_kind engine = engine_kind::qemu;
    settings how{};
    std::vector<std::string> program{};
};

auto kind_of(std::string const& name) -> engine::model_kind {
    for (auto const& one : engine::model_kinds) {
        if (std::string_view{one.name.data(), one.name.size()} == name) { return one.which; }
    }
    throw tool::failure{tool::quoted(name) + ": no such kind"};
}

auto engine_of(std::string const& name) -> engine_kind {
    if (name == "qemu") { return engine_kind::qemu; }
    if (name == "step") { return engine_kind::step; }
    throw tool::failure{tool::quoted(name) + ": no such engine"};
}

/// The values of the MSRs for what the user wants. Throws if the processor refuses a part of it.
auto msrs_of(std::string const& words) -> access::msr_state {
    std::string all = "tsc";
    for (auto const& word : tool::words_of(words, " ,")) {
        if (word == "notsc") {
            all = all.starts_with("tsc") ? all.substr(3) : all;
        } else {
            (all += ",") += word;
        }
    }
    auto wanted = trace_request::request_of(all);
    if (wanted.config.os) { throw tool::failure{"os: kernel code is not recorded"}; }
    wanted.config.user = true;
    auto const made = driver::plan(recording_processor(), wanted);
    trace_request::require(made.config);
    return made.plan;
}

auto parse(tool::command_line& line) -> arguments {
    arguments given;
    std::string words;
    bool has_other_options = false;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            std::exit(0);
        }
        if (line.is("-o")) {
            given.output = line.value();
            continue;
        }
        if (line.is("--from")) {
            given.from = line.value();
            continue;
        }
        has_other_options = true;
        if (line.is("--raw")) {
            given.raw = line.value();
        } else if (line.is("--ctl")) {
            words += "," + line.value();
        } else if (line.is("--kind")) {
            given.how.kind = kind_of(line.value());
        } else if (line.is("--qemu")) {
            given.qemu = line.value();
        } else if (line.is("--plugin")) {
            given.plugin = line.value();
        } else if (line.is("--engine")) {
            given.engine = engine_of(line.value());
        } else if (line.is("--check")) {
            given.how.check = true;
        } else if (line.is_operand()) {
            given.program = line.rest();
            break;
        } else {
            line.refuse();
        }
    }
    if (!given.from.empty()) {
        if (has_other_options) { throw tool::failure{"--from takes no other option but -o"}; }
        if (given.output == "-") { throw tool::failure{"-o needs a file, which is written twice"}; }
        return given;
    }
    if (given.program.empty()) { throw tool::failure{"needs a program; see --help"}; }
    if (given.output == "-") { throw tool::failure{"-o needs a file, which is written twice"}; }
    if (given.how.check && given.raw.empty()) { throw tool::failure{"--check needs --raw"}; }
    given.how.msrs = msrs_of(words);
    return given;
}

/// The directory of raw output. A temporary one is removed at the end.
class raw_directory {
public:
    explicit raw_directory(arguments const& given) : path_{given.raw} {
        if (path_.empty()) {
            auto const beside = std::filesystem::path{given.output}.parent_path();
            path_ = (beside.empty() ? "." : beside.string()) + "/pt_record.XXXXXX";
            is_temporary_ = ::mkdtemp(path_.data()) != nullptr;
            if (!is_temporary_) { throw tool::failure{path_ + ": " + std::strerror(errno)}; }
        } else {
            std::error_code why;
            std::filesystem::create_directories(path_, why);
            if (why) { throw tool::failure{path_ + ": " + why.message()}; }
            if (!std::filesystem::is_empty(path_, why)) {
                throw tool::failure{path_ + ": the directory is not empty"};
            }
        }
        path_ = std::filesystem::absolute(path_);
    }
    raw_directory(raw_directory const&) = delete;
    auto operator=(raw_directory const&) -> raw_directory& = delete;
    ~raw_directory() {
        std::error_code ignored;
        if (is_temporary_) { std::filesystem::remove_all(path_, ignored); }
    }
    /// Keeps a temporary directory.
    void keep() { is_temporary_ = false; }
    [[nodiscard]] auto path() const -> std::string const& { return path_; }

private:
    std::string path_;
    bool is_temporary_ = false;
};

/// An error after which the raw output is complete, but perf.data is not.
struct unfinished : tool::failure {
    using tool::failure::failure;
};

/// The shared file `progress`.
class shared_progress {
public:
    struct existing {};

    explicit shared_progress(std::string const& directory)
        : shared_progress{directory, O_CREAT | O_TRUNC} {}
    shared_progress(std::string const& directory, existing) : shared_progress{directory, 0} {}
    shared_progress(std::string const& directory, int how) {
        std::string const path = directory + "/progress";
        int const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | how, 0666);
        // A page of a full disk that is not allocated would raise SIGBUS in the recorded program.
        int const error = file < 0 ? errno : ::posix_fallocate(file, 0, sizeof(progress));
        void* const at = error != 0 ? MAP_FAILED
                                    : ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE,
                                             MAP_SHARED, file, 0);
        if (at == MAP_FAILED) {
            throw tool::failure{path + ": " + std::strerror(error != 0 ? error : errno)};
        }
        (void)::close(file);
        now_ = static_cast<progress*>(at);
    }
    shared_progress(shared_progress const&) = delete;
    auto operator=(shared_progress const&) -> shared_progress& = delete;
    ~shared_progress() { (void)::munmap(now_, sizeof(progress)); }

    /// For an engine in this process.
    [[nodiscard]] auto value() const -> progress& { return *now_; }
    [[nodiscard]] auto now() const -> progress {
        std::atomic_signal_fence(std::memory_order_acquire);  // other processes write it
        return *now_;
    }

private:
    progress* now_ = nullptr;
};

/// A number with its thousands separated.
auto grouped(std::uint64_t value) -> std::string {
    std::string digits = std::to_string(value);
    for (std::size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, 1, ',');
    }
    return digits;
}

/// `1 thread`, `2 threads`.
auto counted(std::uint64_t count, std::string const& what) -> std::string {
    return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

/// Runs a command, and shows its progress on a terminal. Returns the status of waitpid.
auto run_command(std::vector<std::string> const& command, shared_progress const& shared,
                 signal_relay& relay) -> int {
    // It ends with this program.
    int const child = start_process(command, [] { (void)::prctl(PR_SET_PDEATHSIG, SIGKILL); });
    relay.start(child);
    bool const shows = ::isatty(STDERR_FILENO) == 1;
    int status = 0;
    for (unsigned wait_ms = 1;;) {
        auto const done = ::waitpid(child, &status, shows ? WNOHANG : 0);
        if (done == child) { break; }
        if (done < 0 && errno != EINTR) {
            throw tool::failure{std::string{"waitpid: "} + std::strerror(errno)};
        }
        if (!shows) { continue; }
        ::timespec const pause{0, static_cast<long>(wait_ms) * 1'000'000};
        (void)::nanosleep(&pause, nullptr);
        wait_ms = wait_ms < 100 ? wait_ms * 2 : 200;
        if (wait_ms < 200) { continue; }
        std::fprintf(stderr, "\rpt_record: %s instructions",
                     grouped(shared.now().instructions).c_str());
    }
    relay.end();
    if (shows) { std::fprintf(stderr, "\r\033[K"); }
    return status;
}

/// Why traces are incomplete.
auto reason_of(progress const& now) -> std::string {
    if (now.error == 0) { return "their processes were killed, and their last state is unknown"; }
    return std::strerror(static_cast<int>(now.error));
}
/// Reports what prevented or limited the recording. Throws if nothing was recorded.
void report(progress const& now, recorded const& found, engine_kind engine) {
    switch (static_cast<refusal>(now.refused)) {
        case refusal::none: break;
        case refusal::machine:
            throw tool::failure{"the plugin records x86-64 programs in user mode only"};
        case refusal::settings: throw tool::failure{"the plugin cannot read its settings"};
        case refusal::thread_files:
            throw tool::failure{"the plugin cannot create files in the directory of raw output"};
    }
    if (found.threads.empty() && engine == engine_kind::step) {
        throw tool::failure{"nothing was recorded"};
    }
    if (found.threads.empty()) {
        throw tool::failure{"nothing was recorded: QEMU did not run the program with the plugin. "
                            "The plugin is for QEMU 6.0 to 8.2"};
    }
    if (now.lost_threads != 0) {
        tool::print_error("the traces of " + counted(now.lost_threads, "thread") +
                          " are incomplete: " + reason_of(now));
    }
    if (now.unread_mappings != 0) {
        tool::print_error("/proc/PID/maps could not be read: perf will not find some code");
    }
    if (now.other_signals != 0) {
        tool::print_error(std::to_string(now.other_signals) +
                          " interruptions were placed at the end of their block: the registers of "
                          "this emulator cannot be read");
    }
}

/// Finds the emulator and the plugin. Throws if there is none.
void find_emulator(arguments& given) {
    if (given.plugin.empty()) {
        given.plugin = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                       "pt_record_qemu.so";
    }
    if (::access(given.plugin.c_str(), R_OK) != 0) {
        throw tool::failure{given.plugin + ": " + std::strerror(errno) + "; --plugin names it"};
    }
    given.plugin = std::filesystem::absolute(given.plugin);
    if (given.qemu.find('/') != std::string::npos) { return; }
    try {
        given.qemu = tool::find_program(given.qemu);
    } catch (tool::failure const&) {
        throw tool::failure{given.qemu + " is not installed (Debian: qemu-user)"};
    }
}
auto emulate_program(arguments const& given, std::string const& directory,
                     shared_progress const& shared, signal_relay& relay) -> int {
    return run_command(qemu_command(given.qemu, given.plugin, directory, given.program), shared,
                       relay);
}
auto step_program([[maybe_unused]] arguments const& given,
                  [[maybe_unused]] std::string const& directory,
                  [[maybe_unused]] shared_progress const& shared,
                  [[maybe_unused]] signal_relay& relay) -> int {
#if defined(__x86_64__)
    return stepper{given.how, directory, shared.value()}.run(given.program, relay);
#else
    throw tool::failure{"the engine step needs an x86-64 processor"};
#endif
}

/// Completes the traces of processes that were killed. Returns the progress then.
auto complete(std::string const& directory, shared_progress const& shared) -> progress {
    auto const done = completion{directory}.run();
    auto& all = shared.value();
    all.instructions += done.instructions;
    all.other_signals += done.unexplained;
    all.lost_threads += done.cut;
    auto now = shared.now();
    now.lost_threads += done.left;
    if (now.error == 0) { now.error = static_cast<std::uint64_t>(done.error); }
    return now;
}

/// Reports the processes that executed another program, which is not recorded.
void report_executed(recorded const& found) {
    std::map<std::uint32_t, std::string> by;
    for (auto const& one : found.events) {
        // Without an event after it, the call did not return.
        by.erase(one.process);
        if (!one.is("exec")) { continue; }
        std::string program;
        for (std::size_t i = 2; i < one.words.size(); ++i) {
            program += (i == 2 ? "" : " ") + one.words[i];
        }
        by[one.process] = program;
    }
    unsigned shown = 0;
    for (auto const& [process, program] : by) {
        if (++shown > 5) {
            tool::print_error("... and " + std::to_string(by.size() - 5) + " more");
            break;
        }
        tool::print_error("the recording of process " + std::to_string(process) +
                          " ends where it executes " + (program.empty() ? "a program" : program));
    }
    if (shown != 0) { tool::print_error("programs started by exec are not recorded"); }
}

/// Completes the raw output, and makes perf.data of it. Returns the progress then.
auto make_output(arguments const& given, std::string const& directory,
                 shared_progress const& shared) -> progress {
    auto const now = complete(directory, shared);
    auto const found = read_recorded(directory);
    try {
        report(now, found, given.engine);
        report_executed(found);
        write_perf_data(found, given.output);
    } catch (std::exception const& why) {
        if (found.bytes == 0) { throw; }
        throw unfinished{why.what()};
    }
    std::fprintf(stderr, "pt_record: %s: %s instructions, %s bytes of trace, %s\n",
                 given.output.c_str(), grouped(now.instructions).c_str(),
                 grouped(found.bytes).c_str(), counted(found.threads.size(), "thread").c_str());
    return now;
}
/// The status, unless a trace is incomplete.
auto status_of(int status, progress const& now) -> int {
    constexpr int incomplete = 3;
    return status == 0 && now.lost_threads != 0 ? incomplete : status;
}

/// Makes perf.data of a directory of raw output.
auto convert(arguments const& given) -> int {
    shared_progress const shared{given.from, shared_progress::existing{}};
    return status_of(0, make_output(given, given.from, shared));
}

auto run_tool(tool::command_line& line) -> int {
    auto given = parse(line);
    if (!given.from.empty()) { return convert(given); }
    given.program[0] = tool::find_program(given.program[0]);
    std::snprintf(given.how.program, sizeof given.how.program, "%s",
                  std::filesystem::path{given.program[0]}.filename().c_str());
    given.program = with_interpreter(given.program);
    require_program(given.program[0]);
    if (given.engine != engine_kind::step) { find_emulator(given); }
    raw_directory raw{given};
    if (!write_settings(given.how, (raw.path() + "/settings").c_str())) {
        throw tool::failure{raw.path() + "/settings: " + std::strerror(errno)};
    }
    shared_progress const shared{raw.path()};
    signal_relay relay;
    int const status = given.engine == engine_kind::step
                           ? step_program(given, raw.path(), shared, relay)
                           : emulate_program(given, raw.path(), shared, relay);
    progress now{};
    try {
        now = make_output(given, raw.path(), shared);
    } catch (unfinished const& why) {
        raw.keep();
        throw tool::failure{std::string{why.what()} + "; the raw output is in " + raw.path() +
                            ", see --from"};
    }
    if (signal_relay::first() != 0) { return 128 + signal_relay::first(); }
    if (WIFSIGNALED(status)) { return 128 + WTERMSIG(status); }
    return status_of(WEXITSTATUS(status), now);
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_record", count, arguments, run_tool);
}
