// SPDX-License-Identifier: BSL-1.0
#pragma once

/*
 * Between an emulator of x86 machines and the library machine.so, which has the trace units. C,
 * because both include it.
 *
 * The emulator calls the functions of `machine_hooks`, on the thread of the processor that they
 * name; the library calls the functions below.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increases when a member or a function changes. */
#define MACHINE_HOOKS_VERSION 4

/* What became of an access. */
enum machine_access {
    MACHINE_NOT_OURS, /* the emulator decides */
    MACHINE_DONE,
    MACHINE_FAULT, /* #GP(0) */
};

/* What happens to a processor apart from instructions. */
enum machine_event {
    MACHINE_POWER_ON, /* also each later reset of the machine: the state is that of a reset */
    MACHINE_INIT,     /* before the state changes */
    MACHINE_SIPI,     /* after the state changed */
    MACHINE_SMI,      /* before the state changes */
    MACHINE_RSM,      /* before the state changes */
    /* The emulator leaves a block before its end, and executes the rest as other blocks. */
    MACHINE_LEFT_BLOCK,
};

struct machine_hooks {
    uint32_t version; /* MACHINE_HOOKS_VERSION of the library */
    enum machine_access (*rdmsr)(unsigned cpu, uint32_t index, uint64_t *value);
    enum machine_access (*wrmsr)(unsigned cpu, uint32_t index, uint64_t value);
    /* Also returns the length of the instruction. */
    enum machine_access (*rdpmc)(unsigned cpu, uint32_t index, uint64_t *value, unsigned *length);
    /* Changes what CPUID returns: `words` are EAX, EBX, ECX, EDX. */
    void (*cpuid)(unsigned cpu, uint32_t leaf, uint32_t subleaf, uint32_t words[4]);
    /* PTWRITE with an operand of `size` bytes executes, as the last instruction of its block. */
    void (*ptwrite)(unsigned cpu, uint64_t operand, unsigned size);
    /* An exception or interrupt begins, before the state changes. A trap or an external interrupt
     * is at the next instruction, a fault at its own. `is_instruction`: INT n, INT3, INTO, INT1. */
    void (*interrupt)(unsigned cpu, int vector, int is_instruction, int is_external);
    void (*event)(unsigned cpu, enum machine_event);
    /* The frequencies of the time-stamp counter, and of the crystal clock and the APIC timer, in
     * Hz. */
    uint64_t tsc_hz, crystal_hz;
    /* True if PTWRITE exists: otherwise it is #UD. */
    int has_ptwrite;
};

/* Where the emulator keeps the state of a processor: offsets in bytes from machine_state(). The
 * members are 64 bits wide, but hflags 32. */
struct machine_layout {
    size_t eip, eflags, hflags, cs_base, cr0, cr2, cr3, cr4, efer, rax;
};

/* Returns 0 if the emulator has another version of this interface. */
int machine_register(struct machine_hooks const *hooks);
struct machine_layout const *machine_state_layout(void);
/* The state of a processor, null if there is none. */
void const *machine_state(unsigned cpu);
/* The processor whose thread calls: while it translates, too. */
unsigned machine_current(void);
/* Copies physical memory. Returns 0 where there is none. */
int machine_memory(unsigned cpu, uint64_t address, void *bytes, size_t size, int is_write);
/* Copies memory as the code of the processor would read it; returns 0 where no page is mapped. */
int machine_code(unsigned cpu, uint64_t address, void *bytes, size_t size);
/* The time-stamp counter that RDTSC would return. */
uint64_t machine_tsc(unsigned cpu);
/* The interrupt of the performance monitoring LVT entry, which becomes masked. */
void machine_pmi(unsigned cpu);
/* Translates the code of this processor from its next block on as traced code, or as other code. */
void machine_set_traced(unsigned cpu, int is_traced);

/* The bit of `hflags` in traced code. */
#define MACHINE_TRACED (1U << 30)

#ifdef __cplusplus
}
#endif

