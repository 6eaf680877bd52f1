// SPDX-License-Identifier: BSL-1.0
#pragma once

// The interface between the C and the C++ part of the module.

// NOLINTBEGIN(modernize-use-trailing-return-type): C
#ifdef __cplusplus
extern "C" {
#endif

enum {
    suite_pages = 64,
    suite_stack_bytes = 0x40000,
};

/// What the run on a processor uses, and its result.
struct suite_run {
    unsigned char* bytes;  ///< suite_pages pages, aligned to their size
    unsigned long long physical;
    unsigned char* code;  ///< a writable mapping of the page at suite_code
    unsigned runs;        ///< of each check
    int passed;           ///< no rule is broken, and something could be asked
    int is_tracing;       ///< TraceEn cannot be cleared: the memory must not be freed
};

// --- suite.cpp -----------------------------------------------------------------------------------

/// Runs all checks on this processor. The caller prevents migration.
void suite_run_here(struct suite_run* of);
/// Ends the snippet at which a #GP occurred. 0 if it occurred elsewhere.
int suite_end_snippet(unsigned long* ip, unsigned long* sp);

// --- stack.S -------------------------------------------------------------------------------------

/// Calls suite_run_here on a stack that ends at `top`.
void suite_run_on_stack(struct suite_run* of, void* top);
/// A page of code.
extern unsigned char suite_code[];

// --- shim.c --------------------------------------------------------------------------------------

/// 0, or an error if the access raised #GP.
int suite_rdmsr(unsigned index, unsigned long long* value);
int suite_wrmsr(unsigned index, unsigned long long value);
/// Prints a line.
void suite_print(char const* line, unsigned length);
/// The NMIs of this processor.
unsigned suite_nmis(void);
/// Disables interrupts, and enables them.
void suite_irqs(int enabled);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-use-trailing-return-type)
