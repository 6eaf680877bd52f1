// SPDX-License-Identifier: BSL-1.0
// Fibers that switch by loading RSP and an indirect jump.

#include "fiber_stacks.h"

FUNCTION(switch_to, "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
                    "mov %rsp, (%rdi)\nmov %rsi, %rsp\npop %r15\npop %r14\npop %r13\n"
                    "pop %r12\npop %rbx\npop %rbp\npop %r8\njmp *%r8\n");
FUNCTION(begin_fiber, "mov %ebx, %edi\ncall *%r12\nud2\n");
void begin_fiber(void);

int main(void) {
    for (long i = 0; i < FIBERS; ++i) {
        void** top = (void**)(stacks[i] + sizeof stacks[i]) - 2;
        *--top = (void*)begin_fiber;
        *--top = 0;         // RBP
        *--top = (void*)i;  // RBX
        *--top = (void*)body;
        top -= 3;
        fibers[i] = top;
    }
    return run_all();
}
