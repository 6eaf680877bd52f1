// SPDX-License-Identifier: BSL-1.0

// Processes that run one after the other.

#include <sys/wait.h>
#include <unistd.h>

auto main() -> int {
    int good = 0;
    for (int i = 0; i < 5; ++i) {
        pid_t const child = fork();
        if (child == 0) {
            int volatile sum = 0;
            for (int k = 0; k < 2000; ++k) { sum = sum + (k % 3 == 0 ? k : i); }
            _exit(i);
        }
        int status = 0;
        if (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i) { ++good; }
    }
    return good == 5 ? 0 : 1;
}
