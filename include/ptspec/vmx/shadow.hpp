// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/detail/shadow_walk.hpp>
#include <ptspec/vmx/shadow_page.hpp>

/// Shadow ToPA tables: Intel PT for a guest on a processor whose output cannot be guest-physical.
///
/// The VMM intercepts IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS, always. When the guest
/// sets TraceEn, `shadow::begin` and `shadow::build` translate the guest's tables to host tables;
/// the processor gets the registers of `shadow::host`, and its position is translated back by
/// `shadow::to_guest`. Each enable needs a new shadow: a guest changes tables only while TraceEn is
/// 0.
namespace ptspec::vmx {

/// The shadow of a guest's output. A value; pages are borrowed.
///
/// What the guest sees is what a processor with the same tables would show, except that entries are
/// read when TraceEn is set. An error occurs when output reaches an invalid entry, or a page with
/// no memory: there the processor finds an invalid entry. To drop bytes instead, map a page of the
/// host. For a guest without MENTRY the early interrupt comes a page before the end of the region;
/// for a region of one page it comes when the region is full.
///
/// Shape:  every region of the guest is one or more entries; INT and STOP are on the last. Every
///         table of the guest begins on a page of its own. The rest of a table, from the start of
///         output on, is the first page; the part before the start is shadowed only if a link leads
///         to it. Each entry of the guest is read once. A page has room for 511 pieces of regions.
/// Units:  the work is bounded by the pages: for each piece, one entry is read at most, and up to
///         2^15 pages of its region are translated; each table is compared with all used pages.
///         `build` takes a limit, and a VMM can limit the sum.
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-083..089, PRG-184, PRG-185.
class shadow {
public:
    /// No shadow.
    constexpr shadow() noexcept = default;

    /// Begins a shadow when a guest sets TraceEn. `msrs` are the guest's, with the new CTL and
    /// the STATUS of that moment. An earlier shadow is gone.
    ///
    /// Errors: REG-024 no ToPA on the host; OUT-067 no tables of many entries; REG-025 no
    ///         single-range output, which a range of less than 4 KB needs.
    /// Source: OUT-001, OUT-007, OUT-022..024, PRG-184, PRG-185.
    [[nodiscard]] constexpr auto begin(cpu::capabilities const& host_caps,
                                       cpu::capabilities const& guest_caps,
                                       access::msr_state const& msrs, shadow_page const* pages,
                                       size_t page_count) noexcept -> rule;

    /// Builds tables until they are complete, or until the VMM has to act. Reads entries and
    /// translates runs of pages, at most `max_steps` together. A call continues where the one
    /// before ended.
    template <guest_memory_port Memory>
    constexpr auto build(Memory& memory, uint64_t max_steps = ~uint64_t{0}) noexcept
        -> shadow_result;

    /// More pages for a shadow that is not complete. The pages used so far must come first.
    constexpr void add_pages(shadow_page const* pages, size_t page_count) noexcept;

    /// Completes a shadow without the rest: output that reaches it ends with STATUS.Error. False if
    /// there is no page at all, or no shadow.
    [[nodiscard]] constexpr auto end_with_error() noexcept -> bool;

    /// Forgets the shadow. The pages are no longer borrowed.
    constexpr void invalidate() noexcept { s_ = {}; }

    /// True if the processor can use the tables.
    [[nodiscard]] constexpr auto is_complete() const noexcept -> bool {
        return s_.phase == detail::shadow_phase::done;
    }
    /// The number of pages used.
    [[nodiscard]] constexpr auto pages_used() const noexcept -> size_t { return s_.used; }
    /// The first position of the guest that is not shadowed yet.
    [[nodiscard]] constexpr auto reached() const noexcept -> topa::position;

    /// What the processor must hold when the guest starts. Only for a complete shadow.
    [[nodiscard]] constexpr auto host() const noexcept -> host_output;

    /// The guest's registers for a position of the processor: any that it may report, also after
    /// STOP and after an error.
    ///
    /// Source: OUT-053, OUT-054, OUT-080, PRG-086.
    [[nodiscard]] constexpr auto to_guest(output_registers const& host) const noexcept
        -> translated_position;

    /// The processor's registers for a position of the guest that is in the shadow.
    [[nodiscard]] constexpr auto to_host(output_registers const& guest) const noexcept
        -> translated_position;

private:
    detail::shadow_state s_{};
};

// ------------------------------------------------------------------------------------ functions

constexpr auto shadow::begin(cpu::capabilities const& host_caps,
                             cpu::capabilities const& guest_caps, access::msr_state const& msrs,
                             shadow_page const* pages, size_t page_count) noexcept -> rule {
    using ctl = access::ia32_rtit_ctl;
    using detail::shadow_kind;
    using detail::shadow_phase;
    invalidate();
    if (!host_caps.supports(cpu::output_scheme::topa)) { return rule::REG_024; }
    if (!host_caps.has_topa_of_many_entries()) { return rule::OUT_067; }
    detail::shadow_state s;
    s.pages = pages;
    s.page_count = page_count;
    s.guest = topa::limits::of(guest_caps);
    s.host_width = host_caps.max_phys_addr();
    s.start = msrs.output;
    auto const where = topa::position_in(msrs.output.base, msrs.output.mask_ptrs);
    s.start_offset = where.offset;
    bool const is_range = !msrs.ctl.get<ctl::ToPA>();
    auto const mask = single_range::mask_of(msrs.output.mask_ptrs);
    if (msrs.ctl.get<ctl::FabricEn>() || msrs.status.get<access::ia32_rtit_status::Stopped>() ||
        msrs.status.get<access::ia32_rtit_status::Error>() ||
        (is_range &&
         single_range::broken_rule(msrs.output.base, msrs.output.mask_ptrs) != rule::none)) {
        s.phase = shadow_phase::error;
    } else if (!is_range) {
        s.kind = shadow_kind::topa;
        s.phase = shadow_phase::entry;
        s.at = {where.table, where.index};
    } else {
        bool const is_in_page = mask < 4095;
        if (is_in_page && !host_caps.supports(cpu::output_scheme::single_range)) {
            return rule::REG_025;
        }
        s.kind = is_in_page ? shadow_kind::direct : shadow_kind::range;
        s.phase = shadow_phase::region;
        s.at = s.first = {where.table, 0};
        s.region_base = is_in_page ? align_down(where.table, 4096) : where.table;
        s.region_size = mask + 1;
        s.offset = s.first_offset = align_down(where.offset, 4096);
        s.start_offset = where.offset % 4096;
    }
    s_ = s;
    return rule::none;
}

template <guest_memory_port Memory>
constexpr auto shadow::build(Memory& memory, uint64_t max_steps) noexcept -> shadow_result {
    using detail::shadow_phase;
    for (;;) {
        shadow_result step{shadow_progress::complete};
        switch (s_.phase) {
            case shadow_phase::off: return {};
            case shadow_phase::entry: step = detail::shadow_entry(s_, memory, max_steps); break;
            case shadow_phase::region:
                step = s_.kind == detail::shadow_kind::direct
                           ? detail::shadow_direct(s_, memory, max_steps)
                           : detail::shadow_region(s_, memory, max_steps);
                break;
            case shadow_phase::link: step = detail::shadow_link(s_); break;
            case shadow_phase::error: step = detail::close_with_error(s_); break;
            case shadow_phase::done: return step;
        }
        if (!step) { return step; }
    }
}

constexpr void shadow::add_pages(shadow_page const* pages, size_t page_count) noexcept {
    s_.pages = pages;
    s_.page_count = page_count;
}

constexpr auto shadow::end_with_error() noexcept -> bool {
    using detail::shadow_phase;
    if (s_.phase == shadow_phase::off) { return false; }
    if (s_.phase == shadow_phase::done) { return true; }
    if (s_.phase == shadow_phase::link) { s_.at = {s_.link, 0}; }
    if (s_.kind == detail::shadow_kind::direct) { s_.kind = detail::shadow_kind::frozen; }
    (void)detail::put_run(s_);  // as much as there is room for
    return static_cast<bool>(detail::close_with_error(s_));
}

constexpr auto shadow::reached() const noexcept -> topa::position {
    return detail::position_now(s_);
}

constexpr auto shadow::host() const noexcept -> host_output {
    if (s_.kind == detail::shadow_kind::direct) { return {s_.direct, false}; }
    return {detail::registers_of({s_.pages[0].address, 0, s_.start_offset}), true};
}

constexpr auto shadow::to_guest(output_registers const& host) const noexcept
    -> translated_position {
    using detail::shadow_kind;
    using pointers = access::ia32_rtit_output_mask_ptrs;
    if (!is_complete()) { return {}; }
    auto const where = topa::position_in(host.base, host.mask_ptrs);
    if (s_.kind == shadow_kind::frozen) { return {host == this->host().at, s_.start}; }
    if (s_.kind == shadow_kind::direct) {
        auto const moved = s_.direct.mask_ptrs.with(pointers::OutputOffset{wrapped{where.offset}});
        bool const is_inside = single_range::bytes_left(moved) != 0;
        return {is_inside && host == output_registers{s_.direct.base, moved},
                {s_.start.base, moved}};
    }
    auto const guest = detail::guest_position_of(s_, detail::page_at(s_, host.base.raw), where);
    if (s_.kind == shadow_kind::topa) { return {guest.found, detail::registers_of(guest.where)}; }
    uint64_t const mask = single_range::mask_of(s_.start.mask_ptrs);
    return {guest.found,
            {s_.start.base,
             s_.start.mask_ptrs.with(pointers::OutputOffset{wrapped{guest.where.offset & mask}})}};
}

constexpr auto shadow::to_host(output_registers const& guest) const noexcept
    -> translated_position {
    using detail::shadow_kind;
    using pointers = access::ia32_rtit_output_mask_ptrs;
    if (!is_complete()) { return {}; }
    auto where = topa::position_in(guest.base, guest.mask_ptrs);
    if (s_.kind == shadow_kind::frozen) { return {guest == s_.start, this->host().at}; }
    if (s_.kind != shadow_kind::topa) {
        auto const moved = s_.start.mask_ptrs.with(pointers::OutputOffset{wrapped{where.offset}});
        if (guest != output_registers{s_.start.base, moved} ||
            single_range::bytes_left(moved) == 0) {
            return {};
        }
        if (s_.kind == shadow_kind::direct) { return {true, {s_.direct.base, moved}}; }
        where.index = 0;
    }
    for (size_t i = 0; i < s_.used; ++i) {
        shadow_page const& page = s_.pages[i];
        for (uint32_t slot = 0; slot < shadow_page::entry_count; ++slot) {
            topa::entry const active = page.entries[slot];
            if (active == detail::unused_entry) { break; }
            auto const found = detail::host_offset_of(active, page.origins[slot], where);
            if (!found.found) { continue; }
            topa::position const at{page.address, slot, found.offset};
            return {true, detail::registers_of(
                              active.get<topa::entry::END>() ? topa::follow_end(active) : at)};
        }
    }
    return {};
}

}  // namespace ptspec::vmx
