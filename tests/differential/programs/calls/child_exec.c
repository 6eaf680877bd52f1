// SPDX-License-Identifier: BSL-1.0
// A child by vfork that executes another program.

#include <sys/wait.h>
#include <unistd.h>

#include "made.h"

KEEP static int leaf(int a) { return a + 1; }
KEEP static void runs(char** words) {
    execv(words[0], words);
    _exit(3);
}
KEEP static int child(char** words) {
    int status = 0;
    pid_t one = vfork();
    if (one == 0) { runs(words); }
    waitpid(one, &status, 0);
    return leaf(status);
}

int main(void) {
    char* words[] = {"/bin/true", 0};
    int status = child(words);
    HIDE(status);
    return EXPECT(status == 1);
}
