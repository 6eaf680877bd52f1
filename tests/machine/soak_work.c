// SPDX-License-Identifier: BSL-1.0

// Work to trace in soak.py: soak_work WHAT ROUNDS. Linked statically, and without the vDSO.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned sum;
static volatile sig_atomic_t signals;
static sigjmp_buf back;

static unsigned compute(unsigned n) {
    for (unsigned i = 0; i < n; ++i) { sum += (i & 3) ? i : sum / (i + 1); }
    return sum;
}
static void move_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set); /* fails while the processor is offline */
}
static void forks(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        pid_t const child = fork();
        if (child == 0) {
            move_to(i & 1);
            compute(2000);
            if (i % 5 == 4) { execl("/bin/true", "true", (char*)0); }
            _exit(0);
        }
        if (i & 1) { waitpid(child, 0, 0); }
    }
    while (wait(0) > 0) {}
}
static void* of_thread(void* rounds) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (long i = 0; i < (long)rounds; ++i) {
        move_to((int)(i & 1));
        pthread_mutex_lock(&lock);
        compute(500);
        pthread_mutex_unlock(&lock);
        if (i % 3 == 0) { sched_yield(); }
    }
    return 0;
}
static void threads(long rounds) {
    pthread_t others[3];
    for (int i = 0; i < 3; ++i) { pthread_create(&others[i], 0, of_thread, (void*)rounds); }
    for (int i = 0; i < 3; ++i) { pthread_join(others[i], 0); }
}
static void on_signal(int number) {
    (void)number;
    ++signals;
}
static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}
static void leave(int number) {
    (void)number;
    _exit(0);
}
static void take_signals(int rounds) {
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < rounds; ++i) {
        kill(getpid(), SIGUSR1);
        compute(300);
    }
}
static void fault(int rounds) {
    signal(SIGSEGV, on_fault);
    signal(SIGFPE, on_fault);
    signal(SIGILL, on_fault);
    signal(SIGTRAP, on_signal);
    for (volatile int i = 0; i < rounds; ++i) {
        if (sigsetjmp(back, 1) != 0) { continue; }
        switch (i % 5) {
            case 0: *(volatile int*)8 = 1; break;
            case 1: sum = 1 / (unsigned)(i - i); break;
            case 2: __asm__ volatile("ud2"); break;
            case 3: __asm__ volatile("int3"); break;
            default: {
                char* const at = mmap(0, 1 << 14, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                memset(at, i, 1 << 14);
                munmap(at, 1 << 14);
            }
        }
    }
}
static void string_and_calls(int rounds) {
    static char from[4096], to[4096];
    for (int i = 0; i < rounds; ++i) {
        memcpy(to, from, sizeof to);
        sum += (unsigned)(strlen(to) + (unsigned)snprintf(to, sizeof to, "%d %x", i, sum));
    }
}
static int write_vdso(void) {
    fwrite((void const*)getauxval(AT_SYSINFO_EHDR), 4096, 2, stdout);
    return fflush(stdout);
}

int main(int argc, char** argv) {
    char const* const what = argc > 1 ? argv[1] : "";
    int const rounds = argc > 2 ? atoi(argv[2]) : 10;
    if (strcmp(what, "vdso") == 0) { return write_vdso(); }
    for (int is_first = 1; is_first || strcmp(what, "forever") == 0; is_first = 0) {
        int const all = strcmp(what, "all") == 0 || strcmp(what, "forever") == 0;
        if (all || strcmp(what, "forks") == 0) { forks(rounds); }
        if (all || strcmp(what, "threads") == 0) { threads(rounds); }
        if (all || strcmp(what, "signals") == 0) { take_signals(rounds); }
        if (all || strcmp(what, "faults") == 0) { fault(rounds); }
        if (all || strcmp(what, "strings") == 0) { string_and_calls(rounds); }
        if (strcmp(what, "ptwrite") == 0) {
            signal(SIGILL, leave); /* processors without PTWRITE */
            for (int i = 0; i < rounds; ++i) {
                __asm__ volatile(".byte 0xf3, 0x0f, 0xae, 0xe0" : : "a"(i)); /* ptwrite %eax */
                compute(50);
            }
        }
    }
    return 0;
}
