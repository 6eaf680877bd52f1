// SPDX-License-Identifier: BSL-1.0
// Lambdas and std::function.

#include <functional>

#include "made.h"

namespace {

KEEP auto leaf(int a) -> int { return a + 1; }
KEEP auto apply(std::function<int(int)> const& of, int a) -> int {
    int b = of(a);
    HIDE(b);
    return b + 1;
}
template <class F>
KEEP auto pass(F of, int a) -> int {
    int b = of(a);
    HIDE(b);
    return b;
}

}  // namespace

auto main() -> int {
    int base = 3;
    HIDE(base);
    auto const add = [&](int a) { return leaf(a) + base; };
    auto const nested = [&](int a) { return pass(add, a) + apply(add, a); };
    int sum = apply(add, 1);
    HIDE(sum);
    sum += apply(nested, 2);
    HIDE(sum);
    sum += pass([](int a) { return leaf(a); }, 4);
    return EXPECT(sum == 6 + 14 + 5);
}
