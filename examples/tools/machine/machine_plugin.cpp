// SPDX-License-Identifier: BSL-1.0

// The trace units of an emulated machine: a plugin for the QEMU that `machine build` makes.
//
//   qemu-system-x86_64 -plugin machine.so,preset=NAME,kind=KIND ...

#include "processor.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace machine;

constexpr unsigned max_processors = 256;

struct machine_state_of_plugin {
    settings how{};
    processor* processors[max_processors] = {};
    live_blocks blocks{};
};

/// Not destroyed: processors may run while the machine ends.
union undestroyed {
    machine_state_of_plugin value{};
    ~undestroyed() {}
} everything;
machine_state_of_plugin& state = everything.value;

auto processor_of(unsigned cpu) -> processor* {
    if (cpu >= max_processors) { return nullptr; }
    auto*& of = state.processors[cpu];
    if (of == nullptr && machine_state(cpu) != nullptr) { of = new processor{cpu, state.how}; }
    return of;
}

auto rdmsr(unsigned cpu, std::uint32_t index, std::uint64_t* value) -> machine_access {
    auto* const of = processor_of(cpu);
    return of == nullptr ? MACHINE_NOT_OURS : of->rdmsr(index, *value);
}
auto wrmsr(unsigned cpu, std::uint32_t index, std::uint64_t value) -> machine_access {
    auto* const of = processor_of(cpu);
    return of == nullptr ? MACHINE_NOT_OURS : of->wrmsr(index, value);
}
auto rdpmc(unsigned cpu, std::uint32_t index, std::uint64_t* value, unsigned* length)
    -> machine_access {
    auto* const of = processor_of(cpu);
    return of == nullptr ? MACHINE_NOT_OURS : of->rdpmc(index, *value, *length);
}
void cpuid(unsigned, std::uint32_t leaf, std::uint32_t subleaf, std::uint32_t words[4]) {
    auto const& caps = state.how.caps;
    auto const ours = simulate::capabilities_cpuid{caps}.query(leaf, subleaf);
    constexpr std::uint32_t max_leaf = 0x16;
    switch (leaf) {
        case 0x00: words[0] = words[0] < max_leaf ? max_leaf : words[0]; return;
        case 0x01:
            if (caps.leaf_01_eax.raw != 0) { words[0] = caps.leaf_01_eax.raw; }
            return;
        case 0x07:
            if (subleaf == 0) {
                constexpr std::uint32_t pt = 1U << reg::cpuid_07h_0_ebx::INTEL_PT::lsb;
                words[1] = (words[1] & ~pt) | (ours.ebx & pt);
            }
            return;
        case 0x0A:
            words[0] = performance_monitoring::leaf_0a_eax;
            words[3] = performance_monitoring::leaf_0a_edx;
            return;
        case 0x14:
        case 0x15:
            words[0] = ours.eax;
            words[1] = ours.ebx;
            words[2] = ours.ecx;
            words[3] = ours.edx;
            return;
        case 0x16: {
            auto const mhz = static_cast<std::uint32_t>(state.how.tsc_hz / 1'000'000);
            words[0] = words[1] = mhz;
            words[2] = 100;
            return;
        }
        case 0x8000'0007: words[3] |= 1U << 8; return;  // the TSC is invariant
        default: return;
    }
}
void ptwrite(unsigned cpu, std::uint64_t operand, unsigned) {
    if (auto* const of = processor_of(cpu)) { of->ptwrite(operand); }
}
void interrupt(unsigned cpu, int vector, int is_instruction, int is_external) {
    if (auto* const of = processor_of(cpu)) {
        of->interrupt(static_cast<std::uint8_t>(vector), is_instruction != 0, is_external != 0);
    }
}
void event(unsigned cpu, machine_event what) {
    if (cpu < max_processors && state.processors[cpu] != nullptr) {
        state.processors[cpu]->event(what);
    }
}

machine_hooks hooks{.version = MACHINE_HOOKS_VERSION,
                    .rdmsr = rdmsr,
                    .wrmsr = wrmsr,
                    .rdpmc = rdpmc,
                    .cpuid = cpuid,
                    .ptwrite = ptwrite,
                    .interrupt = interrupt,
                    .event = event,
                    .tsc_hz = 0,
                    .crystal_hz = 0,
                    .has_ptwrite = 0};

void on_block(unsigned cpu, void* block) {
    // Not null: only a processor that exists sets MACHINE_TRACED.
    state.processors[cpu]->enter(*static_cast<code_block const*>(block));
}
void on_translation(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    guest_state const guest{machine_current()};
    if (!guest.is_watched()) { return; }
    auto made = block_of(tb, guest.width(), guest.code_base());
    if (made->count == 0) { return; }
    auto* const block = state.blocks.add(std::move(made));
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
}
void on_flush(qemu_plugin_id_t) {
    for (auto* of : state.processors) {
        if (of != nullptr) { of->keep_block(); }
    }
    state.blocks.clear();
}

void finish() {
    for (unsigned cpu = 0; cpu < max_processors; ++cpu) {
        if (auto const* const of = state.processors[cpu]) {
            std::fprintf(stderr,
                         "machine: processor %u: %llu bytes stored, %llu lost, %llu PMIs%s\n", cpu,
                         static_cast<unsigned long long>(of->total().stored),
                         static_cast<unsigned long long>(of->total().lost),
                         static_cast<unsigned long long>(of->pmis()),
                         of->faults() == 0 ? "" : "; output met addresses without memory");
            if (of->unexplained() != 0) {
                std::fprintf(stderr,
                             "machine: processor %u: %llu transfers without a known cause are "
                             "traced as interrupts\n",
                             cpu, static_cast<unsigned long long>(of->unexplained()));
            }
        }
    }
}

}  // namespace

int qemu_plugin_version = PT_RECORD_QEMU_API;

auto qemu_plugin_install(qemu_plugin_id_t id, qemu_info_t const*, int argc, char** argv) -> int {
    state.how = settings_of(argc, argv);
    if (!state.how.error.empty()) {
        std::fprintf(stderr, "machine.so: %s\n", state.how.error.c_str());
        return -1;
    }
    hooks.tsc_hz = state.how.tsc_hz;
    hooks.crystal_hz = state.how.caps.leaf_15_ecx.raw;
    hooks.has_ptwrite = state.how.caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::PTWRITE>() ? 1 : 0;
    if (machine_register(&hooks) == 0) {
        std::fprintf(stderr, "machine.so: the emulator was built for another version\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_flush_cb(id, on_flush);
    (void)std::atexit(finish);
    return 0;
}
