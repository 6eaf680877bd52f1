// SPDX-License-Identifier: BSL-1.0
// Fibers that pass to each other in a ring by exchanging RSP in the code of the function that
// switches, which continues at a label.

#include "made.h"

#define FIBERS 4
static char stacks[FIBERS][1 << 16] __attribute__((aligned(16)));
static void* kept[FIBERS];
static void* home;
static int volatile sum;
KEEP static int leaf(int a) { return a + 1; }

FUNCTION(exchange, "push %rbx\npush %rbp\npush %r12\nlea .Lresumed(%rip), %rax\npush %rax\n"
                   "xchg %rsp, %rsi\nmov %rsi, (%rdi)\npop %rax\njmp *%rax\n"
                   ".Lresumed: pop %r12\npop %rbp\npop %rbx\nret\n");
FUNCTION(start_of_fiber, "mov %r12, %rdi\nsub $8, %rsp\ncall *%rbx\nud2\n");
void exchange(void** save, void* load);
void start_of_fiber(void);

KEEP static void pass_on(long which, int is_last) {
    exchange(&kept[which], is_last ? home : kept[(which + 1) % FIBERS]);
}
KEEP static void work(long which, int depth) {
    sum += leaf((int)which);
    if (depth != 0) {
        work(which, depth - 1);
    } else {
        pass_on(which, 0);
    }
    sum += leaf(depth);
}
static void body(long which) {
    for (int i = 0; i < 4; ++i) { work(which, i); }
    pass_on(which, 1);
}

FUNCTION(enter_first, "pop %r12\npop %rbp\npop %rbx\nret\n");
void enter_first(void);

int main(void) {
    for (long i = 0; i < FIBERS; ++i) {
        void** top = (void**)(stacks[i] + sizeof stacks[i]) - 1;
        *--top = (void*)start_of_fiber;
        *--top = (void*)body;  // RBX
        *--top = 0;
        *--top = (void*)i;
        *--top = (void*)enter_first;
        kept[i] = top;
    }
    exchange(&home, kept[0]);
    int made = sum;
    HIDE(made);
    return EXPECT(made > 60);
}
