// SPDX-License-Identifier: BSL-1.0
// The shared library of plt_calls.

#include "made.h"

KEEP int lib_leaf(int a) { return a + 1; }
KEEP int lib_calls(int a) {
    int b = lib_leaf(a);
    HIDE(b);
    return b + lib_leaf(b);
}
KEEP int lib_tail(int a) { return lib_leaf(a + 2); }
KEEP int lib_back(int (*to)(int), int a) {
    int b = to(a);
    HIDE(b);
    return b * 2;
}
KEEP int lib_back_tail(int (*to)(int), int a) { return to(a + 5); }
