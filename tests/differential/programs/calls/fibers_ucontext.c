// SPDX-License-Identifier: BSL-1.0
// Fibers by swapcontext, which yield from a depth.

#include <ucontext.h>

#include "made.h"

static ucontext_t scheduler, fibers[3];
static char stacks[3][1 << 16];
static int volatile sum, ended;
KEEP static int leaf(int a) { return a + 1; }
KEEP static void yield(int which) { swapcontext(&fibers[which], &scheduler); }
KEEP static void work(int which, int depth) {
    sum += leaf(which);
    if (depth != 0) {
        work(which, depth - 1);
    } else {
        yield(which);
    }
    sum += leaf(depth);
}
static void body(int which) {
    for (int i = 0; i < 3; ++i) {
        work(which, i);
        yield(which);
    }
    ended += 1;
}
KEEP static void resume(int which) { swapcontext(&scheduler, &fibers[which]); }

int main(void) {
    for (int i = 0; i < 3; ++i) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = sizeof stacks[i];
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], (void (*)(void))body, 1, i);
    }
    for (int round = 0; round < 7; ++round) {
        for (int i = 0; i < 3; ++i) {
            resume(i);
            sum += leaf(0);
        }
    }
    return EXPECT(ended == 3 && sum == 36 + 30 + 21);
}
