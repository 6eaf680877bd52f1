// SPDX-License-Identifier: BSL-1.0

// The shortest way from a configuration to packets: a modelled processor traces two branches into
// memory, and the packets of the trace are printed.
//
//   g++ -std=c++20 -Iinclude examples/first_trace.cpp -o first_trace && ./first_trace

#include "standard_output.hpp"

#include <ptspec/model.hpp>
#include <ptspec/trace.hpp>

#include <cstdio>

using namespace ptspec;

/// Traces two branches of a Skylake-X into 4 KB at 10000H, and returns how many bytes were stored.
auto trace_two_branches(host_memory& memory) -> uint64_t {
    using ctl = reg::ia32_rtit_ctl;
    engine::trace_unit unit{cpu::preset::skylake_x, {.cr3 = 0x1000}, 0x40'1000};
    auto const wrmsr = [&](uint32_t index, uint64_t value) {
        uint64_t const at = unit.ip();
        engine::msr_write const write{.index = index, .value = value, .at = at, .next = at + 2};
        return unit.wrmsr(write, memory).took_effect();
    };
    constexpr auto start = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::BranchEn{true});
    bool const traced = wrmsr(reg::ia32_rtit_output_base::address, 0x1'0000) &&
                        wrmsr(reg::ia32_rtit_output_mask_ptrs::address, 0xFFF) &&
                        wrmsr(ctl::address, start.raw) &&
                        !unit.on(engine::action::conditional{0x40'1020, true}, memory).happened &&
                        !unit.on(engine::action::indirect_jump{0x40'2000}, memory).happened &&
                        wrmsr(ctl::address, 0);
    return traced ? unit.total().stored : 0;
}

/// Prints each packet but PADs, with its offset, and what is damaged.
void list(byte_view bytes) {
    auto const out = [](text piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); };
    trace::reader reader{bytes};
    while (auto const item = reader.next()) {
        bool const is_packet = item.what == trace::item_type::packet;
        if (is_packet && item.packet.is<packet::pad>()) { continue; }
        std::printf("%4llx  ", static_cast<unsigned long long>(item.offset));
        if (is_packet) {
            print::packet(item.packet, out);
        } else if (item.what == trace::item_type::damage) {
            std::printf("damage: %s", describe(item.broken).data());
        } else {  // decoding begins or resumes at a PSB, or no PSB follows
            std::printf("%lld bytes skipped", static_cast<long long>(item.skipped));
        }
        std::puts("");
    }
}

auto main() -> int {
    static uint8_t page[4096];
    host_region const regions[] = {{0x1'0000, page, sizeof page}};
    host_memory memory{regions};
    uint64_t const stored = trace_two_branches(memory);
    list({page, static_cast<size_t>(stored)});
    return stored == 0 ? 1 : 0;
}
