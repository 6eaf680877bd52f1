// SPDX-License-Identifier: BSL-1.0
// Generators on stacks that sigaltstack gave them, which switch by setjmp and longjmp.

#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "made.h"

#define COUNT 3
static char stacks[COUNT][1 << 16];
static jmp_buf user, places[COUNT];
static int volatile current, value;
KEEP static int leaf(int a) { return a + 1; }
KEEP static void give(int which, int made) {
    value = made;
    if (_setjmp(places[which]) == 0) { longjmp(user, 1); }
}
KEEP static void walk_tree(int which, int height) {
    if (height == 0) { return; }
    walk_tree(which, height - 1);
    give(which, leaf(height));
    walk_tree(which, height - 1);
}
KEEP static void run(int which) {
    walk_tree(which, 3);
    for (;;) { give(which, 0); }
}
// The stack is still that of the signal after the handler has returned.
static void on_signal(int number) {
    (void)number;
    int const which = current;
    if (_setjmp(places[which]) != 0) { run(which); }
}
KEEP static int next(int which) {
    if (_setjmp(user) == 0) { longjmp(places[which], 1); }
    return value;
}

int main(void) {
    struct sigaction by = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &by, 0);
    for (int i = 0; i < COUNT; ++i) {
        stack_t const on = {.ss_sp = stacks[i], .ss_size = sizeof stacks[i]};
        sigaltstack(&on, 0);
        current = i;
        kill(getpid(), SIGUSR1);
    }
    int sum = 0;
    for (int round = 0; round < 8; ++round) {
        for (int i = 0; i < COUNT; ++i) {
            sum += next(i);
            HIDE(sum);
        }
    }
    return EXPECT(sum == COUNT * (4 + 2 * 3 + 4 * 2));
}
