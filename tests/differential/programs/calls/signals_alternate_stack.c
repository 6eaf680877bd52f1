// SPDX-License-Identifier: BSL-1.0
// Handlers on a stack of their own.

#include <signal.h>
#include <unistd.h>

#include "made.h"

static char stack[1 << 16];
static int volatile seen;
KEEP static int leaf(int a) { return a + 1; }
KEEP static int work(int a) {
    int b = leaf(a);
    HIDE(b);
    return b + leaf(b);
}
static void on_signal(int number) { seen += work(number); }
KEEP static int raises(int a) {
    kill(getpid(), SIGUSR1);
    return leaf(a);
}

int main(void) {
    stack_t on = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&on, 0);
    struct sigaction by = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &by, 0);
    int sum = raises(1);
    HIDE(sum);
    sum += raises(2);
    HIDE(sum);
    return EXPECT(sum == 5 && seen != 0);
}
