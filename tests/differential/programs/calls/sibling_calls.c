// SPDX-License-Identifier: BSL-1.0
// Chains of tail calls, which return to the function before them.

#include "made.h"

KEEP int last(int a) { return a + 100; }
KEEP int third(int a, int b) { return last(a + b); }
KEEP int second(int a) {
    int b = last(a);
    HIDE(b);
    return third(a, b);
}
KEEP int first(int a) { return second(a + 1); }
KEEP int around(int a) {
    int b = first(a);
    HIDE(b);
    return b + first(a + 1);
}
KEEP int either(int a) { return (a & 1) != 0 ? first(a) : third(a, 3); }

int main(void) {
    int sum = around(1);
    HIDE(sum);
    for (int i = 0; i < 4; ++i) {
        sum += either(i);
        HIDE(sum);
    }
    return EXPECT(sum == 1030);
}
