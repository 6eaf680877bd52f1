// SPDX-License-Identifier: BSL-1.0
// Calls and tail calls of a shared library, and its calls of the program.

#include "made.h"

int lib_leaf(int a);
int lib_calls(int a);
int lib_tail(int a);
int lib_back(int (*to)(int), int a);
int lib_back_tail(int (*to)(int), int a);

KEEP static int mine(int a) { return a - 1; }
KEEP static int mine_through(int a) { return lib_leaf(a); }
KEEP static int mine_twice(int a) { return lib_back_tail(mine_through, a); }

KEEP static int one_round(int a) {
    int sum = lib_leaf(a);
    HIDE(sum);
    sum += lib_calls(a);
    HIDE(sum);
    sum += lib_tail(a);
    HIDE(sum);
    sum += lib_back(mine, a);
    HIDE(sum);
    sum += lib_back(mine_twice, a);
    HIDE(sum);
    return sum + lib_back_tail(mine, a);
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += one_round(i);
        HIDE(sum);
    }
    return EXPECT(sum == 90);
}
