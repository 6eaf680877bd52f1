// SPDX-License-Identifier: BSL-1.0
// Calls, tail calls and a switch through thunks: built with -mindirect-branch=thunk and
// -mfunction-return=thunk.

#include "made.h"

KEEP static int one(int a) { return a + 1; }
KEEP static int two(int a) { return a + 2; }
static int (*volatile of[])(int) = {one, two};
KEEP static int call(int a) {
    int b = of[a & 1](a);
    HIDE(b);
    return b + 1;
}
KEEP static int tail(int a) { return of[a & 1](a); }
KEEP static int nested(int a) {
    int b = call(a);
    HIDE(b);
    return b + tail(a + 1);
}
KEEP static int choose(int a) {
    switch (a) {
        case 0: return one(3);
        case 1: return call(4);
        case 2: return 7;
        case 3: return two(8);
        case 4: return 11;
        case 5: return nested(1);
        default: return tail(a);
    }
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 8; ++i) {
        sum += nested(i);
        HIDE(sum);
        sum += choose(i);
        HIDE(sum);
    }
    return EXPECT(sum == 157);
}
