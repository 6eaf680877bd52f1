// SPDX-License-Identifier: BSL-1.0
// Functions that share a body: both jump to it, and it jumps back into one of them.

#include "made.h"

FUNCTION(entry_a, "mov $1, %esi\njmp shared_body\n.Lback: add $5, %eax\nret\n");
FUNCTION(entry_b, "mov $2, %esi\njmp shared_body\n");
FUNCTION(shared_body, "lea (%rdi,%rsi,8), %eax\ncmp $1, %esi\nje .Lback\npush %rbx\n"
                      "call helper\nadd $7, %eax\npop %rbx\nret\n");
FUNCTION(helper, "inc %eax\nret\n");
FUNCTION(ping, "dec %edi\njs .Ldone\njmp pong\n.Ldone: mov $3, %eax\nret\n");
FUNCTION(pong, "dec %edi\njmp ping\n");
int entry_a(int a);
int entry_b(int a);
int ping(int a);

KEEP static int all(int a) {
    int sum = entry_a(a);
    HIDE(sum);
    sum += entry_b(a);
    HIDE(sum);
    return sum + ping(a);
}

int main(void) {
    int sum = all(1);
    HIDE(sum);
    sum += all(50);
    return EXPECT(sum == 14 + 25 + 3 + 63 + 74 + 3);
}
