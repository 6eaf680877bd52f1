// SPDX-License-Identifier: BSL-1.0
#pragma once

// A directory of raw output: what is in it, and the settings, which the tool and the plugin read.
//
//   settings        lines `key=value`, see `settings`
//   progress        counters that the recorded processes share, see `progress`
//   PID.TID.pt      the trace of a thread
//   PID.code        the journal of its process: code bytes as they were executed
//   PID.events      one line for each event of the process, see `process_files`
//   PID.TID.state   while the thread executes: what completes its trace if it is killed
//   PID.TID.log     with --check: the number and the hash of the instructions that were emulated
//
// Nothing here throws: the plugin runs within the process of another program.

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/plan.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/engine/clocks.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <time.h>

namespace pt_record {

using namespace ptspec;

/// The processor whose trace unit records: all features that a trace of user code can have. Its TSC
/// counts at 3 GHz, 120 times the crystal clock of 25 MHz, as the core does.
inline auto recording_processor() -> cpu::capabilities {
    return cpu::preset::find(text{"GraniteRapids"})->value;
}
/// Ticks of the time-stamp counter in a microsecond.
inline constexpr std::uint64_t tsc_mhz = 3000;

/// The time of the host, for which a trace has TSC packets.
inline auto host_nanoseconds() -> std::uint64_t {
    ::timespec now{};
    (void)::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

/// What to record, and how.
struct settings {
    access::msr_state msrs{};
    engine::model_kind kind = engine::model_kind::manual;
    bool check = false;     ///< write logs of the emulated instructions
    char program[64] = {};  ///< the name of the program

    /// The state of the MSRs before tracing starts.
    [[nodiscard]] auto state() const -> access::msr_state {
        auto now = msrs;
        now.ctl = {};
        return now;
    }
    /// True if an instruction is in the first range of a filter, or if there is none.
    [[nodiscard]] auto passes_filter(std::uint64_t ip) const -> bool {
        return access::use_of_range(msrs.ctl, 0) != reg::addr_cfg::filter ||
               (msrs.addr[0].a.raw <= ip && ip <= msrs.addr[0].b.raw);
    }
    /// The options of the trace unit. Every decoder reads its RETs.
    [[nodiscard]] auto options() const -> engine::model_options {
        auto how = engine::options_of(kind);
        how.on_ret_mismatch = trace::ret_mismatch::clear;
        return how;
    }
};

/// Calls `visit(key, number)` for the numbers of the settings.
template <class Settings, class Visit>
void for_each_number(Settings& of, Visit&& visit) {
    visit("ctl", of.msrs.ctl.raw);
    visit("addr0_a", of.msrs.addr[0].a.raw);
    visit("addr0_b", of.msrs.addr[0].b.raw);
    visit("addr1_a", of.msrs.addr[1].a.raw);
    visit("addr1_b", of.msrs.addr[1].b.raw);
    visit("addr2_a", of.msrs.addr[2].a.raw);
    visit("addr2_b", of.msrs.addr[2].b.raw);
    visit("addr3_a", of.msrs.addr[3].a.raw);
    visit("addr3_b", of.msrs.addr[3].b.raw);
}

/// Writes the file of settings. The lines after the first ones are for decoders. Returns false, and
/// errno, on an error, and then leaves no file.
inline auto write_settings(settings const& from, char const* path) -> bool {
    using ctl = reg::ia32_rtit_ctl;
    std::FILE* const to = std::fopen(path, "w");
    if (to == nullptr) { return false; }
    for_each_number(from, [&](char const* key, std::uint64_t value) {
        std::fprintf(to, "%s=%llx\n", key, static_cast<unsigned long long>(value));
    });
    auto const name = engine::info_of(from.kind).name;
    auto const of = recording_processor();
    auto const model = cpu::model_of(of.leaf_01_eax);
    auto const number = [&](char const* key, unsigned long long value) {
        std::fprintf(to, "%s=%llu\n", key, value);
    };
    std::fprintf(to, "kind=%.*s\n", static_cast<int>(name.size()), name.data());
    number("check", from.check ? 1 : 0);
    std::fprintf(to, "program=%s\n", from.program);
    number("ret_compression", from.msrs.ctl.get<ctl::DisRETC>() ? 0 : 1);
    number("mtc_freq", from.msrs.ctl.get<ctl::MTCFreq>());
    number("cpu_family", model.family);
    number("cpu_model", model.model);
    number("ratio_numerator", of.leaf_15_ebx.raw);
    number("ratio_denominator", of.leaf_15_eax.raw);
    number("nominal", engine::core_to_bus_of(of));
    bool const failed = std::ferror(to) != 0;
    if (std::fclose(to) == 0 && !failed) { return true; }
    int const error = errno;
    (void)std::remove(path);
    errno = error;
    return false;
}

/// Reads the file of settings. Unknown keys are ignored. Returns false if it cannot be read.
inline auto read_settings(settings& to, char const* path) -> bool {
    std::FILE* const from = std::fopen(path, "r");
    if (from == nullptr) { return false; }
    char line[256];
    while (std::fgets(line, sizeof line, from) != nullptr) {
        char* const equals = std::strchr(line, '=');
        if (equals == nullptr) { continue; }
        *equals = '\0';
        char* const value = equals + 1;
        value[std::strcspn(value, "\n")] = '\0';
        for_each_number(to, [&](char const* key, uint64_t& member) {
            if (std::strcmp(key, line) == 0) { member = std::strtoull(value, nullptr, 16); }
        });
        if (std::strcmp(line, "check") == 0) { to.check = value[0] == '1'; }
        if (std::strcmp(line, "program") == 0) {
            std::snprintf(to.program, sizeof to.program, "%s", value);
        }
        if (std::strcmp(line, "kind") != 0) { continue; }
        for (auto const& one : engine::model_kinds) {
            if (text{value, std::strlen(value)} == one.name) { to.kind = one.which; }
        }
    }
    bool const failed = std::ferror(from) != 0;
    (void)std::fclose(from);
    return !failed;
}

/// The path of a file in the directory.
struct path_of {
    char letters[4096] = {};

    explicit path_of(char const* directory, char const* name) {
        std::snprintf(letters, sizeof letters, "%s/%s", directory, name);
    }
    path_of(char const* directory, int process, char const* kind) {
        std::snprintf(letters, sizeof letters, "%s/%d.%s", directory, process, kind);
    }
    path_of(char const* directory, int process, int thread, char const* kind) {
        std::snprintf(letters, sizeof letters, "%s/%d.%d.%s", directory, process, thread, kind);
    }
};

/// What all recorded processes report to the tool, in the shared file `progress`.
struct progress {
    std::uint64_t instructions;
    std::uint64_t lost_threads;  ///< threads whose trace ended with an error
    std::uint64_t error;         ///< the errno of the first one
    std::uint64_t exact_signals;
    std::uint64_t other_signals;    ///< whose interrupted IP is not known exactly
    std::uint64_t unread_mappings;  ///< of code: readers of perf.data will not find it
    std::uint64_t refused;          ///< the plugin could not start: a number of `refusal`
};

enum class refusal : std::uint64_t { none, machine, settings, thread_files };

}  // namespace pt_record
