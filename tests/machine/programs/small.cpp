// SPDX-License-Identifier: BSL-1.0

// A few system calls and page faults.

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

auto main() -> int {
    for (int i = 0; i < 3; ++i) {
        int const file = open("/proc/self/stat", O_RDONLY);
        char text[256];
        if (file < 0 || read(file, text, sizeof text) < 0) { return 1; }
        close(file);
    }
    auto* const pages = static_cast<char volatile*>(std::malloc(1 << 20));
    for (unsigned i = 0; i < 1 << 20; i += 65536) { pages[i] = 1; }
}
