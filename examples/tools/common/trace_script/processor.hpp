// SPDX-License-Identifier: BSL-1.0
#pragma once

// A logical processor that executes actions, and the memory that holds its trace.

#include "start.hpp"

#include <ptspec/simulate/ports.hpp>

#include <cstddef>
#include <cstdint>

namespace trace_script {

namespace action = engine::action;

/// An event of a script has at most this many moments.
inline constexpr std::size_t max_moments = 32;

/// A logical processor with an output region of `Bytes` bytes, a power of two of at least 4096.
template <std::size_t Bytes>
class processor {
public:
    static constexpr std::uint64_t table = region_base + Bytes;

    constexpr processor() : unit_{cpu::capabilities{}} {}

    /// Sets the initial state.
    constexpr void begin(start const& given) {
        unit_ = engine::trace_unit<>{given.of, given.msrs, given.code, given.ip, given.how};
        using pointers = reg::ia32_rtit_output_mask_ptrs;
        first_byte_ = static_cast<std::size_t>(
            given.msrs.output.mask_ptrs.get<pointers::OutputOffset>());
        unit_.conceal(given.hidden);
        unit_.set_clocks(given.clocks);
        auto const size = low_bits(0) | static_cast<std::uint64_t>(size_code()) << 6;
        store_word(table, region_base | size);
        store_word(table + 8, table | 1);
        execute(action::cycles{given.cycles});
        for (std::uint64_t i = 0; i < given.calls; ++i) {
            std::uint64_t const next = given.return_address(i);
            execute(action::direct_call{next, next + 0x1000});
        }
        for (char const bit : given.pending) {
            execute(action::conditional{unit_.ip(), bit == '1'});
        }
        execute(action::sequential{given.ip});
    }

    /// Executes an action, while time passes as `takes` lists.
    template <class Action>
    constexpr void execute(Action const& what, action::time_within takes = {}) {
        auto const fault = takes.count != 0 ? unit_.on(what, memory_, takes)
                                            : unit_.on(what, memory_);
        has_failed_ = has_failed_ || fault.happened;
        traces_events_ = traces_events_ || unit_.state().ctl<reg::ia32_rtit_ctl::EventEn>();
    }
    /// Executes a WRMSR. Returns false if it faults.
    constexpr auto wrmsr(engine::msr_write const& what, action::time_within takes = {}) -> bool {
        auto const done = unit_.wrmsr(what, memory_, takes);
        has_failed_ = has_failed_ || done.fault.happened;
        return done.took_effect();
    }
    constexpr void set_clocks(engine::clocks const& to) { unit_.set_clocks(to); }

    [[nodiscard]] constexpr auto unit() const -> engine::trace_unit<> const& { return unit_; }
    /// True if the memory did not take all bytes.
    [[nodiscard]] constexpr auto has_failed() const -> bool { return has_failed_; }
    /// True if EventEn was 1.
    [[nodiscard]] constexpr auto traces_events() const -> bool { return traces_events_; }

    /// The trace in memory.
    [[nodiscard]] constexpr auto written() const -> byte_view {
        auto const count = unit_.total().stored;
        auto const all = byte_view{memory_.bytes}.first(Bytes).from(first_byte_);
        return all.first(count < all.size() ? static_cast<std::size_t>(count) : all.size());
    }
    [[nodiscard]] constexpr auto wrapped_around() const -> bool {
        return unit_.total().stored > Bytes - first_byte_;
    }

    /// The state between two actions, without the bytes of the trace.
    struct moment {
        engine::trace_unit<> unit{cpu::capabilities{}};
        bool has_failed = false;
    };
    [[nodiscard]] constexpr auto save() const -> moment { return {unit_, has_failed_}; }
    /// Goes back to a moment from which the trace has not wrapped around.
    constexpr void restore(moment const& from) {
        unit_ = from.unit;
        has_failed_ = from.has_failed;
    }

private:
    static constexpr auto size_code() -> unsigned {
        unsigned code = 0;
        while ((std::size_t{4096} << code) < Bytes) { ++code; }
        return code;
    }
    constexpr void store_word(std::uint64_t address, std::uint64_t word) {
        byte_array<8> bytes;
        store_le64(bytes.data(), word);
        has_failed_ = memory_.store(address, bytes) != 8;
    }

    simulate::memory_model<Bytes + 16> memory_{region_base, {}};
    engine::trace_unit<> unit_;
    std::size_t first_byte_ = 0;  ///< of the trace in the region
    bool has_failed_ = false;
    bool traces_events_ = false;
};

}  // namespace trace_script
