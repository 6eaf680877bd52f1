// SPDX-License-Identifier: BSL-1.0
// Two functions that end with a jump to each other.

#include "made.h"

KEEP int is_odd(unsigned n);
KEEP int is_even(unsigned n) {
    if (n == 0) { return 1; }
    return is_odd(n - 1);
}
KEEP int is_odd(unsigned n) {
    if (n == 0) { return 0; }
    return is_even(n - 1);
}
KEEP int count_down(unsigned n, int sum) {
    if (n == 0) { return sum; }
    return count_down(n - 1, sum + 2);
}

int main(void) {
    int good = is_even(40);
    HIDE(good);
    good += is_odd(31);
    HIDE(good);
    good += count_down(10, 0);
    return EXPECT(good == 22);
}
