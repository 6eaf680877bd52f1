// SPDX-License-Identifier: BSL-1.0
// The machine `pvh`: no firmware and no operating system. QEMU starts the image by its PVH entry
// point, in 32-bit protected mode; start.S leads to 64-bit mode and calls `machine_main`.

#include "program.hpp"

#include "../../../examples/check_machine/pc.hpp"

namespace {

using namespace ptspec;
using machine::serial_port;

constexpr uint16_t com1 = 0x3F8;

// ------------------------------------------------------------------------------------ exceptions

[[noreturn]] void end(bool passed) {
    machine::exit_emulator(passed);
    while (true) { asm volatile("cli; hlt"); }
}

struct unexpected_exception {
    [[noreturn]] static void end(unsigned vector) {
        serial_port const console{com1};
        console.print("FAILED: exception ");
        print::decimal(vector, [&](text piece) { console.print(piece); });
        console.print("\n");
        ::end(false);
    }
};

template <unsigned Vector>
[[gnu::interrupt]] void on_exception(machine::interrupt_frame*) {
    unexpected_exception::end(Vector);
}

constexpr unsigned exceptions = 32;
machine::gate gates[exceptions];

template <size_t... Vector>
void load_idt(index_list<Vector...>) {
    ((gates[Vector] = machine::gate{reinterpret_cast<uintptr_t>(on_exception<Vector>)}), ...);
    auto* const handler = machine::on_general_protection<unexpected_exception>;
    gates[machine::general_protection] = machine::gate{reinterpret_cast<uintptr_t>(handler)};
    machine::table_register const idtr{sizeof gates - 1, reinterpret_cast<uintptr_t>(gates)};
    asm volatile("lidt %0" : : "m"(idtr));
}

// ------------------------------------------------------------------------------------ memory

/// The head of what the loader describes, hvm_start_info of Xen's PVH interface.
struct start_info {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;
    uint32_t module_count;
    uint64_t modules;
    uint64_t command_line;
    uint64_t rsdp;
    uint64_t ranges;  ///< physical address of memory_range[range_count], since version 1
    uint32_t range_count;
    uint32_t reserved;
};
struct memory_range {
    uint64_t base;
    uint64_t bytes;
    uint32_t type;  ///< as of E820: 1 is RAM
    uint32_t reserved;
};

constexpr uint32_t start_info_magic = 0x336E'C578;

/// The platform: the first serial port, and all RAM that the image does not use. Virtual addresses
/// are physical ones.
struct bare_metal {
    serial_port console{com1};
    start_info const* from;

    void print(text words) const { console.print(words); }
    [[nodiscard]] auto claim(uint64_t address, uint64_t bytes) const -> uint8_t*;
};

extern "C" uint8_t const image_end[];  // of the linker script

auto bare_metal::claim(uint64_t address, uint64_t bytes) const -> uint8_t* {
    constexpr uint64_t mapped = uint64_t{1} << 30;  // by start.S
    constexpr uint32_t is_ram = 1;
    if (address < reinterpret_cast<uintptr_t>(image_end) || address + bytes > mapped) {
        return nullptr;
    }
    auto const* const ranges = reinterpret_cast<memory_range const*>(from->ranges);
    for (uint32_t i = 0; i < from->range_count; ++i) {
        memory_range const one = ranges[i];
        bool const holds = address >= one.base && address - one.base <= one.bytes &&
                           one.bytes - (address - one.base) >= bytes;
        if (one.type == is_ram && holds) { return reinterpret_cast<uint8_t*>(address); }
    }
    return nullptr;
}

}  // namespace

extern "C" [[noreturn]] void machine_main(start_info const* from) {
    load_idt(make_index_list<exceptions>{});
    bare_metal on{.from = from};
    if (from->magic != start_info_magic || from->version < 1) {
        on.print("FAILED: the loader gives no memory map\n");
        end(false);
    }
    end(machine::run(on));
}
