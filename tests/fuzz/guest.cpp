// SPDX-License-Identifier: BSL-1.0
// Fuzzes a guest with Intel PT in a virtual machine, beside the same guest on a processor of its
// own: what they read and write must be the same, and no access may leave the guest's memory.
//
//   byte 0          bit 0 shadow tables, bit 1 the host traces, too
//   2 bytes each    the numbers by which accesses, events and tables are chosen; zeros at the end

#include <fuzz/check.hpp>
#include <support/hostile_guest.hpp>

#include <cstdio>

namespace {

/// A number whose low bits are those of the input.
auto spread(std::uint64_t from) -> std::uint64_t {
    return from | (from * 0x9E37'79B9'7F4A'7C15 & ~std::uint64_t{0xFFFF});
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    uint8_t const how = from.byte();
    size_t left = (size - (size != 0)) / 2;
    if (left > 4096) { return 0; }
    auto const next = [&from, &left] {
        if (left == 0) { return std::uint64_t{0}; }
        --left;
        std::uint64_t const low = from.byte();
        return spread(low | std::uint64_t{from.byte()} << 8U);
    };
    ptspec::test::pair_of_guests both{(how & 1) != 0 ? ptspec::vmx::guest_output::shadow
                                                     : ptspec::vmx::guest_output::guest_physical,
                                      next, (how & 2) != 0};
    while (left != 0 && both.difference.empty()) { both.step(); }
    both.finish();
    if (!both.difference.empty()) { std::fprintf(stderr, "%s\n", both.difference.c_str()); }
    fuzz::require(both.difference.empty(), "both guests see the same");
    return 0;
}
