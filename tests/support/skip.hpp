// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <string>

/// How a unit test says that it lacks something: tests/support/skips.py.
namespace ptspec::test {

/// Exit status of a test that was skipped, wholly or in part.
inline constexpr int skipped_status = 77;

inline bool any_skipped = false;

/// Reports that `part` of this program cannot run without `need`.
inline void skip(std::string const& need, std::string const& part) {
    std::printf("skipped: %s: %s\n", need.c_str(), part.c_str());
    any_skipped = true;
}

}  // namespace ptspec::test
