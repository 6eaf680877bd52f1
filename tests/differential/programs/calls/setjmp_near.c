// SPDX-License-Identifier: BSL-1.0
// longjmp to the function that called the one that calls it.

#include <setjmp.h>

#include "made.h"

static jmp_buf place;
static int volatile rounds;
KEEP static int leaf(int a) { return a + 1; }
KEEP static void jump(int a) {
    rounds += leaf(a);
    longjmp(place, a);
}
KEEP static int catches(int a) {
    int got = setjmp(place);
    if (got == 0) { jump(a); }
    HIDE(got);
    return leaf(got);
}
KEEP static int again(void) {
    int volatile n = 0;
    int got = _setjmp(place);
    n += leaf(got);
    if (n < 12) { jump(got + 1); }
    return n;
}

int main(void) {
    int sum = catches(3);
    HIDE(sum);
    sum += catches(4);
    HIDE(sum);
    sum += again();
    HIDE(sum);
    return EXPECT(sum > 15 && rounds != 0);
}
