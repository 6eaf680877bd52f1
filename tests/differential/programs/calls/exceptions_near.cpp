// SPDX-License-Identifier: BSL-1.0
// Exceptions that the caller, or the function itself, catches.

#include "made.h"

namespace {

KEEP auto leaf(int a) -> int { return a + 1; }
KEEP auto throws(int a) -> int {
    if (leaf(a) > 2) { throw a; }
    return a;
}
KEEP auto catches(int a) -> int {
    int sum = 0;
    try {
        sum = throws(a);
    } catch (int thrown) { sum = leaf(thrown) + 10; }
    HIDE(sum);
    return sum + leaf(a);
}
KEEP auto catches_own(int a) -> int {
    int sum = leaf(a);
    try {
        if (sum > 1) { throw 'x'; }
    } catch (char) { sum += 5; }
    HIDE(sum);
    return leaf(sum);
}

}  // namespace

auto main() -> int {
    int sum = catches(1);
    HIDE(sum);
    sum += catches(2);
    HIDE(sum);
    sum += catches_own(3);
    HIDE(sum);
    return EXPECT(sum == 3 + 16 + 10);
}
