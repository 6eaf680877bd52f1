// SPDX-License-Identifier: BSL-1.0
#pragma once

// Fibers that share a scheduler: what they do, whichever way they switch. `switch_to(save, load)`
// keeps the stack pointer of the one in *save and continues the one whose stack pointer is load.

#include "made.h"

#define FIBERS 4
static char stacks[FIBERS][1 << 16] __attribute__((aligned(16)));
static void *scheduler, *fibers[FIBERS];
static int volatile sum, ended;
void switch_to(void** save, void* load);

KEEP static int leaf(int a) { return a + 1; }
KEEP static void yield(int which) { switch_to(&fibers[which], scheduler); }
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
    for (;;) { yield(which); }
}
KEEP static void resume(int which) { switch_to(&scheduler, fibers[which]); }
__attribute__((unused)) KEEP static int run_all(void) {
    for (int round = 0; round < 7; ++round) {
        for (int i = 0; i < FIBERS; ++i) {
            resume(i);
            sum += leaf(0);
        }
    }
    return EXPECT(ended == FIBERS && sum == 60 + 40 + 28);
}
