// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ptspec.hpp>

auto version_in_b() -> ptspec::version_number const*;

auto version_in_b() -> ptspec::version_number const* { return &ptspec::version; }
