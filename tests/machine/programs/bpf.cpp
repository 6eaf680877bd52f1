// SPDX-License-Identifier: BSL-1.0

// Loads BPF programs, executes them as filters of a socket, and unloads them.

#include "changes.hpp"

#include <linux/bpf.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int helper_ktime_get_ns = 5;

/// A program that calls a helper some times, and accepts each packet.
auto load(char const* name, int calls) -> int {
    std::vector<bpf_insn> code;
    for (int i = 0; i < calls; ++i) {
        code.push_back({BPF_JMP | BPF_CALL, 0, 0, 0, helper_ktime_get_ns});
        code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0, i});
    }
    code.push_back({BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1000});
    code.push_back({BPF_JMP | BPF_EXIT, 0, 0, 0, 0});
    static char const license[] = "GPL";
    bpf_attr how{};
    how.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    how.insn_cnt = static_cast<std::uint32_t>(code.size());
    how.insns = reinterpret_cast<std::uint64_t>(code.data());
    how.license = reinterpret_cast<std::uint64_t>(license);
    std::strncpy(how.prog_name, name, sizeof how.prog_name - 1);
    return static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &how, sizeof how));
}
void send(int const* ends) {
    for (int i = 0; i < 3; ++i) {
        char text[8]{};
        if (write(ends[0], text, sizeof text) != sizeof text ||
            read(ends[1], text, sizeof text) != sizeof text) {
            std::exit(3);
        }
    }
}

}  // namespace

auto main() -> int {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) { return 1; }
    changes::put("/proc/sys/net/core/bpf_jit_enable", "1");
    changes::put("/proc/sys/net/core/bpf_jit_kallsyms", "1");
    send(ends);
    for (int i = 1; i <= 2; ++i) {
        auto const name = "filter_" + std::to_string(i);
        int const program = load(name.c_str(), 2 * i);
        if (program < 0) { return 2; }
        if (setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof program) != 0) {
            return 4;
        }
        send(ends);
        changes::copy_names("bpf");
        send(ends);
        if (setsockopt(ends[1], SOL_SOCKET, SO_DETACH_BPF, &program, sizeof program) != 0) {
            return 5;
        }
        close(program);
        usleep(300'000);  // the kernel frees it later
        send(ends);
    }
}
