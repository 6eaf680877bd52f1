// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/legal.hpp>

/// A trace configuration with readable members, converted to and from IA32_RTIT_CTL.
namespace ptspec::config {

using cpu::capabilities;
using cpu::cyc_threshold;
using cpu::mtc_period;
using cpu::output_scheme;
using cpu::psb_period;
using reg::addr_cfg;
using reg::ia32_rtit_ctl;

/// A trace configuration:
/// `trace_config{.user = true, .mtc = true, .mtc_every = mtc_period::of_crystal_cycles(8)}`.
///
/// The default traces branches, with RET compression, into ToPA, which every known processor has.
/// Source: REG-024..041, REG-048.
struct trace_config {
    bool os = false;    ///< trace CPL 0
    bool user = false;  ///< trace CPL 1 to 3
    bool branches = true;
    bool ret_compression = true;  ///< a RET to its CALL is one TNT bit; DisRETC is 0
    bool no_tnt = false;          ///< no TNT packets: only TIPs
    bool tsc = false;
    bool mtc = false;
    mtc_period mtc_every{};
    bool cyc = false;
    cyc_threshold cyc_after{};
    psb_period psb_every{};
    bool ptwrite = false;
    bool fup_on_ptwrite = false;  ///< a FUP with the IP of each PTWRITE
    bool power_events = false;
    bool event_trace = false;
    bool cr3_filter = false;
    addr_cfg addr[4] = {};
    output_scheme output = output_scheme::topa;
    bool inject_psb_pmi =
        false;  ///< on enable, raise the PSB and PMI that were pending at the stop

    friend constexpr auto operator==(trace_config const&, trace_config const&) -> bool = default;
};

// ------------------------------------------------------------------------------------ members

/// A member of trace_config.
enum class config_member : uint8_t {
    os,
    user,
    branches,
    ret_compression,
    no_tnt,
    tsc,
    mtc,
    mtc_every,
    cyc,
    cyc_after,
    psb_every,
    ptwrite,
    fup_on_ptwrite,
    power_events,
    event_trace,
    cr3_filter,
    addr_0,
    addr_1,
    addr_2,
    addr_3,
    output,
    inject_psb_pmi,
};

/// A member's name, and its bits of IA32_RTIT_CTL.
struct config_member_info {
    config_member member{};
    text name{};
    uint64_t ctl_bits = 0;
};

/// Every member, in the order of the enumeration.
inline constexpr config_member_info config_members[] = {
    {config_member::os, "os", ptspec::detail::field_mask<ia32_rtit_ctl::OS>},
    {config_member::user, "user", ptspec::detail::field_mask<ia32_rtit_ctl::User>},
    {config_member::branches, "branches", ptspec::detail::field_mask<ia32_rtit_ctl::BranchEn>},
    {config_member::ret_compression, "ret_compression",
     ptspec::detail::field_mask<ia32_rtit_ctl::DisRETC>},
    {config_member::no_tnt, "no_tnt", ptspec::detail::field_mask<ia32_rtit_ctl::DisTNT>},
    {config_member::tsc, "tsc", ptspec::detail::field_mask<ia32_rtit_ctl::TSCEn>},
    {config_member::mtc, "mtc", ptspec::detail::field_mask<ia32_rtit_ctl::MTCEn>},
    {config_member::mtc_every, "mtc_every", ptspec::detail::field_mask<ia32_rtit_ctl::MTCFreq>},
    {config_member::cyc, "cyc", ptspec::detail::field_mask<ia32_rtit_ctl::CYCEn>},
    {config_member::cyc_after, "cyc_after", ptspec::detail::field_mask<ia32_rtit_ctl::CycThresh>},
    {config_member::psb_every, "psb_every", ptspec::detail::field_mask<ia32_rtit_ctl::PSBFreq>},
    {config_member::ptwrite, "ptwrite", ptspec::detail::field_mask<ia32_rtit_ctl::PTWEn>},
    {config_member::fup_on_ptwrite, "fup_on_ptwrite",
     ptspec::detail::field_mask<ia32_rtit_ctl::FUPonPTW>},
    {config_member::power_events, "power_events",
     ptspec::detail::field_mask<ia32_rtit_ctl::PwrEvtEn>},
    {config_member::event_trace, "event_trace", ptspec::detail::field_mask<ia32_rtit_ctl::EventEn>},
    {config_member::cr3_filter, "cr3_filter", ptspec::detail::field_mask<ia32_rtit_ctl::CR3Filter>},
    {config_member::addr_0, "addr[0]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR0_CFG>},
    {config_member::addr_1, "addr[1]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR1_CFG>},
    {config_member::addr_2, "addr[2]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR2_CFG>},
    {config_member::addr_3, "addr[3]", ptspec::detail::field_mask<ia32_rtit_ctl::ADDR3_CFG>},
    {config_member::output, "output",
     ptspec::detail::field_mask<ia32_rtit_ctl::ToPA> |
         ptspec::detail::field_mask<ia32_rtit_ctl::FabricEn>},
    {config_member::inject_psb_pmi, "inject_psb_pmi",
     ptspec::detail::field_mask<ia32_rtit_ctl::InjectPsbPmiOnEnable>},
};

inline constexpr size_t config_member_count = sizeof(config_members) / sizeof(config_members[0]);

[[nodiscard]] constexpr auto info_of(config_member member) noexcept -> config_member_info const& {
    return config_members[underlying(member)];
}

/// A set of members.
struct config_member_set {
    uint32_t bits = 0;

    [[nodiscard]] constexpr auto has(config_member member) const noexcept -> bool {
        return (bits >> underlying(member) & 1U) != 0;
    }
    constexpr void add(config_member member) noexcept { bits |= 1U << underlying(member); }
    [[nodiscard]] constexpr auto empty() const noexcept -> bool { return bits == 0; }
    friend constexpr auto operator==(config_member_set const&, config_member_set const&)
        -> bool = default;
};

// ------------------------------------------------------------------------------------ CTL

// The functions below use the masks of the table above instead of `with` and `get`, whose templates
// would be instantiated on inclusion.

namespace detail {

using namespace ptspec::detail;
using ctl = ia32_rtit_ctl;

/// The bits of IA32_RTIT_CTL of each member, without names: a driver needs none of them.
struct member_bits {
    uint64_t bits[config_member_count]{};

    constexpr member_bits() noexcept {
        for (config_member_info const& one : config_members) {
            bits[underlying(one.member)] = one.ctl_bits;
        }
    }
};
inline constexpr member_bits all_member_bits{};

constexpr auto bits_of(config_member member) noexcept -> uint64_t {
    return all_member_bits.bits[underlying(member)];
}

/// Shifts a number to its field in IA32_RTIT_CTL. Bits that do not fit are dropped.
constexpr auto to_field(config_member member, uint64_t number) noexcept -> uint64_t {
    uint64_t const bits = bits_of(member);
    return number << lowest_bit(bits) & bits;
}
constexpr auto field_value(ia32_rtit_ctl value, config_member member) noexcept -> unsigned {
    uint64_t const bits = bits_of(member);
    return static_cast<unsigned>((value.raw & bits) >> lowest_bit(bits));
}
constexpr auto is_set(ia32_rtit_ctl value, config_member member) noexcept -> bool {
    return (value.raw & bits_of(member)) != 0;
}

constexpr auto ctl_bits_of(output_scheme scheme) noexcept -> uint64_t {
    return scheme == output_scheme::topa     ? field_mask<ia32_rtit_ctl::ToPA>
           : scheme == output_scheme::fabric ? field_mask<ia32_rtit_ctl::FabricEn>
                                             : 0;
}

}  // namespace detail

/// The value of IA32_RTIT_CTL for a configuration, with TraceEn 0. ADDRn_CFG is truncated to four
/// bits: `check` refuses larger numbers.
[[nodiscard]] constexpr auto ctl_of(trace_config const& wanted) noexcept -> ia32_rtit_ctl {
    using member = config_member;
    using detail::to_field;
    return {to_field(member::os, wanted.os) | to_field(member::user, wanted.user) |
            to_field(member::branches, wanted.branches) |
            to_field(member::ret_compression, !wanted.ret_compression) |
            to_field(member::no_tnt, wanted.no_tnt) | to_field(member::tsc, wanted.tsc) |
            to_field(member::mtc, wanted.mtc) |
            to_field(member::mtc_every, wanted.mtc_every.encoding()) |
            to_field(member::cyc, wanted.cyc) |
            to_field(member::cyc_after, wanted.cyc_after.encoding()) |
            to_field(member::psb_every, wanted.psb_every.encoding()) |
            to_field(member::ptwrite, wanted.ptwrite) |
            to_field(member::fup_on_ptwrite, wanted.fup_on_ptwrite) |
            to_field(member::power_events, wanted.power_events) |
            to_field(member::event_trace, wanted.event_trace) |
            to_field(member::cr3_filter, wanted.cr3_filter) |
            to_field(member::addr_0, underlying(wanted.addr[0])) |
            to_field(member::addr_1, underlying(wanted.addr[1])) |
            to_field(member::addr_2, underlying(wanted.addr[2])) |
            to_field(member::addr_3, underlying(wanted.addr[3])) |
            detail::ctl_bits_of(wanted.output) |
            to_field(member::inject_psb_pmi, wanted.inject_psb_pmi)};
}

/// The output scheme that a value of IA32_RTIT_CTL selects.
///
/// Source: REG-026.
[[nodiscard]] constexpr auto output_scheme_of(ia32_rtit_ctl value) noexcept -> output_scheme {
    bool const fabric = (value.raw & ptspec::detail::field_mask<ia32_rtit_ctl::FabricEn>) != 0;
    bool const topa = (value.raw & ptspec::detail::field_mask<ia32_rtit_ctl::ToPA>) != 0;
    return fabric ? output_scheme::fabric
           : topa ? output_scheme::topa
                  : output_scheme::single_range;
}

/// The configuration for a value of IA32_RTIT_CTL, the inverse of `ctl_of`. TraceEn, reserved bits,
/// and ToPA beside FabricEn are ignored; `ctl_of` returns all other bits unchanged.
[[nodiscard]] constexpr auto config_of(ia32_rtit_ctl value) noexcept -> trace_config {
    using member = config_member;
    using detail::field_value, detail::is_set;
    auto const number = [=](member one) { return wrapped{field_value(value, one)}; };
    auto const range = [=](member one) { return static_cast<addr_cfg>(field_value(value, one)); };
    return {.os = is_set(value, member::os),
            .user = is_set(value, member::user),
            .branches = is_set(value, member::branches),
            .ret_compression = !is_set(value, member::ret_compression),
            .no_tnt = is_set(value, member::no_tnt),
            .tsc = is_set(value, member::tsc),
            .mtc = is_set(value, member::mtc),
            .mtc_every = mtc_period::encoded(number(member::mtc_every)),
            .cyc = is_set(value, member::cyc),
            .cyc_after = cyc_threshold::encoded(number(member::cyc_after)),
            .psb_every = psb_period::encoded(number(member::psb_every)),
            .ptwrite = is_set(value, member::ptwrite),
            .fup_on_ptwrite = is_set(value, member::fup_on_ptwrite),
            .power_events = is_set(value, member::power_events),
            .event_trace = is_set(value, member::event_trace),
            .cr3_filter = is_set(value, member::cr3_filter),
            .addr = {range(member::addr_0), range(member::addr_1), range(member::addr_2),
                     range(member::addr_3)},
            .output = output_scheme_of(value),
            .inject_psb_pmi = is_set(value, member::inject_psb_pmi)};
}

}  // namespace ptspec::config
