// SPDX-License-Identifier: BSL-1.0
// longjmp over many frames, and to the outer of two places.

#include <setjmp.h>

#include "made.h"

static jmp_buf outer, inner;
KEEP static int leaf(int a) { return a + 1; }
KEEP static int descend(int n, jmp_buf to) {
    if (n == 0 && leaf(n) != 0) { longjmp(to, 7); }
    int below = n == 0 ? 0 : descend(n - 1, to);
    HIDE(below);
    return below + 1;
}
KEEP static int middle(int n) {
    int volatile sum = 0;
    if (setjmp(inner) == 0) {
        sum = descend(n, inner);
    } else {
        sum += leaf(n);
    }
    if (n > 20) { sum += descend(n, outer); }
    return leaf(sum);
}
KEEP static int whole(int n) {
    int volatile sum = 0;
    if (setjmp(outer) == 0) { sum = middle(n); }
    return leaf(sum);
}

int main(void) {
    int sum = whole(5);
    HIDE(sum);
    sum += whole(60);
    HIDE(sum);
    sum += whole(2);
    HIDE(sum);
    return EXPECT(sum == 8 + 1 + 5);
}
