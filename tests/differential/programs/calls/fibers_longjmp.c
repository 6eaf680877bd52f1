// SPDX-License-Identifier: BSL-1.0
// Fibers by setjmp and longjmp, on parts of the one stack that alloca keeps free.

#include <setjmp.h>

#include "made.h"

static jmp_buf home, places[3];
static int volatile sum, ended;
KEEP static int leaf(int a) { return a + 1; }
KEEP static void yield(int which) {
    if (_setjmp(places[which]) == 0) { longjmp(home, 1); }
}
KEEP static void work(int which, int depth) {
    sum += leaf(which);
    if (depth != 0) {
        work(which, depth - 1);
    } else {
        yield(which);
    }
    sum += leaf(depth);
}
KEEP static void body(int which) {
    for (int i = 0; i < 3; ++i) {
        work(which, i);
        yield(which);
    }
    ended += 1;
    longjmp(home, 1);
}
KEEP static void resume(int which) {
    if (_setjmp(home) == 0) { longjmp(places[which], 1); }
}
// Starts the fibers from `which` on, each below the room that the one before it has.
KEEP static void start(int which) {
    if (_setjmp(home) == 0) { body(which); }
    char volatile* room = __builtin_alloca(1 << 14);
    room[0] = 1;
    if (which != 2) {
        start(which + 1);
    } else {
        for (int round = 0; round < 6; ++round) {
            for (int i = 0; i < 3; ++i) {
                resume(i);
                sum += leaf(0);
            }
        }
    }
    HIDE(room);
}

int main(void) {
    start(0);
    return EXPECT(ended == 3 && sum == 36 + 30 + 18);
}
