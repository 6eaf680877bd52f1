// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/entry.hpp>

/// Tables of Physical Addresses, built and proved while compiling.
namespace ptspec {

namespace build_error {
void a_table_must_begin_at_a_multiple_of_4_KB();
void a_region_must_be_aligned_to_its_own_size();
void an_address_must_lie_below_the_physical_width();
void a_table_must_have_an_output_region();
}  // namespace build_error

namespace topa {

/// A request for an output region.
struct region {
    uint64_t base = 0;  ///< physical address, a multiple of the size
    region_size size = region_size::size_4K;
    bool interrupt = false;  ///< INT: an interrupt when it is full
    bool stop = false;       ///< STOP: no more trace when it is full
};

/// The entry for a region. Address bits 11:0 are cut off.
[[nodiscard]] constexpr auto entry_for(region which) noexcept -> entry {
    return entry{}.with(entry::INT{which.interrupt}, entry::STOP{which.stop},
                        entry::Size{which.size}, entry::Base{wrapped{which.base}});
}

/// A table as it stands in memory. It has to be placed at a multiple of 4096, at the physical
/// address it was built for.
template <size_t Entries>
struct table {
    entry entries[Entries];

    [[nodiscard]] static constexpr auto size() noexcept -> size_t { return Entries; }
    friend constexpr auto operator==(table const&, table const&) -> bool = default;
};

/// What is wrong with a table, and at which entry.
struct finding {
    rule broken = rule::none;
    size_t index = 0;

    friend constexpr auto operator==(finding const&, finding const&) -> bool = default;
};

/// A table, or what forbids it.
template <size_t Entries>
struct built {
    finding why{};
    topa::table<Entries> table{};

    constexpr explicit operator bool() const noexcept { return why.broken == rule::none; }
};

namespace detail {

/// The rule that a region breaks, Base bits below 4 KB included, which an entry does not have.
constexpr auto check_region(size_t index, region which, max_phys_addr width) noexcept -> rule {
    return !is_aligned(which.base, 4096) ? rule::OUT_062
                                         : broken_rule(entry_for(which), index, width);
}

constexpr auto check_table_base(uint64_t base, max_phys_addr width) noexcept -> rule {
    return !is_aligned(base, 4096) ? rule::OUT_061
           : !width.reaches(base)  ? rule::OUT_063
                                   : rule::none;
}

/// Stops the build with the mistake's name.
constexpr void check_entry([[maybe_unused]] size_t index, rule broken) {
    switch (broken) {
        case rule::none: return;
        case rule::OUT_061: return build_error::a_table_must_begin_at_a_multiple_of_4_KB();
        case rule::OUT_062: return build_error::a_region_must_be_aligned_to_its_own_size();
        case rule::OUT_063: return build_error::an_address_must_lie_below_the_physical_width();
        default: return build_error::a_table_must_have_an_output_region();
    }
}

/// One call an entry, so that compilers show which: g++ shows an argument as it is written, and
/// clang 14 and 16 show no template arguments.
template <size_t... Index>
constexpr void check_entries(index_list<Index...>, finding why) {
    (check_entry(Index, why.index == Index ? why.broken : rule::none), ...);
}

}  // namespace detail

/// A ring: the regions in order, then a link back to the table itself. This is the form for run
/// time and for templates; `ring` is the one that stops the build.
///
/// Units:  `base` is the physical address at which the table will stand.
/// Errors: OUT-061 base not a multiple of 4 KB; OUT-062 region not aligned to its size; OUT-063 an
///         address beyond `width`. The table is then all zero.
/// Source: SDM vol. 3, "Table of Physical Addresses (ToPA)"; OUT-043, OUT-045, OUT-047, OUT-056.
template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_ring(max_phys_addr width, uint64_t base,
                                      Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    constexpr size_t count = sizeof...(Regions);
    if (rule const broken = detail::check_table_base(base, width); broken != rule::none) {
        return {.why = {broken, count}};
    }
    region const wanted[count + 1] = {regions...};
    for (size_t i = 0; i < count; ++i) {
        if (rule const broken = detail::check_region(i, wanted[i], width); broken != rule::none) {
            return {.why = {broken, i}};
        }
    }
    if (count == 0) { return {.why = {rule::OUT_066, 0}}; }
    return {.table = {{entry_for(regions)..., link_to(base)}}};
}

template <same_as<region>... Regions>
[[nodiscard]] constexpr auto try_ring(uint64_t base, Regions... regions) noexcept
    -> built<sizeof...(Regions) + 1> {
    return try_ring(max_phys_addr{}, base, regions...);
}

/// A ring, proved while compiling. A mistake stops the build with its name and the entry's index.
///
/// Units:  `base` is the physical address at which the table will stand; `width` is the MAXPHYADDR
///         that the processor has at least, 52 unless said otherwise.
/// Source: as `try_ring`.
template <same_as<region>... Regions>
[[nodiscard]] consteval auto ring(max_phys_addr width, uint64_t base, Regions... regions) {
    auto const made = try_ring(width, base, regions...);
    detail::check_entries(make_index_list<sizeof...(Regions) + 1>{}, made.why);
    return made.table;
}

template <same_as<region>... Regions>
[[nodiscard]] consteval auto ring(uint64_t base, Regions... regions) {
    return ring(max_phys_addr{}, base, regions...);
}

}  // namespace topa

}  // namespace ptspec
