// SPDX-License-Identifier: BSL-1.0
// The machine `pvh`: no firmware and no operating system. QEMU starts the image by its PVH entry
// point, in 32-bit protected mode; start.S leads to 64-bit mode and calls `machine_main`.

#include "program.hpp"

#include "../../../examples/check_machine/pvh.hpp"

namespace {

using namespace ptspec;
using machine::serial_port;
using machine::start_info;

/// The platform: the first serial port, and all RAM that the image does not use. Virtual addresses
/// are physical ones.
struct bare_metal {
    serial_port console{machine::com1};
    start_info const* from;

    void print(text words) const { console.print(words); }
    [[nodiscard]] auto claim(uint64_t address, uint64_t bytes) const -> uint8_t*;
};

extern "C" uint8_t const image_end[];  // of the linker script

auto bare_metal::claim(uint64_t address, uint64_t bytes) const -> uint8_t* {
    constexpr uint64_t mapped = uint64_t{1} << 32;  // by start.S
    constexpr uint32_t is_ram = 1;
    if (address < reinterpret_cast<uintptr_t>(image_end) || address + bytes > mapped) {
        return nullptr;
    }
    auto const* const ranges = reinterpret_cast<machine::memory_range const*>(from->ranges);
    for (uint32_t i = 0; i < from->range_count; ++i) {
        machine::memory_range const one = ranges[i];
        bool const holds = address >= one.base && address - one.base <= one.bytes &&
                           one.bytes - (address - one.base) >= bytes;
        if (one.type == is_ram && holds) { return reinterpret_cast<uint8_t*>(address); }
    }
    return nullptr;
}

}  // namespace

extern "C" [[noreturn]] void machine_main(start_info const* from) {
    machine::load_exceptions();
    bare_metal on{.from = from};
    if (from->magic != start_info::right_magic || from->version < 1) {
        on.print("FAILED: the loader gives no memory map\n");
        machine::end_machine(false);
    }
    machine::end_machine(machine::run(on));
}
