// SPDX-License-Identifier: BSL-1.0

// Enables, disables and removes the probes of the kernel that were defined before. The kernel
// replaces an INT3 by a jump later.

#include "changes.hpp"

auto main() -> int {
    std::string const tracing = "/sys/kernel/tracing/";
    changes::work();
    changes::put(tracing + "events/kprobes/enable", "1");
    changes::work();
    usleep(500'000);
    changes::work();
    changes::copy_names("kprobe");
    changes::work();
    changes::put(tracing + "events/kprobes/enable", "0");
    changes::work();
    changes::put(tracing + "kprobe_events", "\n");
    changes::work();
}
