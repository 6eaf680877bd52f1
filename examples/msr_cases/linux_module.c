/* SPDX-License-Identifier: BSL-1.0 */

/* The runner as a module of Linux, which prints the tests that fail to the kernel log. Beside
 * run_msr_cases.c, run_msr_cases.h and msr_cases.h, with a Kbuild of two lines,
 *
 *   obj-m := pt_msr.o
 *   pt_msr-y := linux_module.o run_msr_cases.o
 *
 * `make -C /lib/modules/$(uname -r)/build M=$PWD modules` makes pt_msr.ko. perf must not use Intel
 * PT while it is loaded.
 */

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/preempt.h>

#include <asm/msr.h>
#include <asm/processor.h>

#include "run_msr_cases.h"

uint64_t *target_pages;
uint64_t target_pages_address;

static unsigned tests;

int target_rdmsr_safe(uint32_t msr, uint64_t *value)
{
    uint32_t low = 0, high = 0;
    const int fault = rdmsr_safe(msr, &low, &high);

    *value = (uint64_t)high << 32 | low;
    return fault;
}

int target_wrmsr_safe(uint32_t msr, uint64_t value)
{
    return wrmsr_safe(msr, (uint32_t)value, (uint32_t)(value >> 32));
}

void target_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4])
{
    cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]);
}

void target_report(int pass, const char *name)
{
    ++tests;
    if (!pass) {
        pr_err("pt_msr: not ok %u - %s\n", tests, name);
    }
}

static int __init pt_msr_init(void)
{
    const unsigned long pages = __get_free_pages(GFP_KERNEL, 1);
    uint64_t ctl = 0;
    unsigned failures;

    if (pages == 0) {
        return -ENOMEM;
    }
    target_pages = (uint64_t *)pages;
    target_pages_address = virt_to_phys(target_pages);
    preempt_disable(); /* one processor */
    failures = run_msr_cases();
    (void)target_rdmsr_safe(0x570, &ctl);
    preempt_enable();
    if ((ctl & 1) == 0) { /* otherwise the processor may still write to them */
        free_pages(pages, 1);
    }
    pr_info("pt_msr: %u tests, %u failures\n", tests, failures);
    return 0;
}

static void __exit pt_msr_exit(void) {}

module_init(pt_msr_init);
module_exit(pt_msr_exit);
MODULE_DESCRIPTION("Test cases of WRMSR for Intel PT");
MODULE_LICENSE("GPL");
