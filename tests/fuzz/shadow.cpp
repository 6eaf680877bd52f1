// SPDX-License-Identifier: BSL-1.0
// Fuzzes shadow tables: a guest with them, and the same guest on a processor of its own, must get
// the same bytes, positions, status bits and interrupts. No memory that is not the guest's may be
// read or written, and the work is bounded by the storage.
//
//   byte 0       bit 0: 0 output alone, written range by range
//                       1 trace units that record events
//   the rest     choices, each in as few bytes as possible; after the end the last choice

#include <fuzz/check.hpp>
#include <support/shadow_twin.hpp>

namespace {

constexpr unsigned max_steps = 80;

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    using namespace ptspec::test;
    fuzz::input input{data, size};
    unsigned const head = input.byte();
    ptspec::test::dice const from{
        [&](uint64_t sides) { return input.is_empty() ? sides - 1 : input.below(sides); }};
    size_t const whole = size / 8;
    unsigned const steps = whole < max_steps ? static_cast<unsigned>(whole) : max_steps;
    shadowed::counts seen;
    char const* const what = (head & 1) != 0 ? shadowed::unit_run{from, seen}.run(steps)
                                             : shadowed::output_run{from, seen}.run(steps);
    fuzz::require(what == nullptr, what != nullptr ? what : "");
    return 0;
}
