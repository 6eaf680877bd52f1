// SPDX-License-Identifier: BSL-1.0
// siglongjmp out of handlers, also of those on a stack of their own.

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "made.h"

static char stack[1 << 16];
static sigjmp_buf place;
static int volatile seen;
KEEP static int leaf(int a) { return a + 1; }
KEEP static void leaves(int a) { siglongjmp(place, leaf(a)); }
static void on_signal(int number) {
    seen += leaf(number);
    leaves(number);
}
KEEP static int raises(int a, int number) {
    int b = leaf(a);
    kill(getpid(), number);
    return b;
}
KEEP static int catches(int a, int number) {
    int volatile sum = a;
    if (sigsetjmp(place, 1) == 0) {
        sum = raises(a, number);
    } else {
        sum += leaf(a);
    }
    return leaf(sum);
}

int main(void) {
    stack_t on = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&on, 0);
    struct sigaction by = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &by, 0);
    by.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &by, 0);
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += catches(i, SIGUSR1);
        HIDE(sum);
        sum += catches(i, SIGUSR2);
        HIDE(sum);
    }
    return EXPECT(sum == 24);
}
