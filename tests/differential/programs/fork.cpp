// SPDX-License-Identifier: BSL-1.0
// Children that compute and fork again, a child that executes /bin/true, and a parent that waits
// for them.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

[[gnu::noinline]] auto collatz(unsigned n) -> unsigned {
    unsigned steps = 0;
    for (; n != 1; ++steps) { n = n % 2 == 0 ? n / 2 : 3 * n + 1; }
    return steps;
}
[[gnu::noinline]] auto sum(unsigned limit) -> unsigned {
    unsigned all = 0;
    for (unsigned i = 1; i < limit; ++i) { all += collatz(i); }
    return all;
}

/// Code that only children execute.
[[gnu::noinline]] auto child_work(unsigned number) -> int {
    unsigned const made = sum(500 + number);
    if (number % 3 == 0) {
        auto const grandchild = fork();
        if (grandchild == 0) { _exit(static_cast<int>(sum(300) % 200)); }
        int status = 0;
        if (waitpid(grandchild, &status, 0) != grandchild || !WIFEXITED(status) ||
            static_cast<unsigned>(WEXITSTATUS(status)) != sum(300) % 200) {
            return 255;
        }
    }
    return static_cast<int>(made % 200);
}

}  // namespace

auto main() -> int {
    bool good = sum(10) == 61;
    int ends[2];
    if (pipe(ends) != 0) { return 1; }
    constexpr unsigned count = 7;
    pid_t children[count];
    for (unsigned i = 0; i < count; ++i) {
        children[i] = fork();
        if (children[i] < 0) { return 1; }
        if (children[i] == 0) {
            char const letter = static_cast<char>('a' + i);
            if (write(ends[1], &letter, 1) != 1) { _exit(254); }
            _exit(child_work(i));
        }
        good = sum(100 + i) != 0 && good;
    }
    for (unsigned i = 0; i < count; ++i) {
        int status = 0;
        char letter = 0;
        good = waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) &&
               static_cast<unsigned>(WEXITSTATUS(status)) == sum(500 + i) % 200 && good;
        good = read(ends[0], &letter, 1) == 1 && letter >= 'a' && letter < 'a' + 7 && good;
    }
    auto const executed = fork();
    if (executed == 0) {
        execl("/bin/true", "true", static_cast<char*>(nullptr));
        _exit(127);
    }
    int status = 0;
    good = waitpid(executed, &status, 0) == executed && status == 0 && good;
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
