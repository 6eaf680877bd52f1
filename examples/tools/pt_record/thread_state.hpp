// SPDX-License-Identifier: BSL-1.0
#pragma once

// What completes the trace of a thread whose process was killed: the file PID.TID.state.
//
// The plugin maps the file, so that it survives the process. It holds copies of the state of the
// trace, and the blocks that began since: whoever completes the trace executes them again. The
// thread may be killed between any two instructions of the plugin; so there are two copies, and
// each change becomes valid with one store.

#include "thread_trace.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pt_record {

/// A block of code that began, as the journal of the process has it.
struct begun_block {
    std::uint64_t first = 0;   ///< the address of the first instruction
    std::uint64_t record = 0;  ///< `record_of` its code

    static constexpr unsigned size_bits = 13;
    static constexpr std::uint64_t max_bytes = (std::uint64_t{1} << size_bits) - 1;
    /// Joins the size of the block and that of the journal, which includes all its code.
    static constexpr auto record_of(std::uint64_t size, std::uint64_t journal) -> std::uint64_t {
        return journal << size_bits | size;
    }
    /// For code that is written to the journal later: all of the journal.
    static constexpr std::uint64_t all = ~std::uint64_t{0} >> size_bits;

    [[nodiscard]] auto size() const -> std::uint64_t { return record & max_bytes; }
    [[nodiscard]] auto journal() const -> std::uint64_t { return record >> size_bits; }
};

/// A copy of the state of a trace, and the blocks that began since.
struct trace_copy {
    static constexpr std::uint64_t max_blocks = 512;

    trace_state state{};
    std::uint64_t bytes = 0;      ///< of the trace
    std::uint64_t in_kernel = 0;  ///< `count`, if its last block has called the kernel
    std::uint64_t count = 0;      ///< of blocks; 0: the trace is complete
    begun_block blocks[max_blocks] = {};
    instruction_log logs[2] = {};  ///< when block number i began: logs[i % 2]
    instruction_log kernel_log{};  ///< when the last block called the kernel

    [[nodiscard]] auto is_full() const -> bool { return count == max_blocks; }
};

/// The end of a thread's process, as its thread sees it.
struct thread_death {
    std::uint64_t is_known = 0;
    std::uint64_t ip = 0;  ///< the instruction that raised a fault, or the next one
    std::uint64_t signal = 0;
    instruction_log log{};
};

/// The journals that hold the code of a process: those of the processes that forked it, then its
/// own. Sizes of the journal continue from one to the next.
struct journal_part {
    std::int64_t process = 0;
    std::uint64_t end = 0;  ///< the last one has none
};
struct journal_parts {
    static constexpr std::size_t most = 16;
    std::uint64_t count = 0;
    journal_part parts[most] = {};

    [[nodiscard]] auto base() const -> std::uint64_t {
        return count < 2 ? 0 : parts[count - 2].end;
    }
    /// Adds the part of `process`, which begins after `bytes` of the last one. The oldest part is
    /// dropped when there are too many.
    void add(int process, std::uint64_t bytes) {
        if (count != 0) { parts[count - 1].end = base() + bytes; }
        if (count == most) {
            for (std::size_t i = 1; i < most; ++i) { parts[i - 1] = parts[i]; }
            --count;
        }
        parts[count++] = {process, 0};
    }
};

/// The contents of the file.
struct thread_state {
    std::uint64_t layout = 0;  ///< `layout_here` of the plugin
    std::int64_t process = 0;
    std::int64_t thread = 0;
    std::uint64_t process_start = 0;
    std::uint64_t reported = 0;  ///< instructions in `progress`
    journal_parts journals{};
    thread_death death{};
    std::uint64_t current = 0;  ///< the valid one of `copies`
    trace_copy copies[2] = {};

    /// The same only for equal structures: a compiler, and a version of this program.
    static constexpr auto layout_here() -> std::uint64_t {
        std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
        auto const add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100'0000'01B3; };
        for (std::uint64_t const size : {sizeof(thread_state), sizeof(trace_copy),
                                         sizeof(trace_state), sizeof(engine::generator_state)}) {
            add(size);
        }
        for (char const letter : __VERSION__) { add(static_cast<unsigned char>(letter)); }
        return hash;
    }
};

/// Makes what was stored before visible to who reads the file after this process has ended. The
/// compiler may not move stores past it; other processors do not matter.
inline void commit(std::uint64_t& to, std::uint64_t value) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::atomic_ref{to}.store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// The time at which a process started, in ticks since the start of the system; 0 if it does not
/// execute any more.
inline auto start_of_process(std::int64_t process) -> std::uint64_t {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(process));
    std::FILE* const from = std::fopen(path, "re");
    if (from == nullptr) { return 0; }
    char line[1024] = {};
    (void)std::fread(line, 1, sizeof line - 1, from);
    (void)std::fclose(from);
    // The name is in parentheses, and may have any character. State, 18 numbers, and the time.
    char const* const name = std::strrchr(line, ')');
    char state = 'X';
    unsigned long long start = 0;
    if (name == nullptr ||
        std::sscanf(name + 1,
                    " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                    "%*s %llu",
                    &state, &start) != 2) {
        return 0;
    }
    return state == 'Z' || state == 'X' ? 0 : start;
}

/// Creates the file and maps it. Null, and errno, if there is no space.
inline auto create_thread_state(char const* path) -> thread_state* {
    int const file = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) { return nullptr; }
    int const error = ::posix_fallocate(file, 0, sizeof(thread_state));
    void* const at = error != 0 ? MAP_FAILED
                                : ::mmap(nullptr, sizeof(thread_state), PROT_READ | PROT_WRITE,
                                         MAP_SHARED, file, 0);
    int const why = error != 0 ? error : errno;
    (void)::close(file);
    if (at != MAP_FAILED) { return new (at) thread_state; }
    (void)::unlink(path);
    errno = why;
    return nullptr;
}

}  // namespace pt_record
