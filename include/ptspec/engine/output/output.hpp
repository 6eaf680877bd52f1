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

    /// TraceEn became 1; `msrs` has it. If TriggerEn is 0, nothing is checked, and all bytes
    /// are lost.
    template <memory_port Memory>
    constexpr auto start(cpu::capabilities const& caps, access::msr_state& msrs, Memory& memory,
                         output_options const& options = {}) noexcept -> port_fault {
        using ctl = access::ia32_rtit_ctl;
        s_ = {};
        s_.options = options;
        s_.limits = topa::limits::of(caps);
        detail::set_restricted(s_, options.restricted);
        s_.sets_pend_topa_pmi = caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::INJECTPSBPMI>() &&
                                msrs.ctl.get<ctl::InjectPsbPmiOnEnable>();
        if (!msrs.status.get<access::ia32_rtit_status::TriggerEn>()) { return {}; }
        s_.scheme = msrs.ctl.get<ctl::FabricEn>() ? cpu::output_scheme::fabric
                    : msrs.ctl.get<ctl::ToPA>()   ? cpu::output_scheme::topa
                                                  : cpu::output_scheme::single_range;
        s_.position = topa::position_in(msrs.output.base, msrs.output.mask_ptrs);
        bool const is_topa = s_.scheme == cpu::output_scheme::topa;
        s_.phase = is_topa ? phase::at_entry : phase::running;
        if (is_topa) { return detail::load_region(s_, msrs, memory); }
        if (s_.scheme == cpu::output_scheme::single_range) {
            detail::begin_single_range(s_, msrs, memory);
        }
        return {};
    }

    /// Stores a few bytes if they go to mapped memory and do not fill the extent. Otherwise returns
    /// false, and stores nothing: call `write`.
    [[nodiscard]] constexpr auto put_few(byte_view bytes) noexcept -> bool {
        if (bytes.size() >= s_.extent.room || !are_few_and_mapped(bytes.size())) { return false; }
        put_mapped(bytes);
        return true;
    }
    /// Writes bytes of trace.
    ///
    /// always_inline: without it a write of 2 bytes takes twice as long (g++ 12).
    template <memory_port Memory>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto write(access::msr_state& msrs, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        size_t const count = bytes.size();
        write_result result;
        if (count < s_.extent.room) {
            if (!are_few_and_mapped(count)) [[unlikely]] { return write_slow(msrs, memory, bytes); }
            result.count_stored(s_.extent.address(), count);
            put_mapped(bytes);
            return result;
        }
        if (s_.can_fill && count - s_.extent.room < s_.region_size) {
            detail::output_extent const full = s_.extent;
            // Before the copy: the processor then finds the region while it copies.
            if (detail::try_next_region(s_, memory, full)) {
                auto const front = static_cast<size_t>(full.room);
                copy_bytes(full.mapped(), bytes.data(), front);
                if (count != front) { put_mapped(bytes.from(front)); }
                phys_addr const end = count == front ? full.end : s_.extent.address();
                result.count_stored({full.end.value - front, end.value - 1}, count);
                return result;
            }
        }
        return write_slow(msrs, memory, bytes);
    }

    /// Retries what a port failed to do; no effect if nothing failed.
    template <memory_port Memory>
    constexpr auto retry(access::msr_state& msrs, Memory& memory) noexcept -> port_fault {
        return s_.phase == phase::at_entry ? detail::load_region(s_, msrs, memory) : port_fault{};
    }

    /// The SMRRs, or other restricted memory, change while TraceEn is 1, which software must not
    /// do. The current region was checked before, and is not checked again; entries that are loaded
    /// from now on are.
    ///
    /// Source: SDM vol. 3, "Restricted Memory Access"; OUT-115, PRG-097.
    constexpr void change_restricted(topa::restricted_memory const& restricted) noexcept {
        detail::update_position(s_);
        s_.next_restricted = restricted;
        s_.restrictions_changed = true;
        s_.can_fill = false;
        s_.entries_end = s_.extent.next_entry;
    }
    /// Writes the position to the two output MSRs.
    constexpr void write_back(access::msr_state& msrs) const noexcept {
        detail::write_back_position(s_, msrs);
    }
    /// TraceEn became 0. All bytes consumed are in memory, and the MSRs are exact.
    constexpr void stop(access::msr_state& msrs) noexcept { detail::stop_output(s_, msrs); }

    /// The address of the next byte, if it is known. It is not where bytes go to a fabric, output
    /// has ended or not begun, or a port could not read the entry.
    [[nodiscard]] constexpr auto next_address() const noexcept -> output_address {
        bool const is_known = s_.phase == phase::running && s_.extent.room != 0 &&
                              s_.scheme != cpu::output_scheme::fabric;
        return {is_known, is_known ? s_.extent.address() : phys_addr{}};
    }
    /// The rule that ended output since `start`; none if it has not ended.
    [[nodiscard]] constexpr auto ended_by() const noexcept -> rule { return s_.ended_by; }

private:
    using phase = detail::output_phase;

    detail::output_state s_{};

    /// True if `put_mapped` can store `count` bytes, for which there is room.
    [[nodiscard]] constexpr auto are_few_and_mapped(size_t count) const noexcept -> bool {
        // Hidden, so that both conditions stay branches, which are predictable.
        return hide_from_optimizer(s_.extent.mapped_end) != nullptr && count - 1 < few_bytes;
    }
    /// Stores fewer bytes than there is room for.
    constexpr void put_mapped(byte_view bytes) noexcept {
        uint8_t* const destination = s_.extent.mapped();
        // Before the copy, which may alias `room`: it need not be loaded again.
        s_.extent.room -= bytes.size();
        copy_few_bytes(destination, bytes.data(), bytes.size());
    }

    /// Calls `write_rest`, and returns a copy of its result. Without the copy `write_rest` stores
    /// to the result of `write`, which then is in memory also on the paths without this call.
    ///
    /// always_inline: without it a write of 8 bytes takes 1.3 times as long.
    template <memory_port Memory>
    PTSPEC_ATTRIBUTE(always_inline)
    constexpr auto write_slow(access::msr_state& msrs, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        write_result const result = write_rest(msrs, memory, bytes);
        return write_result{result};
    }
    /// Writes all bytes, from extent to extent, or up to the fault of a port.
    template <memory_port Memory>
    constexpr auto write_rest(access::msr_state& msrs, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        write_result result;
        while (result.taken < bytes.size() && !result.fault.happened) {
            byte_view const rest = bytes.from(result.taken);
            if (rest.size() < s_.extent.room && s_.extent.mapped_end != nullptr) {
                result.count_stored(s_.extent.address(), rest.size());
                put_mapped(rest);
            } else if (!fill_regions(memory, rest, result)) {
                write_to_extent(msrs, memory, rest, result);
            }
        }
        return result;
    }

    /// Fills regions with `try_next_region`, as many as possible. False if there is none.
    template <memory_port Memory>
    constexpr auto fill_regions(Memory& memory, byte_view bytes, write_result& result) noexcept
        -> bool {
        if (!s_.can_fill) { return false; }
        phys_addr const first = s_.extent.address();
        phys_addr end = first;
        uint8_t const* from = bytes.data();
        size_t left = bytes.size();
        while (left >= s_.extent.room) {
            detail::output_extent const full = s_.extent;
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

    /// Writes bytes, at least one, up to the end of the extent, or loads the entry for them.
    template <memory_port Memory>
    constexpr void write_to_extent(access::msr_state& msrs, Memory& memory, byte_view bytes,
                                   write_result& result) noexcept {
        detail::update_position(s_);
        if (s_.phase == phase::at_entry) {
            result.fault = detail::load_region(s_, msrs, memory);
        } else if (s_.phase == phase::off) {
            result.lost += bytes.size();
            result.taken += bytes.size();
        } else if (s_.scheme == cpu::output_scheme::fabric) {
            send(memory, bytes, result);
        } else {
            uint64_t const room = s_.extent.room;
            size_t const count = bytes.size() < room ? bytes.size() : static_cast<size_t>(room);
            store(memory, bytes.first(count), result);
            if (s_.extent.room == 0) { end_extent(msrs, memory, result); }
        }
    }

    /// Stores bytes in the extent, or drops them.
    template <memory_port Memory>
    constexpr void store(Memory& memory, byte_view bytes, write_result& result) noexcept {
        phys_addr const address = s_.extent.address();
        size_t count = bytes.size();
        if (s_.extent.mapped_end != nullptr) {
            copy_bytes(s_.extent.mapped(), bytes.data(), count);
        } else if (!s_.drops) {
            count = memory.store(address.value, bytes);
            if (count < bytes.size()) { result.fault = {true, address + count}; }
        }
        if (count != 0) { result.count_stored(address, count); }
        if (s_.drops) {
            result.stored -= count;
            result.lost += count;
        }
        s_.extent.room -= count;
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

    /// Ends an extent that is full: raises the interrupt, stops, or moves to the next extent.
    template <memory_port Memory>
    constexpr void end_extent(access::msr_state& msrs, Memory& memory,
                              write_result& result) noexcept {
        using topa::entry;
        uint64_t const offset = s_.extent.end - s_.region_base;
        s_.position.offset = static_cast<uint32_t>(offset);
        bool const interrupts = s_.limits.many_entries
                                    ? s_.extent.entry.get<entry::INT>() && offset == s_.region_size
                                    : offset == s_.pmi_offset;
        if (offset < s_.region_size) {
            if (interrupts) { raise_pmi(msrs, memory, result); }
            return detail::open_extent(s_, msrs, memory, offset);
        }
        if (s_.scheme == cpu::output_scheme::single_range) {
            return detail::open_extent(s_, msrs, memory, 0);
        }
        if (s_.extent.entry.get<entry::STOP>()) {
            detail::end_output(s_, msrs, rule::OUT_080);
            msrs.status = msrs.status.with(access::ia32_rtit_status::Stopped{true});
        }
        if (interrupts) { raise_pmi(msrs, memory, result); }
        if (s_.phase == phase::off) { return; }
        s_.position = topa::next_entry(s_.position);
        s_.phase = phase::at_entry;
        result.fault = detail::load_next_region(s_, msrs, memory);
    }

    template <memory_port Memory>
    constexpr void raise_pmi(access::msr_state& msrs, Memory& memory,
                             write_result& result) const noexcept {
        ++result.pmis;
        msrs.perf_global_status = msrs.perf_global_status.with(
            reg::ia32_perf_global_status::Trace_ToPA_PMI{true});
        if (s_.sets_pend_topa_pmi) {
            msrs.status = msrs.status.with(access::ia32_rtit_status::PendToPAPMI{true});
        }
        if constexpr (memory_port_members<Memory>::has_raise) { memory.raise(); }
    }
};

}  // namespace ptspec::engine

#undef PTSPEC_ATTRIBUTE
