// SPDX-License-Identifier: BSL-1.0
// An interpreter whose instructions are functions that end with tail calls through a table.

#include "made.h"

#if defined(__clang__)
#define NEXT __attribute__((musttail)) return table[*code](code + 1, a)
#else
#define NEXT return table[*code](code + 1, a)
#endif
typedef long step(unsigned char const* code, long a);
static step* const table[];
KEEP static long helper(long a) { return a * 2; }
KEEP static long add(unsigned char const* code, long a) {
    a += 1;
    NEXT;
}
KEEP static long twice(unsigned char const* code, long a) {
    a = helper(a);
    HIDE(a);
    NEXT;
}
KEEP static long skip(unsigned char const* code, long a) {
    if (a > 5) { code += 1; }
    NEXT;
}
KEEP static long stop(unsigned char const* code, long a) {
    (void)code;
    return a;
}
static step* const table[] = {stop, add, twice, skip};

int main(void) {
    static unsigned char const code[] = {1, 2, 3, 1, 2, 1, 3, 1, 2, 1, 0};
    long made = table[code[0]](code + 1, 0);
    HIDE(made);
    return EXPECT(made == 15);
}
