// SPDX-License-Identifier: BSL-1.0
/* Compiled into QEMU: what the inserted calls reach, and what the library machine.so calls. */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "cpu.h"
#include "exec/exec-all.h"
#include "exec/helper-proto.h"
#include "hw/core/cpu.h"
#include "sysemu/cpu-timers.h"
#include "qemu/timer.h"
#include "tcg/helper-tcg.h"

#include "machine_calls.h"

static struct machine_hooks const *hooks;

static CPUX86State *state_of(unsigned cpu)
{
    CPUState *of = qemu_get_cpu(cpu);
    return of ? of->env_ptr : NULL;
}
static unsigned number_of(CPUX86State *env)
{
    return env_cpu(env)->cpu_index;
}

int machine_register(struct machine_hooks const *given)
{
    if (given->version != MACHINE_HOOKS_VERSION) {
        return 0;
    }
    hooks = given;
    return 1;
}
struct machine_layout const *machine_state_layout(void)
{
    static struct machine_layout const layout = {
        .eip = offsetof(CPUX86State, eip),
        .eflags = offsetof(CPUX86State, eflags),
        .hflags = offsetof(CPUX86State, hflags),
        .cs_base = offsetof(CPUX86State, segs[R_CS].base),
        .cr0 = offsetof(CPUX86State, cr[0]),
        .cr2 = offsetof(CPUX86State, cr[2]),
        .cr3 = offsetof(CPUX86State, cr[3]),
        .cr4 = offsetof(CPUX86State, cr[4]),
        .efer = offsetof(CPUX86State, efer),
        .rax = offsetof(CPUX86State, regs[R_EAX]),
    };
    return &layout;
}
void const *machine_state(unsigned cpu)
{
    return state_of(cpu);
}
unsigned machine_current(void)
{
    return current_cpu ? current_cpu->cpu_index : 0;
}
int machine_memory(unsigned cpu, uint64_t address, void *bytes, size_t size, int is_write)
{
    CPUState *of = qemu_get_cpu(cpu);
    return address_space_rw(cpu_get_address_space(of, 0), address,
                            MEMTXATTRS_UNSPECIFIED, bytes, size, is_write) == MEMTX_OK;
}
int machine_code(unsigned cpu, uint64_t address, void *bytes, size_t size)
{
    return cpu_memory_rw_debug(qemu_get_cpu(cpu), address, bytes, size, 0) == 0;
}
uint64_t machine_tsc(unsigned cpu)
{
    CPUX86State *env = state_of(cpu);
    CPUState *of = env_cpu(env);
    /* With -icount the clock is otherwise not read at the beginning of a block. */
    uint32_t const could = of->can_do_io;
    of->can_do_io = 1;
    uint64_t const now = cpu_get_tsc(env) + env->tsc_offset;
    of->can_do_io = could;
    return now;
}
void machine_pmi(unsigned cpu)
{
    CPUState *of = qemu_get_cpu(cpu);
    bool const was_locked = qemu_mutex_iothread_locked();
    if (!was_locked) {
        qemu_mutex_lock_iothread();
    }
    uint32_t const could = of->can_do_io;
    of->can_do_io = 1; /* as above */
    machine_apic_pmi(X86_CPU(of)->apic_state);
    of->can_do_io = could;
    if (!was_locked) {
        qemu_mutex_unlock_iothread();
    }
}
void machine_set_traced(unsigned cpu, int is_traced)
{
    CPUX86State *env = state_of(cpu);
    env->hflags = (env->hflags & ~MACHINE_TRACED) | (is_traced ? MACHINE_TRACED : 0);
}

/* --- what the inserted calls reach --- */

int64_t machine_turn(int64_t until_timer)
{
    enum { several = 10000 };
    return CPU_NEXT(first_cpu) && until_timer > several ? several : until_timer;
}
uint64_t machine_tsc_of(int64_t ticks)
{
    return hooks ? muldiv64(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), hooks->tsc_hz,
                            NANOSECONDS_PER_SECOND) : ticks;
}
int64_t machine_apic_ticks(int64_t nanoseconds)
{
    return hooks ? muldiv64(nanoseconds, hooks->crystal_hz, NANOSECONDS_PER_SECOND) : nanoseconds;
}
int64_t machine_apic_time(int64_t ticks)
{
    return hooks ? muldiv64(ticks, NANOSECONDS_PER_SECOND, hooks->crystal_hz) + 1 : ticks;
}
/* Raises #GP(0), or writes a value to EDX:EAX; returns true if the access is done. */
static int finish(CPUX86State *env, enum machine_access done, uint64_t const *value,
                  uintptr_t from)
{
    if (done == MACHINE_FAULT) {
        raise_exception_err_ra(env, EXCP0D_GPF, 0, from);
    }
    if (done == MACHINE_DONE && value) {
        env->regs[R_EAX] = (uint32_t)*value;
        env->regs[R_EDX] = *value >> 32;
    }
    return done == MACHINE_DONE;
}
int machine_rdmsr(CPUX86State *env, uintptr_t from)
{
    uint64_t value = 0;
    return hooks &&
           finish(env, hooks->rdmsr(number_of(env), env->regs[R_ECX], &value), &value, from);
}
int machine_wrmsr(CPUX86State *env, uint64_t value, uintptr_t from)
{
    return hooks && finish(env, hooks->wrmsr(number_of(env), env->regs[R_ECX], value), NULL, from);
}
/* QEMU has no RDPMC: its helper does not return. This one continues after the instruction. */
void machine_rdpmc(CPUX86State *env, uintptr_t from)
{
    uint64_t value = 0;
    unsigned length = 0;
    if (hooks && finish(env, hooks->rdpmc(number_of(env), env->regs[R_ECX], &value, &length),
                        &value, from)) {
        env->eip += length;
        cpu_loop_exit(env_cpu(env));
    }
}
void machine_cpuid(CPUX86State *env, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    uint32_t words[4] = {*a, *b, *c, *d};
    if (hooks) {
        hooks->cpuid(number_of(env), env->regs[R_EAX], env->regs[R_ECX], words);
    }
    *a = words[0], *b = words[1], *c = words[2], *d = words[3];
}
void machine_interrupt(CPUX86State *env, int vector, int is_instruction, int is_external)
{
    if (hooks) {
        hooks->interrupt(number_of(env), vector, is_instruction, is_external);
    }
}
void machine_event(CPUX86State *env, enum machine_event what)
{
    if (hooks) {
        hooks->event(number_of(env), what);
    }
}
bool machine_has_ptwrite(void)
{
    return hooks && hooks->has_ptwrite;
}
void helper_machine_ptwrite(CPUX86State *env, target_ulong operand, uint32_t size)
{
    hooks->ptwrite(number_of(env), operand, size);
}
