// SPDX-License-Identifier: BSL-1.0
// A conditional jump to another function is a tail call.

#include "made.h"

FUNCTION(below_ten, "lea 10(%rdi), %eax\nret\n");
FUNCTION(from_ten, "lea 1000(%rdi), %eax\nret\n");
FUNCTION(choose, "cmp $10, %edi\njl below_ten\nje is_ten\njmp from_ten\n");
FUNCTION(is_ten, "call one_more\nadd $7, %eax\nret\n");
FUNCTION(one_more, "mov $1, %eax\ntest %edi, %edi\njnz choose_other\nret\n");
FUNCTION(choose_other, "add $2, %eax\nret\n");
int choose(int a);

KEEP static int choices(int from, int to) {
    int sum = 0;
    for (int i = from; i < to; ++i) {
        sum += choose(i);
        HIDE(sum);
    }
    return sum;
}

int main(void) { return EXPECT(choices(8, 13) == 18 + 19 + 10 + 1011 + 1012); }
