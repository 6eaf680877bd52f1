// SPDX-License-Identifier: BSL-1.0

// Switches the kernel's function tracer on and off, for the functions that were set before.

#include "changes.hpp"

auto main() -> int {
    std::string const tracer = "/sys/kernel/tracing/current_tracer";
    changes::work();
    changes::put(tracer, "function");
    changes::work();
    changes::copy_names("ftrace");
    changes::work();
    changes::put(tracer, "nop");
    changes::work();
}
