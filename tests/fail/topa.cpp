// SPDX-License-Identifier: BSL-1.0
/// ToPA tables

#include <ptspec/base/host_memory.hpp>
#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/regions_for_pages.hpp>
#include <ptspec/topa/table.hpp>
#include <ptspec/topa/validate.hpp>
#include <ptspec/topa/walk.hpp>

using namespace ptspec;
using topa::entry;
using topa::region_size;

#if defined(_MSC_VER)
#pragma warning(error : 4834)
#else
#pragma GCC diagnostic error "-Wunused-result"
#endif

namespace ring_misaligned_region {
/// The second region has 64 KB, but its base is no multiple of 64 KB. `check_entry(0, 1, ...` means
/// entry 1 of table 0.
// expect: check_entry(0, 1,
// expect: a_region_must_be_aligned_to_its_own_size
// also clang
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring(0x1000, topa::region{0x10'0000, region_size::size_1M},
                                  topa::region{0x2'0000, region_size::size_64K});
#else
constexpr auto table = topa::ring(0x1000, topa::region{0x10'0000, region_size::size_1M},
                                  topa::region{0x2'8000, region_size::size_64K});
#endif
}  // namespace ring_misaligned_region

namespace ring_misaligned_table {
/// A table begins at a multiple of 4 KB. The entry after the region links to it.
// expect: check_entry(0, 1,
// expect: a_table_must_begin_at_a_multiple_of_4_KB
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring(0x1000, topa::region{0x10'0000});
#else
constexpr auto table = topa::ring(0x1080, topa::region{0x10'0000});
#endif
}  // namespace ring_misaligned_table

namespace ring_high_address {
/// This processor has 39 bits of physical address.
// expect: check_entry(0, 1,
// expect: an_address_must_lie_below_the_physical_width
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring({0x1000, {{40}}}, topa::region{0x10'0000},
                                  topa::region{0x80'0000'0000});
#else
constexpr auto table = topa::ring({0x1000, {{39}}}, topa::region{0x10'0000},
                                  topa::region{0x80'0000'0000});
#endif
}  // namespace ring_high_address

namespace ring_high_table {
/// The table itself, to which the last entry links, lies above them.
// expect: check_entry(0, 1,
// expect: an_address_must_lie_below_the_physical_width
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring({0x80'0000'0000, {{40}}}, topa::region{0x10'0000});
#else
constexpr auto table = topa::ring({0x80'0000'0000, {{39}}}, topa::region{0x10'0000});
#endif
}  // namespace ring_high_table

namespace ring_no_region {
/// A table without a region has no place for trace.
// expect: check_entry(0, 0,
// expect: a_table_must_have_an_output_region
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring(0x1000, topa::region{0x10'0000});
#else
constexpr auto table = topa::ring(0x1000);
#endif
}  // namespace ring_no_region

namespace ring_not_a_region {
/// A base alone is no region.
// expect: no matching function for call to 'ring
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring(0x1000, topa::region{0x10'0000});
#else
constexpr auto table = topa::ring(0x1000, 0x10'0000);
#endif
}  // namespace ring_not_a_region

namespace ring_two_regions_without_mentry {
/// Without CPUID.(14H,0):ECX.TOPAMENTRY a table has one region.
// expect: check_entry(0, 1,
// expect: this_processor_takes_one_region_so_use_single_entry
#ifndef SHOULD_FAIL
constexpr auto table = topa::ring({0x1000, {.many_entries = true}}, topa::region{0x10'0000},
                                  topa::region{0x20'0000});
#else
constexpr auto table = topa::ring({0x1000, {.many_entries = false}}, topa::region{0x10'0000},
                                  topa::region{0x20'0000});
#endif
}  // namespace ring_two_regions_without_mentry

namespace ring_at_run_time {
/// An address known only at run time may be bad: `try_ring` returns the error.
// expect: a_run_time_table_needs_try_ring_or_its_like
// also clang
#ifndef SHOULD_FAIL
auto table_at(uint64_t base) { return topa::try_ring(base, topa::region{.base = 0x10'0000}).table; }
#else
auto table_at(uint64_t base) { return topa::ring(base, topa::region{.base = 0x10'0000}); }
#endif
}  // namespace ring_at_run_time

namespace ring_of_a_region_at_run_time {
/// A region known only at run time may be bad: `try_ring` returns the error.
// expect: a_run_time_table_needs_try_ring_or_its_like
#ifndef SHOULD_FAIL
auto table_of(topa::region one) { return topa::try_ring(0x1000, one).table; }
#else
auto table_of(topa::region one) { return topa::ring(0x1000, one); }
#endif
}  // namespace ring_of_a_region_at_run_time

namespace chain_misaligned_region {
/// The second region of the second table is not aligned to its size: entry 1 of table 1.
// expect: check_entry(1, 1,
// expect: a_region_must_be_aligned_to_its_own_size
#ifndef SHOULD_FAIL
constexpr auto chain = topa::chain(
    topa::table_at(0x1000, topa::region{0x10'0000}),
    topa::table_at(0x2000, topa::region{0x20'0000}, topa::region{0x2'0000, region_size::size_64K}));
#else
constexpr auto chain = topa::chain(
    topa::table_at(0x1000, topa::region{0x10'0000}),
    topa::table_at(0x2000, topa::region{0x20'0000}, topa::region{0x2'8000, region_size::size_64K}));
#endif
}  // namespace chain_misaligned_region

namespace chain_misaligned_table {
/// The second table does not begin at a multiple of 4 KB. The link to it is entry 2 of the first.
// expect: check_entry(0, 2,
// expect: a_table_must_begin_at_a_multiple_of_4_KB
#ifndef SHOULD_FAIL
constexpr auto chain = topa::chain(
    topa::table_at(0x1000, topa::region{0x10'0000}, topa::region{0x20'0000}),
    topa::table_at(0x2000, topa::region{0x30'0000}));
#else
constexpr auto chain = topa::chain(
    topa::table_at(0x1000, topa::region{0x10'0000}, topa::region{0x20'0000}),
    topa::table_at(0x2080, topa::region{0x30'0000}));
#endif
}  // namespace chain_misaligned_table

namespace chain_table_without_region {
/// Each table of a chain needs a region.
// expect: no matching function for call to 'table_at
#ifndef SHOULD_FAIL
constexpr auto chain = topa::chain(topa::table_at(0x1000, topa::region{0x10'0000}));
#else
constexpr auto chain = topa::chain(topa::table_at(0x1000));
#endif
}  // namespace chain_table_without_region

namespace chain_without_mentry {
/// A processor that takes one region takes no chain.
// expect: check_entry(0, 1,
// expect: this_processor_takes_one_region_so_use_single_entry
#ifndef SHOULD_FAIL
constexpr auto chain = topa::chain(
    topa::table_at({0x1000, {.many_entries = true}}, topa::region{0x10'0000}),
    topa::table_at(0x2000, topa::region{0x20'0000}));
#else
constexpr auto chain = topa::chain(
    topa::table_at({0x1000, {.many_entries = false}}, topa::region{0x10'0000}),
    topa::table_at(0x2000, topa::region{0x20'0000}));
#endif
}  // namespace chain_without_mentry

namespace chain_at_run_time {
/// Addresses known only at run time: `try_chain` returns the error.
// expect: a_run_time_table_needs_try_ring_or_its_like
#ifndef SHOULD_FAIL
auto is_chain(uint64_t base) {
    auto const part = topa::table_at(base, topa::region{.base = 0x10'0000});
    return static_cast<bool>(topa::try_chain(part));
}
#else
auto is_chain(uint64_t base) {
    auto const part = topa::table_at(base, topa::region{.base = 0x10'0000});
    return topa::chain(part).get<0>().size();
}
#endif
}  // namespace chain_at_run_time

namespace linked_misaligned_region {
/// The region is not aligned to its size.
// expect: check_entry(0, 0,
// expect: a_region_must_be_aligned_to_its_own_size
#ifndef SHOULD_FAIL
constexpr auto table = topa::linked(0x1000, 0x2000, topa::region{0x2'0000, region_size::size_64K});
#else
constexpr auto table = topa::linked(0x1000, 0x2000, topa::region{0x2'8000, region_size::size_64K});
#endif
}  // namespace linked_misaligned_region

namespace linked_misaligned_table {
/// The next table does not begin at a multiple of 4 KB.
// expect: check_entry(0, 1,
// expect: a_table_must_begin_at_a_multiple_of_4_KB
#ifndef SHOULD_FAIL
constexpr auto table = topa::linked(0x1000, 0x2000, topa::region{0x10'0000});
#else
constexpr auto table = topa::linked(0x1000, 0x2800, topa::region{0x10'0000});
#endif
}  // namespace linked_misaligned_table

namespace linked_high_table {
/// The next table lies above the 39 bits of physical address that this processor has.
// expect: check_entry(0, 2,
// expect: an_address_must_lie_below_the_physical_width
#ifndef SHOULD_FAIL
constexpr auto table = topa::linked({0x1000, {{40}}}, 0x80'0000'0000, topa::region{0x10'0000},
                                    topa::region{0x20'0000});
#else
constexpr auto table = topa::linked({0x1000, {{39}}}, 0x80'0000'0000, topa::region{0x10'0000},
                                    topa::region{0x20'0000});
#endif
}  // namespace linked_high_table

namespace linked_no_region {
/// A table that only links elsewhere has no place for trace.
// expect: check_entry(0, 0,
// expect: a_table_must_have_an_output_region
#ifndef SHOULD_FAIL
constexpr auto table = topa::linked(0x1000, 0x2000, topa::region{0x10'0000});
#else
constexpr auto table = topa::linked(0x1000, 0x2000);
#endif
}  // namespace linked_no_region

namespace linked_elsewhere_without_mentry {
/// A processor that takes one region takes no second table.
// expect: check_entry(0, 1,
// expect: this_processor_takes_one_region_so_use_single_entry
#ifndef SHOULD_FAIL
constexpr auto table = topa::linked({0x1000, {.many_entries = false}}, 0x1000,
                                    topa::region{0x10'0000});
#else
constexpr auto table = topa::linked({0x1000, {.many_entries = false}}, 0x2000,
                                    topa::region{0x10'0000});
#endif
}  // namespace linked_elsewhere_without_mentry

namespace linked_at_run_time {
/// An address known only at run time: `try_linked` returns the error.
// expect: a_run_time_table_needs_try_ring_or_its_like
#ifndef SHOULD_FAIL
auto table_to(uint64_t next) {
    return topa::try_linked(0x1000, next, topa::region{.base = 0x10'0000}).table;
}
#else
auto table_to(uint64_t next) { return topa::linked(0x1000, next, topa::region{.base = 0x10'0000}); }
#endif
}  // namespace linked_at_run_time

namespace single_entry_misaligned_region {
/// The only region is not aligned to its size.
// expect: check_entry(0, 0,
// expect: a_region_must_be_aligned_to_its_own_size
#ifndef SHOULD_FAIL
constexpr auto table = topa::single_entry(0x1000, topa::region{0x2'0000, region_size::size_64K});
#else
constexpr auto table = topa::single_entry(0x1000, topa::region{0x2'8000, region_size::size_64K});
#endif
}  // namespace single_entry_misaligned_region

namespace single_entry_at_run_time {
/// A region known only at run time: `try_single_entry` returns the error.
// expect: a_run_time_table_needs_try_ring_or_its_like
#ifndef SHOULD_FAIL
auto table_of(topa::region one) { return topa::try_single_entry(0x1000, one).table; }
#else
auto table_of(topa::region one) { return topa::single_entry(0x1000, one); }
#endif
}  // namespace single_entry_at_run_time

namespace stop_on_full_misaligned_region {
/// The region that stops tracing is not aligned to its size.
// expect: check_entry(0, 1,
// expect: a_region_must_be_aligned_to_its_own_size
#ifndef SHOULD_FAIL
constexpr auto table = topa::stop_on_full(0x1000, topa::region{0x10'0000},
                                          topa::region{0x2'0000, region_size::size_64K});
#else
constexpr auto table = topa::stop_on_full(0x1000, topa::region{0x10'0000},
                                          topa::region{0x2'8000, region_size::size_64K});
#endif
}  // namespace stop_on_full_misaligned_region

namespace stop_on_full_no_region {
/// Nothing can become full.
// expect: check_entry(0, 0,
// expect: a_table_must_have_an_output_region
#ifndef SHOULD_FAIL
constexpr auto table = topa::stop_on_full(0x1000, topa::region{0x10'0000});
#else
constexpr auto table = topa::stop_on_full(0x1000);
#endif
}  // namespace stop_on_full_no_region

namespace stop_on_full_without_mentry {
/// A processor that takes one region needs another table to stop: `single_entry`.
// expect: check_entry(0, 1,
// expect: this_processor_takes_one_region_so_use_single_entry
#ifndef SHOULD_FAIL
constexpr auto table = topa::stop_on_full({0x1000, {.many_entries = true}},
                                          topa::region{0x10'0000});
#else
constexpr auto table = topa::stop_on_full({0x1000, {.many_entries = false}},
                                          topa::region{0x10'0000});
#endif
}  // namespace stop_on_full_without_mentry

namespace interrupt_on_full_misaligned_region {
/// The second region is not aligned to its size.
// expect: check_entry(0, 1,
// expect: a_region_must_be_aligned_to_its_own_size
#ifndef SHOULD_FAIL
constexpr auto table = topa::interrupt_on_full(0x1000, topa::region{0x10'0000},
                                               topa::region{0x2'0000, region_size::size_64K});
#else
constexpr auto table = topa::interrupt_on_full(0x1000, topa::region{0x10'0000},
                                               topa::region{0x2'8000, region_size::size_64K});
#endif
}  // namespace interrupt_on_full_misaligned_region

namespace interrupt_on_full_one_region {
/// An interrupt at the last region would come when there is no room left.
// expect: check_entry(0, 1,
// expect: an_interrupt_must_come_before_the_last_region
#ifndef SHOULD_FAIL
constexpr auto table = topa::interrupt_on_full(0x1000, topa::region{0x10'0000},
                                               topa::region{0x20'0000});
#else
constexpr auto table = topa::interrupt_on_full(0x1000, topa::region{0x10'0000});
#endif
}  // namespace interrupt_on_full_one_region

namespace interrupt_and_stop_misaligned_region {
/// The first region is not aligned to its size.
// expect: check_entry(0, 0,
// expect: a_region_must_be_aligned_to_its_own_size
#ifndef SHOULD_FAIL
constexpr auto table = topa::interrupt_and_stop(
    0x1000, topa::region{0x2'0000, region_size::size_64K}, topa::region{0x10'0000});
#else
constexpr auto table = topa::interrupt_and_stop(
    0x1000, topa::region{0x2'8000, region_size::size_64K}, topa::region{0x10'0000});
#endif
}  // namespace interrupt_and_stop_misaligned_region

namespace interrupt_and_stop_one_region {
/// Between the interrupt and the stop there must be a region.
// expect: check_entry(0, 1,
// expect: an_interrupt_must_come_before_the_last_region
#ifndef SHOULD_FAIL
constexpr auto table = topa::interrupt_and_stop(0x1000, topa::region{0x10'0000},
                                                topa::region{0x20'0000});
#else
constexpr auto table = topa::interrupt_and_stop(0x1000, topa::region{0x10'0000});
#endif
}  // namespace interrupt_and_stop_one_region

namespace address_at_run_time {
/// The base of an entry, known only at run time: `wrapped` or `checked`.
// expect: a_run_time_number_needs_wrapped_or_checked
#ifndef SHOULD_FAIL
auto at(uint64_t base) -> entry { return entry{}.with(entry::Base{ptspec::wrapped{base}}); }
#else
auto at(uint64_t base) -> entry { return entry{}.with(entry::Base{base}); }
#endif
}  // namespace address_at_run_time

namespace result_dropped_cover {
/// A page that cannot be part of a region is refused, and no region is written.
// expect: ignoring return value of
// expect: nodiscard
// a warning
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
}  // namespace result_dropped_cover

namespace result_dropped_validate {
/// Without findings the table may still be bad: the memory may have faulted before the first one.
// expect: ignoring return value of
// expect: nodiscard
// a warning
auto findings_in(ptspec::host_memory& memory) {
    size_t findings = 0;
#ifndef SHOULD_FAIL
    auto const end = ptspec::topa::validate(memory, 0x1000, {}, [&](auto) { ++findings; });
    return end.ended_by == ptspec::topa::table_end::unreadable ? ~size_t{0} : findings;
#else
    ptspec::topa::validate(memory, 0x1000, {}, [&](auto) { ++findings; });
    return findings;
#endif
}
}  // namespace result_dropped_validate

namespace result_dropped_write_table {
/// Without a link the last region needs STOP: this table is refused and stays empty.
// expect: ignoring return value of
// expect: nodiscard
// a warning
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
}  // namespace result_dropped_write_table

namespace chain_bounds_in_a_row {
/// The bounds of a walk over tables, swapped: they have names.
// expect: shape_of_chain
// expect: chain_bounds
auto tables_at(host_memory& memory, uint64_t first) -> uint64_t {
#ifndef SHOULD_FAIL
    return topa::shape_of_chain(memory, first, {.max_entries = 512, .max_tables = 16}).tables;
#else
    return topa::shape_of_chain(memory, first, 16, 512).tables;
#endif
}
}  // namespace chain_bounds_in_a_row

namespace cs_offset_as_phys_addr {
/// A RIP is no address of a ToPA table.
// expect: cs_offset
// expect: table_site
#ifndef SHOULD_FAIL
using address = phys_addr;
#else
using address = cs_offset;
#endif

auto ring_at(address table) { return topa::try_ring(table, topa::region{.base = 0x1000}); }
}  // namespace cs_offset_as_phys_addr

namespace phys_addr_from_packet_ip {
/// The IP of a packet is no address of an output region.
// expect: no match for 'operator=' | no viable overloaded '='
// expect: ptspec::packet_ip | 'packet_ip'
// expect: phys_addr
auto region_at(packet_ip ip, uint64_t base) -> topa::region {
    topa::region made{.base = base};
#ifdef SHOULD_FAIL
    made.base = ip;
#endif
    return made.base == phys_addr{ip.value} ? topa::region{} : made;
}
}  // namespace phys_addr_from_packet_ip

namespace phys_addr_sum {
/// The distance of two addresses is a number of bytes; their sum is nothing.
// expect: operator+
// expect: phys_addr
auto length(topa::region first, topa::region second) -> uint64_t {
#ifndef SHOULD_FAIL
    return second.base - first.base;
#else
    return second.base + first.base;
#endif
}
}  // namespace phys_addr_sum

namespace packet_ip_from_phys_addr {
/// An address of the output is no IP.
// expect: could not convert | no viable conversion
// expect: phys_addr
// expect: packet_ip
auto next_byte(topa::position where, topa::entry current) -> packet_ip {
    phys_addr const address = topa::trace_store_phys_addr(where, current);
#ifndef SHOULD_FAIL
    return address.value;
#else
    return address;
#endif
}
}  // namespace packet_ip_from_phys_addr
