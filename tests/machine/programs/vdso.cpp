// SPDX-License-Identifier: BSL-1.0

// Times by the vDSO, whose code it writes to out/vdso, and by the page of vsyscalls.

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

auto main() -> int {
    auto const* const code = reinterpret_cast<char const*>(getauxval(AT_SYSINFO_EHDR));
    constexpr std::size_t size = 8192;
    int const file = open("out/vdso", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (code == nullptr || file < 0 || write(file, code, size) != size) { return 1; }
    close(file);
    std::int64_t last = 0;
    for (int i = 0; i < 100; ++i) {
        timespec now{};
        timeval day{};
        if (clock_gettime(CLOCK_MONOTONIC, &now) != 0 || gettimeofday(&day, nullptr) != 0) {
            return 1;
        }
        std::int64_t const ns = now.tv_sec * 1'000'000'000 + now.tv_nsec;
        if (ns < last) { return 1; }
        last = ns;
    }
    constexpr std::uintptr_t vsyscall_time = 0xFFFF'FFFF'FF60'0400;
    auto* const get_time = reinterpret_cast<time_t (*)(time_t*)>(vsyscall_time);
    for (int i = 0; i < 3; ++i) {
        if (get_time(nullptr) < 1) { return 1; }
    }
}
