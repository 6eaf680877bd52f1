// SPDX-License-Identifier: BSL-1.0
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

constexpr uint64_t top = 0xFFFF'FFFF'FFFF'FFFF;

constexpr auto memory_at(uint64_t base) -> simulate::memory_model<16> {
    return {base,
            {{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D,
              0x1E, 0x1F}}};
}

}  // namespace

// ------------------------------------------------------------------------------------ memory

TEST_CASE("a load returns the eight bytes at an address, little-endian") {
    CHECK_TWICE([](auto value) {
        auto const memory = value(memory_at(0x4000));
        return memory.load(0x4000) == port_value{true, 0x1716'1514'1312'1110} &&
               memory.load(0x4001) == port_value{true, 0x1817'1615'1413'1211} &&
               memory.load(0x4008) == port_value{true, 0x1F1E'1D1C'1B1A'1918};
    });
}

TEST_CASE("a load faults if one of its bytes is outside") {
    CHECK_TWICE([](auto value) {
        auto const memory = value(memory_at(0x4000));
        return !memory.load(0x3FFF) && !memory.load(0x4009) && !memory.load(0x400F) &&
               !memory.load(0x4010) && !memory.load(0x4011) && !memory.load(0) &&
               !memory.load(top) && !memory.load(0x4000 + (uint64_t{1} << 32));
    });
    CHECK_TWICE([](auto value) {
        auto const small = value(simulate::memory_model<4>{0x4000, {}});
        return !small.load(0x4000) && !small.load(0x3FFC);
    });
}

TEST_CASE("memory at the top of the address space does not wrap") {
    CHECK_TWICE([](auto value) {
        auto const memory = value(memory_at(top - 15));
        return memory.load(top - 15) && memory.load(top - 7) && !memory.load(top - 6) &&
               !memory.load(top) && !memory.load(0) && !memory.load(1) && !memory.load(top - 16);
    });
    CHECK_TWICE([](auto value) {
        auto memory = value(memory_at(top - 15));
        byte_array<3> const bytes{{1, 2, 3}};
        return memory.store(top - 2, bytes) == 3 && memory.store(top - 1, bytes) == 2 &&
               memory.store(0, bytes) == 0 && memory.bytes[15] == 2 && memory.bytes[0] == 0x10;
    });
}

TEST_CASE("a store writes the bytes that are inside and returns their number") {
    CHECK_TWICE([](auto value) {
        auto memory = value(memory_at(0x4000));
        byte_array<4> const bytes{{0xA0, 0xA1, 0xA2, 0xA3}};
        bool const inside = memory.store(0x4002, bytes) == 4 && memory.bytes[1] == 0x11 &&
                            memory.bytes[2] == 0xA0 && memory.bytes[5] == 0xA3 &&
                            memory.bytes[6] == 0x16;
        bool const to_the_end = memory.store(0x400C, bytes) == 4 && memory.bytes[15] == 0xA3;
        bool const past_the_end = memory.store(0x400D, bytes) == 3 && memory.bytes[12] == 0xA0 &&
                                  memory.bytes[13] == 0xA0 && memory.bytes[15] == 0xA2;
        bool const last = memory.store(0x400F, bytes) == 1 && memory.bytes[15] == 0xA0;
        return inside && to_the_end && past_the_end && last;
    });
}

TEST_CASE("a store outside writes nothing") {
    CHECK_TWICE([](auto value) {
        auto memory = value(memory_at(0x4000));
        byte_array<4> const bytes{{0xA0, 0xA1, 0xA2, 0xA3}};
        bool const refused = memory.store(0x3FFF, bytes) == 0 && memory.store(0x4010, bytes) == 0 &&
                             memory.store(0x4011, bytes) == 0 && memory.store(top, bytes) == 0 &&
                             memory.store(0, bytes) == 0;
        return refused && memory.store(0x4000, {}) == 0 && memory.bytes == memory_at(0).bytes;
    });
}

TEST_CASE("default-constructed memory is zero and starts at address 0") {
    CHECK_TWICE([](auto value) {
        auto const memory = value(simulate::memory_model<8>{});
        return memory.load(0) == port_value{true, 0} && !memory.load(1);
    });
}

// ------------------------------------------------------------------------------------ MSRs

TEST_CASE("registers keep the written value, and every other index is #GP") {
    CHECK_TWICE([](auto value) {
        auto registers = value(simulate::msr_model<2>{{{0x570, 5}, {0x571, 6}}});
        bool const read = registers.read(0x570) == port_value{true, 5} &&
                          registers.read(0x571) == port_value{true, 6} && !registers.read(0x572) &&
                          !registers.read(0);
        bool const written = registers.write(0x571, 0x1234'5678'9ABC'DEF0) &&
                             registers.read(0x571) == port_value{true, 0x1234'5678'9ABC'DEF0} &&
                             registers.read(0x570) == port_value{true, 5};
        bool const refused = !registers.write(0x572, 1) && !registers.read(0x572) &&
                             registers.read(0x570) == port_value{true, 5};
        bool const first = registers.write(0x570, 7) &&
                           registers.read(0x570) == port_value{true, 7} &&
                           registers.read(0x571) == port_value{true, 0x1234'5678'9ABC'DEF0};
        return read && written && refused && first;
    });
}

TEST_CASE("default-constructed models are zero") {
    CHECK_TWICE([](auto value) {
        auto const slot = value(simulate::msr_model<1>{}).words[0];
        auto const answer = value(simulate::cpuid_model<1>{}).answers[0];
        auto const nothing = value(cpuid_registers{});
        return slot.index == 0 && slot.value == 0 && answer.leaf == 0 && answer.subleaf == 0 &&
               value(port_value{}).value == 0 && nothing.eax == 0 && nothing.ebx == 0 &&
               nothing.ecx == 0 && nothing.edx == 0;
    });
}

// ------------------------------------------------------------------------------------ CPUID, PMI

TEST_CASE("CPUID is looked up by leaf and subleaf, and returns zeros for all others") {
    CHECK_TWICE([](auto value) {
        auto const cpu = value(
            simulate::cpuid_model<2>{{{0x14, 0, {1, 2, 3, 4}}, {0x14, 1, {5, 6, 7, 8}}}});
        return cpu.query(0x14, 0) == cpuid_registers{1, 2, 3, 4} &&
               cpu.query(0x14, 1) == cpuid_registers{5, 6, 7, 8} &&
               cpu.query(0x14, 2) == cpuid_registers{} && cpu.query(0x15, 0) == cpuid_registers{} &&
               cpu.query(0x15, 1) == cpuid_registers{};
    });
    CHECK_TWICE([](auto value) {
        auto const it = value(cpuid_registers{1, 2, 3, 4});
        return it != cpuid_registers{0, 2, 3, 4} && it != cpuid_registers{1, 0, 3, 4} &&
               it != cpuid_registers{1, 2, 0, 4} && it != cpuid_registers{1, 2, 3, 0};
    });
}

TEST_CASE("interrupts are counted") {
    CHECK_TWICE([](auto value) {
        auto pmi = value(simulate::pmi_model{});
        bool const none = pmi.raised == 0;
        pmi.raise();
        pmi.raise();
        return none && pmi.raised == 2;
    });
}
