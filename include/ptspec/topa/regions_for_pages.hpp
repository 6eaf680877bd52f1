// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/table.hpp>

/// Output regions for pages that an allocator chose.
namespace ptspec::topa {

/// The result of `regions_for_pages`.
struct page_regions {
    size_t regions = 0;        ///< the number of regions passed to `take`
    rule broken = rule::none;  ///< the rule that a page breaks
    size_t page = 0;           ///< the number of that page

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
    friend constexpr auto operator==(page_regions, page_regions) -> bool = default;
};

/// The largest region that starts at an address and has at most `max_bytes` bytes, but at least 4
/// KB. The address must be a multiple of 4 KB.
///
/// Source: OUT-041, OUT-042.
[[nodiscard]] constexpr auto largest_region(phys_addr base, uint64_t max_bytes) noexcept -> region {
    unsigned const size_limit = highest_bit(max_bytes | 4096);
    unsigned const alignment = lowest_bit(base.value | uint64_t{1} << 27);  // 128 MB at most
    unsigned const bit = size_limit < alignment ? size_limit : alignment;
    return {.base = base, .size = static_cast<region_size>(bit - 12)};
}

/// Calls `take(region)` with the fewest regions that cover exactly these pages of 4 KB, in this
/// order. Contiguous pages are merged, and each region is aligned to its size. The pages are filled
/// in this order: sort them first if the order is free.
///
/// Shape:  `pages` are physical addresses: `phys_addr`, or integers of any type.
/// Errors: OUT-062 a page that is not at a multiple of 4 KB; OUT-063 a page beyond the width. Then
///         `take` is not called.
/// Source: OUT-041, OUT-042, OUT-141.
template <convertible_to<phys_addr> Page, callable<region> Take>
[[nodiscard]] constexpr auto regions_for_pages(Page const* pages, size_t count, max_phys_addr width,
                                               Take&& take) noexcept -> page_regions {
    auto const page = [=](size_t i) -> phys_addr { return pages[i]; };
    for (size_t i = 0; i < count; ++i) {
        if (!is_aligned(page(i), 4096)) { return {0, rule::OUT_062, i}; }
        if (!width.contains(page(i))) { return {0, rule::OUT_063, i}; }
    }
    page_regions result;
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && page(i + run) - page(i) == run * uint64_t{4096}) { ++run; }
        phys_addr at = page(i);
        for (uint64_t left = run * uint64_t{4096}; left != 0;) {
            region const next = largest_region(at, left);
            take(next);
            ++result.regions;
            at += bytes_in(next.size);
            left -= bytes_in(next.size);
        }
        i += run;
    }
    return result;
}

}  // namespace ptspec::topa
