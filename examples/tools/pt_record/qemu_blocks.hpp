// SPDX-License-Identifier: BSL-1.0
#pragma once

// Blocks as QEMU translates them, and the directory of the recording.

#include "../common/qemu_plugin.h"
#include "thread_trace.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

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

/// Copies the bytes of an instruction; returns their number.
inline auto bytes_of(qemu_plugin_insn const* from, std::uint8_t* to, std::size_t most)
    -> std::size_t {
#if PT_RECORD_QEMU_API >= 3
    return qemu_plugin_insn_data(from, to, most);
#else
    std::size_t const size = qemu_plugin_insn_size(from);
    std::size_t const count = size < most ? size : most;
    std::memcpy(to, qemu_plugin_insn_data(from), count);
    return count;
#endif
}

/// A block that QEMU translates, and its code.
struct translated_block {
    std::unique_ptr<code_block> block = std::make_unique<code_block>();
    std::vector<std::uint8_t> code{};

    [[nodiscard]] auto bytes() const -> byte_view { return {code.data(), code.size()}; }
};

/// Calls `visit(instruction of QEMU, address, decoded)` for the instructions of a block.
template <class Visit>
auto translate(qemu_plugin_tb const* tb, Visit&& visit) -> translated_block {
    constexpr auto width = x86::code_width::bits_64;
    translated_block made;
    auto& block = *made.block;
    std::size_t const count = qemu_plugin_tb_n_insns(tb);
    made.code.reserve(count * x86::instruction::max_bytes);
    block.first = qemu_plugin_tb_vaddr(tb);
    for (std::size_t i = 0; i < count; ++i) {
        auto* const one = qemu_plugin_tb_get_insn(tb, i);
        std::uint64_t const at = qemu_plugin_insn_vaddr(one);
        std::uint8_t bytes[x86::instruction::max_bytes];
        std::size_t const size = bytes_of(one, bytes, sizeof bytes);
        auto const decoded = x86::decode(byte_view{bytes}.first(size), width);
        bool const is_last = i + 1 == count;
        if (is_last && count > 1 && decoded.error == x86::decode_error::truncated) { break; }
        made.code.insert(made.code.end(), bytes, bytes + size);
        add_instruction(block, decoded, at, size, width, is_last);
        visit(one, at, decoded);
    }
    if (block.count == 1 && !block.last_may_not_run &&
        block.end.instruction.kind == instruction_class::other) {
        block.set(rare_case::restart);
    }
    return made;
}

/// The translated blocks, until QEMU drops its translations.
class live_blocks {
public:
    void add(std::unique_ptr<code_block> block) { all_.push_back(std::move(block)); }
    /// Calls `visit` for each block.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (auto const& one : all_) { visit(*one); }
    }
    /// QEMU drops all translations, and no block executes. `threads` are pointers to what has the
    /// members `previous` and `copy`.
    template <class Thread, std::size_t Count>
    void clear(Thread* const (&threads)[Count]) {
        for (auto* const of : threads) {
            if (of == nullptr || of->previous == nullptr) { continue; }
            of->copy = *of->previous;
            of->previous = &of->copy;
        }
        all_.clear();
    }

private:
    std::vector<std::unique_ptr<code_block>> all_{};
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
