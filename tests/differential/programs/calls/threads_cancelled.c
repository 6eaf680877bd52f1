// SPDX-License-Identifier: BSL-1.0
// A thread that another one cancels; its cleanup runs while its frames are unwound.

#include <pthread.h>

#include "made.h"

static int volatile cleaned;
KEEP static void cleanup(void* number) { cleaned += (int)(long)number; }
KEEP static void inner(void) {
    pthread_cleanup_push(cleanup, (void*)2);
    pthread_testcancel();
    pthread_cleanup_pop(0);
}
KEEP static void outer(void) {
    pthread_cleanup_push(cleanup, (void*)3);
    inner();
    pthread_cleanup_pop(0);
}
static void* waits(void* unused) {
    pthread_cancel(pthread_self());
    outer();
    return unused;
}

int main(void) {
    pthread_t one;
    void* got = 0;
    pthread_create(&one, 0, waits, 0);
    pthread_join(one, &got);
    return EXPECT(got == PTHREAD_CANCELED && cleaned == 5);
}
