// SPDX-License-Identifier: BSL-1.0
#pragma once

// The command that is executed: the program that the user named, or QEMU with a plugin.

#include "../common/find_program.hpp"
#include "../common/recorded/recording.hpp"
#include "../common/tool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

namespace pt_record {

/// The command with the interpreter of a script before it, as the kernel executes it.
inline auto with_interpreter(std::vector<std::string> command) -> std::vector<std::string> {
    for (int depth = 0; depth < 4; ++depth) {
        std::ifstream in{command[0], std::ios::binary};
        std::string line;
        if (in.get() != '#' || in.get() != '!' || !std::getline(in, line)) { break; }
        std::size_t const first = line.find_first_not_of(" \t");
        if (first == std::string::npos) { break; }
        std::size_t const end = line.find_last_not_of(" \t") + 1;
        std::size_t const blank = std::min(line.find_first_of(" \t", first), end);
        if (std::size_t const rest = line.find_first_not_of(" \t", blank); rest < end) {
            command.insert(command.begin(), line.substr(rest, end - rest));
        }
        command.insert(command.begin(), line.substr(first, blank - first));
    }
    return command;
}

/// Throws if the file is no program for 64-bit Linux on x86.
inline void require_program(std::string const& path) {
    std::ifstream in{path, std::ios::binary};
    unsigned char head[20] = {};
    in.read(reinterpret_cast<char*>(head), sizeof head);
    constexpr unsigned char magic[] = {0x7F, 'E', 'L', 'F'};
    if (!in || !std::equal(std::begin(magic), std::end(magic), head)) {
        throw tool::failure{path + ": no program, and no script that begins with #!"};
    }
    constexpr unsigned machine_386 = 3;
    constexpr unsigned machine_x86_64 = 62;
    bool const is_big_endian = head[5] == 2;
    unsigned const machine = is_big_endian ? head[18] * 256u + head[19]
                                           : head[19] * 256u + head[18];
    if (machine == machine_386) { throw tool::failure{path + ": a 32-bit program"}; }
    if (machine != machine_x86_64) {
        throw tool::failure{path + ": a program for another architecture than x86-64"};
    }
    if (head[4] != 2) { throw tool::failure{path + ": an x32 program"}; }
}

/// A value of QEMU's options: a comma is written twice.
inline auto option_value(std::string const& from) -> std::string {
    std::string to;
    for (char const letter : from) {
        to += letter;
        if (letter == ',') { to += letter; }
    }
    return to;
}

/// The command that runs a program in QEMU with the plugin.
inline auto qemu_command(std::string const& qemu, std::string const& plugin,
                         std::string const& directory, std::vector<std::string> const& program)
    -> std::vector<std::string> {
    std::vector<std::string> all{qemu, "-plugin",
                                 option_value(plugin) + ",directory=" + option_value(directory)};
    all.insert(all.end(), program.begin(), program.end());
    return all;
}

/// Passes signals to the program, while this exists. Those of the terminal are sent to both. After
/// the second one the program is killed.
class signal_relay {
public:
    signal_relay() {
        to_process() = 0;
        received() = 0;
        for (int const one : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) {
            struct sigaction now{};
            if (::sigaction(one, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) { continue; }
            now.sa_sigaction = handle;
            now.sa_flags = SA_SIGINFO;  // waitpid ends with EINTR
            (void)::sigfillset(&now.sa_mask);
            (void)::sigaction(one, &now, nullptr);
        }
    }
    /// The program executes in this process.
    void start(int process) {
        to_process() = process;
        if (received() != 0) { (void)::kill(process, received()); }
    }
    /// The program has ended.
    void end() { to_process() = 0; }
    /// The first signal that was passed; 0 if there was none.
    [[nodiscard]] static auto first() -> int { return received(); }

private:
    static auto to_process() -> int volatile& {
        static int volatile value = 0;
        return value;
    }
    static auto received() -> int volatile& {
        static int volatile value = 0;
        return value;
    }
    static void handle(int signal, ::siginfo_t* about, void*) {
        bool const is_of_terminal = about->si_code == SI_KERNEL;
        if (is_of_terminal || signal == SIGQUIT) { return; }
        int const error = errno;
        bool const is_first = received() == 0;
        if (is_first) { received() = signal; }
        if (to_process() != 0) { (void)::kill(to_process(), is_first ? signal : SIGKILL); }
        errno = error;
    }
};

/// Executes a command in a new process, after `prepare()`. Returns its number. Throws if there can
/// be no process; a command that cannot be executed ends with the status 127, as in a shell.
template <class Prepare>
auto start_process(std::vector<std::string> const& command, Prepare&& prepare) -> int {
    std::vector<char*> words;
    for (auto const& one : command) { words.push_back(const_cast<char*>(one.c_str())); }
    words.push_back(nullptr);
    int const child = ::fork();
    if (child < 0) { throw tool::failure{std::string{"fork: "} + std::strerror(errno)}; }
    if (child != 0) { return child; }
    tool::set_ignored_signals(SIG_DFL);
    prepare();
    ::execvp(words[0], words.data());
    tool::print_error(command[0] + ": " + std::strerror(errno));
    std::_Exit(127);
}

}  // namespace pt_record
