// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output/state.hpp>
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
        see_nothing_ahead();
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

    /// The same behind a region, where the entry may be ahead.
    template <memory_port Memory>
    constexpr auto take_next(access::msr_state& now, Memory& memory) noexcept -> port_fault {
        if (asks_ || run_.next_entry == end_ahead_) { return settle(now, memory); }
        topa::entry const next{load_le64(run_.next_entry)};
        rule const broken = topa::broken_rule(next, {at_.table, at_.index}, of_);
        if (broken != rule::none) {
            fail(now, broken);
            return {};
        }
        if (next.get<topa::entry::END>()) {
            at_ = topa::follow_end(next);
            return settle(now, memory);
        }
        run_.next_entry += sizeof(topa::entry);
        caught_up_ = run_.next_entry;
        begin_region(now, memory, next);
        return {};
    }

    template <memory_port Memory>
    constexpr void begin_region(access::msr_state& now, Memory& memory,
                                topa::entry which) noexcept {
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
    constexpr void begin_run(access::msr_state& now, Memory& memory, uint64_t from) noexcept {
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
        fills_ = !__builtin_is_constant_evaluated() && run_.end_in_place != nullptr && !asks_ &&
                 from + left == size_ && (run_.region.raw & marks) == 0;
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
            see_ahead(table.first, bytes / sizeof(topa::entry) - 1);
        }
    }

    /// The first entry of the table, where an END leads back to it and it can be read at once; else
    /// null. The run that will be full is told by what it is made of, so that it need not be in
    /// memory.
    [[gnu::noinline]]  // so that it is not in the way of `move_on`
    auto
    first_behind(uint64_t end, uint8_t const* place, uint64_t room) const noexcept
        -> uint8_t const* {
        bool const leads_back = end == topa::link_to(at_.table).raw;
        bool const is_known = first_entry_ != nullptr && is_apart(first_entry_, place, room);
        return leads_back && is_known ? first_entry_ : nullptr;
    }

    /// Moves on from a run that will be filled to the region of the next entry, be it the first of the
    /// same table again. False, and no change, where there is more to do about that entry: where it
    /// differs from the current one, which is right and has no marks, in more than the address of
    /// its region.
    template <memory_port Memory>
    [[gnu::always_inline]]  // so that a filled region costs no call
    constexpr auto
    move_on(Memory& memory, run const& full) noexcept -> bool {
        using topa::entry;
        if constexpr (mapped_memory_port<Memory>) {
            auto const differs = [&](entry next) {
                return ((next.raw ^ full.region.raw) & same_) != 0;
            };
            uint8_t const* at = full.next_entry;
            if (at == end_ahead_ || !is_apart(at, full.in_place(), full.room)) { return false; }
            entry next{load_le64(at)};
            if (differs(next)) [[unlikely]] {
                at = first_behind(next.raw, full.in_place(), full.room);
                if (at == nullptr) { return false; }
                next = entry{load_le64(at)};
                if (differs(next)) { return false; }
            }
            uint64_t const base = next.get<entry::Base>();
            byte_window const here = memory.window(base);
            if (here.size < size_) { return false; }
            run_ = {size_, here.first + size_, base + size_, next, at + sizeof(entry)};
            return true;
        }
        return false;
    }
};

}  // namespace ptspec::engine
