// SPDX-License-Identifier: BSL-1.0

// Loads and unloads a module, and unloads another one that was there before the recording. In this
// order no address has two modules: no record says when one is unloaded.

#include "changes.hpp"

#include <sys/syscall.h>

auto main() -> int {
    int const from = open("loop.ko", O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, from, "", 0) != 0) { return 1; }
    changes::copy_names("module");
    if (syscall(SYS_delete_module, "loop", O_NONBLOCK) != 0) { return 2; }
    return syscall(SYS_delete_module, "dummy", O_NONBLOCK) != 0 ? 3 : 0;
}
