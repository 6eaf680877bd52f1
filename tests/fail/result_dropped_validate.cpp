// SPDX-License-Identifier: BSL-1.0
// expect: ignoring return value of
// expect: nodiscard
#include <ptspec/base/host_memory.hpp>
#include <ptspec/topa/validate.hpp>

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

// Without findings the table may still be bad: the memory may have faulted before the first one.
auto findings_in(ptspec::host_memory& memory) {
    size_t findings = 0;
#ifndef SHOULD_FAIL
    auto const end = ptspec::topa::validate(memory, 0x1000, {}, [&](auto) { ++findings; });
    return end.how == ptspec::topa::table_end::unreadable ? ~size_t{0} : findings;
#else
    ptspec::topa::validate(memory, 0x1000, {}, [&](auto) { ++findings; });
    return findings;
#endif
}
