// SPDX-License-Identifier: BSL-1.0
#pragma once

// The MSRs of performance monitoring beside Intel PT: storage, and counters of instructions.

#include <cstdint>
#include <iterator>

namespace machine {

/// What executed code adds to the counters.
struct event_counts {
    std::uint64_t instructions = 0, cycles = 0, reference_cycles = 0, branches = 0,
                  mispredicted = 0;
};

/// What a kernel needs of performance monitoring, version 4: four counters and three fixed ones, of
/// 48 bits. The architectural events of `event_counts` count; counters of others keep their value.
///
/// Source: SDM vol. 3, "Performance Monitoring"; IA32_PERF_GLOBAL_STATUS is the trace unit's.
class performance_monitoring {
public:
    static constexpr unsigned counters = 4, fixed_counters = 3, counter_bits = 48;

    /// EAX and EDX of CPUID.0AH.
    static constexpr std::uint32_t leaf_0a_eax = 0x0730'0404, leaf_0a_edx = 0x0000'0603;

    /// The word of an MSR, null if it is none of these.
    [[nodiscard]] auto find(std::uint32_t index) -> std::uint64_t* {
        if (index - 0xC1 < counters) { return &counter_[index - 0xC1]; }
        if (index - 0x4C1 < counters) { return &counter_[index - 0x4C1]; }
        if (index - 0x186 < counters) { return &event_select_[index - 0x186]; }
        if (index - 0x309 < fixed_counters) { return &fixed_[index - 0x309]; }
        switch (index) {
            case 0x38D: return &fixed_control_;
            case 0x38F: return &global_control_;
            case 0x1A6: return &offcore_[0];
            case 0x1A7: return &offcore_[1];
            case 0x3F1: return &pebs_enable_;
            case 0x3F6: return &load_latency_;
            case 0x3F7: return &frontend_;
            default: return nullptr;
        }
    }
    /// A write: a value of the counters C1H.. is sign-extended from 32 bits.
    void write(std::uint32_t index, std::uint64_t value) {
        std::uint64_t* const word = find(index);
        bool const is_short = index - 0xC1 < counters;
        bool const is_counter = is_short || index - 0x4C1 < counters ||
                                index - 0x309 < fixed_counters;
        if (is_short) {
            value = static_cast<std::uint64_t>(
                static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
        }
        *word = is_counter ? value & mask : value;
    }
    /// RDPMC. False if there is no such counter.
    [[nodiscard]] auto rdpmc(std::uint32_t index, std::uint64_t& value) const -> bool {
        bool const is_fixed = (index & 0x4000'0000) != 0;
        std::uint32_t const number = index & 0xFFFF;
        if (number >= (is_fixed ? fixed_counters : counters)) { return false; }
        value = is_fixed ? fixed_[number] : counter_[number];
        return true;
    }
    /// True while a counter counts.
    [[nodiscard]] auto counts() const -> bool {
        for (unsigned i = 0; i < counters; ++i) {
            if (is_on(i)) { return true; }
        }
        for (unsigned i = 0; i < fixed_counters; ++i) {
            if (fixed_is_on(i)) { return true; }
        }
        return false;
    }
    /// Code at this CPL has executed. Returns the bits of IA32_PERF_GLOBAL_STATUS of the counters
    /// that overflowed; `raises` is whether one asks for an interrupt.
    auto count(event_counts const& more, unsigned cpl, bool& raises) -> std::uint64_t {
        std::uint64_t overflowed = 0;
        for (unsigned i = 0; i < counters; ++i) {
            std::uint64_t const select = event_select_[i];
            bool const is_counted = (select >> (cpl == 0 ? 17 : 16) & 1) != 0;
            if (is_on(i) && is_counted && advance(counter_[i], more.*member_of(select))) {
                overflowed |= std::uint64_t{1} << i;
                raises = raises || (select >> 20 & 1) != 0;
            }
        }
        constexpr member fixed_events[fixed_counters] = {
            &event_counts::instructions, &event_counts::cycles, &event_counts::reference_cycles};
        for (unsigned i = 0; i < fixed_counters; ++i) {
            std::uint64_t const control = fixed_control_ >> 4 * i;
            bool const is_counted = (control >> (cpl == 0 ? 0 : 1) & 1) != 0;
            if (fixed_is_on(i) && is_counted && advance(fixed_[i], more.*fixed_events[i])) {
                overflowed |= std::uint64_t{1} << (32 + i);
                raises = raises || (control >> 3 & 1) != 0;
            }
        }
        return overflowed;
    }

private:
    static constexpr std::uint64_t mask = (std::uint64_t{1} << counter_bits) - 1;
    using member = std::uint64_t event_counts::*;

    /// The count of an event select's event and unit mask; null if it is not counted here.
    [[nodiscard]] static auto member_of(std::uint64_t select) -> member {
        switch (select & 0xFFFF) {
            case 0x00C0: return &event_counts::instructions;
            case 0x003C: return &event_counts::cycles;
            case 0x013C: return &event_counts::reference_cycles;
            case 0x00C4: return &event_counts::branches;
            case 0x00C5: return &event_counts::mispredicted;
            default: return nullptr;
        }
    }
    [[nodiscard]] auto is_on(unsigned i) const -> bool {
        std::uint64_t const select = event_select_[i];
        return (global_control_ >> i & 1) != 0 && (select >> 22 & 1) != 0 &&
               member_of(select) != nullptr;
    }
    [[nodiscard]] auto fixed_is_on(unsigned i) const -> bool {
        return (global_control_ >> (32 + i) & 1) != 0 && (fixed_control_ >> 4 * i & 3) != 0;
    }
    static auto advance(std::uint64_t& counter, std::uint64_t by) -> bool {
        std::uint64_t const before = counter;
        counter = (counter + by) & mask;
        return counter < before;
    }

    std::uint64_t counter_[counters] = {};
    std::uint64_t event_select_[counters] = {};
    std::uint64_t fixed_[fixed_counters] = {};
    std::uint64_t fixed_control_ = 0;
    std::uint64_t global_control_ = 0;
    std::uint64_t offcore_[2] = {};
    std::uint64_t pebs_enable_ = 0, load_latency_ = 0, frontend_ = 0;
};

}  // namespace machine
