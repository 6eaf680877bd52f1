// SPDX-License-Identifier: BSL-1.0
// Frames whose size is known when they run.

#include <string.h>

#include "made.h"

KEEP static int leaf(char* at, int n) {
    at[n - 1] = 1;
    return at[n - 1] + n;
}
KEEP static int by_alloca(int n) {
    char* at = __builtin_alloca((unsigned)n);
    HIDE(at);
    return leaf(at, n) + 1;
}
KEEP static int by_array(int n) {
    int sum = 0;
    for (int i = 1; i < n; ++i) {
        char at[i * 50];
        sum += leaf(at, i);
        HIDE(sum);
    }
    return sum;
}
KEEP static int large(int n) {
    char volatile at[60000];
    at[n] = 2;
    int sum = by_alloca(n);
    HIDE(sum);
    return sum + by_array(at[n] + 3);
}

int main(void) {
    int sum = large(70000 - 20001);
    HIDE(sum);
    return EXPECT(sum == 50001 + 14);
}
