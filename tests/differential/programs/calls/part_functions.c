// SPDX-License-Identifier: BSL-1.0
// Functions that g++ splits and clones: f.part.0, f.isra.0, f.constprop.0.

#include "made.h"

struct pair {
    int a, b, unused[6];
};
static int volatile place;
__attribute__((noinline)) static int sum_of(struct pair const* p, int scale) {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += p->a * scale + i;
        HIDE(sum);
    }
    return sum;
}
__attribute__((noinline)) static int scaled(int a, int scale) {
    int sum = a;
    for (int i = 0; i < scale; ++i) {
        sum += i * scale;
        HIDE(sum);
    }
    return sum;
}
static int often_nothing(int a) {
    if (a < 3) { return 0; }
    int sum = 0;
    for (int i = 0; i < a; ++i) {
        sum += scaled(i, 4);
        place = sum;
        for (int j = 0; j < 2; ++j) { place += j; }
        HIDE(sum);
    }
    place = sum * 2;
    return sum;
}
KEEP int one_user(int a) { return often_nothing(a) + 1; }
KEEP int other_user(int a) { return often_nothing(a + 1) + 2; }

int main(void) {
    struct pair p = {3, 4, {0}};
    int sum = 0;
    for (int i = 0; i < 5; ++i) {
        p.a = i;
        HIDE(sum);
        sum += sum_of(&p, 5) + one_user(i) + other_user(i);
    }
    return EXPECT(sum == 664 && place != 0);
}
