// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/engine/output/options.hpp>
#include <ptspec/engine/output/result.hpp>
#include <ptspec/topa/position.hpp>

namespace ptspec::engine {

/// What output knows between two bytes: where it is, and what lies ahead. The base of `output`,
/// which moves it on.
///
/// Source: OUT-005, OUT-006, OUT-021, OUT-028, OUT-050, OUT-051, OUT-056..058, OUT-080.
class output_state {
public:
    /// Brings the two output MSRs up to date.
    constexpr void sync(access::msr_state& now) const noexcept {
        if (phase_ == phase::off || scheme_ == cpu::output_scheme::fabric) { return; }
        if (scheme_ == cpu::output_scheme::single_range) {
            now.output_mask_ptrs = now.output_mask_ptrs.with(
                access::ia32_rtit_output_mask_ptrs::OutputOffset{wrapped{offset()}});
            return;
        }
        now.output_base = topa::base_of(at_);
        now.output_mask_ptrs = topa::mask_ptrs_of({at_.table, index(), offset()});
    }

    /// TraceEn has fallen. What was taken is in memory, and the MSRs are exact.
    constexpr void stop(access::msr_state& now) noexcept {
        sync(now);
        phase_ = phase::off;
        run_.end_in_place = nullptr;
        fills_ = false;
    }

    /// The rule by which output ended by itself since `start`: none while it has not.
    [[nodiscard]] constexpr auto why() const noexcept -> rule { return why_; }

protected:
    enum class phase : uint8_t {
        off,       ///< nothing goes out: TraceEn is 0, or an error or STOP ended output
        at_entry,  ///< the entry at the position has to be read
        running,
    };
    static constexpr uint64_t no_offset = ~uint64_t{0};
    static constexpr uint64_t marks =
        topa::entry{}.with(topa::entry::INT{true}, topa::entry::STOP{true}).raw;

    /// A stretch of a region in which nothing has to be decided.
    struct run {
        uint64_t room = 0;                ///< what is left of it: 0 when there is none
        uint8_t* end_in_place = nullptr;  ///< where it ends in this program's memory; null: it goes
                                          ///< through the port, to a fabric, or nowhere
        uint64_t end = 0;                 ///< the address behind it
        topa::entry region{};
        uint8_t const* next_entry = nullptr;  ///< the first of the entries ahead

        /// Where its next byte goes.
        [[nodiscard]] constexpr auto in_place() const noexcept -> uint8_t* {
            return end_in_place - static_cast<size_t>(room);
        }
    };

    // The entries ahead are those behind the current one that can be read without further
    // questions. Filling regions moves on only `run_`; `catch_up` does the rest, once for all that
    // were filled.
    run run_{};
    uint8_t const* caught_up_ = nullptr;    ///< what `next_entry` was at the last `catch_up`
    uint8_t const* first_entry_ = nullptr;  ///< of the table, where it is one of them
    uint8_t const* end_ahead_ = nullptr;
    topa::position at_{};          ///< its offset only while there is no run
    uint64_t base_ = 0;            ///< of the region
    uint64_t size_ = 0;            ///< of the region
    uint64_t same_ = 0;            ///< the bits that the next entry has to share to be filled, too
    uint64_t pmi_at_ = no_offset;  ///< the offset at which an interrupt comes before the end
    topa::limits of_{};
    output_options how_{};
    cpu::output_scheme scheme_ = cpu::output_scheme::single_range;
    phase phase_ = phase::off;
    bool asks_ = false;   ///< interrupts may come early, or memory may be restricted
    bool fills_ = false;  ///< the run is the rest of a region after which only the next one follows
    bool drops_ = false;  ///< the run lies in restricted memory
    bool keeps_pmi_ = false;
    rule why_ = rule::none;

    [[nodiscard]] constexpr auto offset() const noexcept -> uint32_t {
        return run_.room == 0 ? at_.offset : static_cast<uint32_t>(store_address() - region_base());
    }
    [[nodiscard]] constexpr auto store_address() const noexcept -> uint64_t {
        return run_.end - run_.room;
    }

    /// True when bytes that go to a run do not change an entry.
    [[nodiscard]] static auto is_apart(uint8_t const* which, uint8_t const* place,
                                       uint64_t bytes) noexcept -> bool {
        uint64_t const last = sizeof(topa::entry) - 1;
        // In 64 bits from the start, also where an address has fewer.
        uint64_t const distance = uint64_t{reinterpret_cast<uintptr_t>(which)} -
                                  uint64_t{reinterpret_cast<uintptr_t>(place)};
        return distance + last >= bytes + last;
    }

    constexpr void see_nothing_ahead() noexcept {
        run_.next_entry = caught_up_ = first_entry_ = end_ahead_ = nullptr;
    }
    /// `current` is where the current entry stands, and `count` how many are ahead.
    constexpr void see_ahead(uint8_t const* current, uint64_t count) noexcept {
        first_entry_ = at_.index == 0 ? current : nullptr;
        run_.next_entry = current + sizeof(topa::entry);
        caught_up_ = run_.next_entry;
        end_ahead_ = run_.next_entry + count * sizeof(topa::entry);
    }
    /// The index of the current entry.
    [[nodiscard]] constexpr auto index() const noexcept -> uint32_t {
        auto const entry_bytes = static_cast<long long>(sizeof(topa::entry));
        return at_.index + static_cast<uint32_t>((run_.next_entry - caught_up_) / entry_bytes);
    }
    [[nodiscard]] constexpr auto region_base() const noexcept -> uint64_t {
        return scheme_ == cpu::output_scheme::topa ? run_.region.get<topa::entry::Base>() : base_;
    }
    constexpr void catch_up() noexcept {
        at_.index = index();
        base_ = region_base();
        caught_up_ = run_.next_entry;
    }

    /// Stores less than there is room for.
    constexpr void put_in_place(byte_view bytes) noexcept {
        uint8_t* const to = run_.in_place();
        // First the room: it is neither read nor written again behind bytes that may be anywhere.
        run_.room -= bytes.size();
        copy_few_bytes(to, bytes.data(), bytes.size());
    }

    /// Stores bytes of the run, or drops them.
    template <memory_port Memory>
    constexpr void put(Memory& memory, byte_view bytes, write_result& done) noexcept {
        uint64_t const address = store_address();
        size_t count = bytes.size();
        if (run_.end_in_place != nullptr) {
            copy_bytes(run_.in_place(), bytes.data(),
                       count);  // the whole run: less is put_in_place
        } else if (!drops_) {
            count = memory.store(address, bytes);
            if (count < bytes.size()) { done.why_not_all = {true, address + count}; }
        }
        if (count != 0) { done.count_stored(address, count); }
        if (drops_) {
            done.stored -= count;
            done.lost += count;
        }
        run_.room -= count;
    }

    /// Sends bytes to the fabric.
    template <memory_port Memory>
    constexpr void send(Memory& memory, byte_view bytes, write_result& done) noexcept {
        size_t const sent = [&] {
            if constexpr (fabric_port<Memory>) { return memory.send(bytes); }
            return bytes.size();
        }();
        done.why_not_all = {sent < bytes.size(), 0};
        done.stored += sent;
        done.taken += sent;
    }

    /// Output has ended by a rule. TriggerEn drops at once.
    constexpr void end(access::msr_state& now, rule why) noexcept {
        using status = access::ia32_rtit_status;
        why_ = why;
        stop(now);
        now.status = now.status.with(status::TriggerEn{false});
    }
    constexpr void fail(access::msr_state& now, rule why) noexcept {
        end(now, why);
        now.status = now.status.with(access::ia32_rtit_status::Error{true});
    }

    template <memory_port Memory>
    constexpr void raise(access::msr_state& now, Memory& memory,
                         write_result& done) const noexcept {
        ++done.pmis;
        now.perf_global_status = now.perf_global_status.with(
            reg::ia32_perf_global_status::Trace_ToPA_PMI{true});
        if (keeps_pmi_) {
            now.status = now.status.with(access::ia32_rtit_status::PendToPAPMI{true});
        }
        if constexpr (pmi_port<Memory>) { memory.raise(); }
    }
};

}  // namespace ptspec::engine
