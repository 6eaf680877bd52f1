// SPDX-License-Identifier: BSL-1.0
// ENTER and LEAVE, functions that end with LEAVE and JMP, and PUSH of RSP.

#include "made.h"

FUNCTION(by_enter, "enter $32, $0\nmov %edi, -4(%rbp)\ncall plus_one\nadd -4(%rbp), %eax\n"
                   "leave\nret\n");
FUNCTION(leaves_and_jumps, "push %rbp\nmov %rsp, %rbp\nsub $64, %rsp\ncall plus_one\n"
                           "mov %eax, %edi\nleave\njmp plus_one\n");
FUNCTION(aligns, "push %rbp\nmov %rsp, %rbp\nand $-256, %rsp\nsub $256, %rsp\n"
                 "call plus_one\nmov %rbp, %rsp\npop %rbp\nret\n");
FUNCTION(keeps_rsp, "push %rsp\ncall plus_one\npop %rsp\nret\n");
FUNCTION(plus_one, "lea 1(%rdi), %eax\nret\n");
int by_enter(int a);
int leaves_and_jumps(int a);
int aligns(int a);
int keeps_rsp(int a);

KEEP static int all(int a) {
    int sum = by_enter(a);
    HIDE(sum);
    sum += leaves_and_jumps(a);
    HIDE(sum);
    return sum + aligns(a) + keeps_rsp(a);
}

int main(void) {
    int sum = all(1);
    HIDE(sum);
    sum += all(9);
    return EXPECT(sum == 3 + 3 + 2 + 2 + 19 + 11 + 10 + 10);
}
