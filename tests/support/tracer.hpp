// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/base/host_memory.hpp>

namespace ptspec::test {

// ------------------------------------------------------------------------------------ memory

/// Eight bytes of memory, as a little-endian number.
struct word_at {
    uint64_t address = 0;
    uint64_t value = 0;
};

/// A contiguous run of stored bytes.
struct stored_run {
    uint64_t first = 0;
    uint64_t bytes = 0;

    friend constexpr auto operator==(stored_run, stored_run) -> bool = default;
};

/// Memory of any size that holds a few words, and 0 elsewhere. It accepts every store and records
/// its addresses, but not its bytes.
struct listed_memory {
    using ignores_pmis = listed_memory;

    static constexpr size_t room = 16;

    word_at const* words = nullptr;  ///< borrowed
    size_t word_count = 0;
    uint64_t loaded[room] = {};  ///< addresses of the first loads
    size_t loads = 0;
    stored_run runs[room] = {};  ///< the first runs
    size_t run_count = 0;

    constexpr listed_memory() noexcept = default;
    constexpr listed_memory(word_at const* list, size_t count) noexcept
        : words{list}, word_count{count} {}
    template <size_t Count>
    constexpr listed_memory(word_at const (&list)[Count]) noexcept
        : words{list}, word_count{Count} {}

    constexpr auto load(uint64_t address) noexcept -> port_value {
        if (loads < room) { loaded[loads] = address; }
        ++loads;
        for (size_t i = 0; i < word_count; ++i) {
            if (words[i].address == address) { return {true, words[i].value}; }
        }
        return {true, 0};
    }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        if (bytes.empty()) { return 0; }
        if (run_count != 0 && run_count <= room) {
            auto& last = runs[run_count - 1];
            if (last.first + last.bytes == address) {
                last.bytes += bytes.size();
                return bytes.size();
            }
        }
        if (run_count < room) { runs[run_count] = {address, bytes.size()}; }
        ++run_count;
        return bytes.size();
    }
};
static_assert(memory_port<listed_memory> && !mapped_memory_port<listed_memory>);

/// A memory in which a range of addresses fails until it is mended.
template <memory_port Memory>
struct failing_memory {
    using ignores_pmis = failing_memory;

    static constexpr uint64_t none = ~uint64_t{0};

    Memory inner{};
    uint64_t bad_first = none;
    uint64_t bad_last = 0;

    constexpr auto load(uint64_t address) noexcept -> port_value {
        return fails(address, 8) ? port_value{} : inner.load(address);
    }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        size_t count = 0;
        while (count < bytes.size() && !fails(address + count, 1)) { ++count; }
        return inner.store(address, bytes.first(count));
    }
    constexpr void mend() noexcept {
        bad_first = none;
        bad_last = 0;
    }

private:
    [[nodiscard]] constexpr auto fails(uint64_t address, uint64_t bytes) const noexcept -> bool {
        return address <= bad_last && bad_first <= address + (bytes - 1);
    }
};

// ------------------------------------------------------------------------------------ tracing

namespace ctl_bits {
inline constexpr uint64_t trace_en = 1;
inline constexpr uint64_t fabric = uint64_t{1} << 6;
inline constexpr uint64_t topa = uint64_t{1} << 8;
inline constexpr uint64_t inject = uint64_t{1} << 56;
inline constexpr uint64_t single_range = 0x200C;  ///< OS, User, BranchEn
}  // namespace ctl_bits

namespace status_bits {
inline constexpr uint64_t trigger_en = 4;
inline constexpr uint64_t error = 16;
inline constexpr uint64_t stopped = 32;
inline constexpr uint64_t pend_topa_pmi = 128;
}  // namespace status_bits

inline constexpr uint64_t topa_pmi = uint64_t{1} << 55;  ///< bit of IA32_PERF_GLOBAL_STATUS

/// A logical processor with its output, from one rise of TraceEn to the next.
template <memory_port Memory>
struct tracer {
    cpu::capabilities of;
    Memory& memory;
    engine::output_options how{};
    access::msr_state now{};
    engine::output out{};
    engine::write_result
        sum{};           ///< all writes since TraceEn rose; the fault is that of the last write
    port_fault fault{};  ///< of the last start or resume

    constexpr void put(uint32_t index, uint64_t value) { access::set_raw(now, index, value); }
    constexpr void place(uint64_t base, uint64_t mask_ptrs) {
        put(0x560, base);
        put(0x561, mask_ptrs);
    }

    /// WRMSR of CTL with TraceEn set. Returns false when it faults.
    constexpr auto enable(uint64_t ctl) -> bool {
        auto const done = access::effect_of_write(of, now, 0x570, ctl | ctl_bits::trace_en);
        if (!done) { return false; }
        now = done.state;
        sum = {};
        fault = out.start(of, now, memory, how);
        return true;
    }
    constexpr auto enable_topa() -> bool { return enable(ctl_bits::single_range | ctl_bits::topa); }
    /// WRMSR of CTL with TraceEn clear. Returns false when it faults.
    constexpr auto disable() -> bool {
        out.stop(now);
        auto const done = access::effect_of_write(of, now, 0x570,
                                                  now.ctl.raw & ~ctl_bits::trace_en);
        now = done.state;
        return static_cast<bool>(done);
    }
    constexpr auto write(byte_view bytes) -> engine::write_result {
        auto const done = out.write(now, memory, bytes);
        sum += done;
        return done;
    }
    constexpr void retry() { fault = out.retry(now, memory); }

    /// True when RDMSR of the two output MSRs returns these values.
    constexpr auto is_at(uint64_t base, uint64_t mask_ptrs) -> bool {
        out.write_back(now);
        return now.output.base.raw == base && now.output.mask_ptrs.raw == mask_ptrs;
    }
    [[nodiscard]] constexpr auto is_running() const -> bool {
        return status(status_bits::trigger_en) && !status(status_bits::error) &&
               !status(status_bits::stopped) && out.ended_by() == rule::none;
    }
    /// True when an operational error by this rule has ended output.
    [[nodiscard]] constexpr auto has_failed(rule why) const -> bool {
        return status(status_bits::error) && !status(status_bits::stopped) &&
               !status(status_bits::trigger_en) && out.ended_by() == why;
    }
    [[nodiscard]] constexpr auto has_stopped() const -> bool {
        return status(status_bits::stopped) && !status(status_bits::error) &&
               !status(status_bits::trigger_en) && out.ended_by() == rule::OUT_080;
    }
    [[nodiscard]] constexpr auto status(uint64_t bit) const -> bool {
        return (now.status.raw & bit) != 0;
    }
    [[nodiscard]] constexpr auto pmi_pending() const -> bool {
        return (now.perf_global_status.raw & topa_pmi) != 0;
    }
};

/// Bytes that differ from all bytes near them.
template <size_t Count>
constexpr auto numbered_bytes() -> byte_array<Count> {
    byte_array<Count> made;
    for (size_t i = 0; i < Count; ++i) {
        made.bytes[i] = static_cast<uint8_t>(i * 7 + i / 256 * 3 + 1);
    }
    return made;
}

}  // namespace ptspec::test
