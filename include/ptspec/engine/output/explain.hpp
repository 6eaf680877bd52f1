// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/enables.hpp>
#include <ptspec/engine/output/output.hpp>

/// Why STATUS.Error or STATUS.Stopped is set, from the MSRs and tables after tracing ended.
namespace ptspec::engine {

/// Why output ended, and where. `describe(ended_by)` is the rule as a sentence.
struct explanation {
    rule ended_by = rule::none;  ///< none: nothing ended output, or the entry could not be read
    bool has_place = false;
    topa::position at{};  ///< of the ToPA entry, if the reason is one
    topa::entry entry{};  ///< the entry, if it was read
    text field{};         ///< the invalid field of the entry or of the MSR
    port_fault fault{};   ///< the memory port failed: the reason is unknown
};

namespace detail {

template <class Field>
constexpr auto name() noexcept -> text {
    return name_of<Field>();
}

/// The field that must change to remove an operational error.
constexpr auto field_at_fault(rule ended_by, topa::entry active) noexcept -> text {
    using topa::entry;
    using pointers = reg::ia32_rtit_output_mask_ptrs;
    switch (ended_by) {
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
            return active.get<entry::INT>() ? name<entry::INT>() : name<entry::STOP>();
        case rule::OUT_066:
        case rule::OUT_067: return name<entry::END>();
        case rule::OUT_080: return name<entry::STOP>();
        default: return {};
    }
}

constexpr auto at_entry(rule ended_by, topa::position where, topa::entry active) noexcept
    -> explanation {
    return {ended_by, true, {where.table, where.index}, active, field_at_fault(ended_by, active),
            {}};
}
constexpr auto in_registers(rule ended_by, text field = {}) noexcept -> explanation {
    return {.ended_by = ended_by, .field = field};
}

constexpr auto stores_into_restricted(output_options const& options, phys_addr address) noexcept
    -> bool {
    return options.when_restricted == restricted_access::error &&
           options.restricted.run_from(address).restricted;
}

constexpr auto error_of_single_range(access::msr_state const& msrs,
                                     output_options const& options) noexcept -> explanation {
    rule const broken = single_range::broken_rule(msrs.output.base, msrs.output.mask_ptrs);
    if (broken != rule::none) { return in_registers(broken, field_at_fault(broken, {})); }
    auto const next = single_range::trace_store_phys_addr(msrs.output.base, msrs.output.mask_ptrs);
    if (stores_into_restricted(options, next)) {
        return in_registers(rule::OUT_111, name<reg::ia32_rtit_output_base::BasePhysAddr>());
    }
    return in_registers(rule::REG_053);
}

template <memory_port Memory>
constexpr auto error_of_topa(cpu::capabilities const& caps, access::msr_state const& msrs,
                             Memory& memory, output_options const& options) noexcept
    -> explanation {
    auto const where = topa::position_in(msrs.output.base, msrs.output.mask_ptrs);
    auto const loaded = topa::load_first_entry(memory, where, topa::limits::of(caps),
                                               options.restricted);
    if (loaded.fault.happened) { return {.fault = loaded.fault}; }
    if (!loaded) { return at_entry(loaded.broken, loaded.where, loaded.active); }
    if (stores_into_restricted(options, topa::trace_store_phys_addr(loaded.where, loaded.active))) {
        return at_entry(rule::OUT_111, loaded.where, loaded.active);
    }
    return in_registers(rule::REG_053);
}

/// After STOP the offset is the region's size; in newer editions of the manual, that of its last
/// byte.
template <memory_port Memory>
constexpr auto stopped(access::msr_state const& msrs, Memory& memory) noexcept -> explanation {
    bool const is_topa = msrs.ctl.get<reg::ia32_rtit_ctl::ToPA>() &&
                         !msrs.ctl.get<reg::ia32_rtit_ctl::FabricEn>();
    if (is_topa) {
        auto const where = topa::position_in(msrs.output.base, msrs.output.mask_ptrs);
        auto const word = memory.load(topa::table_pointer(where).value);
        if (!word) { return {.fault = {true, topa::table_pointer(where)}}; }
        topa::entry const active{word.value};
        bool const stops = active.get<topa::entry::STOP>() && !active.get<topa::entry::END>();
        if (stops && topa::bytes_left(where, active) <= 1) {
            return at_entry(rule::OUT_080, where, active);
        }
    }
    return in_registers(access::has_trace_stop(msrs) ? rule::REG_068 : rule::REG_053);
}

}  // namespace detail

/// Why STATUS.Error or, if it is 0, STATUS.Stopped is set: derived from the registers as tracing
/// left them, the tables in memory and `options`. Tables that changed since may hide the reason.
///
/// The rule is that of an operational error; OUT-080 for a region with STOP; REG-068 for a
/// TraceStop range; REG-053 if nothing is wrong, when software set the bit or repaired the cause.
///
/// Errors: `fault` if the memory port fails.
/// Source: SDM vol. 3, "Operational Errors"; OUT-022..024, OUT-060..068, OUT-071, OUT-080, OUT-091,
///         OUT-111, OUT-134, PRG-086, PRG-088.
template <memory_port Memory>
[[nodiscard]] constexpr auto explain(cpu::capabilities const& caps, access::msr_state const& msrs,
                                     Memory& memory, output_options const& options = {}) noexcept
    -> explanation {
    using status = reg::ia32_rtit_status;
    if (!msrs.status.get<status::Error>()) {
        return msrs.status.get<status::Stopped>() ? detail::stopped(msrs, memory) : explanation{};
    }
    if (msrs.ctl.get<reg::ia32_rtit_ctl::FabricEn>()) {
        return detail::in_registers(rule::REG_053);
    }
    return msrs.ctl.get<reg::ia32_rtit_ctl::ToPA>()
               ? detail::error_of_topa(caps, msrs, memory, options)
               : detail::error_of_single_range(msrs, options);
}

}  // namespace ptspec::engine
