// SPDX-License-Identifier: BSL-1.0
#pragma once

// A machine without an operating system, as start.S enters it: exceptions, the end, and what the
// loader describes.

#include "pc.hpp"

#include <stdint.h>

namespace machine {

using namespace ptspec;

inline constexpr uint16_t com1 = 0x3F8;

/// Ends the emulator; elsewhere the processor halts.
[[noreturn]] inline void end_machine(bool passed) {
    exit_emulator(passed);
    while (true) { asm volatile("cli; hlt"); }
}

/// An exception that the program does not expect: prints its vector, and ends.
struct unexpected_exception {
    [[noreturn]] static void end(unsigned vector) {
        serial_port const console{com1};
        console.print("FAILED: exception ");
        print::decimal(vector, [&](text piece) { console.print(piece); });
        console.print("\n");
        end_machine(false);
    }
};

template <unsigned Vector>
[[gnu::interrupt]] void on_exception(interrupt_frame*) {
    unexpected_exception::end(Vector);
}

inline constexpr unsigned exceptions = 32;
inline gate exception_gates[exceptions];

/// Loads a table of interrupts in which each exception ends the program, but for a #GP of
/// `skipping_access`.
template <size_t... Vector>
void load_exceptions(index_list<Vector...>) {
    ((exception_gates[Vector] = gate{reinterpret_cast<uintptr_t>(on_exception<Vector>)}), ...);
    auto* const handler = on_general_protection<unexpected_exception>;
    exception_gates[general_protection] = gate{reinterpret_cast<uintptr_t>(handler)};
    table_register const idtr{sizeof exception_gates - 1,
                              reinterpret_cast<uintptr_t>(exception_gates)};
    asm volatile("lidt %0" : : "m"(idtr));
}
inline void load_exceptions() { load_exceptions(make_index_list<exceptions>{}); }

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

    static constexpr uint32_t right_magic = 0x336E'C578;
};
struct memory_range {
    uint64_t base;
    uint64_t bytes;
    uint32_t type;  ///< as of E820: 1 is RAM
    uint32_t reserved;
};

}  // namespace machine
