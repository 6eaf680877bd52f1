// SPDX-License-Identifier: BSL-1.0

// Records the kernel code of an emulated machine, from its reset. Experimental.
//
//   qemu-system-x86_64 -plugin pt_record_machine.so,directory=DIR ...
//
// The directory holds the files `settings` and `progress`, as `pt_record --engine machine` makes
// them; it gets 0.CPU.pt, 0.code and, with --check, 0.CPU.log. It needs an x86-64 host, one thread
// of emulation (the default for one processor, or `-accel tcg,thread=single`), and QEMU 6.0 to
// 8.2.

#include "machine_trace.hpp"
#include "process_files.hpp"
#include "qemu_blocks.hpp"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
using namespace pt_record;

/// The beginning of QEMU 7.2's CPUX86State.
struct machine_registers {
    struct segment {
        std::uint32_t selector;
        std::uint64_t base;
        std::uint32_t limit;
        std::uint32_t flags;
    };
    std::uint64_t general[16];
    std::uint64_t ip;
    std::uint64_t flags;
    std::uint64_t condition_codes[3];
    std::uint32_t condition_operation;
    std::int32_t direction;
    std::uint32_t hidden_flags;
    std::uint32_t more_hidden_flags;
    segment segments[10];
    std::uint64_t cr[5];

    [[nodiscard]] auto has(unsigned bit) const -> bool { return (hidden_flags >> bit & 1) != 0; }
    [[nodiscard]] auto width() const -> x86::code_width {
        return has(15)  ? x86::code_width::bits_64
               : has(4) ? x86::code_width::bits_32
                        : x86::code_width::bits_16;
    }
    /// The base of the code segment; 0 in 64-bit code.
    [[nodiscard]] auto code_base() const -> std::uint64_t {
        constexpr unsigned cs = 1;
        return has(15) ? 0 : segments[cs].base;
    }
    /// The context without a base of CS: all IPs here are linear.
    [[nodiscard]] auto context() const -> engine::execution_context {
        engine::execution_context now;
        now.cr3 = cr[3];
        now.cpl = static_cast<std::uint8_t>(hidden_flags & 3);
        now.width = width();
        now.real_mode = !has(7);
        now.IF = (flags >> 9 & 1) != 0;
        return now;
    }
};

struct emulated_processor {
    machine_trace trace{};
    code_block const* previous = nullptr;
    code_block copy{};  ///< of the previous block, when its own is freed
    machine_registers const* registers = nullptr;
    instruction_log log{};
    std::vector<translated_block> changes{};
    std::uint64_t reported = 0;
    bool is_user = false;  ///< user code executes, which has no log
};

constexpr unsigned max_processors = 256;

struct plugin_state {
    char directory[3072] = {};
    settings how{};
    progress* shared = nullptr;
    std::mutex lock{};  ///< for all below
    process_files files{};
    live_blocks blocks{};
    emulated_processor* processors[max_processors] = {};
    unsigned current = 0;
    bool has_ended = false;
};

/// Not destroyed: processors may run while the machine ends.
union undestroyed {
    plugin_state value{};
    ~undestroyed() {}
} everything;
plugin_state& state = everything.value;

void report_error(int error) {
    if (error == 0) { return; }
    state.shared->error = static_cast<std::uint64_t>(error);
    add(state.shared->lost_threads, 1);
}
void begin(unsigned cpu, emulated_processor& of, code_block const& at) {
    path_of const path{state.directory, 0, static_cast<int>(cpu), "pt"};
    if (auto const opened = of.trace.file.create(path.letters); !opened) {
        return report_error(opened.error);
    }
    of.trace.start(state.how, of.registers->context(), at.first);
}
void write_changes(emulated_processor& of, code_block const& next) {
    if (of.changes.empty()) { return; }
    of.trace.mark(next.first);
    std::lock_guard const guard{state.lock};
    for (auto const& one : of.changes) {
        state.files.add_code(one.block->first, one.bytes(), static_cast<int>(state.current),
                             of.trace.file.size());
    }
    of.changes.clear();
}

/// True unless the command line of QEMU says that one thread emulates all processors, which is not
/// the default for several.
auto has_several_threads() -> bool {
    std::ifstream in{"/proc/self/cmdline", std::ios::binary};
    std::string const words{std::istreambuf_iterator<char>{in}, {}};
    return words.find("thread=single") == std::string::npos &&
           words.find("-icount") == std::string::npos;
}

/// False, and a refusal, in another thread than the first: one thread emulates all processors here.
auto is_the_only_thread() -> bool {
    thread_local char here = 0;
    static char const* const first = &here;
    if (first == &here) { return true; }
    state.shared->refused = static_cast<std::uint64_t>(refusal::threads);
    return false;
}

/// A block begins.
[[gnu::used]] void on_block(unsigned cpu, code_block const* next,
                            machine_registers const* registers) asm("pt_record_on_block");
void on_block(unsigned cpu, code_block const* next, machine_registers const* registers) {
    if (cpu >= max_processors || !is_the_only_thread()) { return; }
    auto*& of = state.processors[cpu];
    if (of == nullptr) { of = new emulated_processor; }
    state.current = cpu;
    of->registers = registers;
    auto const* const previous = of->previous;
    of->previous = next;
    of->is_user = (registers->hidden_flags & 3) == 3;
    if (previous == nullptr) {
        begin(cpu, *of, *next);
    } else if (next->has(rare_case::restart) && previous->holds(next->first)) {
        of->log.drop_last();
    } else {
        of->trace.run(*previous, next->first, registers->context());
    }
    if (!of->is_user) { write_changes(*of, *next); }
    if (of->trace.instructions() - of->reported > 10'000'000) {
        add(state.shared->instructions, of->trace.instructions() - of->reported);
        of->reported = of->trace.instructions();
    }
}
/// An instruction begins, with `check`.
template <bool Repeats>
void on_instruction(unsigned cpu, void* ip) {
    auto* const of = cpu < max_processors ? state.processors[cpu] : nullptr;
    if (of == nullptr || of->is_user) { return; }
    of->log.add(reinterpret_cast<std::uint64_t>(ip), Repeats);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    if (!is_the_only_thread()) { return; }
    std::lock_guard const guard{state.lock};
    auto* const of = state.processors[state.current];
    // At its reset a processor executes 16-bit code at CPL 0, in a segment at FFFF0000H.
    auto const width = of != nullptr ? of->registers->width() : x86::code_width::bits_16;
    std::uint64_t const base = of != nullptr ? of->registers->code_base() : 0xFFFF'0000;
    bool const is_user = of != nullptr && (of->registers->hidden_flags & 3) == 3;
    auto const visit = [](qemu_plugin_insn* one, std::uint64_t at, auto const& what) {
        if (!state.how.check || what.instruction.kind == instruction_class::software_interrupt) {
            return;
        }
        qemu_plugin_register_vcpu_insn_exec_cb(
            one, what.instruction.repeats ? on_instruction<true> : on_instruction<false>,
            QEMU_PLUGIN_CB_NO_REGS, reinterpret_cast<void*>(at));  // NOLINT: only carried
    };
    auto made = translate(tb, width, base, visit);
    auto& block = *made.block;
    if (block.count == 0) { return; }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, pt_record_enter_block, QEMU_PLUGIN_CB_NO_REGS, &block);
    if (!is_user) {  // other processes have other code at the same addresses
        auto const found = state.files.exchange(block.first, made.bytes());
        if (found == journaled_code::result::changed && of != nullptr) {
            auto copy = std::make_unique<code_block>(block);
            of->changes.push_back({std::move(copy), made.code});
        } else if (found != journaled_code::result::known) {
            state.files.add_code(block.first, made.bytes(), static_cast<int>(state.current),
                                 of != nullptr ? of->trace.file.size() : 0);
        }
    }
    state.blocks.add(std::move(made.block));
}
void on_flush(qemu_plugin_id_t) {
    std::lock_guard const guard{state.lock};
    state.blocks.clear(state.processors);
}
/// The machine ends.
void finish() {
    std::lock_guard const guard{state.lock};
    if (state.has_ended) { return; }
    state.has_ended = true;
    for (unsigned cpu = 0; cpu < max_processors; ++cpu) {
        auto* const of = state.processors[cpu];
        if (of == nullptr || !of->trace.file.is_open()) { continue; }
        // What the last block led to is not known.
        of->trace.finish_at(of->previous->first);
        add(state.shared->instructions, of->trace.instructions() - of->reported);
        report_error(of->trace.file.close());
        if (state.how.check) {
            path_of const path{state.directory, 0, static_cast<int>(cpu), "log"};
            report_error(of->log.write(path.letters));
        }
    }
    report_error(state.files.close());
}

}  // namespace

int qemu_plugin_version = PT_RECORD_QEMU_API;

auto qemu_plugin_install(qemu_plugin_id_t id, qemu_info_t const* info, int argc, char** argv)
    -> int {
    std::snprintf(state.directory, sizeof state.directory, "%s", directory_of(argc, argv));
    state.shared = open_progress(state.directory);
    if (state.shared == nullptr) { return -1; }
    auto const refuse = [](refusal why) {
        state.shared->refused = static_cast<std::uint64_t>(why);
        return -1;
    };
    if (!info->system_emulation || std::strcmp(info->target_name, "x86_64") != 0) {
        return refuse(refusal::machine);
    }
    if (!read_settings(state.how, path_of{state.directory, "settings"}.letters)) {
        return refuse(refusal::settings);
    }
    if (info->system.smp_vcpus > 1 && has_several_threads()) { return refuse(refusal::threads); }
    if (state.files.create(state.directory, 0) != 0) { return refuse(refusal::thread_files); }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_flush_cb(id, on_flush);
    (void)std::atexit(finish);
    return 0;
}
