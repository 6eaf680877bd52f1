// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/enables.hpp>
#include <ptspec/engine/output/output.hpp>

/// Why STATUS.Error or STATUS.Stopped is set, from what the processor left behind.
namespace ptspec::engine {

/// Why output ended, and where to look. `describe(why)` says it in words.
struct explanation {
    rule why = rule::none;  ///< none: nothing stopped it, or the entry could not be read
    bool has_place = false;
    topa::place at{};       ///< of the ToPA entry, where it is one
    topa::entry entry{};    ///< where it was read
    text field{};           ///< which field of the entry, or of the MSR, is at fault
    port_fault not_read{};  ///< the memory port failed: nothing can be said

    constexpr explicit operator bool() const noexcept { return why != rule::none; }
};

namespace detail {

template <class Field>
constexpr auto name() noexcept -> text {
    return name_of<Field>();
}

/// The field that has to change for an operational error to go away.
constexpr auto field_at_fault(rule why, topa::entry current) noexcept -> text {
    using topa::entry;
    using pointers = reg::ia32_rtit_output_mask_ptrs;
    switch (why) {
        case rule::OUT_022:
        case rule::OUT_071: return name<pointers::MaskOrTableOffset>();
        case rule::OUT_024:
        case rule::OUT_064: return name<pointers::OutputOffset>();
        case rule::OUT_023:
        case rule::OUT_061:
        case rule::OUT_091: return name<reg::ia32_rtit_output_base::BasePhysAddr>();
        case rule::OUT_060: return "reserved";
        case rule::OUT_062:
        case rule::OUT_063:
        case rule::OUT_068:
        case rule::OUT_111: return name<entry::Base>();
        case rule::OUT_065:
            return current.get<entry::INT>() ? name<entry::INT>() : name<entry::STOP>();
        case rule::OUT_066:
        case rule::OUT_067: return name<entry::END>();
        case rule::OUT_080: return name<entry::STOP>();
        default: return {};
    }
}

constexpr auto of_entry(rule why, topa::position where, topa::entry current) noexcept
    -> explanation {
    return {why, true, {where.table, where.index}, current, field_at_fault(why, current), {}};
}
constexpr auto of_registers(rule why, text field = {}) noexcept -> explanation {
    return {.why = why, .field = field};
}

constexpr auto stores_into_restricted(output_options const& how, uint64_t address) noexcept
    -> bool {
    return how.when_restricted == restricted_access::error &&
           how.restricted.stretch_from(address).restricted;
}

/// An error of a single range.
constexpr auto error_of_single_range(access::msr_state const& now,
                                     output_options const& how) noexcept -> explanation {
    rule const broken = single_range::broken_rule(now.output_base, now.output_mask_ptrs);
    if (broken != rule::none) { return of_registers(broken, field_at_fault(broken, {})); }
    auto const next = single_range::trace_store_phys_addr(now.output_base, now.output_mask_ptrs);
    if (stores_into_restricted(how, next)) {
        return of_registers(rule::OUT_111, name<reg::ia32_rtit_output_base::BasePhysAddr>());
    }
    return of_registers(rule::REG_053);
}

template <memory_port Memory>
constexpr auto error_of_topa(cpu::capabilities const& of, access::msr_state const& now,
                             Memory& memory, output_options const& how) noexcept -> explanation {
    auto const where = topa::position_in(now.output_base, now.output_mask_ptrs);
    auto const come = topa::enter(memory, where, topa::limits::of(of), how.restricted);
    if (come.fault) { return {.not_read = come.fault}; }
    if (!come) { return of_entry(come.broken, come.where, come.current); }
    if (stores_into_restricted(how, topa::trace_store_phys_addr(come.where, come.current))) {
        return of_entry(rule::OUT_111, come.where, come.current);
    }
    return of_registers(rule::REG_053);
}

/// A STOP leaves the offset at the region's size, by newer editions of the manual at its last byte.
template <memory_port Memory>
constexpr auto stopped(access::msr_state const& now, Memory& memory) noexcept -> explanation {
    bool const topa = now.ctl.get<reg::ia32_rtit_ctl::ToPA>() &&
                      !now.ctl.get<reg::ia32_rtit_ctl::FabricEn>();
    if (topa) {
        auto const where = topa::position_in(now.output_base, now.output_mask_ptrs);
        auto const word = memory.load(topa::table_pointer(where));
        if (!word) { return {.not_read = {true, topa::table_pointer(where)}}; }
        topa::entry const current{word.value};
        bool const stops = current.get<topa::entry::STOP>() && !current.get<topa::entry::END>();
        if (stops && topa::bytes_left(where, current) <= 1) {
            return of_entry(rule::OUT_080, where, current);
        }
    }
    return of_registers(access::has_trace_stop(now) ? rule::REG_068 : rule::REG_053);
}

}  // namespace detail

/// Why STATUS.Error or, without it, STATUS.Stopped is set. It is told from the registers, frozen as
/// tracing left them, from the tables in memory and from `how`; tables that were changed since may
/// hide the reason.
///
/// The rule is that of an operational error, OUT-080 for a region with STOP, REG-068 for a
/// TraceStop range, and REG-053 where nothing is wrong: then software set the bit, or mended what
/// was.
///
/// Errors: `not_read` where the memory port fails.
/// Source: SDM vol. 3, "Operational Errors"; OUT-022..024, OUT-060..068, OUT-071, OUT-080, OUT-091,
///         OUT-111, OUT-134, PRG-086, PRG-088.
template <memory_port Memory>
[[nodiscard]] constexpr auto explain(cpu::capabilities const& of, access::msr_state const& now,
                                     Memory& memory, output_options const& how = {}) noexcept
    -> explanation {
    using status = reg::ia32_rtit_status;
    if (!now.status.get<status::Error>()) {
        return now.status.get<status::Stopped>() ? detail::stopped(now, memory) : explanation{};
    }
    if (now.ctl.get<reg::ia32_rtit_ctl::FabricEn>()) { return detail::of_registers(rule::REG_053); }
    return now.ctl.get<reg::ia32_rtit_ctl::ToPA>() ? detail::error_of_topa(of, now, memory, how)
                                                   : detail::error_of_single_range(now, how);
}

}  // namespace ptspec::engine
