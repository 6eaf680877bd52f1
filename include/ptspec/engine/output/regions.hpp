// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output/state.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/topa/walk.hpp>
#include <ptspec/base/attribute.hpp>

/// How output moves from region to region.
///
/// Source: OUT-020..024, OUT-050..058, OUT-060..071, OUT-091, OUT-100..104, OUT-110, OUT-111.
namespace ptspec::engine::detail {

/// Sets the extent that begins at an offset in the region.
template <memory_port Memory>
constexpr void open_extent(output_state& s, access::msr_state& msrs, Memory& memory,
                           uint64_t from) noexcept {
    using topa::entry;
    phys_addr const address = s.region_base + from;
    uint64_t left = s.region_size - from;
    if (s.needs_checks) {
        auto const here = s.options.restricted.run_from(address);
        if (here.restricted && s.options.when_restricted == restricted_access::error) {
            s.position.offset = static_cast<uint32_t>(from);
            return fail_output(s, msrs, rule::OUT_111);
        }
        if (from < s.pmi_offset && s.pmi_offset < s.region_size) { left = s.pmi_offset - from; }
        if (here.last - address < left) { left = here.last - address + 1; }
        s.drops = here.restricted;
    }
    s.extent.mapped_end = nullptr;
    if constexpr (memory_port_members<Memory>::has_window) {
        if (!s.drops) {
            byte_window const here = memory.window(address.value);
            if (here.first != nullptr) {
                if (here.size < left) { left = here.size; }
                s.extent.mapped_end = here.first + left;
            }
        }
    }
    s.extent.end = address + left;
    s.extent.room = left;
    constexpr uint64_t marks = entry{}.with(entry::INT{true}, entry::STOP{true}).raw;
    s.can_fill = !__builtin_is_constant_evaluated() && s.extent.mapped_end != nullptr &&
                 !s.needs_checks && from + left == s.region_size &&
                 (s.extent.entry.raw & marks) == 0;
}

template <memory_port Memory>
constexpr void begin_single_range(output_state& s, access::msr_state& msrs,
                                  Memory& memory) noexcept {
    rule const broken = single_range::broken_rule(msrs.output.base, msrs.output.mask_ptrs);
    if (broken != rule::none) { return fail_output(s, msrs, broken); }
    s.region_base = msrs.output.base.raw;
    s.region_size = single_range::mask_of(msrs.output.mask_ptrs) + 1;
    open_extent(s, msrs, memory, s.position.offset);
}

template <memory_port Memory>
constexpr void begin_region(output_state& s, access::msr_state& msrs, Memory& memory,
                            topa::entry active) noexcept {
    s.extent.entry = active;
    s.region_base = active.get<topa::entry::Base>();
    s.region_size = topa::bytes_in(active.get<topa::entry::Size>());
    s.fixed_bits = ~(low_bits(s.limits.width.bits) & ~(s.region_size - 1));
    bool const early = active.get<topa::entry::INT>() && !s.limits.many_entries;
    uint64_t const lead = s.options.pmi_lead_bytes < s.region_size ? s.options.pmi_lead_bytes
                                                                   : s.region_size - 1;
    s.pmi_offset = early ? s.region_size - lead : no_pmi_offset;
    s.phase = output_phase::running;
    open_extent(s, msrs, memory, s.position.offset);
}

/// Finds the entries after the current one that need no port: mapped, in the same table, below
/// 2^MAXPHYADDR. With restricted memory they are not used: see `needs_checks`.
template <memory_port Memory>
constexpr void find_entries(output_state& s, Memory& memory) noexcept {
    if constexpr (memory_port_members<Memory>::has_window) {
        phys_addr const here = topa::table_pointer(s.position);
        byte_window const table = memory.window(here.value);
        uint64_t bytes = table.size;
        auto const until = [&](phys_addr last) {
            if (last - here < bytes) { bytes = last - here + 1; }
        };
        until(topa::table_pointer({s.position.table, topa::last_index, 0}).value | 7);
        until(low_bits(s.limits.width.bits));
        if (bytes < sizeof(topa::entry)) { return; }
        set_entries(s, table.first, bytes / sizeof(topa::entry) - 1);
    }
}

/// Sets the restricted memory. Each region is checked if there is any, or if interrupts may be
/// early.
constexpr void set_restricted(output_state& s, topa::restricted_memory const& restricted) noexcept {
    s.options.restricted = restricted;
    s.needs_checks = !s.limits.many_entries || !restricted.is_empty();
    s.restrictions_changed = false;
    s.drops = false;
}

/// Loads the entry at the position through the port, follows END, and begins the region.
template <memory_port Memory>
constexpr auto load_region(output_state& s, access::msr_state& msrs, Memory& memory) noexcept
    -> port_fault {
    forget_entries(s);
    if (s.restrictions_changed) { set_restricted(s, s.next_restricted); }
    auto const loaded = topa::load_first_entry(memory, s.position, s.limits, s.options.restricted);
    s.position = loaded.where;
    if (loaded.fault.happened) { return loaded.fault; }
    if (!loaded) {
        fail_output(s, msrs, loaded.broken);
        return {};
    }
    find_entries(s, memory);
    begin_region(s, msrs, memory, loaded.active);
    return {};
}

/// The same after a region, without the port if the next entry is mapped.
template <memory_port Memory>
constexpr auto load_next_region(output_state& s, access::msr_state& msrs, Memory& memory) noexcept
    -> port_fault {
    if (s.needs_checks || s.extent.next_entry == s.entries_end) {
        return load_region(s, msrs, memory);
    }
    topa::entry const next{load_le64(s.extent.next_entry)};
    rule const broken = topa::broken_rule(next, {s.position.table, s.position.index}, s.limits);
    if (broken != rule::none) {
        fail_output(s, msrs, broken);
        return {};
    }
    if (next.get<topa::entry::END>()) {
        s.position = topa::follow_end(next);
        return load_region(s, msrs, memory);
    }
    s.extent.next_entry += sizeof(topa::entry);
    s.position_next = s.extent.next_entry;
    begin_region(s, msrs, memory, next);
    return {};
}

/// The first entry of the table if `end` is a link to this table, and the first entry is mapped and
/// not among the `room` bytes at `place`, which are not stored yet. Null otherwise.
///
/// Takes members of the extent instead of the extent, which the caller then keeps in registers.
///
/// noinline: inlined, a write of 2 bytes takes 1.5 times as long (g++ 12).
PTSPEC_ATTRIBUTE(noinline)
inline auto entry_after_link(output_state const& s, uint64_t end, uint8_t const* place,
                             uint64_t room) noexcept -> uint8_t const* {
    bool const to_same_table = end == topa::link_to(s.position.table).raw;
    bool const is_readable = s.first_entry != nullptr && is_disjoint(s.first_entry, place, room);
    return to_same_table && is_readable ? s.first_entry : nullptr;
}

/// Moves from an extent that is about to be filled to the region of the next entry, or after a link
/// to this table to that of its first entry.
///
/// Returns false, and changes nothing, if the entry differs from the current one, which is valid
/// and has neither INT nor STOP, in more than the region's address: then `load_next_region` is
/// needed.
///
/// always_inline: without it a write of 2 bytes takes 1.2 times as long (clang 19).
template <memory_port Memory>
PTSPEC_ATTRIBUTE(always_inline)
constexpr auto try_next_region(output_state& s, Memory& memory, output_extent const& full) noexcept
    -> bool {
    using topa::entry;
    if constexpr (memory_port_members<Memory>::has_window) {
        auto const differs = [&](entry next) {
            return ((next.raw ^ full.entry.raw) & s.fixed_bits) != 0;
        };
        uint8_t const* at = full.next_entry;
        if (at == s.entries_end || !is_disjoint(at, full.mapped(), full.room)) { return false; }
        entry next{load_le64(at)};
        if (differs(next)) [[unlikely]] {
            at = entry_after_link(s, next.raw, full.mapped(), full.room);
            if (at == nullptr) { return false; }
            next = entry{load_le64(at)};
            if (differs(next)) { return false; }
        }
        uint64_t const base = next.get<entry::Base>();
        byte_window const here = memory.window(base);
        if (here.size < s.region_size) { return false; }
        s.extent = {s.region_size, here.first + s.region_size, base + s.region_size, next,
                    at + sizeof(entry)};
        return true;
    }
    return false;
}

}  // namespace ptspec::engine::detail

#undef PTSPEC_ATTRIBUTE
