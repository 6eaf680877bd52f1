// SPDX-License-Identifier: BSL-1.0
// The machine `uefi`: an application that UEFI firmware starts. It prints to the console of the
// firmware and to the third serial port: the firmware uses the first two for its console.

#include "program.hpp"
#include "x86.hpp"

namespace {

using namespace ptspec;
using machine::serial_port;

constexpr uint16_t com3 = 0x3E8;

// ------------------------------------------------------------------------------------ UEFI

// What the application needs of the tables of the UEFI specification. Members that it does not use
// keep their place as pointers.

using efi_status = uint64_t;
using efi_handle = void*;
constexpr efi_status efi_success = 0;
constexpr efi_status efi_aborted = uint64_t{1} << 63 | 21;

struct efi_table_header {
    uint64_t signature;
    uint32_t revision;
    uint32_t header_size;
    uint32_t crc32;
    uint32_t reserved;
};
struct efi_simple_text_output {
    void* reset;
    efi_status (*output_string)(efi_simple_text_output* self, char16_t const* words);
};
enum class efi_allocate_type : uint32_t { any_pages, max_address, address };
enum class efi_memory_type : uint32_t { reserved, loader_code, loader_data };
struct efi_boot_services {
    efi_table_header header;
    void* raise_tpl;
    void* restore_tpl;
    efi_status (*allocate_pages)(efi_allocate_type how, efi_memory_type what, uint64_t pages,
                                 uint64_t* address);
};
struct efi_system_table {
    efi_table_header header;
    char16_t const* firmware_vendor;
    uint32_t firmware_revision;
    efi_handle console_in_handle;
    void* con_in;
    efi_handle console_out_handle;
    efi_simple_text_output* con_out;
    efi_handle standard_error_handle;
    void* std_err;
    void* runtime_services;
    efi_boot_services* boot_services;
};

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
    efi_system_table const& system;
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
        auto const got = system.boot_services->allocate_pages(
            efi_allocate_type::address, efi_memory_type::loader_data, bytes / 4096, &at);
        return got == efi_success ? reinterpret_cast<uint8_t*>(address) : nullptr;
    }
};

}  // namespace

extern "C" auto efi_main(efi_handle, efi_system_table const* system) -> efi_status {
    uefi on{*system};
    bool passed = false;
    {
        own_fault_handler const handler;
        passed = machine::run(on);
    }
    machine::exit_emulator(passed);
    return passed ? efi_success : efi_aborted;
}
