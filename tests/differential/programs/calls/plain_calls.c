// SPDX-License-Identifier: BSL-1.0
// Functions that call functions, directly and by pointers.

#include "made.h"

KEEP static int leaf(int a) { return a * 3 + 1; }
KEEP static int inner(int a) {
    int b = leaf(a);
    HIDE(b);
    return b + leaf(a + 1);
}
KEEP static int outer(int a) {
    int sum = 0;
    for (int i = 0; i < a; ++i) {
        sum += inner(i);
        HIDE(sum);
    }
    return sum;
}
KEEP static int by_pointer(int (*of)(int), int a) {
    int b = of(a);
    HIDE(b);
    return b - 1;
}

int main(void) {
    int (*volatile of[3])(int) = {leaf, inner, outer};
    int sum = outer(5);
    for (int i = 0; i < 6; ++i) { sum += by_pointer(of[i % 3], i); }
    return EXPECT(sum == 231);
}
