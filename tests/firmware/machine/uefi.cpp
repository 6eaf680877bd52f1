// SPDX-License-Identifier: BSL-1.0
// The machine `uefi`: an application that UEFI firmware starts. It prints to the console of the
// firmware and to the third serial port: the firmware uses the first two for its console.

#include "program.hpp"

#include "../../../examples/check_machine/efi.hpp"
#include "../../../examples/check_machine/pc.hpp"

namespace {

using namespace ptspec;
using machine::serial_port;

constexpr uint16_t com3 = 0x3E8;

// ------------------------------------------------------------------------------------ exceptions

struct unexpected_exception {
    [[noreturn]] static void end(unsigned) {
        serial_port const port{com3};
        port.print("FAILED: #GP\n");
        machine::exit_emulator(false);
        while (true) { asm volatile("cli; hlt"); }
    }
};

/// Replaces the firmware's handler of #GP while it exists.
class own_fault_handler {
public:
    own_fault_handler() {
        machine::table_register idtr{};
        asm volatile("sidt %0" : "=m"(idtr));
        place_ = reinterpret_cast<machine::gate*>(idtr.base) + machine::general_protection;
        auto* const handler = machine::on_general_protection<unexpected_exception>;
        before_ = *place_;
        set(machine::gate{reinterpret_cast<uintptr_t>(handler)});
    }
    ~own_fault_handler() { set(before_); }
    own_fault_handler(own_fault_handler const&) = delete;
    auto operator=(own_fault_handler const&) -> own_fault_handler& = delete;

private:
    void set(machine::gate to) {
        machine::gate volatile* const at = place_;  // the processor reads it
        at->low = to.low;
        at->high = to.high;
    }
    machine::gate* place_;
    machine::gate before_;
};

// ------------------------------------------------------------------------------------ the platform

struct uefi {
    efi::system_table const& system;
    serial_port port{com3};

    void print(text words) {
        port.print(words);
        for (char const letter : words) {
            char16_t const piece[] = {static_cast<char16_t>(letter), letter == '\n' ? u'\r' : u'\0',
                                      u'\0'};
            (void)system.con_out->output_string(system.con_out, piece);
        }
    }
    [[nodiscard]] auto claim(uint64_t address, uint64_t bytes) -> uint8_t* {
        uint64_t at = address;
        auto const got = system.boot->allocate_pages(
            efi::allocate_type::address, efi::memory_type::loader_data, bytes / 4096, &at);
        return got == efi::success ? reinterpret_cast<uint8_t*>(address) : nullptr;
    }
};

}  // namespace

extern "C" auto efi_main(efi::handle, efi::system_table const* system) -> efi::status {
    uefi on{*system};
    bool passed = false;
    {
        own_fault_handler const handler;
        passed = machine::run(on);
    }
    machine::exit_emulator(passed);
    return passed ? efi::success : efi::aborted;
}
