// SPDX-License-Identifier: BSL-1.0
// Functions that the C library calls: by qsort, bsearch, atexit and a constructor.

#include <stdlib.h>
#include <unistd.h>

#include "made.h"

static int volatile calls;
KEEP static int difference(int a, int b) { return a - b; }
static int compare(void const* a, void const* b) {
    calls += 1;
    return difference(*(int const*)a, *(int const*)b);
}
static void at_end(void) { calls += difference(1, 0); }
__attribute__((constructor)) static void at_begin(void) { atexit(at_end); }
__attribute__((destructor)) static void at_very_end(void) {
    if (calls < 10) { _exit(1); }
}

int main(void) {
    int all[] = {5, 2, 9, 1, 7, 3, 8};
    qsort(all, 7, sizeof all[0], compare);
    int const wanted = 7;
    int const* found = bsearch(&wanted, all, 7, sizeof all[0], compare);
    return EXPECT(found == all + 4);
}
