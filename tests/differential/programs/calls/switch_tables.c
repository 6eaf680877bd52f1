// SPDX-License-Identifier: BSL-1.0
// Switches with jump tables, whose cases call, tail call, and return.

#include "made.h"

KEEP static int leaf(int a) { return a ^ 5; }
KEEP static int other(int a, int b) { return a * b; }
KEEP static int interpret(unsigned char const* code) {
    int a = 0;
    for (;;) {
        switch (*code++) {
            case 0: a += 1; break;
            case 1: a = leaf(a); break;
            case 2: a = other(a, 3); break;
            case 3: a -= 2; break;
            case 4: a <<= 1; break;
            case 5: a = leaf(a + 1); break;
            case 6: a |= 1; break;
            default: return a;
        }
        HIDE(a);
    }
}
KEEP static int tails(int which, int a) {
    switch (which) {
        case 0: return leaf(a + 1);
        case 1: return other(a, 7);
        case 2: return leaf(a - 1);
        case 3: return other(a + 1, a);
        case 4: return other(a, a);
        case 5: return a;
        default: return leaf(a);
    }
}

int main(void) {
    static unsigned char const code[] = {0, 1, 2, 3, 4, 5, 6, 0, 0, 1, 2, 9};
    int sum = interpret(code);
    HIDE(sum);
    for (int i = 0; i < 8; ++i) {
        sum += tails(i, 6);
        HIDE(sum);
    }
    return EXPECT(sum == 200);
}
