// SPDX-License-Identifier: BSL-1.0

// The suite as an application that UEFI firmware starts, such as EFI/BOOT/BOOTX64.EFI of a stick.
// It prints its report to the console of the firmware, and writes it to pt_suite.txt on the volume
// from which it was loaded. If that file shows that a check hung, the check is left out.

#include "efi.hpp"
#include "last_report.hpp"
#include "system.hpp"

#include <stdint.h>

namespace {

using namespace ptspec;

// ------------------------------------------------------------------------------------ the report

/// True if CPUID says that this is QEMU without a hypervisor of the host.
auto is_emulator() -> bool {
    constexpr uint32_t first_hypervisor_leaf = 0x4000'0000;
    constexpr uint32_t is_guest = uint32_t{1} << 31;
    if ((ports::cpuid(1, 0).ecx & is_guest) == 0) { return false; }
    auto const name = ports::cpuid(first_hypervisor_leaf, 0);
    constexpr uint32_t tcgt = 0x5447'4354;
    return name.ebx == tcgt;
}

/// Reads and writes the report.
class report_file {
public:
    static constexpr size_t max_bytes = size_t{64} << 10;

    report_file(efi::handle image, efi::system_table const& system) {
        efi::loaded_image* loaded = nullptr;
        efi::simple_file_system* volume = nullptr;
        auto const protocol = [&](efi::handle of, efi::guid const& which, auto*& to) {
            void* found = nullptr;
            bool const done = system.boot->handle_protocol(of, &which, &found) == efi::success;
            to = static_cast<decltype(&*to)>(found);
            return done;
        };
        if (!protocol(image, efi::loaded_image_protocol, loaded) ||
            !protocol(loaded->device, efi::simple_file_system_protocol, volume) ||
            volume->open_volume(volume, &root_) != efi::success) {
            return;
        }
        using efi::file;
        if (open(file::to_read | file::to_write)) {
            before_bytes_ = max_bytes;
            if (file_->read(file_, &before_bytes_, before_) != efi::success) { before_bytes_ = 0; }
            (void)file_->remove(file_);
        }
        if (!open(file::to_read | file::to_write | file::to_create)) { file_ = nullptr; }
    }
    /// False if the file does not have all of it.
    [[nodiscard]] auto write(text words) const -> bool {
        if (file_ == nullptr) { return false; }
        uint64_t bytes = words.size();
        return file_->write(file_, &bytes, words.data()) == efi::success && bytes == words.size() &&
               file_->flush(file_) == efi::success;
    }
    /// The report of the last run; empty if there is none.
    [[nodiscard]] auto before() const -> text { return {before_, size_t{before_bytes_}}; }

private:
    [[nodiscard]] auto open(uint64_t mode) -> bool {
        return root_->open(root_, &file_, u"\\pt_suite.txt", mode, 0) == efi::success;
    }
    efi::file* root_ = nullptr;
    efi::file* file_ = nullptr;
    static inline char before_[max_bytes];
    uint64_t before_bytes_ = 0;
};

// ------------------------------------------------------------------------------------ the console

struct console {
    efi::system_table const& system;
    report_file const& report;
    bool is_complete = true;  ///< the file has all that was printed

    /// Calls the firmware with interrupts enabled, as it expects.
    void operator()(text words) {
        uint64_t flags = 0;
        asm volatile("pushfq\n\tpopq %0\n\tsti" : "=r"(flags) : : "memory");
        is_complete = report.write(words) && is_complete;
        for (char const letter : words) {
            char16_t const piece[] = {static_cast<char16_t>(letter), letter == '\n' ? u'\r' : u'\0',
                                      u'\0'};
            (void)system.con_out->output_string(system.con_out, piece);
        }
        constexpr uint64_t interrupt_flag = 1U << 9;
        if ((flags & interrupt_flag) == 0) { asm volatile("cli" : : : "memory"); }
    }
};

struct unexpected_exception {
    [[noreturn]] static void end(unsigned) {
        while (true) { asm volatile("cli; hlt"); }
    }
};

/// Memory below 4 GB: the given pages, aligned to their size, and a page of code. What starts after
/// the application does not get the given pages: a processor may still write to them.
auto allocate(efi::system_table const& system) -> check_machine::pc_memory {
    using check_machine::pc_memory;
    constexpr uint64_t bytes = pc_memory::pages * suite::given_memory::page_bytes;
    uint64_t data = 0xFFFF'FFFF;
    uint64_t code = 0xFFFF'FFFF;
    auto const get = [&](efi::memory_type type, uint64_t pages, uint64_t& at) {
        return system.boot->allocate_pages(efi::allocate_type::max_address, type, pages, &at) ==
               efi::success;
    };
    if (!get(efi::memory_type::reserved, 2UL * pc_memory::pages, data) ||
        !get(efi::memory_type::loader_code, 1, code)) {
        return {};
    }
    uint64_t const base = (data + bytes - 1) & ~(bytes - 1);
    return {{{base}, reinterpret_cast<uint8_t*>(base), pc_memory::pages},
            reinterpret_cast<uint8_t*>(code)};
}

}  // namespace

extern "C" auto efi_main(efi::handle image, efi::system_table const* system) -> efi::status {
    (void)system->boot->set_watchdog_timer(0, 0, 0, nullptr);
    report_file const report{image, *system};
    console print{*system, report};
    auto const memory = allocate(*system);
    if (memory.code == nullptr) {
        print("# no memory below 4 GB\n");
        return efi::aborted;
    }
    auto const was_hung = [&](text check) { return check_machine::hung(report.before(), check); };
    // The new report begins with what the old one says of them: this run may end early, too.
    suite::for_each_check([&]<class Check>(text) {
        if (!was_hung(Check::name)) { return; }
        for (text const piece : suite::few{text{"# runs "}, text{Check::name}, text{"\n"}}) {
            print(piece);
        }
    });
    auto const done = check_machine::run<unexpected_exception>(memory, {}, print, was_hung);
    if (!print.is_complete) {
        print("# pt_suite.txt was not written: this report is on the console only\n");
    }
    if (is_emulator()) { machine::exit_emulator(done.has_passed); }
    while (done.is_tracing) { asm volatile("cli; hlt"); }
    return done.has_passed ? efi::success : efi::aborted;
}
