// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/clocks.hpp>

#include <support/check_twice.hpp>

#include <cstdint>

using namespace ptspec;
using engine::clocks;
using engine::count_cycles;

TEST_CASE("an MTC is due whenever ART[N+7:N] changes") {  // GEN-203, PRG-134
    CHECK_TWICE([](auto value) {
        clocks const now{.art = value(std::uint64_t{0x100})};
        auto const due = now.until(0x11F, 3);
        return due.count == 3 && due.packet(0).get<packet::mtc::CTC>() == 0x21 &&
               due.packet(1).get<packet::mtc::CTC>() == 0x22 &&
               due.packet(2).get<packet::mtc::CTC>() == 0x23;
    });
    CHECK_TWICE([](auto value) {  // CTC has 8 bits; the change is at the exact tick
        clocks const now{.art = value(std::uint64_t{0x7FE})};
        return now.until(0x7FF, 3).count == 0 && now.until(0x800, 3).count == 1 &&
               now.until(0x800, 3).packet(0).get<packet::mtc::CTC>() == 0;
    });
    CHECK_TWICE([](auto value) {  // periods of 1 tick and of 2^15 ticks
        clocks const now{.art = value(std::uint64_t{0x7FFF})};
        return now.until(0x8001, 0).count == 2 &&
               now.until(0x8001, 0).packet(1).get<packet::mtc::CTC>() == 1 &&
               now.until(0x8001, 15).count == 1 &&
               now.until(0x8001, 15).packet(0).get<packet::mtc::CTC>() == 1 &&
               now.until(0xFFFF, 15).count == 1;
    });
}

TEST_CASE("at most the last 256 MTCs are due, and none when ART decreases") {  // GEN-203
    CHECK_TWICE([](auto value) {
        clocks const now{.art = value(std::uint64_t{0})};
        auto const many = now.until(~std::uint64_t{0}, 0);
        return now.until(255, 0).count == 255 && now.until(256, 0).count == 256 &&
               now.until(257, 0).count == 256 &&
               now.until(257, 0).packet(255).get<packet::mtc::CTC>() == 1 && many.count == 256 &&
               many.packet(255).get<packet::mtc::CTC>() == 0xFF;
    });
    CHECK_TWICE([](auto value) {
        clocks const now{.art = value(std::uint64_t{0x1000})};
        return now.until(0x1000, 0).count == 0 && now.until(0xFFF, 0).count == 0;
    });
}

TEST_CASE("TSC, TMA and CBR report the clocks") {  // GEN-200..202
    CHECK_TWICE([](auto value) {
        clocks now{.art = 5, .core_to_bus = 0x18};
        now.run_to(value(std::uint64_t{0x1'2345}), 0xAB12'3456'789A'BCDE);
        now.run_to(value(std::uint64_t{0x1'2345}), 0xAB12'3456'789A'BCDE + 0x312);
        return now.tsc_packet().get<packet::tsc::TSC>() == 0x12'3456'789A'BFF0 &&
               now.tma_packet().get<packet::tma::CTC>() == 0x2345 &&
               now.tma_packet().get<packet::tma::FC>() == 0x112 &&
               now.cbr_packet().get<packet::cbr::CoreBusRatio>() == 0x18;
    });
    CHECK_TWICE([](auto value) {  // FC counts from the last crystal clock edge
        clocks now{};
        now.run_to(1, 100);
        now.run_to(2, value(std::uint64_t{300}));
        now.run_to(2, 307);
        return now.tma_packet().get<packet::tma::FC>() == 7 && now.tsc == 307 && now.art == 2;
    });
}

TEST_CASE("the cycle counter reports guard at its maximum, and wraps in an overflow") {
    // GEN-210, GEN-217, GEN-220
    CHECK_TWICE([](auto value) {
        auto const twelve = value(12U);
        auto const early = count_cycles({.cycles = 4000, .bits = twelve}, 94);
        auto const last = count_cycles({.cycles = 4000, .bits = twelve}, 95);
        auto const more = count_cycles({.cycles = 4000, .bits = twelve}, 4194);
        return early.cycles == 4094 && !early.guard && last.cycles == 4095 && last.guard &&
               more.cycles == 8194 && more.guard;
    });
    CHECK_TWICE([](auto value) {
        auto const lost = count_cycles({.cycles = 4000, .bits = 12, .wraps = true},
                                       value(std::uint64_t{100}));
        return lost.cycles == 4 && !lost.guard &&
               count_cycles({.cycles = 4000, .bits = 12, .wraps = true}, 94).cycles == 4094;
    });
    CHECK_TWICE([](auto value) {  // saturates at 64 bits
        auto const far = count_cycles({.cycles = value(~std::uint64_t{0} - 1), .bits = 64}, 5);
        return far.cycles == ~std::uint64_t{0} && far.guard;
    });
}

TEST_CASE("CBR reports the processor's own ratio if no other ratio is set") {
    // GEN-202, REG-168, PKT-106
    CHECK_TWICE([](auto value) {
        cpu::capabilities of;
        of.platform_info.raw = value(std::uint64_t{0x80'0000'2400});
        clocks now{};
        bool const none = now.cbr_packet(engine::core_to_bus_of(of)).raw == 0x0024'0302;
        now.core_to_bus = 0x18;
        return none && now.cbr_packet(engine::core_to_bus_of(of)).raw == 0x0018'0302;
    });
    CHECK_TWICE([](auto value) {  // the capabilities give no ratio either
        cpu::capabilities of;
        of.platform_info.raw = value(std::uint64_t{0xFF00'00FF});
        return engine::core_to_bus_of(of) == 24 &&
               clocks{}.cbr_packet(engine::core_to_bus_of(of)).raw == 0x0018'0302;
    });
}

TEST_CASE("default clocks are 0, and no MTC is due") {
    CHECK_TWICE([](auto value) {
        auto const now = value(clocks{});
        auto const counted = value(engine::counted_cycles{});
        auto const due = now.until(0, 0);
        return now.art == 0 && now.tsc == 0 && now.tsc_at_edge == 0 && now.core_to_bus == 0 &&
               !now.are_off && counted.cycles == 0 && !counted.guard && due.first == 0 &&
               due.count == 0;
    });
}
