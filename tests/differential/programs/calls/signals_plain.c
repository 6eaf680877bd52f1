// SPDX-License-Identifier: BSL-1.0
// Handlers of signals that functions raise.

#include <signal.h>
#include <unistd.h>

#include "made.h"

static int volatile seen;
KEEP static int leaf(int a) { return a + 1; }
static void on_signal(int number) { seen += leaf(number); }
KEEP static int raises(int a) {
    kill(getpid(), SIGUSR1);
    return leaf(a);
}
KEEP static int outer(int a) {
    int b = raises(a);
    HIDE(b);
    return b + raises(a + 1);
}

int main(void) {
    signal(SIGUSR1, on_signal);
    int sum = outer(1);
    HIDE(sum);
    sum += outer(2);
    HIDE(sum);
    return EXPECT(sum == 12 && seen == 4 * (SIGUSR1 + 1));
}
