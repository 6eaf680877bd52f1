// SPDX-License-Identifier: BSL-1.0
// vfork, posix_spawn, system and a child that a signal kills.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

bool good = true;
void check(bool holds) { good = good && holds; }

auto wait_for(pid_t child) -> int {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

[[gnu::noinline]] auto child_of_vfork(int number) -> pid_t {
    auto const child = vfork();
    if (child == 0) {
        if (number % 2 == 0) { _exit(3 + number); }
        execl("/bin/true", "true", static_cast<char*>(nullptr));
        _exit(127);
    }
    return child;
}

}  // namespace

auto main() -> int {
    for (int i = 0; i < 4; ++i) {
        auto const status = wait_for(child_of_vfork(i));
        check(WIFEXITED(status) && WEXITSTATUS(status) == (i % 2 == 0 ? 3 + i : 0));
    }
    for (int i = 0; i < 4; ++i) {
        char name[] = "true";
        char* const arguments[] = {name, nullptr};
        char* const environment[] = {nullptr};
        pid_t child = 0;
        bool const exists = i != 3;
        auto const* const path = exists ? "/bin/true" : "/nonexistent/true";
        int const error = posix_spawn(&child, path, nullptr, nullptr, arguments, environment);
        // An emulator without shared memory reports a missing program only by the exit status.
        check(error == 0 || !exists);
        if (error == 0) {
            auto const status = wait_for(child);
            check(WIFEXITED(status) && WEXITSTATUS(status) == (exists ? 0 : 127));
        }
    }
    check(system("exit 5") == 5 << 8);

    // Killed while it sleeps: the trace of a process that is killed elsewhere may be incomplete.
    int ready[2];
    if (pipe(ready) != 0) { return 1; }
    auto const killed = fork();
    if (killed < 0) { return 1; }
    if (killed == 0) {
        check(write(ready[1], "", 1) == 1);
        for (;;) { (void)pause(); }
    }
    char byte = 1;
    check(read(ready[0], &byte, 1) == 1);
    usleep(200'000);
    check(kill(killed, SIGKILL) == 0);
    auto const status = wait_for(killed);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    auto const aborted = fork();
    if (aborted == 0) { abort(); }
    auto const how = wait_for(aborted);
    check(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
