// SPDX-License-Identifier: BSL-1.0

// gate NAME PROGRAM [ARGUMENT..]: between the enabling and the disabling of the events by perf
// (--control fifo:ctl,ack) it runs the program. The emulator's log is on from `@begin:NAME@` on the
// console to `@end:NAME@`, each answered by a line. The program `./itself` is a function here, in
// this thread.
// If NAME begins with `snapshot`, perf, the parent, takes a snapshot when the program has ended.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace {

void put(int to, std::string const& text) {
    if (write(to, text.data(), text.size()) < 0) { _exit(2); }
}
void get_line(int from) {
    for (char one = 0; one != '\n';) {
        if (read(from, &one, 1) != 1) { _exit(2); }
    }
}

void run_itself() {
    std::string text;
    for (int i = 0; i < 2000; ++i) { text += std::to_string(i * i) + (getppid() > 0 ? ' ' : '-'); }
}
auto run(char** words) -> int {
    if (std::string_view{words[0]} == "./itself") {
        run_itself();
        return 0;
    }
    pid_t const child = fork();
    if (child == 0) {
        execvp(words[0], words);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

auto main(int count, char** words) -> int {
    if (count < 3) { return 2; }
    int const console = open("/dev/console", O_RDWR | O_NOCTTY);
    int const control = open("ctl", O_RDWR);
    int const answer = open("ack", O_RDWR);
    put(console, std::string{"\n@begin:"} + words[1] + "@\n");
    get_line(console);
    put(control, "enable\n");
    get_line(answer);
    int const status = run(words + 2);
    if (std::string_view{words[1]}.starts_with("snapshot")) { kill(getppid(), SIGUSR2); }
    put(control, "disable\n");
    get_line(answer);
    put(console, std::string{"\n@end:"} + words[1] + "@\n");
    get_line(console);
    return status;
}
