// SPDX-License-Identifier: BSL-1.0
// at most: 800 bytes by g++
// at most: 1200 bytes by clang++
// Writing a table for regions that are known at run time checks all rules.

#include <ptspec/topa/table.hpp>

using namespace ptspec;

auto write(topa::limits of, uint64_t table, topa::region const* regions, size_t count,
           topa::entry* to) noexcept -> rule {
    return topa::write_table(of, table, regions, count, topa::link(table), to).broken;
}
