// SPDX-License-Identifier: BSL-1.0
// RETs that jump: to an address that was pushed, and to another one than that of the CALL.

#include "made.h"

FUNCTION(pushes, "lea target(%rip), %rax\npush %rax\nret\n");
FUNCTION(target, "lea 3(%rdi), %eax\nret\n");
FUNCTION(pushes_own, "lea .Lown(%rip), %rax\npush %rax\nret\n.Lown: lea 4(%rdi), %eax\nret\n");
FUNCTION(pushes_two, "lea .Lback(%rip), %rax\npush %rax\nlea target(%rip), %rax\npush %rax\n"
                     "ret\n.Lback: add $10, %eax\nret\n");
FUNCTION(skips, "addq $4, (%rsp)\nmov $2, %eax\nret\n");
FUNCTION(with_data, "call skips\n.long 0x55555555\nadd %edi, %eax\nret\n");
FUNCTION(pops_operand, "mov 8(%rsp), %rax\nret $8\n");
FUNCTION(with_operand, "push %rdi\ncall pops_operand\ninc %eax\nret\n");
int pushes(int a);
int pushes_own(int a);
int pushes_two(int a);
int with_data(int a);
int with_operand(int a);
KEEP static int leaf(int a) { return a + 1; }

KEEP static int all(int a) {
    int sum = pushes(a);
    HIDE(sum);
    sum += leaf(a) + pushes_own(a);
    HIDE(sum);
    sum += leaf(a) + pushes_two(a);
    HIDE(sum);
    sum += leaf(a) + with_data(a);
    HIDE(sum);
    sum += leaf(a) + with_operand(a);
    HIDE(sum);
    return sum + leaf(a);
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 6; ++i) {
        sum += all(i);
        HIDE(sum);
    }
    return EXPECT(sum == 15 * 10 + 6 * 28);
}
