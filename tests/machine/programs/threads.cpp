// SPDX-License-Identifier: BSL-1.0

// Threads that take turns.

#include <sched.h>

#include <thread>
#include <vector>

auto main() -> int {
    std::vector<std::thread> all;
    for (int i = 0; i < 4; ++i) {
        all.emplace_back([i] {
            int volatile sum = 0;
            for (int k = 0; k < 3000; ++k) {
                sum = sum + (k % 5 == 0 ? k : i);
                if (k % 300 == 0) { sched_yield(); }
            }
        });
    }
    for (auto& one : all) { one.join(); }
}
