// SPDX-License-Identifier: BSL-1.0

// PTWRITE of known values: 1000H to 1063H.

#include <immintrin.h>

auto main() -> int {
    for (unsigned i = 0; i < 100; ++i) { _ptwrite64(0x1000 + i); }
}
