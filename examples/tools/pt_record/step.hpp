// SPDX-License-Identifier: BSL-1.0
#pragma once

// Runs a program on the processor itself, one instruction at a time: exact, and slow.

#include "command.hpp"
#include "process_files.hpp"
#include "thread_trace.hpp"
#include "../common/tool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pt_record {

#if defined(__x86_64__)

/// Steps the threads of a program and of the processes that it forks.
class stepper {
public:
    /// The directory has the settings.
    stepper(settings const& how, std::string const& directory, progress& shared)
        : how_{how}, directory_{directory}, shared_{shared} {}

    /// Runs a command. Returns its status, as waitpid does. Throws if it cannot be traced.
    auto run(std::vector<std::string> const& command, signal_relay& relay) -> int {
        int const child = start(command);
        relay.start(child);
        add_process(child);
        auto& first = add_thread(child, child);
        ::user_regs_struct registers{};
        if (::ptrace(PTRACE_GETREGS, child, nullptr, &registers) == 0) {
            begin(child, first, registers);
            (void)resume(child, 0);
        }
        int last = 0;
        bool has_ended = false;
        while (!threads_.empty()) {
            int status = 0;
            int const id = ::waitpid(-1, &status, __WALL);
            if (id < 0) {
                if (errno == EINTR) { continue; }
                break;
            }
            if (id == child && !WIFSTOPPED(status)) {
                last = status;
                has_ended = true;
            }
            handle(id, status);
        }
        // After execve it is not traced any more.
        while (!has_ended && ::waitpid(child, &last, 0) < 0 && errno == EINTR) {}
        relay.end();
        for (auto const& [process, files] : processes_) {
            if (int const error = files->close(); error != 0) { report_error(error); }
        }
        return last;
    }

private:
    struct stepped_thread {
        thread_trace trace{};
        instruction_log log{};
        int process = 0;
        bool is_started = false;  ///< `ip` is the next instruction
        std::uint64_t ip = 0;
        std::uint8_t next[x86::instruction::max_bytes] = {};  ///< the bytes at `ip`
        std::size_t next_size = 0;
        std::string program{};  ///< that a call of execve at `ip` names
        bool has_call = false;  ///< `call` has called the kernel, which may not return to `ip`
        code_block call{};
        bool has_signal = false;  ///< one is being delivered
        delivered_signal signal{};
        std::uint64_t reported = 0;
    };

    static constexpr long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                                    PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;

    /// Starts the command, which stops at its first instruction.
    static auto start(std::vector<std::string> const& command) -> int {
        int const child = start_process(command, [] {
            if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) { std::_Exit(126); }
        });
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        if (!WIFSTOPPED(status)) {
            bool const is_refused = WIFEXITED(status) && WEXITSTATUS(status) == 126;
            throw tool::failure{is_refused ? "ptrace is not allowed here"
                                           : "the program was not executed"};
        }
        if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, options) != 0) {
            throw tool::failure{std::string{"ptrace: "} + std::strerror(errno)};
        }
        return child;
    }

    auto add_process(int id) -> process_files& {
        auto& files = processes_[id];
        if (!files) {
            files = std::make_unique<process_files>();
            int const error = files->create(directory_.c_str(), id);
            if (error != 0) { throw tool::failure{directory_ + ": " + std::strerror(error)}; }
        }
        return *files;
    }
    auto add_thread(int id, int process) -> stepped_thread& {
        auto& of = threads_[id];
        if (!of) { of = std::make_unique<stepped_thread>(); }
        if (process != 0) { of->process = process; }
        return *of;
    }
    static auto resume(int id, int signal) -> bool {
        return ::ptrace(PTRACE_SINGLESTEP, id, nullptr, static_cast<long>(signal)) == 0;
    }

    void handle(int id, int status) {
        if (!WIFSTOPPED(status)) {
            finish(id, false);
            threads_.erase(id);
            return;
        }
        // A new thread may stop before its parent's event names its process.
        auto& of = add_thread(id, 0);
        ::user_regs_struct registers{};
        if (::ptrace(PTRACE_GETREGS, id, nullptr, &registers) != 0) { return; }  // it was killed
        int signal = 0;
        switch (status >> 16) {
            case 0: signal = stopped(id, of, WSTOPSIG(status), registers); break;
            case PTRACE_EVENT_CLONE:
            case PTRACE_EVENT_FORK:
            case PTRACE_EVENT_VFORK: forked(id, of, status >> 16); break;
            case PTRACE_EVENT_EXEC: executed(id, of); return;
            case PTRACE_EVENT_EXIT: finish(id, registers.rip != of.ip); break;
            default: break;
        }
        if (!of.is_started && of.process == 0) {
            waiting_[id] = true;  // until the parent's event
            return;
        }
        (void)resume(id, signal);
    }
    /// Returns the signal to deliver.
    auto stopped(int id, stepped_thread& of, int signal, ::user_regs_struct const& registers)
        -> int {
        std::uint64_t const ip = registers.rip;
        ::siginfo_t about{};
        bool const has_about = ::ptrace(PTRACE_GETSIGINFO, id, nullptr, &about) == 0;
        if (!of.is_started) {
            if (of.process == 0) { return 0; }
            begin(id, of, registers);
            return 0;  // SIGTRAP of the exec, or SIGSTOP of a new thread
        }
        if (!has_about) { return 0; }  // a group stop
        if (signal == SIGTRAP && about.si_code == SIGTRAP && of.has_signal) {
            // The first instruction of a handler.
            of.signal.to = ip;
            set_width(of, registers);
            if (of.has_call) {
                of.trace.run(of.call, of.signal);
            } else {
                of.trace.deliver(of.signal);
            }
            of.has_call = of.has_signal = false;
            move_to(id, of, registers);
            return 0;
        }
        of.has_signal = false;
        // TRAP_BRKPT: after a system call. INT3 has SI_KERNEL.
        bool const is_step = signal == SIGTRAP &&
                             (about.si_code == TRAP_TRACE || about.si_code == TRAP_BRKPT);
        if (is_step || ip != of.ip) { step(id, of, registers); }
        if (is_step) { return 0; }
        bool const is_fault = about.si_code > 0 && (signal == SIGILL || signal == SIGBUS ||
                                                    signal == SIGFPE || signal == SIGSEGV);
        of.log.interrupt(ip, false);
        of.has_signal = true;
        of.signal = {.at = ip,
                     .is_fault = is_fault,
                     .cr2 = is_fault ? reinterpret_cast<std::uint64_t>(about.si_addr) : 0};
        return signal;
    }
    /// Linux has one code segment for 64-bit code.
    static auto width_of(::user_regs_struct const& registers) -> x86::code_width {
        constexpr unsigned user_cs = 0x33;
        return registers.cs == user_cs ? x86::code_width::bits_64 : x86::code_width::bits_32;
    }
    /// The code that is next has this width.
    static void set_width(stepped_thread& of, ::user_regs_struct const& registers) {
        of.trace.state.width = width_of(registers);
    }
    void begin(int id, stepped_thread& of, ::user_regs_struct const& registers) {
        of.is_started = true;
        auto& files = add_process(of.process);
        files.add_event("start %d", id);
        path_of const path{directory_.c_str(), of.process, id, "pt"};
        if (auto const opened = of.trace.file.create(path.letters); !opened) {
            throw tool::failure{std::string{path.letters} + ": " + std::strerror(opened.error)};
        }
        of.trace.start(how_, registers.rip, width_of(registers));
        move_to(id, of, registers);
    }
    /// The instruction that the registers have is the next. Its bytes are read before it executes:
    /// after execve they are not there any more.
    void move_to(int id, stepped_thread& of, ::user_regs_struct const& registers) {
        of.ip = registers.rip;
        if (of.process != 0) { add_process(of.process).add_mapping(of.ip, id); }
        of.next_size = read_memory(id, of.ip, of.next, sizeof of.next);
        constexpr std::uint8_t syscall[] = {0x0F, 0x05};
        constexpr unsigned execve = 59;
        constexpr unsigned execveat = 322;
        if (of.next_size < 2 || std::memcmp(of.next, syscall, 2) != 0) { return; }
        if (registers.rax != execve && registers.rax != execveat) { return; }
        char path[256] = {};
        (void)read_memory(id, registers.rax == execve ? registers.rdi : registers.rsi, path,
                          sizeof path - 1);
        of.program = tool::one_line(path);
    }
    /// Reads what is there of at most a page, up to the end of the next page. Returns its size.
    static auto read_memory(int id, std::uint64_t address, void* to, std::size_t size)
        -> std::size_t {
        // Not beyond a page that may be the last one.
        std::size_t const in_page = 4096 - address % 4096;
        ::iovec const here{to, size};
        ::iovec const there[2] = {
            {reinterpret_cast<void*>(address), std::min(size, in_page)},
            {reinterpret_cast<void*>(address + in_page), size - std::min(size, in_page)}};
        auto const got = ::process_vm_readv(id, &here, 1, there, in_page < size ? 2 : 1, 0);
        return got < 0 ? 0 : static_cast<std::size_t>(got);
    }
    /// The kernel has returned.
    static void finish_call(stepped_thread& of) {
        if (of.has_call) { of.trace.run(of.call, of.ip); }
        of.has_call = false;
    }
    /// The instruction has executed, and the one that the registers have is the next.
    void step(int id, stepped_thread& of, ::user_regs_struct const& registers) {
        std::uint64_t const to = registers.rip;
        finish_call(of);
        auto const block = read(id, of);
        auto const& first = block.end.instruction;
        auto const end = of.ip + first.length;
        bool const is_elsewhere = to != end && to != of.ip;  // the latter repeats
        if (first.kind == x86::instruction_class::other && is_elsewhere &&
            leads_to(id, of, end, to)) {
            if (how_.passes_filter(of.ip)) { of.log.add(of.ip, first.repeats); }
            of.trace.run(block, end);
            auto skipped = registers;
            skipped.rip = end;
            move_to(id, of, skipped);
            return step(id, of, registers);
        }
        if (block.end.instruction.kind != instruction_class::software_interrupt &&
            how_.passes_filter(of.ip)) {
            of.log.add(of.ip, block.end.instruction.repeats);
        }
        set_width(of, registers);
        if (enters_kernel(block.end.instruction.kind)) {
            of.has_call = true;
            of.call = block;
            add_process(of.process).forget_mappings();
        } else {
            of.trace.run(block, to);
        }
        move_to(id, of, registers);
        if (of.trace.instructions() - of.reported > 10'000) { report_progress(of); }
    }
    /// Whether the instruction at `ip` is followed by the one at `to`. Hypervisors that emulate an
    /// instruction, such as CPUID, may lose its trap: then two instructions executed.
    static auto leads_to(int id, stepped_thread const& of, std::uint64_t ip, std::uint64_t to)
        -> bool {
        std::uint8_t bytes[x86::instruction::max_bytes];
        auto const size = read_memory(id, ip, bytes, sizeof bytes);
        auto const one = x86::decode({bytes, size}, of.trace.state.width);
        if (!one) { return false; }
        bool const is_next = to == ip + one.instruction.length;
        switch (one.instruction.kind) {
            case x86::instruction_class::other: return is_next;
            case x86::instruction_class::conditional:
                return is_next || to == x86::target_of(one.instruction, ip, of.trace.state.width);
            case x86::instruction_class::direct_jump:
            case x86::instruction_class::direct_call:
                return to == x86::target_of(one.instruction, ip, of.trace.state.width);
            default: return false;
        }
    }
    /// The instruction that executes.
    auto read(int id, stepped_thread& of) -> code_block {
        byte_view const bytes{of.next, of.next_size};
        auto const decoded = x86::decode(bytes, of.trace.state.width);
        auto context = user_code;
        context.width = of.trace.state.width;
        code_block made;
        made.first = of.ip;
        emulated::add_instruction(made, decoded, of.ip, std::min<std::size_t>(bytes.size(), 1),
                                  context);
        add_code(id, of, bytes.first(made.end.instruction.length));
        return made;
    }
    static void add_code_to(process_files& files, int id, stepped_thread& of, byte_view bytes) {
        using enum journaled_code::result;
        auto const found = files.exchange(of.ip, bytes);
        if (found == known) { return; }
        if (found == changed) { of.trace.mark(of.ip); }
        files.add_code(of.ip, bytes, id, of.trace.file.size());
    }
    void add_code(int id, stepped_thread& of, byte_view bytes) {
        add_code_to(add_process(of.process), id, of, bytes);
    }
    void forked(int id, stepped_thread& of, int event) {
        unsigned long child = 0;
        if (::ptrace(PTRACE_GETEVENTMSG, id, nullptr, &child) != 0) { return; }
        auto const fresh = static_cast<int>(child);
        int const process = event == PTRACE_EVENT_CLONE ? of.process : fresh;
        add_process(of.process).add_event("fork %d %d %d", id, process, fresh);
        add_process(process);
        auto& thread = add_thread(fresh, process);
        if (waiting_.erase(fresh) == 0) { return; }
        ::user_regs_struct registers{};
        if (::ptrace(PTRACE_GETREGS, fresh, nullptr, &registers) != 0) { return; }
        begin(fresh, thread, registers);
        (void)resume(fresh, 0);
    }
    /// The recording of a process ends where it executes another program.
    void executed(int id, stepped_thread& of) {
        if (of.is_started && of.trace.file.is_open()) {
            finish_call(of);
            auto const block = read(id, of);
            of.log.add(of.ip, false);
            of.trace.finish_in_kernel(block);
            complete(id, of);
            add_process(of.process).add_event("exec %d %s", id, of.program.c_str());
        }
        threads_.erase(id);
        (void)::ptrace(PTRACE_DETACH, id, nullptr, nullptr);
    }
    /// Completes the files of a thread.
    void finish(int id, bool in_kernel) {
        auto const at = threads_.find(id);
        if (at == threads_.end()) { return; }
        auto& of = *at->second;
        if (!of.is_started || !of.trace.file.is_open()) { return; }
        if (of.has_call && !in_kernel) {
            of.trace.finish_in_kernel(of.call);
            return complete(id, of);
        }
        finish_call(of);
        auto const block = read(id, of);
        if (in_kernel && enters_kernel(block.end.instruction.kind)) {
            of.log.add(of.ip, false);
            of.trace.finish_in_kernel(block);
        } else {
            of.trace.finish_at(of.ip);
        }
        complete(id, of);
    }
    void report_error(int error) {
        ++shared_.lost_threads;
        shared_.error = static_cast<std::uint64_t>(error);
    }
    /// Closes the files of a thread.
    void complete(int id, stepped_thread& of) {
        report_progress(of);
        if (int const error = of.trace.file.close(); error != 0) { report_error(error); }
        if (how_.check) {
            path_of const path{directory_.c_str(), of.process, id, "log"};
            if (int const error = of.log.write(path.letters); error != 0) { report_error(error); }
        }
        add_process(of.process).add_event("exit %d", id);
    }
    void report_progress(stepped_thread& of) {
        shared_.instructions += of.trace.instructions() - of.reported;
        of.reported = of.trace.instructions();
    }

    settings how_;
    std::string directory_;
    progress& shared_;
    std::map<int, std::unique_ptr<process_files>> processes_{};
    std::map<int, std::unique_ptr<stepped_thread>> threads_{};
    std::map<int, bool> waiting_{};
};

#endif

}  // namespace pt_record
