// SPDX-License-Identifier: BSL-1.0
// Functions that drop their return address: they continue as a part of their caller, or return
// to the caller of that one.

#include "made.h"

FUNCTION(drops, "add $8, %rsp\ninc %edi\nmov %edi, %eax\nret\n");
FUNCTION(never_resumed, "inc %edi\ncall drops\nud2\n");
FUNCTION(pops, "pop %rdx\ninc %edi\njmp *%rdx\n");
FUNCTION(resumed, "inc %edi\ncall pops\nmov %edi, %eax\nret\n");
FUNCTION(pops_and_calls, "pop %rdx\npush %rdx\npush %rdx\ncall leaf_one\npop %rdx\npop %rcx\n"
                         "jmp *%rdx\n");
FUNCTION(leaf_one, "inc %edi\nret\n");
FUNCTION(resumed_later, "call pops_and_calls\nmov %edi, %eax\nret\n");
int never_resumed(int a);
int resumed(int a);
int resumed_later(int a);
KEEP static int leaf(int a) { return a + 1; }

KEEP static int all(int a) {
    int sum = never_resumed(a);
    HIDE(sum);
    sum += leaf(a) + resumed(a);
    HIDE(sum);
    sum += leaf(a) + resumed_later(a);
    HIDE(sum);
    return sum + leaf(a);
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 8; ++i) {
        sum += all(i);
        HIDE(sum);
    }
    return EXPECT(sum == 28 * 6 + 8 * 8);
}
