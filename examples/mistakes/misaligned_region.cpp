// SPDX-License-Identifier: BSL-1.0

// This does not build, and says why: the second region has 64 KB, and does not begin at a multiple
// of that.

#include <ptspec/topa/builders.hpp>

using namespace ptspec;

constexpr auto ring = topa::ring(
    0x1'0000'0000, topa::region{.base = 0x1'0010'0000, .size = topa::region_size::size_1M},
    topa::region{.base = 0x1'0020'8000, .size = topa::region_size::size_64K});

auto main() -> int { return ring.size() == 3 ? 0 : 1; }
