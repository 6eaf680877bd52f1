// SPDX-License-Identifier: BSL-1.0
// Fibers that switch by loading RSP and RET.

#include "fiber_stacks.h"

FUNCTION(switch_to, "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
                    "mov %rsp, (%rdi)\nmov %rsi, %rsp\npop %r15\npop %r14\npop %r13\n"
                    "pop %r12\npop %rbx\npop %rbp\nret\n");
FUNCTION(begin_fiber, "mov %ebx, %edi\ncall *%r12\nud2\n");
void begin_fiber(void);

int main(void) {
    for (long i = 0; i < FIBERS; ++i) {
        void** top = (void**)(stacks[i] + sizeof stacks[i]) - 2;
        *--top = (void*)begin_fiber;
        *--top = 0;
        *--top = (void*)i;
        *--top = (void*)body;
        top -= 3;
        fibers[i] = top;
    }
    return run_all();
}
