// SPDX-License-Identifier: BSL-1.0

// gate NAME PROGRAM: between the enabling and the disabling of the events by perf (--control
// fifo:ctl,ack) it runs the program. The emulator's log is on from `@begin:NAME@` on the console to
// `@end:NAME@`, each answered by a line.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace {

void put(int to, std::string const& text) {
    if (write(to, text.data(), text.size()) < 0) { _exit(2); }
}
void get_line(int from) {
    for (char one = 0; one != '\n';) {
        if (read(from, &one, 1) != 1) { _exit(2); }
    }
}

}  // namespace

auto main(int count, char** words) -> int {
    if (count != 3) { return 2; }
    int const console = open("/dev/console", O_RDWR | O_NOCTTY);
    int const control = open("ctl", O_RDWR);
    int const answer = open("ack", O_RDWR);
    put(console, std::string{"\n@begin:"} + words[1] + "@\n");
    get_line(console);
    put(control, "enable\n");
    get_line(answer);
    int status = 0;
    pid_t const child = fork();
    if (child == 0) {
        execl(words[2], words[2], nullptr);
        _exit(127);
    }
    waitpid(child, &status, 0);
    put(control, "disable\n");
    get_line(answer);
    put(console, std::string{"\n@end:"} + words[1] + "@\n");
    get_line(console);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
