// SPDX-License-Identifier: BSL-1.0

// The C part of the module: memory, MSRs, faults and messages of the kernel. It asks each processor
// when it is inserted, and prints a report of KTAP.

#define pr_fmt(text) KBUILD_MODNAME ": " text

#include <linux/cpu.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/hardirq.h>
#include <linux/io.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include <asm/msr.h>

#include "shim.h"

static unsigned runs = 16;
module_param(runs, uint, 0444);
MODULE_PARM_DESC(runs, "how often each check runs, 1 to 1000");

int suite_rdmsr(unsigned index, unsigned long long* value) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
    return rdmsrq_safe(index, value);
#else
    return rdmsrl_safe(index, value);
#endif
}

int suite_wrmsr(unsigned index, unsigned long long value) {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
    return wrmsrq_safe(index, value);
#else
    return wrmsrl_safe(index, value);
#endif
}

void suite_print(char const* line, unsigned length) { pr_info("%.*s\n", (int)length, line); }

unsigned suite_nmis(void) { return this_cpu_read(irq_stat.__nmi_count); }

// Indirect branches of a snippet lead to code without ENDBR64.
static void set_branch_tracking(int enabled) {
#ifdef CONFIG_X86_KERNEL_IBT
    static unsigned long long before;

    if (!cpu_feature_enabled(X86_FEATURE_IBT)) { return; }
    if (!enabled) {
        suite_rdmsr(MSR_IA32_S_CET, &before);
        suite_wrmsr(MSR_IA32_S_CET, before & ~CET_ENDBR_EN);
    } else {
        suite_wrmsr(MSR_IA32_S_CET, before);
    }
#endif
}

void suite_irqs(int enabled) {
    if (enabled) {
        set_branch_tracking(1);
        local_irq_enable();
        cond_resched();
    } else {
        local_irq_disable();
        set_branch_tracking(0);
    }
}

// A #GP in kernel code that has no entry in the exception table comes here.
static int on_die(struct notifier_block* block, unsigned long what, void* data) {
    struct die_args* args = data;

    if (what != DIE_GPF || user_mode(args->regs)) { return NOTIFY_DONE; }
    return suite_end_snippet(&args->regs->ip, &args->regs->sp) ? NOTIFY_STOP : NOTIFY_DONE;
}
static struct notifier_block die_block = {.notifier_call = on_die, .priority = INT_MAX};

/// Reads a number from a file of sysfs; a negative error if there is none.
static long number_in(char const* path) {
    char text[24] = {};
    loff_t at = 0;
    long number = -EINVAL;
    struct file* file = filp_open(path, O_RDONLY, 0);

    if (IS_ERR(file)) { return PTR_ERR(file); }
    if (kernel_read(file, text, sizeof text - 1, &at) > 0 &&
        kstrtol(strim(text), 10, &number) != 0) {
        number = -EINVAL;
    }
    filp_close(file, NULL);
    return number;
}

/// A disabled event of perf's driver, so that it does not use the processor; null if there is no
/// driver, an error if perf uses it or if that cannot be seen.
static struct perf_event* hold(unsigned cpu) {
    struct perf_event_attr of = {.size = sizeof of, .disabled = 1};
    long const type = number_in("/sys/bus/event_source/devices/intel_pt/type");

    if (type == -ENOENT) {
        struct file* all = filp_open("/sys/bus/event_source/devices", O_RDONLY | O_DIRECTORY, 0);

        if (IS_ERR(all)) { return ERR_CAST(all); }
        filp_close(all, NULL);
        return NULL;
    }
    if (type < 0) { return ERR_PTR(type); }
    of.type = (unsigned)type;
    return perf_event_create_kernel_counter(&of, (int)cpu, NULL, NULL, NULL);
}

struct request {
    struct suite_run run;
    void* stack;
};

static long run_here(void* data) {
    struct request* asked = data;

    suite_run_on_stack(&asked->run, (char*)asked->stack + suite_stack_bytes);
    return 0;
}

static int __init suite_start(void) {
    struct request asked = {};
    struct page* code = vmalloc_to_page(suite_code);
    unsigned const order = get_order(suite_pages * PAGE_SIZE);
    unsigned cpu, failed = 0, asked_cpus = 0;
    int error = -ENOMEM;

    if (runs < 1 || runs > 1000) {
        pr_err("runs: 1 to 1000\n");
        return -EINVAL;
    }
    if (number_in("/sys/module/kvm_intel/parameters/pt_mode") == 1) {
        pr_err("kvm_intel uses Intel PT: pt_mode is 1\n");
        return -EBUSY;
    }
    asked.run.runs = runs;
    asked.run.bytes = (unsigned char*)__get_free_pages(GFP_KERNEL | __GFP_ZERO, order);
    asked.stack = vzalloc(suite_stack_bytes);
    asked.run.code = vmap(&code, 1, VM_MAP, PAGE_KERNEL);
    if (!asked.run.bytes || !asked.stack || !asked.run.code) { goto out; }
    asked.run.physical = virt_to_phys(asked.run.bytes);
    error = register_die_notifier(&die_block);
    if (error) { goto out; }

    pr_info("# holds each processor against the rules of Intel PT. For test machines.\n");
    cpus_read_lock();
    for_each_online_cpu(cpu) {
        struct perf_event* const held = hold(cpu);

        if (IS_ERR(held)) {
            pr_err("# processor %u: perf uses Intel PT: error %ld\n", cpu, -PTR_ERR(held));
            ++failed;
            continue;
        }
        pr_info("# processor %u\n", cpu);
        ++asked_cpus;
        asked.run.passed = 0;
        work_on_cpu(cpu, run_here, &asked);
        failed += asked.run.passed ? 0 : 1;
        if (held) { perf_event_release_kernel(held); }
        if (asked.run.is_tracing) { break; }
    }
    cpus_read_unlock();
    unregister_die_notifier(&die_block);
    pr_info("# %u processors, %u of them failed or could not be asked\n", asked_cpus, failed);
    error = 0;
    if (asked.run.is_tracing) {
        pr_err("TraceEn cannot be cleared: its memory stays reserved; switch the machine off\n");
        __module_get(THIS_MODULE);
        asked.run.bytes = NULL;
    }
out:
    if (asked.run.code) { vunmap(asked.run.code); }
    vfree(asked.stack);
    free_pages((unsigned long)asked.run.bytes, order);
    return error;
}

static void __exit suite_end(void) {}

module_init(suite_start);
module_exit(suite_end);
MODULE_DESCRIPTION("Holds processors against the rules of Intel PT");
MODULE_LICENSE("GPL");  // with which the Boost licence of the sources is compatible
