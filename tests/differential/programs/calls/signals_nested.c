// SPDX-License-Identifier: BSL-1.0
// A handler that another signal interrupts, and a fault that a handler repairs.

#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "made.h"

static int volatile seen;
KEEP static int leaf(int a) { return a + 1; }
static void on_second(int number) { seen += leaf(number); }
static void on_first(int number) {
    seen += leaf(number);
    kill(getpid(), SIGUSR2);
    seen += leaf(1);
}
// Skips the instruction that faulted: 3 bytes.
static void on_fault(int number, siginfo_t* about, void* context) {
    (void)number;
    (void)about;
    seen += leaf(0);
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += 3;
}
FUNCTION(faults, "xor %eax, %eax\n.byte 0x48, 0x8b, 0x00\nmov $5, %eax\nret\n");
int faults(void);
KEEP static int raises(int a) {
    kill(getpid(), SIGUSR1);
    return leaf(a) + faults();
}

int main(void) {
    struct sigaction by = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &by, 0);
    signal(SIGUSR1, on_first);
    signal(SIGUSR2, on_second);
    int sum = raises(1);
    HIDE(sum);
    sum += raises(2);
    HIDE(sum);
    return EXPECT(sum == 2 + 3 + 10 && seen != 0);
}
