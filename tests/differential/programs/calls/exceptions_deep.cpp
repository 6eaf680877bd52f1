// SPDX-License-Identifier: BSL-1.0
// Exceptions over many frames, to the outer of two handlers.

#include "made.h"

namespace {

struct far {
    int value;
};
KEEP auto leaf(int a) -> int { return a + 1; }
KEEP auto descend(int n, bool is_far) -> int {
    if (n == 0) {
        if (is_far) { throw far{3}; }
        throw 4;
    }
    int below = descend(n - 1, is_far);
    HIDE(below);
    return below + 1;
}
KEEP auto middle(int n, bool is_far) -> int {
    int sum = 0;
    try {
        sum = descend(n, is_far);
    } catch (int thrown) { sum = leaf(thrown); }
    HIDE(sum);
    return leaf(sum);
}
KEEP auto whole(int n, bool is_far) -> int {
    int sum = 0;
    try {
        sum = middle(n, is_far);
    } catch (far const& thrown) { sum = thrown.value; }
    HIDE(sum);
    return leaf(sum);
}

}  // namespace

auto main() -> int {
    int sum = whole(5, false);
    HIDE(sum);
    sum += whole(20, true);
    HIDE(sum);
    return EXPECT(sum == 7 + 4);
}
