/* SPDX-License-Identifier: BSL-1.0 */

/* The runner as x86/pt_msr.c of kvm-unit-tests. Copy it there with run_msr_cases.c, run_msr_cases.h
 * and msr_cases.h; in x86/Makefile.common add $(TEST_DIR)/pt_msr.$(exe) to tests-common, and
 *
 *   $(TEST_DIR)/pt_msr.$(bin): $(TEST_DIR)/run_msr_cases.o
 */

#include "libcflat.h"
#include "alloc_page.h"
#include "processor.h"
#include "vm.h"

#include "run_msr_cases.h"

uint64_t *target_pages;
uint64_t target_pages_address;

int target_rdmsr_safe(uint32_t msr, uint64_t *value)
{
    return rdmsr_safe(msr, value);
}

int target_wrmsr_safe(uint32_t msr, uint64_t value)
{
    return wrmsr_safe(msr, value);
}

void target_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4])
{
    const struct cpuid got = raw_cpuid(leaf, subleaf);

    registers[0] = got.a;
    registers[1] = got.b;
    registers[2] = got.c;
    registers[3] = got.d;
}

void target_report(int pass, const char *name)
{
    report(pass, "%s", name);
}

int main(void)
{
    setup_vm();
    target_pages = alloc_pages(1);
    target_pages_address = virt_to_phys(target_pages);
    run_msr_cases();
    return report_summary();
}
