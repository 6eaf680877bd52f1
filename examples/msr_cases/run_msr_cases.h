/* SPDX-License-Identifier: BSL-1.0 */
#pragma once

/* What the runner of the test cases of WRMSR needs. C89, C++. */

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* You define these. The accesses are at CPL 0, all on the same logical processor. */

/* 0, or another number if the access raised #GP. */
int target_rdmsr_safe(uint32_t msr, uint64_t *value);
int target_wrmsr_safe(uint32_t msr, uint64_t value);
/* CPUID: EAX, EBX, ECX and EDX. */
void target_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]);
/* Notes whether a test passed. `name` is valid during the call. */
void target_report(int pass, const char *name);

/* Two pages, contiguous in physical memory too, that nothing else uses, and their physical address,
 * a multiple of 4 KB. Null: rows that set TraceEn are not executed. */
extern uint64_t *target_pages;
extern uint64_t target_pages_address;

/* Executes the rows that are for this processor. Returns the number of tests that fail. If TraceEn
 * cannot be cleared it ends at once, and the processor may still write to the pages. */
unsigned run_msr_cases(void);

#ifdef __cplusplus
}
#endif
