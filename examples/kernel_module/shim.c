// SPDX-License-Identifier: BSL-1.0

// The C part of the module: memory, MSRs and messages of the kernel.

#define pr_fmt(text) KBUILD_MODNAME ": module: " text

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/version.h>

#include <asm/msr.h>

#include "module.h"

int module_rdmsr(unsigned index, unsigned long long* value) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
    return rdmsrq_safe(index, value);
#else
    return rdmsrl_safe(index, value);
#endif
}

int module_wrmsr(unsigned index, unsigned long long value) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
    return wrmsrq_safe(index, value);
#else
    return wrmsrl_safe(index, value);
#endif
}

static int allocate(struct module_memory* one, unsigned long bytes) {
    one->bytes = (unsigned char*)__get_free_pages(GFP_KERNEL | __GFP_ZERO, get_order(bytes));
    if (!one->bytes) { return -ENOMEM; }
    one->physical = virt_to_phys(one->bytes);
    return 0;
}

static void release(struct module_buffers* from) {
    unsigned n, i;

    kvfree(from->state);
    for (n = 0; n < module_tasks; ++n) {
        free_pages((unsigned long)from->tables[n].bytes, get_order(module_table_bytes));
        for (i = 0; i < module_regions; ++i) {
            free_pages((unsigned long)from->regions[n][i].bytes, get_order(module_region_bytes));
        }
    }
    kfree(from);
}

static struct module_buffers* allocate_all(void) {
    struct module_buffers* all = kzalloc(sizeof *all, GFP_KERNEL);
    unsigned n, i;
    int failed = 0;

    if (!all) { return NULL; }
    all->state = kvmalloc(module_state_bytes(), GFP_KERNEL);
    failed = all->state ? 0 : -ENOMEM;
    for (n = 0; n < module_tasks; ++n) {
        failed |= allocate(&all->tables[n], module_table_bytes);
        for (i = 0; i < module_regions; ++i) {
            failed |= allocate(&all->regions[n][i], module_region_bytes);
        }
    }
    if (failed) {
        release(all);
        return NULL;
    }
    return all;
}

static int __init module_start(void) {
    struct module_detection found = {};
    struct module_result result = {};
    struct module_buffers* buffers;

    get_cpu();
    module_detect(&found);
    put_cpu();
    pr_info("Intel PT: %s\n", !found.has_pt ? "absent" : found.is_in_use ? "in use" : "present");
    if (found.access_is_broken) {
        pr_err("an MSR access gave the wrong result\n");
        return -EIO;
    }

    buffers = allocate_all();
    if (!buffers) { return -ENOMEM; }
    module_trace(buffers, &result);
    release(buffers);
    if (result.failure) {
        pr_err("%s\n", result.failure);
        return -EIO;
    }
    pr_info("%llu bytes, %u PMIs, bytes in order\n", result.bytes, result.interrupts);
    pr_info("%u context switches, %lu bytes of state\n", result.switches, module_state_bytes());
    return 0;
}

static void __exit module_end(void) {}

module_init(module_start);
module_exit(module_end);
MODULE_DESCRIPTION("A driver for Intel PT on ptspec, on a modelled processor");
MODULE_LICENSE("GPL");  // with which the Boost licence of the sources is compatible
