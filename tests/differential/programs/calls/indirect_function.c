// SPDX-License-Identifier: BSL-1.0
// A function that a resolver chooses: IFUNC.

#include "made.h"

KEEP static int slow(int a) { return a + 10; }
KEEP static int fast(int a) { return a + 20; }
static int (*choose(void))(int) { return sizeof(long) == 8 ? fast : slow; }
int chosen(int a) __attribute__((ifunc("choose")));

KEEP static int user(int a) {
    int b = chosen(a);
    HIDE(b);
    return b + 1;
}
KEEP static int tail_user(int a) { return chosen(a + 1); }

int main(void) {
    int (*volatile by_pointer)(int) = chosen;
    int sum = user(1);
    HIDE(sum);
    sum += tail_user(2);
    HIDE(sum);
    sum += by_pointer(3) + slow(0);
    return EXPECT(sum == 22 + 23 + 23 + 10);
}
