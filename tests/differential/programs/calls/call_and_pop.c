// SPDX-License-Identifier: BSL-1.0
// CALLs that read the address of the next instruction.

#include "made.h"

FUNCTION(call_next, "call .Lnext\n.Lnext: pop %rax\nlea .Lnext(%rip), %rcx\nsub %rcx, %rax\n"
                    "add %edi, %eax\nret\n");
FUNCTION(get_pc_thunk, "mov (%rsp), %rbx\nret\n");
FUNCTION(by_thunk, "push %rbx\ncall get_pc_thunk\n.Lhere: lea .Lhere(%rip), %rax\n"
                   "sub %rbx, %rax\nadd %edi, %eax\npop %rbx\nret\n");
FUNCTION(call_over, "call .Lover\n.long 17\n.Lover: pop %rax\nmov (%rax), %eax\n"
                    "add %edi, %eax\nret\n");
int call_next(int a);
int by_thunk(int a);
int call_over(int a);
KEEP static int leaf(int a) { return a + 1; }

KEEP static int all(int a) {
    int sum = call_next(a);
    HIDE(sum);
    sum += leaf(sum);
    sum += by_thunk(a);
    HIDE(sum);
    sum += leaf(sum);
    sum += call_over(a);
    HIDE(sum);
    return sum + leaf(a);
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 12; ++i) {
        sum += all(i);
        HIDE(sum);
    }
    return EXPECT(sum == 66 * 8 + 12 * 21);
}
