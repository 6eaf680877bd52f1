// SPDX-License-Identifier: BSL-1.0
// Functions that call themselves and each other.

#include "made.h"

KEEP static int fibonacci(int n) {
    if (n < 2) { return n; }
    int below = fibonacci(n - 1);
    HIDE(below);
    return below + fibonacci(n - 2);
}
KEEP static int second(int n);
KEEP static int first(int n) {
    int below = n == 0 ? 0 : second(n - 1);
    HIDE(below);
    return below + 1;
}
KEEP static int second(int n) {
    int below = n == 0 ? 0 : first(n - 1);
    HIDE(below);
    return below + 2;
}
KEEP static int ackermann(int m, int n) {
    if (m == 0) { return n + 1; }
    if (n == 0) { return ackermann(m - 1, 1); }
    return ackermann(m - 1, ackermann(m, n - 1));
}

int main(void) { return EXPECT(fibonacci(9) == 34 && first(20) == 31 && ackermann(2, 3) == 9); }
