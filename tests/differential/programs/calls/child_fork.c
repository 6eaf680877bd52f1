// SPDX-License-Identifier: BSL-1.0
// A child by fork, which returns from functions that the parent called.

#include <sys/wait.h>
#include <unistd.h>

#include "made.h"

KEEP static int leaf(int a) { return a + 1; }
KEEP static int splits(int a) {
    pid_t one = fork();
    if (one == 0) { return leaf(a); }
    int status = 0;
    waitpid(one, &status, 0);
    return leaf(status);
}
KEEP static int outer(int a) {
    int b = splits(a);
    HIDE(b);
    return leaf(b);
}

// outer() is 0 in the child and 2 in the parent.
int main(void) { return outer(-2) & ~2; }
