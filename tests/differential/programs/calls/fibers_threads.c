// SPDX-License-Identifier: BSL-1.0
// Fibers that begin in one thread and continue in another.

#include <pthread.h>

#include "fiber_stacks.h"

FUNCTION(switch_to, "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
                    "mov %rsp, (%rdi)\nmov %rsi, %rsp\npop %r15\npop %r14\npop %r13\n"
                    "pop %r12\npop %rbx\npop %rbp\nret\n");
FUNCTION(begin_fiber, "mov %ebx, %edi\ncall *%r12\nud2\n");
void begin_fiber(void);

static void* half(void* unused) {
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < FIBERS; ++i) {
            resume(i);
            sum += leaf(0);
        }
    }
    return unused;
}

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
    for (int i = 0; i < 2; ++i) {
        pthread_t one;
        pthread_create(&one, 0, half, 0);
        pthread_join(one, 0);
    }
    sum -= 4 * 6;
    sum += 28;
    for (int i = 0; i < FIBERS; ++i) { resume(i); }
    return EXPECT(ended == FIBERS && sum == 60 + 40 + 28);
}
