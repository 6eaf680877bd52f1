// SPDX-License-Identifier: BSL-1.0

// The suite as a machine without an operating system: an emulator or a hypervisor starts the image
// by its PVH entry point, a loader such as GRUB as a Multiboot kernel; start.S leads to 64-bit mode
// and calls `machine_main`. The report goes to the first serial port; options are the command line.

#include "pvh.hpp"
#include "system.hpp"

#include <stdint.h>

namespace {

using namespace ptspec;
using machine::serial_port;

/// No interrupt comes from the two 8259s, which nothing has initialised.
void mask_devices() {
    machine::out_8(0x21, 0xFF);
    machine::out_8(0xA1, 0xFF);
}

/// The head of what a Multiboot loader describes.
struct multiboot_info {
    uint32_t flags;
    uint32_t memory[2];
    uint32_t boot_device;
    uint32_t command_line;

    static constexpr uint32_t has_command_line = 1U << 2;
};
constexpr uint32_t multiboot_magic = 0x2BAD'B002;

/// The command line; 0 if there is none.
auto command_line(void const* from, uint32_t magic) -> uint64_t {
    if (magic == multiboot_magic) {
        auto const& info = *static_cast<multiboot_info const*>(from);
        return (info.flags & multiboot_info::has_command_line) != 0 ? info.command_line : 0;
    }
    auto const& info = *static_cast<machine::start_info const*>(from);
    return info.magic == machine::start_info::right_magic ? info.command_line : 0;
}

constexpr uint64_t given_bytes = check_machine::pc_memory::pages * 4096UL;
alignas(4096) uint8_t room[2 * given_bytes];  // the given pages are aligned to their size
alignas(4096) uint8_t code[4096];

}  // namespace

extern "C" [[noreturn]] void machine_main(void const* from, uint32_t magic) {
    machine::load_exceptions();
    mask_devices();
    serial_port const console{machine::com1};
    text words;
    if (uint64_t const at = command_line(from, magic); at != 0) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are physical ones
        auto const* const line = reinterpret_cast<char const*>(at);
        size_t size = 0;
        while (line[size] != '\0') { ++size; }
        words = {line, size};
    }
    uint64_t const last = reinterpret_cast<uintptr_t>(room) + given_bytes - 1;
    uint64_t const base = last & ~(given_bytes - 1);
    check_machine::pc_memory const memory{
        // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are physical ones
        {{base}, reinterpret_cast<uint8_t*>(base), check_machine::pc_memory::pages},
        code};
    auto print = [&](text piece) { console.print(piece); };
    auto const done = check_machine::run<machine::unexpected_exception>(memory, words, print,
                                                                        [](text) { return false; });
    machine::end_machine(done.has_passed);
}
