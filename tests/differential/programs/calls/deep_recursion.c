// SPDX-License-Identifier: BSL-1.0
// Recursion over 700 levels, twice.

#include "made.h"

KEEP static int down(int n) {
    int below = n == 0 ? 0 : down(n - 1);
    HIDE(below);
    return below + 1;
}
KEEP static int twice(int n) {
    int below = down(n);
    HIDE(below);
    return below + down(n / 2);
}

int main(void) { return EXPECT(twice(700) == 701 + 351); }
