// SPDX-License-Identifier: BSL-1.0
// The addresses of both output schemes, and the checks of a single range and of a ToPA entry.
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/single_range.hpp>

using namespace ptspec;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;
using topa::entry;
using topa::position;

namespace {

void store(position from, uint64_t (&to)[3]) {
    to[0] = from.table.value;
    to[1] = from.index;
    to[2] = from.offset;
}

}  // namespace

extern "C" {

void position_in(uint64_t base, uint64_t pointers, uint64_t (&to)[3]) {
    store(topa::position_in(ia32_rtit_output_base{base}, ia32_rtit_output_mask_ptrs{pointers}), to);
}
uint64_t base_of(uint64_t table, uint32_t index, uint32_t offset) {
    return topa::base_of({table, index, offset}).raw;
}
uint64_t mask_ptrs_of(uint64_t table, uint32_t index, uint32_t offset) {
    return topa::mask_ptrs_of({table, index, offset}).raw;
}
uint64_t table_pointer(uint64_t table, uint32_t index) {
    return topa::table_pointer({table, index, 0}).value;
}
uint64_t topa_store_address(uint64_t current, uint32_t offset) {
    return topa::trace_store_phys_addr({0, 0, offset}, entry{current}).value;
}
uint64_t topa_bytes_left(uint64_t current, uint32_t offset) {
    return topa::bytes_left({0, 0, offset}, entry{current});
}
void topa_advanced(uint64_t table, uint32_t index, uint32_t offset, uint64_t current,
                   uint64_t bytes, uint64_t (&to)[3]) {
    store(topa::advanced({table, index, offset}, entry{current}, bytes), to);
}
void next_entry(uint64_t table, uint32_t index, uint32_t offset, uint64_t (&to)[3]) {
    store(topa::next_entry({table, index, offset}), to);
}
void follow_end(uint64_t end, uint64_t (&to)[3]) { store(topa::follow_end(entry{end}), to); }
uint64_t link_to(uint64_t table) { return topa::link_to(table).raw; }
uint16_t entry_broken_rule(uint64_t current, uint64_t table, uint32_t index, uint32_t width,
                           bool many_entries) {
    return static_cast<uint16_t>(
        topa::broken_rule(entry{current}, {table, index}, {{width}, many_entries}));
}

uint64_t single_mask(uint64_t pointers) {
    return single_range::mask_of(ia32_rtit_output_mask_ptrs{pointers});
}
uint64_t single_store_address(uint64_t base, uint64_t pointers) {
    return single_range::trace_store_phys_addr(ia32_rtit_output_base{base},
                                               ia32_rtit_output_mask_ptrs{pointers})
        .value;
}
uint64_t single_bytes_left(uint64_t pointers) {
    return single_range::bytes_left(ia32_rtit_output_mask_ptrs{pointers});
}
uint64_t single_advanced(uint64_t pointers, uint64_t bytes) {
    return single_range::advanced(ia32_rtit_output_mask_ptrs{pointers}, bytes).raw;
}
uint16_t single_broken_rule(uint64_t base, uint64_t pointers) {
    return static_cast<uint16_t>(single_range::broken_rule(ia32_rtit_output_base{base},
                                                           ia32_rtit_output_mask_ptrs{pointers}));
}
uint16_t single_build(uint64_t base, uint64_t bytes, uint64_t offset, uint32_t width,
                      uint64_t (&to)[2]) {
    auto const built = single_range::build({base, bytes, offset}, {width});
    to[0] = built.base.raw;
    to[1] = built.pointers.raw;
    return static_cast<uint16_t>(built.broken);
}

}  // extern "C"
