// SPDX-License-Identifier: BSL-1.0

// Recordings of pt_record, read with libipt's instruction flow decoder and with ptspec's walker:
// the instructions of every thread must be those of the emulator's log. See `--help`.

#include <differential/recorded_directory.hpp>
#include <differential/recorded_samples.hpp>
#include <differential/walked.hpp>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace differential::recording;

constexpr char const* usage = R"(usage: differential_recording [OPTION...] DIR...
       differential_recording --self-test

Decodes DIR/PID.TID.pt of every thread, with the code in DIR/PID.code, and compares number and hash
of the instructions with DIR/PID.TID.log.

  --first N         show the first N errors of each thread
  --thread PID.TID  only this thread
  --list FILE       write the address of every instruction of the thread to FILE
  --self-test       decode recordings made here, also damaged ones

Exit status: 0 all equal, 1 differences or errors, 2 wrong usage.
)";

struct command {
    std::vector<std::string> directories{};
    std::string thread{};
    std::string list{};
    std::size_t errors_shown = 0;
};

struct totals {
    std::uint64_t threads = 0;
    std::uint64_t good = 0;
    std::uint64_t instructions = 0;
    std::uint64_t bytes = 0;
    std::uint64_t walked = 0;  ///< instructions of the walker
    std::uint64_t errors = 0;
    double seconds = 0;
};

auto per_thousand(std::uint64_t bytes, std::uint64_t instructions) -> double {
    return instructions == 0
               ? 0
               : 1000.0 * static_cast<double>(bytes) / static_cast<double>(instructions);
}

/// Compares the walk of a thread with its log.
auto is_walk_equal(std::vector<std::uint8_t> const& trace, code_pages const& code,
                   recorded_thread const& of, instruction_log const& want, totals& sum) -> bool {
    auto const got = walk(trace, code, of.thread);
    bool const is_equal = got.log == want;
    sum.walked += got.log.count();
    if (!is_equal) {
        std::printf("  the walker has %" PRIu64 " instructions with hash %016" PRIx64 ", %" PRIu64
                    " gaps\n",
                    got.log.count(), got.log.hash(), got.gaps);
    }
    return is_equal;
}

/// Checks one thread. Returns true if it is as its log says.
auto check(recorded_thread const& of, code_pages const& code, decoder_settings const& settings,
           command const& what, totals& sum) -> bool {
    using clock = std::chrono::steady_clock;
    auto trace = read_file(of.trace);
    auto const bytes = size_without_padding(trace);
    auto const want = read_log(of.log);
    std::FILE* list = nullptr;
    if (!what.list.empty() && (list = std::fopen(what.list.c_str(), "w")) == nullptr) {
        throw failure{what.list + ": cannot be written"};
    }
    auto const start = clock::now();
    flow_reader const read{trace, settings, code, of.thread, what.errors_shown, list};
    sum.seconds += std::chrono::duration<double>(clock::now() - start).count();
    auto const& got = read.result();
    if (list != nullptr && std::fclose(list) != 0) {
        throw failure{what.list + ": cannot be written"};
    }
    bool const is_equal = got.log == want;
    std::printf("%s: %" PRIu64 " instructions, %zu bytes, %.1f per 1000 instructions, %s, %" PRIu64
                " errors",
                of.trace.c_str(), got.log.count(), bytes, per_thousand(bytes, got.log.count()),
                is_equal ? "equal" : "UNEQUAL", got.errors);
    if (got.overflows != 0) { std::printf(", %" PRIu64 " overflows", got.overflows); }
    std::printf("\n");
    if (!is_equal) {
        std::printf("  the log has %" PRIu64 " instructions with hash %016" PRIx64
                    ", not %016" PRIx64 "\n",
                    want.count(), want.hash(), got.log.hash());
    }
    for (auto const& error : got.first_errors) { std::printf("  %s\n", error.c_str()); }
    bool const is_walked = is_walk_equal(trace, code, of, want, sum);
    sum.instructions += got.log.count();
    sum.bytes += bytes;
    sum.errors += got.errors;
    return is_equal && got.errors == 0 && is_walked;
}

/// Checks the threads of a directory. Returns false if one is not as its log says, or if something
/// cannot be read.
auto check(std::string const& directory, command const& what, totals& sum) -> bool {
    bool good = true;
    auto const guarded = [&](auto const& act) {
        try {
            act();
        } catch (failure const& why) {
            std::printf("%s\n", why.what());
            good = false;
        }
    };
    guarded([&] {
        recorded_directory const all{directory};
        auto const settings = all.settings();
        std::size_t chosen = 0;
        for (auto const process : all.processes()) {
            guarded([&] {
                auto const threads = all.threads(process, what.thread);
                if (threads.empty()) { return; }
                chosen += threads.size();
                sum.threads += threads.size();
                code_pages const code{all.code(process)};
                for (auto const& thread : threads) {
                    guarded([&] {
                        bool const is_good = check(thread, code, settings, what, sum);
                        sum.good += is_good ? 1 : 0;
                        good = good && is_good;
                    });
                }
            });
        }
        if (chosen == 0) { throw failure{directory + ": no such thread"}; }
    });
    return good;
}

auto check_all(command const& what) -> bool {
    totals sum;
    bool good = true;
    for (auto const& directory : what.directories) { good = check(directory, what, sum) && good; }
    std::printf("%" PRIu64 " threads, %" PRIu64 " equal without errors: %" PRIu64
                " instructions, %.1f bytes per 1000 instructions, %" PRIu64
                " errors; %.1f million instructions a second; %" PRIu64 " walked\n",
                sum.threads, sum.good, sum.instructions, per_thousand(sum.bytes, sum.instructions),
                sum.errors,
                sum.seconds > 0 ? static_cast<double>(sum.instructions) / sum.seconds / 1e6 : 0.0,
                sum.walked);
    return good;
}

// ------------------------------------------------------------------------------------ self-test

/// Checks a recording made here. Returns false, and prints why, if the result is another one.
auto expect(bool want, samples::recording const& made, char const* what) -> bool {
    std::printf("-- %s\n", what);
    ptspec::test::scratch_folder const at;
    samples::write(made, at.path());
    bool const good = check_all({.directories = {at.path()}, .errors_shown = 3});
    if (good != want) { std::printf("SELF-TEST FAILED: %s\n", what); }
    return good == want;
}

auto self_test() -> bool {
    bool good = true;
    for (auto const& kind : ptspec::engine::model_kinds) {
        good = expect(true, samples::programs(kind, 30), "random programs") && good;
        good = expect(true, samples::rewritten_code(kind, 4000), "rewritten code") && good;
        good = expect(true, samples::forked(kind), "a fork") && good;
    }
    for (auto const& [what, made] : samples::damaged()) {
        good = expect(false, made, what) && good;
    }
    for (auto const& [what, made] : samples::odd()) { good = expect(true, made, what) && good; }
    std::printf("-- missing directory\n");
    good = !check_all({.directories = {"/nonexistent"}}) && good;
    std::printf("self-test: %s\n", good ? "passed" : "FAILED");
    return good;
}

auto wrong_usage() -> int {
    std::fprintf(stderr, "%s", usage);
    return 2;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    command what;
    for (int i = 1; i < count; ++i) {
        std::string_view const argument = arguments[i];
        bool const has_value = i + 1 < count;
        if (argument == "--help") {
            std::printf("%s", usage);
            return 0;
        }
        if (argument == "--self-test") { return self_test() ? 0 : 1; }
        if (argument == "--first" && has_value) {
            auto const number = parse_number(arguments[++i]);
            if (!number) { return wrong_usage(); }
            what.errors_shown = static_cast<std::size_t>(*number);
        } else if (argument == "--thread" && has_value) {
            what.thread = arguments[++i];
        } else if (argument == "--list" && has_value) {
            what.list = arguments[++i];
        } else if (argument.starts_with('-')) {
            return wrong_usage();
        } else {
            what.directories.emplace_back(argument);
        }
    }
    bool const lists_many = !what.list.empty() && what.thread.empty();
    if (what.directories.empty() || lists_many) { return wrong_usage(); }
    return check_all(what) ? 0 : 1;
}
