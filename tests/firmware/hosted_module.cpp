// SPDX-License-Identifier: BSL-1.0
// Runs the C++ part of examples/kernel_module as a program: memory of this program in place of the
// kernel's, and MSRs that can only be read.

#include <kernel_module/module.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr unsigned long long apic_base = 0xFEE0'0900;

auto allocate(std::size_t bytes) -> module_memory {
    auto* const first = static_cast<unsigned char*>(std::aligned_alloc(bytes, bytes));
    if (first == nullptr) { std::abort(); }
    return {first, reinterpret_cast<unsigned long long>(first) & 0x7F'FFFF'FFFF};
}

}  // namespace

auto module_rdmsr(unsigned, unsigned long long* value) -> int {
    *value = apic_base;
    return 0;
}
auto module_wrmsr(unsigned, unsigned long long) -> int { return -1; }

auto main() -> int {
    module_detection found{};
    module_detect(&found);

    module_buffers buffers{};
    for (unsigned n = 0; n < module_tasks; ++n) {
        buffers.tables[n] = allocate(module_table_bytes);
        for (auto& one : buffers.regions[n]) { one = allocate(module_region_bytes); }
    }
    buffers.state = std::malloc(module_state_bytes());
    if (buffers.state == nullptr) { return 1; }
    module_result result{};
    module_trace(&buffers, &result);
    std::printf("Intel PT: %d, %s, %llu bytes, %u PMIs, %u switches, %lu bytes of state\n",
                found.has_pt, result.failure == nullptr ? "bytes in order" : result.failure,
                result.bytes, result.interrupts, result.switches, module_state_bytes());

    std::free(buffers.state);
    for (unsigned n = 0; n < module_tasks; ++n) {
        std::free(buffers.tables[n].bytes);
        for (auto& one : buffers.regions[n]) { std::free(one.bytes); }
    }
    bool const is_expected = result.failure == nullptr && found.is_in_use == 0 &&
                             found.access_is_broken == 0;
    return is_expected ? 0 : 1;
}
