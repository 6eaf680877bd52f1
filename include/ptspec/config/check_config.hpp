// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/enumerated_quirks.hpp>
#include <ptspec/config/nearest.hpp>
#include <ptspec/config/trace_config.hpp>

/// Checks whether a processor supports a configuration, and finds the nearest one that it supports.
namespace ptspec::config {

using access::broken_rule;
using cpu::quirk;
using cpu::quirk_set;

/// A hint about a legal configuration that is likely a mistake.
enum class config_advice : uint8_t {
    nothing_to_trace = 1U << 0,         ///< neither `os` nor `user`. Source: REG-041
    cyc_without_tsc = 1U << 1,          ///< CYC packets without a time base. Source: REG-047
    threshold_without_cyc = 1U << 2,    ///< Source: REG-047
    no_tnt_without_branches = 1U << 3,  ///< Source: REG-047
    fup_without_ptwrite = 1U << 4,      ///< Linux refuses it. Source: REG-032
    range_of_one_page = 1U << 5,        ///< a single range should have at most 4 KB
    table_of_one_region = 1U << 6,      ///< ToPA has one region. Source: REG-163
};

/// The advice as one sentence.
[[nodiscard]] constexpr auto describe(config_advice advice) noexcept -> text {
    switch (advice) {
        case config_advice::nothing_to_trace: return "with neither os nor user, no code is traced";
        case config_advice::cyc_without_tsc: return "without TSC, CYC packets have no time base";
        case config_advice::threshold_without_cyc:
            return "the CYC threshold has no effect without CYC packets";
        case config_advice::no_tnt_without_branches:
            return "without branches there are no TNT packets to disable";
        case config_advice::fup_without_ptwrite: return "the FUP of PTWRITE needs PTWRITE packets";
        case config_advice::range_of_one_page:
            return "on this model a single range of more than 4 KB is not reliable";
        case config_advice::table_of_one_region:
            return "on this processor a ToPA table has one region and a link to itself";
    }
    return "unknown advice";
}

using config_advice_set = flag_set<config_advice>;

/// A member that a processor refuses, and the broken rule.
struct violation {
    config_member member{};
    rule broken = rule::none;

    friend constexpr auto operator==(violation const&, violation const&) -> bool = default;
};

/// The result of checking a configuration.
struct config_verdict {
    /// The rule by which tracing is impossible: no Intel PT, or no output scheme.
    rule broken = rule::none;
    violation violations[config_member_count] = {};
    size_t violation_count = 0;

    /// The wanted configuration with the fewest changes that make it legal. Unchanged where tracing
    /// is impossible.
    trace_config nearest{};
    config_advice_set advice{};  ///< about `nearest`

    constexpr explicit operator bool() const noexcept {
        return broken == rule::none && violation_count == 0;
    }
    [[nodiscard]] constexpr auto begin() const noexcept -> violation const* { return violations; }
    [[nodiscard]] constexpr auto end() const noexcept -> violation const* {
        return violations + violation_count;
    }
    /// The rule by which a member is refused, or none.
    [[nodiscard]] constexpr auto broken_by(config_member member) const noexcept -> rule {
        for (violation const& one : *this) {
            if (one.member == member) { return one.broken; }
        }
        return rule::none;
    }
};

namespace detail {

/// The number in a member that can exceed its field, else 0.
constexpr auto number_in(trace_config const& wanted, config_member member) noexcept -> uint64_t {
    switch (member) {
        case config_member::addr_0: return underlying(wanted.addr[0]);
        case config_member::addr_1: return underlying(wanted.addr[1]);
        case config_member::addr_2: return underlying(wanted.addr[2]);
        case config_member::addr_3: return underlying(wanted.addr[3]);
        default: return 0;
    }
}

/// The rule by which a member is refused. Only the member's bits are checked: the fields of CTL are
/// independent, except for what TraceEn requires.
constexpr auto rule_of_member(capabilities const& caps, quirk_set quirks,
                              trace_config const& wanted, config_member member) noexcept -> rule {
    uint64_t const number = number_in(wanted, member);
    if (to_field(member, number) >> lowest_bit(bits_of(member)) != number) { return rule::REG_037; }
    uint64_t const all = ctl_of(wanted).raw | field_mask<ia32_rtit_ctl::TraceEn>;
    if (member == config_member::output && access::lacks_single_range(caps, {all})) {
        return rule::REG_025;
    }
    if (member == config_member::branches && !wanted.branches &&
        quirks.has(quirk::branch_en_always_on)) {
        return rule::REG_040;
    }
    return broken_rule(caps, ia32_rtit_ctl{all & bits_of(member)});
}

/// The replacement bits for a refused member. A member without a nearest value is turned off.
constexpr auto corrected_bits(capabilities const& caps, trace_config const& wanted,
                              config_member member) noexcept -> uint64_t {
    switch (member) {
        case config_member::branches: return bits_of(member);
        case config_member::mtc_every:
            return to_field(member, nearest(caps, wanted.mtc_every).value.encoding());
        case config_member::cyc_after:
            return to_field(member, nearest(caps, wanted.cyc_after).value.encoding());
        case config_member::psb_every:
            return to_field(member, nearest(caps, wanted.psb_every).value.encoding());
        case config_member::output: return ctl_bits_of(nearest(caps, wanted.output).value);
        default: return 0;
    }
}

constexpr auto advice_on(quirk_set quirks, trace_config const& wanted) noexcept
    -> config_advice_set {
    config_advice_set found;
    auto const add = [&](config_advice one, bool applies) {
        if (applies) { found.add(one); }
    };
    add(config_advice::nothing_to_trace, !wanted.os && !wanted.user);
    add(config_advice::cyc_without_tsc, wanted.cyc && !wanted.tsc);
    add(config_advice::threshold_without_cyc, wanted.cyc_after.encoding() != 0 && !wanted.cyc);
    add(config_advice::no_tnt_without_branches, wanted.no_tnt && !wanted.branches);
    add(config_advice::fup_without_ptwrite, wanted.fup_on_ptwrite && !wanted.ptwrite);
    add(config_advice::range_of_one_page,
        wanted.output == output_scheme::single_range && quirks.has(quirk::single_range_one_page));
    add(config_advice::table_of_one_region,
        wanted.output == output_scheme::topa && quirks.has(quirk::single_entry_topa));
    return found;
}

}  // namespace detail

/// Checks every member of a configuration against a processor, and finds the nearest legal
/// configuration. When the verdict is true, a WRMSR of `ctl_of` with TraceEn set breaks no rule by
/// its value.
///
/// Errors: `broken` is REG-001 without Intel PT, REG-025 without an output scheme. Refusals are
///         those of `find_broken_rules`; also REG-040 where an erratum keeps BranchEn on, and
///         REG-037 for numbers that exceed the field.
/// Source: REG-001, REG-025, REG-028, REG-037, REG-040, REG-041, REG-047, PRG-003, PRG-027.
[[nodiscard]] constexpr auto check(capabilities const& caps, trace_config const& wanted) noexcept
    -> config_verdict {
    config_verdict found;
    found.nearest = wanted;
    if (!caps.has_pt()) {
        found.broken = rule::REG_001;
        return found;
    }
    if (!nearest(caps, wanted.output)) {
        found.broken = rule::REG_025;
        return found;
    }
    auto const quirks = quirks_of(caps);
    uint64_t best = ctl_of(wanted).raw;
    for (size_t i = 0; i < config_member_count; ++i) {
        auto const member = static_cast<config_member>(i);
        rule const broken = detail::rule_of_member(caps, quirks, wanted, member);
        if (broken == rule::none) { continue; }
        found.violations[found.violation_count++] = {member, broken};
        best = (best & ~detail::bits_of(member)) | detail::corrected_bits(caps, wanted, member);
    }
    found.nearest = config_of({best});
    found.advice = detail::advice_on(quirks, found.nearest);
    return found;
}

}  // namespace ptspec::config
