// SPDX-License-Identifier: BSL-1.0
// Functions whose unlikely code is elsewhere: f.cold.

#include "made.h"

KEEP __attribute__((cold)) int complain(int a) { return -a; }
KEEP int check(int a) { return a + 1; }

KEEP int work(int a) {
    int b = check(a);
    if (__builtin_expect(b > 5, 0)) {
        b = complain(b);
        HIDE(b);
        b += complain(a);
    }
    HIDE(b);
    return check(b) + 1;
}
KEEP int ends_cold(int a) {
    if (__builtin_expect(a == 3, 0)) { return complain(a + 1); }
    return check(a);
}
KEEP int twice_cold(int a, int b) {
    int sum = 0;
    if (__builtin_expect(a > 2, 0)) { sum += complain(a); }
    HIDE(sum);
    sum += check(sum);
    if (__builtin_expect(b > 2, 0)) { sum += complain(b); }
    HIDE(sum);
    return sum;
}

int main(void) {
    int sum = 0;
    for (int i = 3; i < 7; ++i) {
        sum += work(i);
        HIDE(sum);
        sum += ends_cold(i);
        HIDE(sum);
        sum += twice_cold(i - 2, 6 - i);
        HIDE(sum);
    }
    return EXPECT(sum == -6);
}
