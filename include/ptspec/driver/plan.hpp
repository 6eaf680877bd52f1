// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/pt_msrs.hpp>
#include <ptspec/config/check_config.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/single_range.hpp>

/// From a wanted trace to the values of the MSRs.
namespace ptspec::driver {

using access::address_range;
using cpu::capabilities;
using reg::ia32_rtit_addr;
using reg::ia32_rtit_cr3_match;
using reg::ia32_rtit_ctl;
using reg::ia32_rtit_output_base;
using reg::ia32_rtit_output_mask_ptrs;
using reg::ia32_rtit_status;

/// The output registers for a buffer.
using access::output_registers;

/// A chain of ToPA tables, from a position on: `in_topa({.table = 0x1000})`.
///
/// Source: OUT-050, PRG-128.
[[nodiscard]] constexpr auto in_topa(topa::position position) noexcept -> output_registers {
    return {topa::base_of(position), topa::mask_ptrs_of(position)};
}

/// A wanted trace.
struct plan_request {
    config::trace_config config{};
    output_registers output{};
    /// The address ranges that `config.addr` selects, as IPs, both ends inclusive.
    address_range addr[ia32_rtit_addr::count]{};
    uint64_t cs_base = 0;  ///< the base of CS in the traced code
    uint64_t cr3 = 0;      ///< with `config.cr3_filter`
    /// The count to continue from; 0 begins the trace with a PSB. Source: PRG-031, PRG-042,
    /// PRG-102.
    uint64_t packet_byte_cnt = 0;
};

/// What `plan` changed, besides the members of the configuration that its verdict lists.
enum class plan_change : uint8_t {
    range_clamped = 1U << 0,    ///< an end of a range was moved to a canonical address
    range_empty = 1U << 1,      ///< a range has no canonical address: it matches no instruction
    cr3_truncated = 1U << 2,    ///< low bits of CR3, such as the PCID, are not compared
    byte_count_reset = 1U << 3  ///< the processor has no PacketByteCnt: PSB at every enable
};

/// The result of `plan`.
struct [[nodiscard]] plan_result {
    config::config_verdict config{};  ///< refused members, and the nearest configuration
    rule broken = rule::none;         ///< the rule that the requested `output` breaks
    flag_set<plan_change> changes{};
    access::msr_state plan{};  ///< for the nearest configuration; TraceEn is 1

    /// True if everything is as requested, apart from `changes`.
    constexpr explicit operator bool() const noexcept {
        return static_cast<bool>(config) && broken == rule::none;
    }
};

namespace detail {

using namespace ptspec::detail;

/// True if the output MSRs have an effect. Source: PRG-080.
[[nodiscard]] constexpr auto uses_output_msrs(ia32_rtit_ctl ctl) noexcept -> bool {
    return !ctl.get<ia32_rtit_ctl::FabricEn>();
}

/// The lowest canonical address from `address` on, or the highest up to it.
///
/// Source: REG-076, PRG-136.
[[nodiscard]] constexpr auto canonical_from(uint64_t address, unsigned width) noexcept -> uint64_t {
    return is_canonical(address, width) ? address : ~low_bits(width - 1);
}
[[nodiscard]] constexpr auto canonical_up_to(uint64_t address, unsigned width) noexcept
    -> uint64_t {
    return is_canonical(address, width) ? address : low_bits(width - 1);
}

/// The rule that the output MSRs break with this scheme.
[[nodiscard]] constexpr auto broken_rule_of_output(capabilities const& caps, ia32_rtit_ctl ctl,
                                                   output_registers const& output) noexcept
    -> rule {
    if (!uses_output_msrs(ctl)) { return rule::none; }
    if (!access::is_legal(caps, output.base)) { return rule::REG_070; }
    if (!ctl.get<ia32_rtit_ctl::ToPA>()) {
        return single_range::broken_rule(output.base, output.mask_ptrs);
    }
    return is_aligned(output.base.raw, 4096) ? rule::none : rule::OUT_061;
}

}  // namespace detail

/// The values of the MSRs for a wanted trace on a processor: those of the nearest configuration
/// where the processor refuses the wanted one.
///
/// Addresses of ranges become linear addresses where the processor compares those (LIP), and are
/// clamped to canonical addresses: a start upward, an end downward.
///
/// Errors: those of `config::check`; `output`: REG-070, and OUT-022..024 of a single range, OUT-061
///         of a table. The entries of a table are not read: see `topa::validate`.
/// Source: SDM vol. 3, "Enabling and Configuration of Packet Generation"; REG-076, REG-079,
///         PRG-005, PRG-022, PRG-026, PRG-042, PRG-128, PRG-134..136.
[[nodiscard]] constexpr auto plan(capabilities const& caps, plan_request const& wanted) noexcept
    -> plan_result {
    plan_result result{.config = config::check(caps, wanted.config)};
    auto& made = result.plan;
    auto const add_change = [&](plan_change change) { result.changes.add(change); };
    made.ctl = config::ctl_of(result.config.nearest).with(ia32_rtit_ctl::TraceEn{true});
    made.output = wanted.output;
    result.broken = detail::broken_rule_of_output(caps, made.ctl, wanted.output);
    if (wanted.packet_byte_cnt != 0) {
        if (caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>()) {
            made.status = made.status.with(
                ia32_rtit_status::PacketByteCnt{wrapped{wanted.packet_byte_cnt}});
        } else {
            add_change(plan_change::byte_count_reset);
        }
    }
    if (made.ctl.get<ia32_rtit_ctl::CR3Filter>()) {
        made.cr3_match = {wanted.cr3 & ~ia32_rtit_cr3_match::reserved_mask()};
        if (made.cr3_match.raw != wanted.cr3) { add_change(plan_change::cr3_truncated); }
    }
    bool const linear = caps.ip_payload() == cpu::ip_payload::linear;
    uint64_t const base = linear ? wanted.cs_base : 0;
    unsigned const width = caps.linear_address_bits();
    for (unsigned n = 0; n < ia32_rtit_addr::count; ++n) {
        if (access::use_of_range(made.ctl, n) == reg::addr_cfg::off) { continue; }
        uint64_t const first = wanted.addr[n].a.raw + base;
        uint64_t const last = wanted.addr[n].b.raw + base;
        made.addr[n] = {{detail::canonical_from(first, width)},
                        {detail::canonical_up_to(last, width)}};
        bool const clamped = made.addr[n].a.raw != first || made.addr[n].b.raw != last;
        if (clamped) { add_change(plan_change::range_clamped); }
        if (made.addr[n].b.raw < made.addr[n].a.raw) { add_change(plan_change::range_empty); }
    }
    return result;
}

}  // namespace ptspec::driver
