// SPDX-License-Identifier: BSL-1.0
// Functions whose last instruction calls one that does not return: the return address is that of
// the next function.

#include <setjmp.h>
#include <stdlib.h>

#include "made.h"

static jmp_buf place;
KEEP __attribute__((noreturn)) static void leaves(int a) { longjmp(place, a + 1); }
KEEP __attribute__((noreturn)) static void fails(int a) { leaves(a + 1); }
KEEP static int after_it(int a) { return a + 1; }
KEEP static int may_fail(int a) {
    if (a < 3) { return after_it(a); }
    fails(a);
}
KEEP static int tries(int a) {
    int got = setjmp(place);
    if (got != 0) { return after_it(got); }
    return may_fail(a) + 1;
}
KEEP __attribute__((noreturn)) static void ends(int status) { exit(status); }

int main(void) {
    int sum = tries(1);
    HIDE(sum);
    sum += tries(3);
    HIDE(sum);
    ends(EXPECT(sum == 3 + 6));
}
