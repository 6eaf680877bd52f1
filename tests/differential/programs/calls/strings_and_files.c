// SPDX-License-Identifier: BSL-1.0
// String instructions, system calls, and functions of the C library.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "made.h"

FUNCTION(fill, "mov %rsi, %rcx\nmov $7, %al\nrep stosb\nmov $0, %ecx\nrep stosb\nret\n");
FUNCTION(copies, "mov %rdx, %rcx\nrep movsb\nret\n");
void fill(char* at, unsigned long n);
void copies(char* to, char const* from, unsigned long n);
KEEP static int reads(void) {
    char got[64];
    int const file = open("/dev/zero", O_RDONLY);
    long const n = read(file, got, sizeof got);
    close(file);
    return (int)n;
}

int main(void) {
    char one[100], two[100], text[40];
    fill(one, sizeof one);
    copies(two, one, sizeof two);
    int sum = reads() + memcmp(one, two, sizeof one);
    snprintf(text, sizeof text, "%d %s", sum, "words");
    return EXPECT(strcmp(text, "64 words") == 0);
}
