// SPDX-License-Identifier: BSL-1.0
#pragma once

/* What the calls that hooks.py inserts into QEMU reach: machine_qemu.c and hw/intc/apic.c. */
#include "machine_hooks.h"

/* The length of a processor's turn in instructions: at most until the next timer expires. */
int64_t machine_turn(int64_t until_timer);
uint64_t machine_tsc_of(int64_t ticks);
/* QEMU's APIC timer counts nanoseconds, that of processors the crystal clock of CPUID.15H. */
int64_t machine_apic_ticks(int64_t nanoseconds);
int64_t machine_apic_time(int64_t ticks);
/* These raise #GP(0) themselves; true if the access is done. */
int machine_rdmsr(CPUX86State *env, uintptr_t from);
int machine_wrmsr(CPUX86State *env, uint64_t value, uintptr_t from);
void machine_rdpmc(CPUX86State *env, uintptr_t from);
void machine_cpuid(CPUX86State *env, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d);
void machine_interrupt(CPUX86State *env, int vector, int is_instruction, int is_external);
void machine_event(CPUX86State *env, enum machine_event what);
bool machine_has_ptwrite(void);
void machine_apic_pmi(DeviceState *apic);

