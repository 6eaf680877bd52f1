// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the programs share that change the kernel's code while `gate` traces them.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace changes {

inline void put(std::string const& file, std::string const& text) {
    int const to = open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (to < 0 || write(to, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        std::exit(1);
    }
    close(to);
}
inline void work() {
    for (int i = 0; i < 3; ++i) {
        struct stat found{};
        char text[64];
        int const from = open("/proc/version", O_RDONLY | O_CLOEXEC);
        if (from < 0 || read(from, text, sizeof text) <= 0 || fstat(from, &found) != 0) {
            std::exit(1);
        }
        close(from);
    }
}
/// Adds the names of the kernel's functions to out/NAME.kallsyms, and waits. Neither the trace
/// nor the log has that.
inline void copy_names(std::string const& name) {
    int const console = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int const control = open("ctl", O_RDWR | O_CLOEXEC);
    int const answer = open("ack", O_RDWR | O_CLOEXEC);
    auto const say = [](int to, int from, std::string const& text) {
        if (write(to, text.data(), text.size()) < 0) { std::exit(1); }
        for (char one = 0; one != '\n';) {
            if (read(from, &one, 1) != 1) { std::exit(1); }
        }
    };
    say(control, answer, "disable\n");
    say(console, console, "\n@end:" + name + "@\n");
    sleep(1);  // perf reads the code of BPF programs
    std::ofstream{"out/" + name + ".kallsyms", std::ios::app}
        << std::ifstream{"/proc/kallsyms"}.rdbuf();
    say(console, console, "\n@begin:" + name + "@\n");
    say(control, answer, "enable\n");
}

}  // namespace changes
