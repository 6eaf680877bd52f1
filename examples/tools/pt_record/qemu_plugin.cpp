// SPDX-License-Identifier: BSL-1.0

// pt_record's plugin for QEMU: records each thread of an emulated x86-64 program.
//
// It runs within qemu-x86_64: `qemu-x86_64 -plugin pt_record_qemu.so,directory=DIR PROGRAM`. The
// directory holds the file `settings`; see recording.hpp.

#include "import.hpp"
#include "process_files.hpp"
#include "qemu_entry.hpp"
#include "thread_state.hpp"
#include "../common/translated_block.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using namespace ptspec;
using namespace pt_record;

/// Copies bytes of the program. False if they cannot be read.
auto read_memory(std::uint64_t address, void* to, std::size_t size) -> bool {
    ::iovec const here{to, size};
    ::iovec const there{reinterpret_cast<void*>(address), size};  // NOLINT: a guest's address
    return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

// ------------------------------------------------------------------------------------ signals

/// The signal frame of x86-64 Linux, as far as it is needed.
struct signal_frame {
    std::uint64_t restorer;
    std::uint64_t flags_and_stack[5];
    std::uint64_t registers[23];  ///< of sigcontext
    std::uint64_t reserved[9];
    std::uint64_t mask;
    std::int32_t signal;
    std::int32_t error;
    std::int32_t code;

    [[nodiscard]] auto rsp() const -> std::uint64_t { return registers[15]; }
    [[nodiscard]] auto ip() const -> std::uint64_t { return registers[16]; }
    [[nodiscard]] auto vector() const -> std::uint64_t { return registers[20]; }
    [[nodiscard]] auto cr2() const -> std::uint64_t { return registers[22]; }
    /// True for a signal that the instruction at `ip` caused.
    [[nodiscard]] auto is_fault() const -> bool {
        bool const by_instruction = signal == 4 || signal == 5 || signal == 7 || signal == 8 ||
                                    signal == 11;  // ILL, TRAP, BUS, FPE, SEGV
        return by_instruction && code > 0;
    }
};

/// A signal handler and the restorer that its frame holds.
struct handler {
    std::uint64_t address = 0;
    std::uint64_t restorer = 0;
};

// ------------------------------------------------------------------------------------ state

/// Code that has changed, and that a thread is about to execute.
struct code_change {
    std::uint64_t address = 0;
    std::vector<std::uint8_t> bytes{};
};

struct emulated_thread {
    thread_trace trace{};
    code_block const* previous = nullptr;  ///< the block that executes
    thread_state* saved = nullptr;
    bool is_in_file = false;       ///< `saved` is mapped
    trace_copy* copied = nullptr;  ///< the valid one of `saved`
    code_block copy{};             ///< of the previous block, when its own is freed
    guest_registers const* registers = nullptr;
    int id = 0;
    bool has_ended = false;
    bool is_cut = false;         ///< the file could not be created
    std::uint64_t reported = 0;  ///< instructions in `progress`
    instruction_log log{};
    instruction_log log_before{};  ///< the block that executes
    std::vector<code_change> changes{};
    bool makes_thread = false;  ///< by the system call that it executes
};

constexpr unsigned max_threads = 8192;

struct plugin_state {
    char directory[3072] = {};
    settings how{};
    progress* shared = nullptr;
    std::mutex lock{};                   ///< for all below
    std::atomic<bool> has_lost = false;  ///< a thread of this process
    process_files files{};
    journal_parts journals{};
    std::vector<handler> handlers{};
    std::vector<std::unique_ptr<code_block>> blocks{};  ///< until QEMU drops its translations
    emulated_thread* threads[max_threads] = {};
};

/// Not destroyed: threads may run while the process ends.
union undestroyed {
    plugin_state value{};
    ~undestroyed() {}
} everything;
plugin_state& state = everything.value;
thread_local unsigned current_vcpu = max_threads;

auto thread_id() -> int { return static_cast<int>(::syscall(SYS_gettid)); }

void report_error(int error) {
    std::uint64_t none = 0;
    (void)std::atomic_ref{state.shared->error}.compare_exchange_strong(
        none, static_cast<std::uint64_t>(error));
    add(state.shared->lost_threads, 1);
    state.has_lost = true;
}
void report_progress(emulated_thread& of) {
    std::uint64_t const now = of.trace.instructions();
    add(state.shared->instructions, now - of.reported);
    of.reported = now;
    if (of.saved != nullptr) { of.saved->reported = now; }
}
/// What `begun_block` needs to find the code of a block in the journals, now or later.
auto record_of(byte_view code, bool is_written) -> std::uint64_t {
    auto const size = std::min<std::uint64_t>(code.size(), begun_block::max_bytes);
    return begun_block::record_of(
        size, is_written ? state.journals.base() + state.files.journal_size() : begun_block::all);
}

// ------------------------------------------------------------------------------------ threads

/// Copies the state of the trace, at the beginning of a block; null: the trace is complete.
[[gnu::noinline]] void copy_state(emulated_thread& of, code_block const* next) {
    std::uint64_t const other = 1 - of.saved->current;
    auto& to = of.saved->copies[other];
    to.state = of.trace.state;
    to.bytes = of.trace.file.size();
    to.in_kernel = 0;
    to.count = next != nullptr ? 1 : 0;
    if (next != nullptr) { to.blocks[0] = {next->first, next->record}; }
    to.logs[to.count] = of.log;
    commit(of.saved->current, other);
    of.copied = &to;
}
void create_saved(emulated_thread& of) {
    of.saved = create_thread_state(path_of{state.directory, ::getpid(), of.id, "state"}.letters);
    of.is_in_file = of.saved != nullptr;
    if (!of.is_in_file) { of.saved = new thread_state; }  // what a kill ends is lost
    of.saved->process = ::getpid();
    of.saved->thread = of.id;
    of.saved->process_start = start_of_process(::getpid());
    of.saved->journals = state.journals;
    commit(of.saved->layout, thread_state::layout_here());
}
void free_saved(emulated_thread& of) {
    if (of.is_in_file) {
        (void)::munmap(of.saved, sizeof *of.saved);
    } else {
        delete of.saved;
    }
    of.saved = nullptr;
}

/// Starts the trace of a thread, or of a thread whose process was forked.
void begin(emulated_thread& of, code_block const& at) {
    if (of.trace.file.is_open()) { return of.trace.restart(state.how, at.first); }
    of.id = thread_id();
    create_saved(of);
    path_of const path{state.directory, ::getpid(), of.id, "pt"};
    auto const opened = of.trace.file.create(path.letters);
    if (!opened) {
        of.is_cut = true;
        report_error(opened.error);
        return;
    }
    {
        std::lock_guard const guard{state.lock};
        state.files.add_event("start %d", of.id);
    }
    of.trace.start(state.how, at.first);
}
void write_log(emulated_thread& of) {
    if (!state.how.check) { return; }
    path_of const path{state.directory, ::getpid(), of.id, "log"};
    if (int const error = of.log.write(path.letters); error != 0) { report_error(error); }
}
/// Completes the trace of a thread that calls execve. If the call fails the thread continues.
void pause(emulated_thread& of) {
    if (of.is_cut || of.previous == nullptr) { return; }
    of.trace.finish_in_kernel(*of.previous);
    of.previous = nullptr;
    copy_state(of, nullptr);
    report_progress(of);
    write_log(of);
    if (of.trace.file.error() != 0) { report_error(of.trace.file.error()); }
}
/// Writes code that has changed to the journal.
void write_changes(emulated_thread& of) {
    for (auto const& one : of.changes) {
        state.files.add_code(one.address, {one.bytes.data(), one.bytes.size()}, of.id,
                             of.trace.file.size());
    }
    of.changes.clear();
}
/// Completes the files of a thread.
void end(emulated_thread& of) {
    if (of.has_ended || of.is_cut || !of.trace.file.is_open()) { return; }
    of.has_ended = true;
    if (of.previous != nullptr) {
        if (enters_kernel(of.previous->end.instruction.kind)) {
            of.trace.finish_in_kernel(*of.previous);
        } else {
            // The process ends, and the thread may still run, without callbacks: what its last
            // block led to is not known.
            of.trace.finish_at(of.previous->first);
            of.log = of.log_before;
        }
        of.previous = nullptr;
    }
    write_changes(of);
    report_progress(of);
    add(state.shared->other_signals, of.trace.state.unexplained);
    if (int const error = of.trace.file.close(); error != 0) { report_error(error); }
    write_log(of);
    (void)::unlink(path_of{state.directory, ::getpid(), of.id, "state"}.letters);
    state.files.add_event("exit %d", of.id);
}

// ------------------------------------------------------------------------------------ execution

/// The frames of the signals that lead to a handler, the outermost first.
struct signal_chain {
    static constexpr unsigned most = 64;
    signal_frame frames[most];
    std::uint64_t to[most];
    unsigned count = 0;
};

auto restorer_of(std::uint64_t address) -> std::uint64_t {
    std::lock_guard const guard{state.lock};
    for (auto const& one : state.handlers) {
        if (one.address == address) { return one.restorer; }
    }
    return 0;
}
/// Reads the frames from the innermost on. Several signals may be delivered at once: the inner one
/// interrupts the outer handler at its first instruction.
auto read_chain(signal_chain& to, std::uint64_t handler_at, std::uint64_t rsp) -> bool {
    signal_chain found;
    while (found.count < signal_chain::most) {
        std::uint64_t const restorer = restorer_of(handler_at);
        signal_frame& frame = found.frames[found.count];
        if (restorer == 0 || !read_memory(rsp, &frame, sizeof frame) ||
            frame.restorer != restorer) {
            break;
        }
        found.to[found.count] = handler_at;
        ++found.count;
        handler_at = frame.ip();
        rsp = frame.rsp();
    }
    to.count = found.count;
    for (unsigned i = 0; i < found.count; ++i) {
        to.frames[i] = found.frames[found.count - 1 - i];
        to.to[i] = found.to[found.count - 1 - i];
    }
    return to.count != 0;
}
/// What precedes an instruction in a block; all if its code cannot be read.
auto part_before(code_block const& of, std::uint64_t ip) -> code_block {
    std::uint8_t code[begun_block::max_bytes];
    std::uint64_t const size = begun_block{of.first, of.record}.size();
    if (!read_memory(of.first, code, size)) { return of; }
    return part_of_block({code, size}, of.first, ip);
}
/// A block at the address of a signal handler begins. False if it was called by the program.
[[gnu::noinline]] auto enter_handler(emulated_thread& of, code_block const& next) -> bool {
    signal_chain chain;
    if (!read_chain(chain, next.first, of.registers->rsp())) { return false; }
    for (unsigned i = 0; i < chain.count; ++i) {
        auto const& frame = chain.frames[i];
        delivered_signal const signal{.at = frame.ip(),
                                      .to = chain.to[i],
                                      .is_fault = i == 0 && frame.is_fault(),
                                      .vector = static_cast<std::uint8_t>(frame.vector()),
                                      .cr2 = frame.cr2()};
        of.log.interrupt(signal.at, signal.is_fault);
        if (i == 0) {
            bool const is_part = signal.is_fault && of.previous->holds(signal.at);
            of.trace.run(is_part ? part_before(*of.previous, signal.at) : *of.previous, signal);
        } else {
            of.trace.deliver(signal);
        }
    }
    add(state.shared->exact_signals, chain.count);
    return true;
}

[[gnu::noinline]] auto new_thread(unsigned vcpu) -> emulated_thread* {
    state.threads[vcpu] = new emulated_thread;
    current_vcpu = vcpu;
    return state.threads[vcpu];
}
[[gnu::noinline]] auto no_thread() -> emulated_thread* {
    thread_local bool is_reported = false;
    if (!is_reported) { report_error(EAGAIN); }
    is_reported = true;
    return nullptr;
}
/// The state of a thread; null if there are too many.
[[gnu::always_inline]] inline auto thread_of(unsigned vcpu) -> emulated_thread* {
    if (vcpu >= max_threads) [[unlikely]] { return no_thread(); }
    auto* const of = state.threads[vcpu];
    return of != nullptr ? of : new_thread(vcpu);
}

/// A block begins after the previous one, and the copy has room for it.
[[gnu::always_inline]] inline void follow(emulated_thread& of, code_block const& next) {
    auto& copied = *of.copied;
    std::uint64_t const count = copied.count;
    copied.blocks[count] = {next.first, next.record};
    commit(copied.count, count + 1);
    auto const& previous = *of.previous;
    of.previous = &next;
    of.trace.run(previous, next.first);
}
/// The first block of a thread, a block with one of the flags for rare cases, or one for which the
/// copy has no room, begins.
[[gnu::noinline]] void on_rare_block(emulated_thread& of, code_block const& next) {
    if (of.previous == nullptr) {
        begin(of, next);
    } else if (next.has(rare_case::restart) && of.previous->holds(next.first)) {
        // An instruction wrote to its own block, or repeats: QEMU left the block and executes it
        // again, alone.
        of.log.drop_last();
        if (of.previous == &next) { return; }
        of.trace.run_part(part_before(*of.previous, next.first));
    } else if (!next.has(rare_case::handler) || !enter_handler(of, next)) {
        if (of.changes.empty() && !of.copied->is_full()) {
            of.copied->logs[(of.copied->count + 1) % 2] = of.log_before = of.log;
            return follow(of, next);
        }
        of.trace.run(*of.previous, next.first);
    }
    of.log_before = of.log;
    of.previous = &next;
    if (!of.changes.empty()) {
        of.trace.mark(next.first);
        std::lock_guard const guard{state.lock};
        write_changes(of);
    }
    copy_state(of, &next);
}
/// A block begins.
[[gnu::used]] void on_block(unsigned vcpu, code_block const* next,
                            guest_registers const* registers) asm("pt_record_on_block");
void on_block(unsigned vcpu, code_block const* next, guest_registers const* registers) {
    auto* const of = thread_of(vcpu);
    if (of == nullptr) [[unlikely]] { return; }
    if (of->previous == nullptr || next->cases != 0 || of->copied->is_full()) [[unlikely]] {
        of->registers = registers;  // the same for all blocks of the thread
        return on_rare_block(*of, *next);
    }
    follow(*of, *next);
}
/// An instruction begins, with `check`.
template <bool Repeats>
void on_instruction(unsigned vcpu, void* ip) {
    auto* const of = thread_of(vcpu);
    if (of != nullptr) { of->log.add(reinterpret_cast<std::uint64_t>(ip), Repeats); }
}

// ------------------------------------------------------------------------------------ translation

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    auto made = std::make_unique<code_block>();
    auto& block = *made;
    std::vector<std::uint8_t> code;
    auto const visit = [&](qemu_plugin_insn* one, std::uint64_t at, byte_view bytes,
                           x86::decoded const& decoded) {
        code.insert(code.end(), bytes.begin(), bytes.end());
        bool const is_interrupt = decoded.instruction.kind == instruction_class::software_interrupt;
        if (!state.how.check || is_interrupt || is_emulated(at) || !state.how.passes_filter(at)) {
            return;
        }
        qemu_plugin_register_vcpu_insn_exec_cb(
            one, decoded.instruction.repeats ? on_instruction<true> : on_instruction<false>,
            QEMU_PLUGIN_CB_NO_REGS, reinterpret_cast<void*>(at));  // NOLINT: only carried
    };
    emulated::translate(block, tb, user_code, 0, visit);
    if (block.count == 0) { return; }
    if (block.count == 1 && !block.last_may_not_run &&
        block.end.instruction.kind == instruction_class::other) {
        block.set(rare_case::restart);
    }
    byte_view const bytes{code.data(), code.size()};
    if (is_emulated(block.first)) { block.count = 0; }
    std::lock_guard const guard{state.lock};
    auto* const of = current_vcpu < max_threads ? state.threads[current_vcpu] : nullptr;
    int const id = thread_id();
    state.files.add_mapping(block.first, id);
    auto const found = state.files.exchange(block.first, bytes);
    bool const has_changed = found == journaled_code::result::changed;
    if (has_changed) { block.set(rare_case::changed); }
    bool const is_later = has_changed && of != nullptr;
    if (is_later) {
        of->changes.push_back({block.first, code});
    } else if (found != journaled_code::result::known) {
        state.files.add_code(block.first, bytes, id, of != nullptr ? of->trace.file.size() : 0);
    }
    block.record = record_of(bytes, !is_later);
    for (auto const& one : state.handlers) {
        if (one.address == block.first) { block.set(rare_case::handler); }
    }
    if (state.how.check) { block.set(rare_case::check); }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, pt_record_enter_block, QEMU_PLUGIN_CB_NO_REGS, &block);
    state.blocks.push_back(std::move(made));
}
/// QEMU drops all translated code. No block executes.
void on_flush(qemu_plugin_id_t) {
    std::lock_guard const guard{state.lock};
    for (auto* const of : state.threads) {
        if (of == nullptr || of->previous == nullptr) { continue; }
        of->copy = *of->previous;
        of->previous = &of->copy;
    }
    state.blocks.clear();
}

// ------------------------------------------------------------------------------------ system calls

namespace linux_call {

constexpr std::int64_t mmap = 9;
constexpr std::int64_t mprotect = 10;
constexpr std::int64_t munmap = 11;
constexpr std::int64_t rt_sigaction = 13;
constexpr std::int64_t mremap = 25;
constexpr std::int64_t clone = 56;
constexpr std::int64_t fork = 57;
constexpr std::int64_t vfork = 58;
constexpr std::int64_t execve = 59;
constexpr std::int64_t exit = 60;
constexpr std::int64_t execveat = 322;
constexpr std::int64_t clone3 = 435;

constexpr std::uint64_t clone_thread = 0x10000;  ///< CLONE_THREAD

}  // namespace linux_call

/// The program sets a signal handler.
void add_handler(std::uint64_t action) {
    struct {
        std::uint64_t handler;
        std::uint64_t flags;
        std::uint64_t restorer;
    } given{};
    if (action == 0 || !read_memory(action, &given, sizeof given) || given.handler < 2) { return; }
    std::lock_guard const guard{state.lock};
    for (auto& one : state.handlers) {
        if (one.address != given.handler) { continue; }
        one.restorer = given.restorer;
        return;
    }
    constexpr std::size_t max_handlers = 4096;
    if (state.handlers.size() == max_handlers) { return; }
    state.handlers.push_back({given.handler, given.restorer});
    for (auto const& one : state.blocks) {
        if (one->first == given.handler) { one->set(rare_case::handler); }
    }
}

void on_system_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t a1,
                    std::uint64_t a2, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                    std::uint64_t, std::uint64_t) {
    auto* const of = thread_of(vcpu);
    if (of == nullptr) { return; }
    current_vcpu = vcpu;
    if (of->copied != nullptr) {
        of->copied->kernel_log = of->log;
        commit(of->copied->in_kernel, of->copied->count);
    }
    switch (number) {
        case linux_call::rt_sigaction: add_handler(a2); break;
        case linux_call::fork:
        case linux_call::vfork: of->makes_thread = false; break;
        case linux_call::clone: of->makes_thread = (a1 & linux_call::clone_thread) != 0; break;
        case linux_call::clone3: {
            std::uint64_t flags = 0;
            (void)read_memory(a1, &flags, sizeof flags);
            of->makes_thread = (flags & linux_call::clone_thread) != 0;
            break;
        }
        case linux_call::exit: {
            std::lock_guard const guard{state.lock};
            end(*of);
            break;
        }
        case linux_call::execve:
        case linux_call::execveat: {
            char path[256] = {};
            (void)read_memory(number == linux_call::execve ? a1 : a2, path, sizeof path - 1);
            for (char& letter : path) {  // one line
                if (letter != 0 && static_cast<unsigned char>(letter) < ' ') { letter = '?'; }
            }
            std::lock_guard const guard{state.lock};
            state.files.add_event("exec %d %s", of->id, path);
            pause(*of);
            break;
        }
        default: break;
    }
    if (of->trace.instructions() - of->reported > 1'000'000) { report_progress(*of); }
}
void on_system_call_return(qemu_plugin_id_t, unsigned vcpu, std::int64_t number,
                           std::int64_t result) {
    auto* const of = thread_of(vcpu);
    if (of == nullptr) { return; }
    switch (number) {
        case linux_call::mmap:
        case linux_call::mprotect:
        case linux_call::munmap:
        case linux_call::mremap: {
            std::lock_guard const guard{state.lock};
            state.files.forget_mappings();
            break;
        }
        case linux_call::clone:
        case linux_call::fork:
        case linux_call::vfork:
        case linux_call::clone3:
            if (result > 0) {
                std::lock_guard const guard{state.lock};
                auto const made = static_cast<long long>(result);
                state.files.add_event("fork %d %lld %lld", of->id,
                                      of->makes_thread ? static_cast<long long>(::getpid()) : made,
                                      made);
            }
            break;
        default: break;
    }
}

// ------------------------------------------------------------------------------------ the process

/// The child after a fork: it has one thread, and files of its own.
void in_child() {
    for (unsigned i = 0; i < max_threads; ++i) {
        auto*& of = state.threads[i];
        if (of == nullptr) { continue; }
        of->trace.file.abandon();
        // The old one is not freed. A later thread of this process may get another's index.
        of = i == current_vcpu ? new emulated_thread : nullptr;
    }
    std::uint64_t const journal = state.files.journal_size();
    state.files.abandon();
    state.has_lost = false;
    state.journals.add(::getpid(), journal);
    if (int const error = state.files.create(state.directory, ::getpid()); error != 0) {
        report_error(error);
    }
}
void before_fork() { state.lock.lock(); }
void after_fork_in_parent() { state.lock.unlock(); }
void after_fork_in_child() {
    in_child();
    state.lock.unlock();
}

void on_thread_exit(qemu_plugin_id_t, unsigned vcpu) {
    if (vcpu >= max_threads || state.threads[vcpu] == nullptr) { return; }
    std::lock_guard const guard{state.lock};
    end(*state.threads[vcpu]);
    free_saved(*state.threads[vcpu]);
    delete state.threads[vcpu];
    state.threads[vcpu] = nullptr;
}
/// The process ends. Other threads may still run, without callbacks.
void on_exit(qemu_plugin_id_t, void*) {
    std::lock_guard const guard{state.lock};
    for (auto* of : state.threads) {
        if (of != nullptr) { end(*of); }
    }
    add(state.shared->unread_mappings, state.files.unread_mappings);
    // Without code, the traces of all threads are incomplete: they count once.
    int const error = state.files.close();
    if (error != 0 && !state.has_lost) { report_error(error); }
}

/// QEMU ends the process as a signal of the program does: it sends it to itself.
auto on_kill(::pid_t process, int signal) -> int {
    auto* const of = current_vcpu < max_threads ? state.threads[current_vcpu] : nullptr;
    if (process == ::getpid() && of != nullptr && of->previous != nullptr) {
        auto& to = of->saved->death;
        to.ip = of->registers->ip;
        to.signal = static_cast<std::uint64_t>(signal);
        to.log = of->log;
        commit(to.is_known, 1);
    }
    return ::kill(process, signal);
}

auto refuse(refusal why) -> int {
    if (state.shared != nullptr) { state.shared->refused = static_cast<std::uint64_t>(why); }
    return -1;
}

}  // namespace

int qemu_plugin_version = PT_RECORD_QEMU_API;

auto qemu_plugin_install(qemu_plugin_id_t id, qemu_info_t const* info, int argc, char** argv)
    -> int {
    std::snprintf(state.directory, sizeof state.directory, "%s", directory_of(argc, argv));
    state.shared = open_progress(state.directory);
    if (state.shared == nullptr) { return -1; }
    if (info->system_emulation || std::strcmp(info->target_name, "x86_64") != 0) {
        return refuse(refusal::machine);
    }
    if (!read_settings(state.how, path_of{state.directory, "settings"}.letters)) {
        return refuse(refusal::settings);
    }
    if (state.files.create(state.directory, ::getpid()) != 0) {
        return refuse(refusal::thread_files);
    }
    state.journals.add(::getpid(), 0);
    (void)replace_import("kill", reinterpret_cast<void (*)()>(on_kill));
    (void)::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_system_call_return);
    qemu_plugin_register_vcpu_exit_cb(id, on_thread_exit);
    qemu_plugin_register_flush_cb(id, on_flush);
    qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
    return 0;
}
