// SPDX-License-Identifier: BSL-1.0

// C++ exceptions through several frames.

#include <stdexcept>

namespace {

[[gnu::noinline]] void deep(int depth) {
    if (depth == 0) { throw std::runtime_error{"deep"}; }
    deep(depth - 1);
    asm volatile("");
}

}  // namespace

auto main() -> int {
    int caught = 0;
    for (int i = 0; i < 10; ++i) {
        try {
            deep(i);
        } catch (std::exception const&) { ++caught; }
    }
    return caught == 10 ? 0 : 1;
}
