// SPDX-License-Identifier: BSL-1.0
#pragma once

// The interface between the C and the C++ part of the module.

// NOLINTBEGIN(modernize-use-trailing-return-type): C
#ifdef __cplusplus
extern "C" {
#endif

enum {
    module_tasks = 2,
    module_regions = 16,
    module_region_bytes = 0x10000,
    module_table_bytes = 0x1000,
};

/// Contiguous memory, aligned to its size.
struct module_memory {
    unsigned char* bytes;
    unsigned long long physical;
};

struct module_buffers {
    struct module_memory tables[module_tasks];
    struct module_memory regions[module_tasks][module_regions];
    void* state;  ///< module_state_bytes() bytes, aligned to 16
};

/// What the processor that executes the module has.
struct module_detection {
    int has_pt;
    int is_in_use;         ///< another agent traces
    int access_is_broken;  ///< a #GP was not noticed, or an MSR that exists was not read
};

struct module_result {
    char const* failure;  ///< null if everything was as expected
    unsigned long long bytes;
    unsigned interrupts;
    unsigned switches;
};

// --- driver.cpp ----------------------------------------------------------------------------------

/// Detects Intel PT. The caller must prevent migration to another processor.
void module_detect(struct module_detection* found);

unsigned long module_state_bytes(void);
/// Traces two tasks on a modelled processor, and reads their traces.
void module_trace(struct module_buffers const* buffers, struct module_result* result);

// --- shim.c --------------------------------------------------------------------------------------

/// 0, or an error if the access raised #GP.
int module_rdmsr(unsigned index, unsigned long long* value);
int module_wrmsr(unsigned index, unsigned long long value);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-use-trailing-return-type)
