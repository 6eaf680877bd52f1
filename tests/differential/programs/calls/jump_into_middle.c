// SPDX-License-Identifier: BSL-1.0
// Jumps from outside into the middle of a function, which returns for them.

#include "made.h"

FUNCTION(whole, "mov $1, %eax\nadd %edi, %eax\n.Lmiddle: add $5, %eax\ntest %edi, %edi\n"
                "js .Lend\nadd $2, %eax\n.Lend: ret\n");
FUNCTION(into_middle, "mov $70, %eax\njmp .Lmiddle\n");
FUNCTION(into_end, "mov $9, %eax\ntest %edi, %edi\njz .Lend\ndec %edi\njmp whole\n");
int whole(int a);
int into_middle(int a);
int into_end(int a);

KEEP static int three_ways(int a) {
    int sum = whole(a);
    HIDE(sum);
    sum += into_middle(a);
    HIDE(sum);
    return sum + into_end(a);
}

int main(void) {
    int sum = three_ways(0);
    HIDE(sum);
    sum += three_ways(4);
    HIDE(sum);
    return EXPECT(sum == 8 + 77 + 9 + 12 + 77 + 11);
}
