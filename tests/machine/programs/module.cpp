// SPDX-License-Identifier: BSL-1.0

// Unloads a module that was there before the recording, and loads and unloads another one.

#include "changes.hpp"

#include <sys/syscall.h>

auto main() -> int {
    if (syscall(SYS_delete_module, "dummy", O_NONBLOCK) != 0) { return 1; }
    int const from = open("loop.ko", O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, from, "", 0) != 0) { return 2; }
    changes::copy_names("module");
    return syscall(SYS_delete_module, "loop", O_NONBLOCK) != 0 ? 3 : 0;
}
