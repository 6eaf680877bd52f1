// SPDX-License-Identifier: BSL-1.0
// Two translation units that include everything must link, and must share the same entities.
#include <ptspec/ptspec.hpp>

auto version_in_b() -> ptspec::version_number const*;

auto main() -> int { return version_in_b() == &ptspec::version ? 0 : 1; }
