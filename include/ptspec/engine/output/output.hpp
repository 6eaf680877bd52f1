// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output/regions.hpp>
#include <ptspec/base/attribute.hpp>

/// Where every byte of trace is stored, and what ends output.
namespace ptspec::engine {

/// The output of a logical processor: single range, ToPA or fabric. A value. The MSRs, which it
/// changes as the processor does, and the memory port are passed with each operation.
///
/// Nothing is buffered: with the byte that fills a region, the next entry is loaded, and status
/// bits and interrupts are up to date. The two output MSRs are updated by `write_back`, by `stop`,
/// and when output ends.
///
/// The memory port may also be a `fabric_port`, which receives the bytes of a fabric; otherwise
/// these are lost. It is a `pmi_port`, which receives every interrupt when it occurs, or says that
/// it `ignores_pmis`: see `memory_port_members`.
///
/// If a port fails, no byte is lost or repeated. `write` returns how many bytes it consumed; the
/// next `write`, with the rest, or `retry` retries what failed.
///
/// Shape:  writing n bytes at once is equivalent to writing them one by one.
/// Errors: an operational error sets STATUS.Error, and `ended_by()` returns its rule: OUT-022..024,
///         OUT-060..068, OUT-071, OUT-091, OUT-111. ToPA STOP sets STATUS.Stopped: OUT-080.
/// Source: SDM vol. 3, "Trace Output"; OUT-001, OUT-002, OUT-005..008, OUT-020..030, OUT-050..058,
///         OUT-060..071, OUT-080..088, OUT-091, OUT-100..104, OUT-110..117, OUT-120, OUT-121,
///         OUT-131, OUT-133, OUT-151..153, PRG-080..090, PRG-095, PRG-096, PRG-180.
class output {
public:
    constexpr output() noexcept = default;
    /// Output that was ended by a rule.
    constexpr explicit output(rule ended_by) noexcept { s_.ended_by = ended_by; }

    /// TraceEn became 1; `now` contains it. If TriggerEn is 0, nothing is checked, and all bytes
    /// are lost.
    template <memory_port Memory>
    constexpr auto start(cpu::capabilities const& caps, access::msr_state& now, Memory& memory,
                         output_options const& how = {}) noexcept -> port_fault {
        using ctl = access::ia32_rtit_ctl;
        s_ = {};
        s_.options = how;
        s_.limits = topa::limits::of(caps);
        detail::set_restricted(s_, how.restricted);
        s_.sets_pend_topa_pmi = caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::INJECTPSBPMI>() &&
                                now.ctl.get<ctl::InjectPsbPmiOnEnable>();
        if (!now.status.get<access::ia32_rtit_status::TriggerEn>()) { return {}; }
        s_.scheme = now.ctl.get<ctl::FabricEn>() ? cpu::output_scheme::fabric
                    : now.ctl.get<ctl::ToPA>()   ? cpu::output_scheme::topa
                                                 : cpu::output_scheme::single_range;
        s_.position = topa::position_in(now.output.base, now.output.mask_ptrs);
        bool const is_topa = s_.scheme == cpu::output_scheme::topa;
        s_.phase = is_topa ? phase::at_entry : phase::running;
        if (is_topa) { return detail::load_region(s_, now, memory); }
        if (s_.scheme == cpu::output_scheme::single_range) {
            detail::begin_single_range(s_, now, memory);
        }
        return {};
    }

    /// Writes a few bytes that fill nothing, to mapped memory. False, and no change: `write` must
    /// write them.
    [[nodiscard]] constexpr auto put_few(byte_view bytes) noexcept -> bool {
        if (bytes.size() >= s_.window.room || !are_few_and_mapped(bytes.size())) { return false; }
        put_mapped(bytes);
        return true;
    }
    /// Writes bytes of trace.
    ///
    /// always_inline: without it a write of 2 bytes takes twice as long (g++ 12).
    template <memory_port Memory>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto write(access::msr_state& now, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        size_t const count = bytes.size();
        write_result result;
        if (count < s_.window.room) {
            if (!are_few_and_mapped(count)) [[unlikely]] { return write_slow(now, memory, bytes); }
            result.count_stored(s_.window.address(), count);
            put_mapped(bytes);
            return result;
        }
        if (s_.can_fill && count - s_.window.room < s_.region_size) {
            detail::output_window const full = s_.window;
            // Before the copy, which the processor overlaps with finding the next region.
            if (detail::try_next_region(s_, memory, full)) {
                auto const front = static_cast<size_t>(full.room);
                copy_bytes(full.mapped(), bytes.data(), front);
                if (count != front) { put_mapped(bytes.from(front)); }
                phys_addr const end = count == front ? full.end : s_.window.address();
                result.count_stored({full.end.value - front, end.value - 1}, count);
                return result;
            }
        }
        return write_slow(now, memory, bytes);
    }

    /// Retries what a port failed to do; no effect if nothing failed.
    template <memory_port Memory>
    constexpr auto retry(access::msr_state& now, Memory& memory) noexcept -> port_fault {
        return s_.phase == phase::at_entry ? detail::load_region(s_, now, memory) : port_fault{};
    }

    /// The SMRRs, or other restricted memory, change while TraceEn is 1, which software must not
    /// do. The current region was checked before, and is not checked again; entries that are loaded
    /// from now on are.
    ///
    /// Source: SDM vol. 3, "Restricted Memory Access"; OUT-115, PRG-097.
    constexpr void change_restricted(topa::restricted_memory const& to) noexcept {
        detail::update_position(s_);
        s_.next_restricted = to;
        s_.restrictions_changed = true;
        s_.can_fill = false;
        s_.entries_end = s_.window.next_entry;
    }
    /// Writes the position to the two output MSRs.
    constexpr void write_back(access::msr_state& now) const noexcept {
        detail::write_back_position(s_, now);
    }
    /// TraceEn became 0. All bytes consumed are in memory, and the MSRs are exact.
    constexpr void stop(access::msr_state& now) noexcept { detail::stop_output(s_, now); }

    /// The rule that ended output since `start`; none if it has not ended.
    [[nodiscard]] constexpr auto ended_by() const noexcept -> rule { return s_.ended_by; }

private:
    using phase = detail::output_phase;

    detail::output_state s_{};

    /// True if `put_mapped` can store `count` bytes, for which there is room.
    [[nodiscard]] constexpr auto are_few_and_mapped(size_t count) const noexcept -> bool {
        // Hidden: two predictable branches instead of one computed condition.
        return hide_from_optimizer(s_.window.mapped_end) != nullptr && count - 1 < few_bytes;
    }
    /// Stores fewer bytes than there is room for.
    constexpr void put_mapped(byte_view bytes) noexcept {
        uint8_t* const to = s_.window.mapped();
        // `room` before the bytes, which may alias it: no reload after them.
        s_.window.room -= bytes.size();
        copy_few_bytes(to, bytes.data(), bytes.size());
    }

    /// `write_rest`, whose result is copied: it stays in registers on paths that do not call it.
    ///
    /// always_inline: without it a write of 8 bytes takes 1.3 times as long.
    template <memory_port Memory>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto write_slow(access::msr_state& now, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        write_result const result = write_rest(now, memory, bytes);
        return write_result{result};
    }
    /// Writes bytes from window to window.
    template <memory_port Memory>
    constexpr auto write_rest(access::msr_state& now, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        write_result result;
        while (result.taken < bytes.size() && !result.fault.happened) {
            byte_view const rest = bytes.from(result.taken);
            if (rest.size() < s_.window.room && s_.window.mapped_end != nullptr) {
                result.count_stored(s_.window.address(), rest.size());
                put_mapped(rest);
            } else if (!fill_regions(memory, rest, result)) {
                write_window(now, memory, rest, result);
            }
        }
        return result;
    }

    /// Fills as many regions as possible. False if it cannot fill the first.
    template <memory_port Memory>
    constexpr auto fill_regions(Memory& memory, byte_view bytes, write_result& result) noexcept
        -> bool {
        if (!s_.can_fill) { return false; }
        phys_addr const first = s_.window.address();
        phys_addr end = first;
        uint8_t const* from = bytes.data();
        size_t left = bytes.size();
        while (left >= s_.window.room) {
            detail::output_window const full = s_.window;
            if (!detail::try_next_region(s_, memory, full)) { break; }
            auto const room = static_cast<size_t>(full.room);
            left -= room;
            end = full.end;
            copy_bytes(full.mapped(), from, room);
            from += room;
        }
        if (left == bytes.size()) { return false; }
        result.count_stored({first, end.value - 1}, bytes.size() - left);
        return true;
    }

    /// Writes bytes, at least one, up to the end of the window, or loads the entry for it.
    template <memory_port Memory>
    constexpr void write_window(access::msr_state& now, Memory& memory, byte_view bytes,
                                write_result& result) noexcept {
        detail::update_position(s_);
        if (s_.phase == phase::at_entry) {
            result.fault = detail::load_region(s_, now, memory);
        } else if (s_.phase == phase::off) {
            result.lost += bytes.size();
            result.taken += bytes.size();
        } else if (s_.scheme == cpu::output_scheme::fabric) {
            send(memory, bytes, result);
        } else {
            uint64_t const room = s_.window.room;
            size_t const most = bytes.size() < room ? bytes.size() : static_cast<size_t>(room);
            store(memory, bytes.first(most), result);
            if (s_.window.room == 0) { end_window(now, memory, result); }
        }
    }

    /// Stores bytes in the window, or drops them.
    template <memory_port Memory>
    constexpr void store(Memory& memory, byte_view bytes, write_result& result) noexcept {
        phys_addr const address = s_.window.address();
        size_t count = bytes.size();
        if (s_.window.mapped_end != nullptr) {
            copy_bytes(s_.window.mapped(), bytes.data(), count);
        } else if (!s_.drops) {
            count = memory.store(address.value, bytes);
            if (count < bytes.size()) { result.fault = {true, address + count}; }
        }
        if (count != 0) { result.count_stored(address, count); }
        if (s_.drops) {
            result.stored -= count;
            result.lost += count;
        }
        s_.window.room -= count;
    }

    template <memory_port Memory>
    constexpr void send(Memory& memory, byte_view bytes, write_result& result) noexcept {
        if constexpr (memory_port_members<Memory>::has_send) {
            size_t const sent = memory.send(bytes);
            result.fault = {sent < bytes.size(), 0};
            result.stored += sent;
            result.taken += sent;
        } else {
            result.lost += bytes.size();
            result.taken += bytes.size();
        }
    }

    /// The window is full: raises the interrupt, stops, or opens the next window.
    template <memory_port Memory>
    constexpr void end_window(access::msr_state& now, Memory& memory,
                              write_result& result) noexcept {
        using topa::entry;
        uint64_t const offset = s_.window.end - s_.region_base;
        s_.position.offset = static_cast<uint32_t>(offset);
        bool const interrupts = s_.limits.many_entries
                                    ? s_.window.entry.get<entry::INT>() && offset == s_.region_size
                                    : offset == s_.pmi_offset;
        if (offset < s_.region_size) {
            if (interrupts) { raise_pmi(now, memory, result); }
            return detail::open_window(s_, now, memory, offset);
        }
        if (s_.scheme == cpu::output_scheme::single_range) {
            return detail::open_window(s_, now, memory, 0);
        }
        if (s_.window.entry.get<entry::STOP>()) {
            detail::end_output(s_, now, rule::OUT_080);
            now.status = now.status.with(access::ia32_rtit_status::Stopped{true});
        }
        if (interrupts) { raise_pmi(now, memory, result); }
        if (s_.phase == phase::off) { return; }
        s_.position = topa::next_entry(s_.position);
        s_.phase = phase::at_entry;
        result.fault = detail::load_next_region(s_, now, memory);
    }

    template <memory_port Memory>
    constexpr void raise_pmi(access::msr_state& now, Memory& memory,
                             write_result& result) const noexcept {
        ++result.pmis;
        now.perf_global_status = now.perf_global_status.with(
            reg::ia32_perf_global_status::Trace_ToPA_PMI{true});
        if (s_.sets_pend_topa_pmi) {
            now.status = now.status.with(access::ia32_rtit_status::PendToPAPMI{true});
        }
        if constexpr (memory_port_members<Memory>::has_raise) { memory.raise(); }
    }
};

}  // namespace ptspec::engine

#undef PTSPEC_ATTRIBUTE
