# SPDX-License-Identifier: BSL-1.0
"""Makes C programs that call, jump, throw and switch stacks at random: one for each seed."""

import random

HEAD = """\
// Made by random_calls.py with seed {seed}.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include "made.h"

#define FIBERS {fibers}
static char stacks[FIBERS][1 << 16] __attribute__((aligned(16)));
static void *kept[FIBERS + 1];
static jmp_buf* volatile catcher[FIBERS + 1];
static int volatile current = FIBERS, budget, sum;
static unsigned dice = {seed};
KEEP static int roll(int sides) {{
    dice = dice * 1103515245 + 12345;
    return (int)((dice >> 16) % (unsigned)sides);
}}
void switch_to(void** save, void* load);
void begin_fiber(void);
KEEP static void yield_to(int next) {{
    int const me = current;
    if (next == me) {{ return; }}
    current = next;
    switch_to(&kept[me], kept[next]);
}}
KEEP static void yield(void) {{
    if (current != FIBERS) {{ yield_to(roll(3) == 0 ? FIBERS : roll(FIBERS)); }}
}}
KEEP static void throws(void) {{
    if (catcher[current] != 0) {{ longjmp(*catcher[current], 1); }}
}}
"""

# How a program switches stacks: the code after the registers were pushed, and what a fiber starts
# with. Each begins in `begin_fiber`, which calls `body`.
SWITCHES = {
    "ret": ("mov %rsp, (%rdi)\\nmov %rsi, %rsp\\npop %rbx\\npop %rbp\\nret\\n", ""),
    "jump": ("mov %rsp, (%rdi)\\nmov %rsi, %rsp\\npop %rbx\\npop %rbp\\npop %rcx\\njmp *%rcx\\n",
             ""),
    "load": ("mov %rsp, (%rdi)\\nlea (%rsi), %rsp\\npop %rbx\\nmov (%rsp), %rbp\\nadd $8, %rsp\\n"
             "ret\\n", ""),
    "exchange": ("lea .Lresumed(%rip), %rax\\npush %rax\\nxchg %rsp, %rsi\\nmov %rsi, (%rdi)\\n"
                 "pop %rax\\njmp *%rax\\n.Lresumed: pop %rbx\\npop %rbp\\nret\\n",
                 "    *--top = (void*)enter_first;\n"),
}

MAIN = """\
void body(void) {{
    for (;;) {{
        sum += {first}(roll(9));
        yield_to(FIBERS);
    }}
}}
static void make(int which) {{
    void** top = (void**)(stacks[which] + sizeof stacks[which]) - 2;
    *--top = (void*)begin_fiber;
    *--top = 0;
    *--top = 0;
{extra}    kept[which] = top;
}}
int main(void) {{
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < FIBERS; ++i) {{ make(i); }}
    for (int round = 0; round < {rounds}; ++round) {{
        budget = 40;
        sum += {first}(round);
        HIDE(round);
        budget = 40;
        yield_to(roll(FIBERS));
        sum += {second}(round);
    }}
    return 0;
}}
"""


def in_c(kind, name, callees):
    """A function in C."""
    one, two = callees
    out = f"KEEP int {name}(int a) {{\n"
    if kind == "calls":
        out += f"    if (--budget <= 0) {{ return a; }}\n    int made = {one}(a);\n"
        out += "    HIDE(made);\n"
        out += f"    made += {two}(made);\n    HIDE(made);\n    return made;\n"
    elif kind == "tail":
        out += "    if (--budget <= 0) { return a; }\n"
        out += f"    return a & 1 ? {one}(a + 1) : {two}(a + 2);\n"
    elif kind == "recursive":
        out += "    if (--budget <= 0) { return a; }\n"
        out += f"    int made = roll(2) ? {name}(a + 1) : {one}(a);\n    HIDE(made);\n"
        out += "    return made + 1;\n"
    elif kind == "pointer":
        out += f"    static int (*const table[])(int) = {{{one}, {two}}};\n"
        out += "    int made = table[roll(2)](a);\n    HIDE(made);\n    return made + 1;\n"
    elif kind == "yields":
        out += f"    int made = {one}(a);\n    HIDE(made);\n    yield();\n    made += {two}(a);\n"
        out += "    HIDE(made);\n    return made;\n"
    elif kind == "catches":
        out += "    jmp_buf place;\n    int volatile me = current, made = a;\n"
        out += "    jmp_buf* volatile outer = catcher[me];\n"
        out += f"    if (_setjmp(place) == 0) {{\n        catcher[me] = &place;\n"
        out += f"        made += {one}(a);\n        if (roll(2)) {{ throws(); }}\n    }}\n"
        out += "    catcher[me] = outer;\n    return made + 1;\n"
    elif kind == "throws":
        out += f"    int made = {one}(a);\n    HIDE(made);\n    if (roll(3) == 0) {{ throws(); }}\n"
        out += "    return made;\n"
    elif kind == "signals":
        out += f"    if (roll(3) == 0) {{ kill(getpid(), SIGUSR1); }}\n    return {one}(a) + 1;\n"
    elif kind == "switch":
        cases = "".join(f"        case {i}: made += {i + 3}; HIDE(made); break;\n"
                        for i in range(7))
        out += f"    int made = {one}(a);\n    switch (roll(7)) {{\n{cases}    }}\n"
        out += "    return made;\n"
    return out + "}\n"


def in_assembler(kind, name, callees):
    """A function in assembler. EDI is its argument, and EAX the result."""
    one, two = callees
    label = f".L{name}"
    code = {
        "jumps": f"inc %edi\\njmp {one}\\n",
        "jumps_if": f"test $1, %edi\\njz {one}\\ninc %edi\\njmp {two}\\n",
        "jumps_indirectly": f"lea {one}(%rip), %rax\\njmp *%rax\\n",
        "pushes": f"lea {one}(%rip), %rax\\npush %rax\\nret\\n",
        "pushes_two": f"push %rbx\\nlea {label}b(%rip), %rax\\npush %rax\\nlea {one}(%rip), %rax\\n"
                      f"push %rax\\nret\\n{label}b: pop %rbx\\nadd $3, %eax\\nret\\n",
        "pushes_own": f"lea {label}o(%rip), %rax\\npush %rax\\nret\\n{label}o: lea 4(%rdi), %eax\\n"
                      f"push %rbx\\ncall {one}\\npop %rbx\\nret\\n",
        "skips": f"push %rbx\\ncall {name}_data\\n.long 0x55555555\\ninc %eax\\npop %rbx\\nret\\n",
        "call_next": f"call {label}n\\n{label}n: pop %rax\\npush %rbx\\ncall {one}\\n"
                     f"pop %rbx\\nret\\n",
        "thunk": f"lea {one}(%rip), %rax\\ncall {label}s\\n{label}w: pause\\njmp {label}w\\n"
                 f"{label}s: mov %rax, (%rsp)\\nret\\n",
        "pops": f"push %rbx\\ncall {name}_pops\\npop %rbx\\nadd $5, %eax\\nret\\n",
        "frame": f"push %rbp\\nmov %rsp, %rbp\\nsub $32, %rsp\\nand $-32, %rsp\\ncall {one}\\n"
                 f"leave\\nret\\n",
        "aligns": f"push %rbx\\nmov %rsp, %rbx\\nand $-64, %rsp\\ncall {one}\\nmov %rbx, %rsp\\n"
                  f"pop %rbx\\njmp {two}\\n",
    }
    out = f"int {name}(int a);\n"
    if kind == "skips":
        out += f'FUNCTION({name}_data, "addq $4, (%rsp)\\nmov %edi, %eax\\nret\\n");\n'
    if kind == "pops":
        out += f'FUNCTION({name}_pops, "pop %rdx\\ninc %edi\\nmov %edi, %eax\\njmp *%rdx\\n");\n'
    if kind == "falls":
        return out + (f'__asm__(".text\\n.globl {name}, {name}_next\\n.type {name}, @function\\n'
                      f'.type {name}_next, @function\\n{name}: inc %edi\\n'
                      f'.size {name}, . - {name}\\n{name}_next: push %rbx\\ncall {one}\\n'
                      f'pop %rbx\\nret\\n.size {name}_next, . - {name}_next\\n");\n')
    if kind == "encloses":  # a function in another one, which continues after it
        return out + (f'__asm__(".text\\n.globl {name}, {name}_inner\\n.type {name}, @function\\n'
                      f'.type {name}_inner, @function\\n{name}: push %rbx\\ncall {name}_inner\\n'
                      f'jmp {label}e\\n{name}_inner: push %rbx\\ninc %edi\\ncall {one}\\n'
                      f'pop %rbx\\nret\\n.size {name}_inner, . - {name}_inner\\n'
                      f'{label}e: mov %eax, %edi\\n'
                      f'call {two}\\npop %rbx\\nret\\n.size {name}, . - {name}\\n");\n')
    return out + f'FUNCTION({name}, "{code[kind]}");\n'


IN_C = ["calls", "calls", "tail", "recursive", "pointer", "yields", "yields", "catches", "throws",
        "signals", "switch"]
IN_ASSEMBLER = ["jumps", "jumps_if", "jumps_indirectly", "pushes", "pushes_two", "pushes_own",
                "skips", "call_next", "thunk", "pops", "falls", "encloses", "frame", "aligns"]


def program(seed):
    """The text of a program."""
    make = random.Random(seed)
    fibers = make.choice([1, 2, 3, 5, 9])
    count = make.randrange(14, 24)
    made = ["KEEP int last(int a) { return a + 1; }\n"]
    names = ["last"]
    for i in reversed(range(count)):
        name = f"f{i}"
        near = names[-6:]
        callees = make.choice(near), make.choice(near)
        is_c = make.random() < 0.55
        kind = make.choice(IN_C if is_c else IN_ASSEMBLER)
        made.append((in_c if is_c else in_assembler)(kind, name, callees))
        names.append(name)
    code, extra = SWITCHES[make.choice(sorted(SWITCHES))]
    out = HEAD.format(seed=seed, fibers=fibers)
    out += f'FUNCTION(switch_to, "push %rbp\\npush %rbx\\n{code}");\n'
    out += 'FUNCTION(begin_fiber, "call body\\nud2\\n");\n'
    if extra:
        out += 'FUNCTION(enter_first, "pop %rbx\\npop %rbp\\nret\\n");\nvoid enter_first(void);\n'
    out += "static void on_signal(int number);\n" + "\n".join(made)
    out += f"KEEP static int of_signal(int a) {{ return a + {seed}; }}\n"
    out += "static void on_signal(int number) { sum += of_signal(number); }\n"
    out += MAIN.format(first=names[-1], second=names[-2], extra=extra,
                       rounds=make.randrange(4, 9))
    return out
