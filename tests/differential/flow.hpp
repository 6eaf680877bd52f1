// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/machine_runs.hpp>

#include <intel-pt.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

// Reads the trace of machine code with libipt's instruction flow decoder and the same memory: it
// must return the executed instructions.
namespace differential::flow {

namespace machine_code = ptspec::test::machine_code;
using machine_code::stretch;

/// The result of libipt: the instructions between overflows, and the error that ended decoding.
struct reading {
    std::vector<std::vector<std::uint64_t>> ips = std::vector<std::vector<std::uint64_t>>(1);
    std::string error{};
    std::uint64_t offset = 0;  ///< of the error
};

extern "C" inline auto read_memory(std::uint8_t* buffer, std::size_t size, pt_asid const*,
                                   std::uint64_t ip, void* context) -> int {
    auto const& program = *static_cast<machine_code::code const*>(context);
    auto const count = program.read(ip, buffer, size);
    return count == 0 ? -pte_nomap : static_cast<int>(count);
}

inline auto read(std::vector<std::uint8_t> trace, machine_code::code const& program,
                 machine_code::plan const& what) -> reading {
    reading made;
    pt_config config;
    pt_config_init(&config);
    config.begin = trace.data();
    config.end = trace.data() + trace.size();
    config.cpuid_0x15_eax = 1;
    config.cpuid_0x15_ebx = 2;
    config.mtc_freq = static_cast<std::uint8_t>(what.with.mtc_freq);
    config.nom_freq = 24;
    // A PSB+ before TIP.PGE has FUP and MODE.Exec: GEN-176, an erratum to libipt.
    config.errata.bdm70 = what.how.psb_of_enable_has_fup || what.how.psb_before_pge ? 1 : 0;
    auto* const decoder = pt_insn_alloc_decoder(&config);
    auto* const image = decoder == nullptr ? nullptr : pt_insn_get_image(decoder);
    if (image == nullptr) { return made.error = "no decoder", made; }
    (void)pt_image_set_callback(image, read_memory, const_cast<machine_code::code*>(&program));

    int status = pt_insn_sync_forward(decoder);
    char const* at = "synchronising";
    while (status >= 0) {
        if ((status & pts_event_pending) != 0) {
            pt_event event{};
            at = "an event";
            status = pt_insn_event(decoder, &event, sizeof event);
            if (status >= 0 && event.type == ptev_overflow) { made.ips.emplace_back(); }
            continue;
        }
        pt_insn next{};
        next.iclass = ptic_error;
        at = "an instruction";
        status = pt_insn_next(decoder, &next, sizeof next);
        if (next.iclass != ptic_error) { made.ips.back().push_back(next.ip); }
    }
    if (status != -pte_eos) {
        made.error = std::string{pt_errstr(pt_errcode(status))} + " at " + at;
        (void)pt_insn_get_offset(decoder, &made.offset);
    }
    pt_insn_free_decoder(decoder);
    return made;
}

/// The results of all programs.
struct packet_counts {
    std::uint64_t programs = 0;
    std::uint64_t instructions = 0;
    std::uint64_t overflows = 0;
    std::uint64_t alike = 0;
    std::map<std::string, std::uint64_t> beyond_libipt{};
    std::map<std::string, std::uint64_t> errors{};
};

/// The number of leading instructions that are the same.
inline auto same(std::vector<std::uint64_t> const& one, std::vector<std::uint64_t> const& two)
    -> std::size_t {
    auto const common = std::min(one.size(), two.size());
    return static_cast<std::size_t>(
        std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(common), two.begin())
            .first -
        one.begin());
}

/// A stretch as libipt reads it: without the instructions that it omits.
inline auto as_libipt_reads(stretch const& whole) -> stretch {
    stretch made{
        .ips = {}, .certain = whole.certain, .lost_mode = whole.lost_mode, .omitted_by_libipt = {}};
    std::size_t from = 0;
    for (auto const& one : whole.omitted_by_libipt) {
        for (; from < one.at; ++from) { made.ips.push_back(whole.ips[from]); }
        from += one.count;
        if (whole.certain >= from) { made.certain -= one.count; }
    }
    for (; from < whole.ips.size(); ++from) { made.ips.push_back(whole.ips[from]); }
    return made;
}

/// Compares the executed instructions with those of libipt, and counts the result.
inline void compare(std::vector<stretch> const& executed, reading const& got, std::uint64_t seed,
                    packet_counts& all) {
    ++all.programs;
    all.overflows += executed.size() - 1;
    auto const count = std::min(executed.size(), got.ips.size());
    bool omitted_ips = false;
    for (std::size_t i = 0; i < count; ++i) {
        auto const want = as_libipt_reads(executed[i]);
        omitted_ips = omitted_ips || !executed[i].omitted_by_libipt.empty();
        auto const& ips = got.ips[i];
        auto const good = same(want.ips, ips);
        all.instructions += good;
        if (want.lost_mode) {
            ++all.beyond_libipt["a mode change was lost in an overflow"];
            return;
        }
        bool const is_end = i + 1 == got.ips.size() && !got.error.empty();
        if (good == ips.size() && good >= want.certain && !is_end) { continue; }
        auto const cause = is_end ? got.error : std::string{"other instructions"};
        ++all.errors[cause];
        std::printf("program %" PRIu64 ": %s: stretch %zu of %zu, instruction %zu of %zu (%zu are "
                    "sure, %zu were read), offset %" PRIx64 "\n",
                    seed, cause.c_str(), i, executed.size(), good, want.ips.size(), want.certain,
                    ips.size(), got.offset);
        return;
    }
    if (executed.size() != got.ips.size()) {
        ++all.errors["another number of overflows"];
        std::printf("program %" PRIu64 ": %zu overflows, not %zu\n", seed, got.ips.size() - 1,
                    executed.size() - 1);
    } else if (omitted_ips) {
        ++all.beyond_libipt["TIP.PGD() after the PIP of a MOV CR3 was taken for the MOV's"];
    } else {
        ++all.alike;
    }
}

/// Traces one program on a processor of this kind, and reads its trace.
inline void run(std::uint64_t seed, ptspec::engine::model_kind_info const& of, packet_counts& all) {
    ptspec::test::dice from{seed};
    auto const what = machine_code::random_plan(from, of);
    machine_code::code const program{from};
    machine_code::machine one{what, program, from};
    one.run(3000);
    if (!one.succeeded()) {
        ++all.programs;
        ++all.errors["an access was refused"];
        std::printf("program %" PRIu64 ": an access was refused\n", seed);
        return;
    }
    compare(one.executed(), read(one.trace(), program, what), seed, all);
}

inline auto name_of(ptspec::engine::model_kind_info const& of) -> std::string {
    return {of.name.data(), of.name.size()};
}

/// Prints the results of a kind. Returns false if there were errors.
inline auto print(ptspec::engine::model_kind_info const& of, packet_counts const& all) -> bool {
    std::printf("%s: %" PRIu64 " programs, %" PRIu64 " instructions, %" PRIu64
                " overflows: %" PRIu64 " read alike\n",
                name_of(of).c_str(), all.programs, all.instructions, all.overflows, all.alike);
    for (auto const& [cause, count] : all.beyond_libipt) {
        std::printf("  %" PRIu64 " beyond libipt: %s\n", count, cause.c_str());
    }
    for (auto const& [cause, count] : all.errors) {
        std::printf("  %" PRIu64 " ERRORS: %s\n", count, cause.c_str());
    }
    return all.errors.empty();
}

}  // namespace differential::flow
