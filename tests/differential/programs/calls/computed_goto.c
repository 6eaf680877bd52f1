// SPDX-License-Identifier: BSL-1.0
// An interpreter by computed goto, which calls, and which calls itself.

#include "made.h"

KEEP static int helper(int a) { return a + 11; }
KEEP static int interpret(unsigned char const* code, int a) {
    static void* const labels[] = {&&add, &&call, &&nested, &&loop, &&end};
    static unsigned char const inner[] = {0, 1, 0, 4};
    int left = 3;
    goto* labels[*code++];
add:
    a += 1;
    HIDE(a);
    goto* labels[*code++];
call:
    a = helper(a);
    HIDE(a);
    goto* labels[*code++];
nested:
    a = interpret(inner, a);
    HIDE(a);
    goto* labels[*code++];
loop:
    if (--left != 0) { code -= 3; }
    HIDE(a);
    goto* labels[*code++];
end:
    return a;
}

int main(void) {
    static unsigned char const code[] = {0, 1, 2, 3, 0, 4};
    int made = interpret(code, 0);
    return EXPECT(made >= 48);
}
