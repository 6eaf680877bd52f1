// SPDX-License-Identifier: BSL-1.0
// Exceptions that run destructors, one of which throws and catches.

#include "made.h"

namespace {

int sum;
KEEP void note(int a) { sum += a; }
KEEP void small_one() {
    try {
        throw 'a';
    } catch (char) { note(100); }
}
struct noting {
    int value;
    KEEP ~noting() { note(value); }
};
struct catching {
    KEEP ~catching() { small_one(); }
};
KEEP void inner(int a) {
    noting const last{a};
    if (a > 2) { throw a; }
    note(1);
}
KEEP void middle(int a) {
    noting const one{10};
    catching const two{};
    inner(a);
    note(2);
}
KEEP void outer(int a) {
    try {
        noting const one{20};
        middle(a);
    } catch (int thrown) { note(thrown); }
    note(3);
}

}  // namespace

auto main() -> int {
    outer(1);
    outer(5);
    return EXPECT(sum == 1 + 1 + 2 + 100 + 10 + 20 + 3 + 5 + 100 + 10 + 20 + 5 + 3);
}
