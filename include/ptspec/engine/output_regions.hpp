// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output_state.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/topa/walk.hpp>

namespace ptspec::engine {

/// How output comes to the regions that bytes go to. The base of `output`, which brings the bytes.
///
/// Source: OUT-020..024, OUT-050..058, OUT-060..071, OUT-091, OUT-100..104, OUT-110, OUT-111.
class output_regions : public output_state {
protected:
    template <memory_port Memory>
    constexpr void begin_single_range(access::msr_state& now, Memory& memory) noexcept {
        rule const broken = single_range::broken_rule(now.output_base, now.output_mask_ptrs);
        if (broken != rule::none) { return fail(now, broken); }
        base_ = now.output_base.raw;
        size_ = single_range::mask_of(now.output_mask_ptrs) + 1;
        begin_run(now, memory, at_.offset);
    }

    /// Comes to the entry at the position, and begins its region.
    template <memory_port Memory>
    constexpr auto settle(access::msr_state& now, Memory& memory) noexcept -> port_fault {
        see_ahead(nullptr, 0);
        auto const come = topa::enter(memory, at_, of_, how_.restricted);
        at_ = come.where;
        if (come.fault) { return come.fault; }
        if (!come) {
            fail(now, come.broken);
            return {};
        }
        look_ahead(memory);
        begin_region(now, memory, come.current);
        return {};
    }

    template <memory_port Memory>
    [[gnu::always_inline]]  // so that `fill` calls nothing
    constexpr void
    begin_region(access::msr_state& now, Memory& memory, topa::entry which) noexcept {
        run_.region = which;
        base_ = which.get<topa::entry::Base>();
        size_ = topa::bytes_in(which.get<topa::entry::Size>());
        same_ = ~(low_bits(of_.width.bits) & ~(size_ - 1));
        bool const early = which.get<topa::entry::INT>() && !of_.many_entries;
        uint64_t const lead = how_.pmi_lead_bytes < size_ ? how_.pmi_lead_bytes : size_ - 1;
        pmi_at_ = early ? size_ - lead : no_offset;
        phase_ = phase::running;
        begin_run(now, memory, at_.offset);
    }

    /// Begins the run at an offset inside the region.
    template <memory_port Memory>
    [[gnu::always_inline]]  // as above
    constexpr void
    begin_run(access::msr_state& now, Memory& memory, uint64_t from) noexcept {
        uint64_t const address = base_ + from;
        uint64_t left = size_ - from;
        if (asks_) {
            auto const kind = how_.restricted.stretch_from(address);
            if (kind.restricted && how_.when_restricted == restricted_access::error) {
                at_.offset = static_cast<uint32_t>(from);
                return fail(now, rule::OUT_111);
            }
            if (from < pmi_at_ && pmi_at_ < size_) { left = pmi_at_ - from; }
            if (kind.last - address < left) { left = kind.last - address + 1; }
            drops_ = kind.restricted;
        }
        run_.end_in_place = nullptr;
        if constexpr (mapped_memory_port<Memory>) {
            if (!drops_) {
                byte_window const here = memory.window(address);
                if (here.first != nullptr) {
                    if (here.size < left) { left = here.size; }
                    run_.end_in_place = here.first + left;
                }
            }
        }
        run_.end = address + left;
        run_.room = left;
        fills_ = run_.end_in_place != nullptr && !asks_ && from + left == size_ &&
                 (run_.region.raw & marks) == 0;
    }

    /// Finds out how many entries behind the current one can be read without further questions:
    /// they stand in this program's memory, in the same table, below 2^MAXPHYADDR. Where memory is
    /// restricted nothing is filled.
    template <memory_port Memory>
    constexpr void look_ahead(Memory& memory) noexcept {
        if constexpr (mapped_memory_port<Memory>) {
            uint64_t const here = topa::table_pointer(at_);
            byte_window const table = memory.window(here);
            uint64_t bytes = table.size;
            auto const until = [&](uint64_t last) {
                if (last - here < bytes) { bytes = last - here + 1; }
            };
            until(topa::table_pointer({at_.table, topa::last_index, 0}) | 7);
            until(low_bits(of_.width.bits));
            if (bytes < sizeof(topa::entry)) { return; }
            see_ahead(table.first + sizeof(topa::entry), bytes / sizeof(topa::entry) - 1);
        }
    }
    /// Moves a run that will be full on to the region of the next entry. False, and no change, where
    /// there is more to do about that entry: where it differs from the current one, which is right
    /// and has no marks, in more than the address of its region.
    template <memory_port Memory>
    [[gnu::always_inline]]  // so that a filled region costs no call
    constexpr auto
    move_on(run& from, Memory& memory, topa::entry next) const noexcept -> bool {
        using topa::entry;
        if constexpr (mapped_memory_port<Memory>) {
            if (((next.raw ^ from.region.raw) & same_) != 0) { return false; }
            uint64_t const base = next.get<entry::Base>();
            byte_window const here = memory.window(base);
            if (here.size < size_) { return false; }
            from = {size_, here.first + size_, base + size_, next, from.next_entry + sizeof(entry)};
            return true;
        }
        return false;
    }
};

}  // namespace ptspec::engine
