// SPDX-License-Identifier: BSL-1.0
// Functions in functions, whose pointers are trampolines: code on the stack (gcc).

#include "made.h"

KEEP static int apply(int (*of)(int), int a) {
    int b = of(a);
    HIDE(b);
    return b + 1;
}
KEEP static int apply_tail(int (*of)(int), int a) { return of(a); }
KEEP static int outer(int base) {
    __attribute__((noinline)) int inner(int a) { return a + base; }
    int sum = apply(inner, 1);
    HIDE(sum);
    sum += apply_tail(inner, 2);
    HIDE(sum);
    return sum;
}

int main(void) {
    int sum = outer(10);
    HIDE(sum);
    sum += outer(20);
    return EXPECT(sum == 11 + 1 + 12 + 21 + 1 + 22);
}
