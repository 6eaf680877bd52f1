// SPDX-License-Identifier: BSL-1.0
// expect: check_entry(0, 1,
// expect: a_region_must_be_aligned_to_its_own_size

// This file does not compile, and the message says why: the second region has 64 KB, but its base
// is not a multiple of 64 KB.

#include <ptspec/topa/builders.hpp>

using namespace ptspec;

constexpr auto ring = topa::ring(
    0x1'0000'0000, topa::region{.base = 0x1'0010'0000, .size = topa::region_size::size_1M},
    topa::region{.base = 0x1'0020'8000, .size = topa::region_size::size_64K});

auto main() -> int { return ring.size() == 3 ? 0 : 1; }
