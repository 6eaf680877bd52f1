// SPDX-License-Identifier: BSL-1.0
// Code that continues in the next function without a jump.

#include "made.h"

__asm__(".text\n.globl add_two\n.type add_two, @function\n.p2align 4\nadd_two:\n"
        "add $1, %edi\n.size add_two, . - add_two\n.globl add_one\n"
        ".type add_one, @function\nadd_one: add $1, %edi\n"
        ".size add_one, . - add_one\n.globl add_none\n.type add_none, @function\n"
        "add_none: mov %edi, %eax\ncmp $3, %eax\njg .Lreturn\ncall small\n"
        ".Lreturn: ret\n.size add_none, . - add_none\n");
FUNCTION(small, "add $100, %eax\nret\n");
__asm__(".globl untyped_first, untyped_second\nuntyped_first: lea 1(%rdi), %rdi\n"
        "untyped_second: lea 3(%rdi), %eax\nret\n");
int add_two(int a);
int add_one(int a);
int add_none(int a);
int untyped_first(int a);
int untyped_second(int a);

KEEP static int all(int a) {
    int sum = add_two(a);
    HIDE(sum);
    sum += add_one(a);
    HIDE(sum);
    sum += add_none(a);
    HIDE(sum);
    sum += untyped_first(a);
    HIDE(sum);
    return sum + untyped_second(a);
}

int main(void) {
    int sum = all(1);
    HIDE(sum);
    sum += all(5);
    HIDE(sum);
    return EXPECT(sum == 103 + 102 + 101 + 5 + 4 + 7 + 6 + 5 + 9 + 8);
}
