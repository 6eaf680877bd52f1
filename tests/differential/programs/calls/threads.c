// SPDX-License-Identifier: BSL-1.0
// Threads, one of which ends in a call.

#include <pthread.h>

#include "made.h"

KEEP static long leaf(long a) { return a + 1; }
KEEP static long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; ++i) {
        sum += leaf(i);
        HIDE(sum);
    }
    return sum;
}
static void* returns(void* number) { return (void*)work((long)number); }
KEEP static void exits(long a) { pthread_exit((void*)leaf(a)); }
static void* leaves(void* number) {
    exits((long)number);
    return 0;
}

int main(void) {
    pthread_t all[4];
    long sum = 0;
    for (long i = 0; i < 4; ++i) {
        pthread_create(&all[i], 0, i == 3 ? leaves : returns, (void*)(i + 3));
    }
    for (int i = 0; i < 4; ++i) {
        void* got = 0;
        pthread_join(all[i], &got);
        sum += (long)got;
    }
    HIDE(sum);
    return EXPECT(sum == 6 + 10 + 15 + 7);
}
