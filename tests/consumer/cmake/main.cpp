// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ptspec.hpp>

static_assert(PTSPEC_VERSION_MAJOR >= 0);

auto main() -> int {}
