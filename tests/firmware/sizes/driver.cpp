// SPDX-License-Identifier: BSL-1.0
// at most: 16383 bytes, with -O2
// A driver with all procedures is smaller than 16 KB. The ports are functions of the kernel.

#include <ptspec/driver.hpp>

using namespace ptspec;

namespace {

struct kernel_msrs {
    auto read(uint32_t index) noexcept -> port_value;
    auto write(uint32_t index, uint64_t value) noexcept -> bool;
    void fence() noexcept;
};
struct kernel_cpuid {
    auto query(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers;
};

}  // namespace

extern "C" {

auto kernel_rdmsr(uint32_t index, uint64_t& value) noexcept -> bool;
auto kernel_wrmsr(uint32_t index, uint64_t value) noexcept -> bool;
void kernel_fence() noexcept;
void kernel_query(uint32_t leaf, uint32_t subleaf, cpuid_registers& out) noexcept;
void kernel_consume(uint64_t base, uint64_t bytes) noexcept;
void kernel_unmask_lvt() noexcept;

}  // extern "C"

auto kernel_msrs::read(uint32_t index) noexcept -> port_value {
    port_value got;
    got.has_value = kernel_rdmsr(index, got.value);
    return got;
}
auto kernel_msrs::write(uint32_t index, uint64_t value) noexcept -> bool {
    return kernel_wrmsr(index, value);
}
void kernel_msrs::fence() noexcept { kernel_fence(); }
auto kernel_cpuid::query(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers {
    cpuid_registers out;
    kernel_query(leaf, subleaf, out);
    return out;
}

// ------------------------------------------------------------------------------ before tracing

auto detect() noexcept -> driver::detection {
    kernel_cpuid cpuid;
    kernel_msrs msrs;
    return driver::detect(cpuid, msrs);
}
auto plan(driver::plan_request const& wanted, cpu::capabilities const& caps) noexcept
    -> driver::plan_result {
    return driver::plan(caps, wanted);
}
auto build_ring(driver::buffer_recipe how, topa::region const* regions, size_t count,
                driver::table_page const* pages, size_t page_count, topa::limits of,
                topa::output_hazards const& hazards) noexcept -> driver::built_ring {
    return driver::build_ring(how, regions, count, pages, page_count, of, hazards);
}

// ------------------------------------------------------------------------------ on and off

auto enable(access::msr_state const& plan) noexcept -> driver::procedure_result {
    kernel_msrs msrs;
    return driver::enable(msrs, plan);
}
auto disable(reg::ia32_rtit_ctl written) noexcept -> driver::stopped_trace {
    kernel_msrs msrs;
    return driver::disable(msrs, written);
}
auto flush(reg::ia32_rtit_ctl written) noexcept -> driver::stopped_trace {
    kernel_msrs msrs;
    return driver::flush(msrs, written);
}
auto triage(driver::stopped_trace const& now) noexcept -> driver::end_of_trace {
    return driver::triage(now);
}

// ------------------------------------------------------------------------------ contexts

auto save() noexcept -> driver::saved_context {
    kernel_msrs msrs;
    return driver::save(msrs);
}
auto restore(access::msr_state const& saved) noexcept -> driver::procedure_result {
    kernel_msrs msrs;
    return driver::restore(msrs, saved);
}

// ------------------------------------------------------------------------------ the ring

auto snapshot(driver::ring const& in, driver::stopped_trace const& now, bool wrapped) noexcept
    -> driver::snapshot_part {
    return driver::snapshot(in, now, wrapped);
}
auto on_pmi(driver::ring const& in, driver::ring_reader& reader) noexcept -> driver::pmi_result {
    kernel_msrs msrs;
    return driver::on_topa_pmi(
        msrs,
        [&](driver::stopped_trace const& now) {
            auto const consume = [](phys_addr base, uint64_t bytes) {
                kernel_consume(base.value, bytes);
            };
            return driver::drain(in, reader, now, consume).next;
        },
        kernel_unmask_lvt);
}
