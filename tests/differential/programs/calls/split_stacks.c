// SPDX-License-Identifier: BSL-1.0
// Functions that get more stack from __morestack where theirs is too small: -fsplit-stack (gcc).

#include "made.h"

KEEP static int leaf(int a) { return a + 1; }
KEEP static int down(int n) {
    char volatile room[5000];
    room[n] = 1;
    int below = n == 0 ? 0 : down(n - 1);
    HIDE(below);
    return leaf(below) + room[n] - 1;
}

int main(void) {
    int made = down(40);
    HIDE(made);
    return EXPECT(made == 41);
}
