// SPDX-License-Identifier: BSL-1.0
// Functions with several names, of size 0, with a symbol inside, and code without a symbol.

#include "made.h"

KEEP int real_name(int a) { return a + 1; }
int other_name(int a) __attribute__((alias("real_name")));
int weak_name(int a) __attribute__((weak, alias("real_name")));
__asm__(".text\n.globl no_size\n.type no_size, @function\n.p2align 4\nno_size:\n"
        "lea 2(%rdi), %eax\nret\n");
FUNCTION(with_entry, "inc %edi\nlea .Llater(%rip), %rax\ncall *%rax\njmp .Lout\n"
                     ".Llater: .globl inside\n.type inside, @function\n"
                     "inside: lea 3(%rdi), %eax\nret\n.size inside, . - inside\n"
                     ".Lout: test %eax, %eax\nret\n");
__asm__(".text\n.p2align 4\n.Lnameless: lea 4(%rdi), %eax\nret\n");
FUNCTION(calls_nameless, "call .Lnameless\nadd $1, %eax\nret\n");
FUNCTION(jumps_nameless, "inc %edi\njmp .Lnameless\n");
int no_size(int a);
int with_entry(int a);
int inside(int a);
int calls_nameless(int a);
int jumps_nameless(int a);

KEEP static int all(int a) {
    int sum = real_name(a);
    HIDE(sum);
    sum += other_name(a) + weak_name(a);
    HIDE(sum);
    sum += no_size(a) + with_entry(a);
    HIDE(sum);
    return sum + inside(a) + calls_nameless(a) + jumps_nameless(a);
}

int main(void) {
    int sum = all(1);
    HIDE(sum);
    return EXPECT(sum == 2 + 2 + 2 + 3 + 5 + 4 + 6 + 6);
}
