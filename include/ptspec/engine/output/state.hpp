// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/engine/output/options.hpp>
#include <ptspec/engine/output/result.hpp>
#include <ptspec/topa/position.hpp>

namespace ptspec::engine::detail {

enum class output_phase : uint8_t {
    off,       ///< every byte is lost: TraceEn is 0, or an error or STOP ended output
    at_entry,  ///< the entry at the position must be loaded before the next byte
    running,
};

/// The memory for the next bytes of trace, from the position to the next place where something may
/// happen: the end of the region, an early interrupt, the end of mapped or of restricted memory.
///
/// It has its end instead of its start, so that storing bytes changes only `room`.
struct output_extent {
    uint64_t room = 0;              ///< bytes left; 0: no extent
    uint8_t* mapped_end = nullptr;  ///< its end in the address space of this program; null: bytes
                                    ///< go through the port, to a fabric, or are dropped
    phys_addr end{};                ///< the address after its last byte
    topa::entry entry{};
    uint8_t const* next_entry = nullptr;  ///< the entry after `entry`, see `output_state`

    /// Where the next byte is stored in the address space of this program.
    [[nodiscard]] constexpr auto mapped() const noexcept -> uint8_t* {
        return mapped_end - static_cast<size_t>(room);
    }
    /// The physical address of the next byte.
    [[nodiscard]] constexpr auto address() const noexcept -> phys_addr { return end.value - room; }
};

inline constexpr uint64_t no_pmi_offset = ~uint64_t{0};

/// The state of output between two bytes: the position and what follows it.
///
/// Entries after the current one that are mapped, so that no port has to read them, are
/// `[extent.next_entry, entries_end)`.
///
/// While `try_next_region` moves from region to region, only `extent` is current.
/// `update_position` derives `position` and `region_base` from it.
///
/// Source: OUT-005, OUT-006, OUT-021, OUT-028, OUT-050, OUT-051, OUT-056..058, OUT-080, OUT-115.
struct output_state {
    output_extent extent{};
    uint8_t const* position_next = nullptr;  ///< `extent.next_entry` when `position` was updated
    uint8_t const* first_entry = nullptr;    ///< entry 0 of the table, if it is mapped
    uint8_t const* entries_end = nullptr;
    topa::position position{};  ///< its offset is valid only without an extent
    phys_addr region_base{};
    uint64_t region_size = 0;
    uint64_t fixed_bits = 0;  ///< entry bits that `try_next_region` requires to equal those of
                              ///< the current entry
    uint64_t pmi_offset = no_pmi_offset;  ///< the offset of an interrupt before the region's end
    topa::limits limits{};
    output_options options{};
    /// Restricted memory for entries that are loaded from now on, if `restrictions_changed`.
    topa::restricted_memory next_restricted{};
    cpu::output_scheme scheme = cpu::output_scheme::single_range;
    output_phase phase = output_phase::off;
    bool needs_checks = false;  ///< interrupts may be early, or memory may be restricted
    bool can_fill = false;  ///< after the extent the next region follows, and nothing else happens
    bool drops = false;     ///< the extent is in restricted memory: its bytes are lost
    bool sets_pend_topa_pmi = false;
    bool restrictions_changed = false;
    rule ended_by = rule::none;
};

// ----------------------------------------------------------------------------- the position

/// The index of the current entry.
[[nodiscard]] constexpr auto current_index(output_state const& s) noexcept -> uint32_t {
    auto const entry_bytes = static_cast<long long>(sizeof(topa::entry));
    return s.position.index +
           static_cast<uint32_t>((s.extent.next_entry - s.position_next) / entry_bytes);
}
[[nodiscard]] constexpr auto current_region_base(output_state const& s) noexcept -> phys_addr {
    return s.scheme == cpu::output_scheme::topa ? s.extent.entry.get<topa::entry::Base>()
                                                : s.region_base;
}
[[nodiscard]] constexpr auto current_offset(output_state const& s) noexcept -> uint32_t {
    return s.extent.room == 0 ? s.position.offset
                              : static_cast<uint32_t>(s.extent.address() - current_region_base(s));
}
constexpr void update_position(output_state& s) noexcept {
    s.position.index = current_index(s);
    s.region_base = current_region_base(s);
    s.position_next = s.extent.next_entry;
}

/// Writes the position to the output MSRs.
constexpr void write_back_position(output_state const& s, access::msr_state& msrs) noexcept {
    if (s.phase == output_phase::off || s.scheme == cpu::output_scheme::fabric) { return; }
    if (s.scheme == cpu::output_scheme::single_range) {
        msrs.output.mask_ptrs = msrs.output.mask_ptrs.with(
            access::ia32_rtit_output_mask_ptrs::OutputOffset{wrapped{current_offset(s)}});
        return;
    }
    msrs.output.base = topa::base_of(s.position);
    msrs.output.mask_ptrs = topa::mask_ptrs_of(
        {s.position.table, current_index(s), current_offset(s)});
}

// ----------------------------------------------------------------------------- the entries

/// True if storing `bytes` bytes at `place` does not change the table entry at `entry`.
[[nodiscard]] inline auto is_disjoint(uint8_t const* entry, uint8_t const* place,
                                      uint64_t bytes) noexcept -> bool {
    uint64_t const last = sizeof(topa::entry) - 1;
    // 64-bit arithmetic on 32-bit targets too: `bytes` may exceed 32 bits.
    uint64_t const distance = uint64_t{reinterpret_cast<uintptr_t>(entry)} -
                              uint64_t{reinterpret_cast<uintptr_t>(place)};
    return distance + last >= bytes + last;
}

constexpr void forget_entries(output_state& s) noexcept {
    s.extent.next_entry = s.position_next = s.first_entry = s.entries_end = nullptr;
}
/// `active` points to the current entry, which is mapped, with `count` entries after it.
constexpr void set_entries(output_state& s, uint8_t const* active, uint64_t count) noexcept {
    s.first_entry = s.position.index == 0 ? active : nullptr;
    s.extent.next_entry = active + sizeof(topa::entry);
    s.position_next = s.extent.next_entry;
    s.entries_end = s.extent.next_entry + count * sizeof(topa::entry);
}

// ----------------------------------------------------------------------------- the end of output

constexpr void stop_output(output_state& s, access::msr_state& msrs) noexcept {
    write_back_position(s, msrs);
    s.phase = output_phase::off;
    s.extent.mapped_end = nullptr;
    s.can_fill = false;
}
/// Ends output by a rule. TriggerEn becomes 0 at once.
constexpr void end_output(output_state& s, access::msr_state& msrs, rule by) noexcept {
    s.ended_by = by;
    stop_output(s, msrs);
    msrs.status = msrs.status.with(access::ia32_rtit_status::TriggerEn{false});
}
/// Ends output by an operational error.
constexpr void fail_output(output_state& s, access::msr_state& msrs, rule by) noexcept {
    end_output(s, msrs, by);
    msrs.status = msrs.status.with(access::ia32_rtit_status::Error{true});
}

}  // namespace ptspec::engine::detail
