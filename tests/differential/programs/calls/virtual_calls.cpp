// SPDX-License-Identifier: BSL-1.0
// Virtual functions, the thunks that adjust `this`, and pointers to members.

#include "made.h"

namespace {

KEEP auto leaf(int a) -> int { return a + 1; }
struct one {
    int a = 1;
    virtual ~one() = default;
    virtual auto first(int b) -> int = 0;
};
struct two {
    int c = 2;
    virtual ~two() = default;
    virtual auto second(int b) -> int = 0;
};
struct both : one, two {
    KEEP auto first(int b) -> int override { return leaf(a + b); }
    KEEP auto second(int b) -> int override {
        int d = leaf(b) + c;
        HIDE(d);
        return d;
    }
};
struct shared : virtual both {
    KEEP auto first(int b) -> int override { return both::first(b) + 1; }
    KEEP auto second(int b) -> int override { return leaf(b); }
};
KEEP auto use(one& x, two& y, int b) -> int {
    int sum = x.first(b);
    HIDE(sum);
    return sum + y.second(b);
}
KEEP auto use_tail(two& y, int b) -> int { return y.second(b + 1); }
KEEP auto by_member(two& y, int (two::*which)(int)) -> int { return (y.*which)(3) + 1; }

}  // namespace

auto main() -> int {
    both x;
    shared y;
    int sum = use(x, x, 3);
    HIDE(sum);
    sum += use(y, y, 4);
    HIDE(sum);
    sum += use_tail(x, 5) + use_tail(y, 6);
    HIDE(sum);
    sum += by_member(x, &two::second) + by_member(y, &two::second);
    return EXPECT(sum == 5 + 6 + 7 + 5 + 9 + 8 + 7 + 5);
}
