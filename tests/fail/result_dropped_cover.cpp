// SPDX-License-Identifier: BSL-1.0
// expect: ignoring return value of
// expect: nodiscard
#include <ptspec/topa/regions_for_pages.hpp>

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

// A page that cannot be part of a region is refused, and no region is written.
auto regions_for(uint64_t const* pages, size_t count) {
    size_t regions = 0;
#ifndef SHOULD_FAIL
    bool const covers = !!ptspec::topa::regions_for_pages(pages, count, {46},
                                                          [&](auto) { ++regions; });
    return covers ? regions : 0;
#else
    ptspec::topa::regions_for_pages(pages, count, {46}, [&](auto) { ++regions; });
    return regions;
#endif
}
