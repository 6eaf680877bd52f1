// SPDX-License-Identifier: BSL-1.0
// expect: ignoring return value of
// expect: nodiscard
#include <ptspec/topa/table.hpp>

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

// Without a link the last region needs STOP: this table is refused and stays empty.
void place(ptspec::topa::entry* to) {
    ptspec::topa::region const regions[] = {{.base = 0x10'0000}, {.base = 0x20'0000}};
#ifndef SHOULD_FAIL
    if (ptspec::topa::write_table({}, 0x1000, regions, 2, {}, to).broken != ptspec::rule::none) {
        return;
    }
#else
    ptspec::topa::write_table({}, 0x1000, regions, 2, {}, to);
#endif
}
