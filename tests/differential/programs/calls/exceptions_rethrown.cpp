// SPDX-License-Identifier: BSL-1.0
// Handlers that throw again, the same exception and another one.

#include "made.h"

namespace {

KEEP auto leaf(int a) -> int { return a + 1; }
KEEP auto throws(int a) -> int {
    if (a > 0) { throw a; }
    return leaf(a);
}
KEEP auto again(int a) -> int {
    int sum = 0;
    try {
        sum = throws(a);
    } catch (int) {
        (void)leaf(a);
        throw;
    }
    HIDE(sum);
    return sum;
}
KEEP auto another(int a) -> int {
    int sum = 0;
    try {
        sum = again(a);
    } catch (int thrown) { throw static_cast<long>(leaf(thrown)); }
    HIDE(sum);
    return sum;
}
KEEP auto whole(int a) -> int {
    int sum = 0;
    try {
        sum = another(a);
    } catch (long thrown) { sum = leaf(static_cast<int>(thrown)); }
    HIDE(sum);
    return leaf(sum);
}

}  // namespace

auto main() -> int {
    int sum = whole(0);
    HIDE(sum);
    sum += whole(5);
    HIDE(sum);
    return EXPECT(sum == 2 + 8);
}
