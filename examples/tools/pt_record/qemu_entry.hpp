// SPDX-License-Identifier: BSL-1.0
#pragma once

// How QEMU enters the plugin: with its arguments, and with the registers at each block.

#include "../common/recorded/recording.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

// QEMU calls this before each execution of a block. It calls `pt_record_on_block`, in the plugin,
// with the processor, the block, and the registers. The interface of version 1 does not give those;
// on an x86-64 host the code that QEMU generates keeps the address of its CPUX86State in RBP, and
// at the beginning of a block all registers are in it. Elsewhere it reads as zeros.
extern "C" void pt_record_enter_block(unsigned cpu, void* block);
#if defined(__x86_64__)
asm(R"(
    .text
    .hidden pt_record_enter_block
    .globl pt_record_enter_block
    .type pt_record_enter_block, @function
pt_record_enter_block:
    movq %rbp, %rdx
    jmp pt_record_on_block
    .size pt_record_enter_block, . - pt_record_enter_block
)");
#else
extern "C" void pt_record_on_block(unsigned cpu, void const* block, void const* registers);
extern "C" inline void pt_record_enter_block(unsigned cpu, void* block) {
    static constexpr std::uint64_t zeros[128] = {};
    pt_record_on_block(cpu, block, zeros);
}
#endif

namespace pt_record {

/// The registers of a thread: the beginning of QEMU's CPUX86State.
///
/// Each signal checks this: RSP must point to a signal frame with the restorer of the signal.
struct guest_registers {
    std::uint64_t general[16];
    std::uint64_t ip;

    [[nodiscard]] auto rsp() const -> std::uint64_t { return general[4]; }
};

/// The directory, from the argument `directory=DIR` of the plugin; empty without it.
inline auto directory_of(int count, char** arguments) -> char const* {
    constexpr char name[] = "directory=";
    for (int i = 0; i < count; ++i) {
        if (std::strncmp(arguments[i], name, sizeof name - 1) == 0) {
            return arguments[i] + sizeof name - 1;
        }
    }
    return "";
}
/// Maps the file `progress`; null if it cannot be opened.
inline auto open_progress(char const* directory) -> progress* {
    int const file = ::open(path_of{directory, "progress"}.letters, O_RDWR | O_CLOEXEC);
    if (file < 0) { return nullptr; }
    void* const at = ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)::close(file);
    return at == MAP_FAILED ? nullptr : static_cast<progress*>(at);
}
/// Adds to a counter that other processes add to, too.
inline void add(std::uint64_t& counter, std::uint64_t more) {
    std::atomic_ref{counter}.fetch_add(more, std::memory_order_relaxed);
}

}  // namespace pt_record
