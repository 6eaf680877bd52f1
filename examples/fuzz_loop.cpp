// SPDX-License-Identifier: BSL-1.0

// A fuzzer that is guided by Intel PT: it keeps each input whose trace has a new edge, and so finds
// the one of 2^24 that the program crashes on. The program runs on a modelled processor.

#include "standard_output.hpp"

#include <ptspec/flow.hpp>
#include <ptspec/model.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
namespace action = engine::action;

// The program: three comparisons of a byte, CMP and JNE, then HLT where all are equal. Else RET.
constexpr std::uint64_t start = 0x40'1000;
constexpr std::uint8_t program[] = {0x80, 0x3F, 'P', 0x75, 13,  // 00: CMP byte [RDI], 'P'; JNE 12
                                    0x80, 0x7F, 1,   'T',  0x75, 7,  // 05: CMP byte [RDI+1], 'T'
                                    0x80, 0x7F, 2,   '!',  0x75, 1,  // 0B: CMP byte [RDI+2], '!'
                                    0xF4, 0xC3};                     // 11: HLT; 12: RET

/// Runs the program with an input, and returns its trace.
auto traced(std::string const& input) -> byte_view {
    using ctl = reg::ia32_rtit_ctl;
    static std::uint8_t page[4096];
    constexpr std::uint64_t address = 0x1'0000;
    host_region const regions[] = {{address, page, sizeof page}};
    host_memory memory{regions};
    engine::trace_unit unit{cpu::preset::skylake_x, {.cr3 = 0x1000}, start};
    auto const wrmsr = [&](std::uint32_t index, std::uint64_t value) {
        (void)unit.wrmsr({.index = index, .value = value, .at = unit.ip(), .next = unit.ip()},
                         memory);
    };
    wrmsr(reg::ia32_rtit_output_base::address, address);
    wrmsr(reg::ia32_rtit_output_mask_ptrs::address, sizeof page - 1);
    constexpr auto on = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true},
                                   ctl::BranchEn{true});
    wrmsr(ctl::address, on.raw);
    bool is_equal = true;
    for (std::size_t i = 0; is_equal && i < 3; ++i) {
        is_equal = input[i] == "PT!"[i];
        std::uint64_t const next = start + 5 + 6 * i;
        (void)unit.on(action::conditional{is_equal ? next : start + 0x12, !is_equal}, memory);
    }
    wrmsr(ctl::address, 0);
    return {page, static_cast<std::size_t>(unit.total().stored)};
}

// Counts the edges of one execution. False if code or trace is missing.
template <class Code>
auto count_edges(flow::walker<Code>& walker, flow::coverage& counts, byte_view trace) -> bool {
    walker.next_input(borrowed_bytes{trace.data(), trace.size()});
    (void)walker.run(counts);
    return walker.gaps().is_complete();
}

}  // namespace

auto main() -> int {
    flow::code_span const code{program, start};
    static flow::block blocks[256];
    static flow::run runs[256];
    flow::block_cache cache{blocks};
    flow::run_table known{runs};
    std::vector<std::uint8_t> counts(65536);
    std::vector<bool> seen(counts.size());
    flow::coverage coverage{counts.data(), counts.size(), &known};
    flow::walker walker{code, cache};
    std::vector<std::string> kept{"..."};
    for (std::uint64_t number = 1; number < 1'000'000; ++number) {
        auto input = kept[number % kept.size()];
        input[number / kept.size() % 3] = static_cast<char>(number * 0x9E37'79B9 >> 24 & 0x7F);
        if (!count_edges(walker, coverage, traced(input))) {
            std::fputs("fuzz_loop: code is missing\n", stderr);
            return 1;
        }
        bool is_new = false;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] == 0) { continue; }
            is_new = is_new || !seen[i];
            seen[i] = true;
            counts[i] = 0;
        }
        if (!is_new) { continue; }
        kept.push_back(input);
        if (input == "PT!") {
            std::printf("found after %llu executions, with %zu inputs kept\n",
                        static_cast<unsigned long long>(number), kept.size());
            return 0;
        }
    }
    std::puts("not found");
    return 1;
}
