// SPDX-License-Identifier: BSL-1.0

// Sorts, recurses deeper than 64 calls, and jumps through a table.

#include <algorithm>
#include <vector>

namespace {

auto volatile sink = 0U;

}  // namespace

extern "C" [[gnu::noinline]] void sort_all(std::vector<unsigned>& of) {
    std::sort(of.begin(), of.end());
}
extern "C" [[gnu::noinline, gnu::optimize("no-optimize-sibling-calls")]] auto recurse(
    unsigned depth) -> unsigned {
    if (depth == 0) { return sink; }
    return recurse(depth - 1) + (sink ^ depth);
}

namespace {

[[gnu::noinline]] auto through_table(unsigned which, unsigned value) -> unsigned {
    switch (which % 8) {
        case 0: return value * 3;
        case 1: sink = value; return value + sink;
        case 2: return value ^ 0x55;
        case 3: return value >> (sink & 3);
        case 4: sink = sink + 1; return value;
        case 5: return recurse(value % 100);
        case 6: return value << 1;
        default: return ~value;
    }
}

}  // namespace

auto main() -> int {
    std::vector<unsigned> numbers(1000);
    unsigned next = 1;
    for (auto& one : numbers) { one = next = next * 1664525 + 1013904223; }
    sort_all(numbers);
    for (unsigned i = 0; i < 500; ++i) { sink = through_table(numbers[i] >> 7, i); }
    sink = recurse(300);
}
