// SPDX-License-Identifier: BSL-1.0
// 60 fibers, which end and start again on the same stacks, and exceptions of the order: each
// continues one that it chooses.

#include "made.h"

#define FIBERS 60
static char stacks[FIBERS][1 << 15] __attribute__((aligned(16)));
static void *home, *kept[FIBERS];
static int volatile sum, starts;
static unsigned dice = 7;

FUNCTION(switch_to, "push %rbp\npush %rbx\nmov %rsp, (%rdi)\nmov %rsi, %rsp\npop %rbx\n"
                    "pop %rbp\nret\n");
FUNCTION(begin_fiber, "mov %ebx, %edi\ncall body\nud2\n");
void switch_to(void** save, void* load);
void begin_fiber(void);

KEEP static int leaf(int a) { return a + 1; }
KEEP static void make(long which) {
    void** top = (void**)(stacks[which] + sizeof stacks[which]) - 2;
    *--top = (void*)begin_fiber;
    *--top = 0;
    *--top = (void*)which;
    kept[which] = top;
    starts += 1;
}
KEEP static int choose(int which) {
    dice = dice * 1103515245 + 12345;
    int const next = (int)(dice >> 16) % FIBERS;
    return next == which ? (next + 1) % FIBERS : next;
}
KEEP static void yield(int which) {
    if (leaf(sum) > 900) {
        switch_to(&kept[which], home);
    } else {
        switch_to(&kept[which], kept[choose(which)]);
    }
}
KEEP static void work(int which, int depth) {
    sum += 1;
    if (depth != 0) { work(which, depth - 1); }
    yield(which);
    sum += leaf(0);
}
void body(int which) {
    work(which, which % 5);
    int const next = choose(which);
    void* unused = 0;
    make(which);
    switch_to(&unused, kept[next]);
}

int main(void) {
    for (long i = 0; i < FIBERS; ++i) { make(i); }
    switch_to(&home, kept[0]);
    return EXPECT(sum > 890 && starts > FIBERS);
}
