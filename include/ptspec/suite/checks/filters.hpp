// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/branches.hpp>

/// Filters: CR3, address ranges, TraceStop.
namespace ptspec::suite::checks {

namespace detail {

using cr3_match = access::ia32_rtit_cr3_match;
using reg::addr_cfg;

/// Sets a range to the offsets `[first, last]` of a snippet.
template <target T>
constexpr auto set_range(armed<T>& on, unsigned n, snippet const& code, uint64_t first,
                         uint64_t last) noexcept -> bool {
    uint64_t const base = on.address_of(code);
    return on.set(reg::ia32_rtit_addr::address(n, access::range_end::a), base + first) &&
           on.set(reg::ia32_rtit_addr::address(n, access::range_end::b), base + last);
}
constexpr auto as_filter(ctl with) noexcept -> ctl {
    return with.with(ctl::ADDR0_CFG{addr_cfg::filter});
}
constexpr auto as_stop(ctl with) noexcept -> ctl {
    return with.with(ctl::ADDR0_CFG{addr_cfg::trace_stop});
}
/// The area of `snippets::areas`: its last instruction is the jump at mark 4.
inline constexpr snippet const& areas = snippets::areas;
constexpr auto area(unsigned number) noexcept -> uint64_t { return mark(areas, number); }

/// The packets of `snippets::areas` with the area as a filter.
///
/// Source: GEN-080..086, GEN-100..102.
inline constexpr wanted filtered[] = {
    expected::pge_to(area(0)), expected::not_taken,       expected::taken,
    expected::pgd(area(5)),    expected::pge_to(area(2)), expected::pgd(),
    expected::pge_to(area(3)), expected::pgd(area(7)),
};
/// Without a filter.
inline constexpr wanted unfiltered[] = {
    expected::taken,           expected::tip_to(area(0)), expected::not_taken, expected::taken,
    expected::tip_to(area(5)), expected::not_taken,       expected::taken,     expected::taken,
};

}  // namespace detail

/// The CR3 filter compares bits 63:12 of CR3 with IA32_RTIT_CR3_MATCH.
struct cr3_filter {
    static constexpr text name = "cr3-filter";
    static constexpr rule_list rules{"GEN-060", "GEN-062", "REG-075", "GEN-023",
                                     "REG-057", "REG-031", "GEN-030", "GEN-024"};
    static constexpr needs need =
        needs::tracing().with(snippets::branches).with(features::cr3_filter);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::CR3Filter{true});
        uint64_t const cr3 = on.cr3() & ~low_bits(12);
        // Bits 11:5 are not compared.
        for (uint64_t const low : few{uint64_t{0}, uint64_t{0x20}, uint64_t{0xFE0}}) {
            if (!on.set(detail::cr3_match::address, cr3 | low)) { return on.result(); }
            if (!on.trace(snippets::branches, with).has_run) { return on.result(); }
            detail::require_branches(on, "GEN-060"_rule);
        }
        for (unsigned const bit : few{12U, 13U, 20U, 31U, 38U}) {
            if (!on.set(detail::cr3_match::address, cr3 ^ uint64_t{1} << bit)) {
                return on.result();
            }
            if (!on.trace(snippets::branches, with).has_run) { return on.result(); }
            on.expect_nothing("GEN-062"_rule, snippets::branches);
            if (on.is_broken()) { return on.result(); }
        }
        // Without CR3Filter the value does not matter.
        if (on.trace(snippets::branches, on.usual_ctl()).has_run) {
            detail::require_branches(on, "REG-057"_rule);
        }
        return on.result();
    }
};

/// The same code without a filter, and with unused ranges.
struct no_filter {
    static constexpr text name = "unused-ranges";
    static constexpr rule_list rules{"GEN-081", "REG-058", "GEN-025", "PRG-136"};
    static constexpr needs need = needs::tracing().with(snippets::areas).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (unsigned n = 0; n < on.caps().address_ranges(); ++n) {
            if (!detail::set_range(on, n, snippets::areas, detail::area(0), detail::area(1))) {
                return on.result();
            }
        }
        detail::require_body(on, "GEN-081"_rule, snippets::areas, on.usual_ctl(),
                             detail::unfiltered);
        return on.result();
    }
};

/// A filter: TIP.PGE where a branch enters it, TIP.PGD where one leaves it. Each range alone.
struct ip_filter {
    static constexpr text name = "ip-filter";
    static constexpr rule_list rules{
        "GEN-080", "GEN-081", "GEN-083", "GEN-100", "GEN-101", "GEN-102", "GEN-105", "GEN-031",
        "GEN-032", "GEN-112", "REG-058", "REG-059", "REG-078", "PKT-073", "PKT-074", "GEN-340"};
    static constexpr needs need = needs::tracing().with(snippets::areas).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (unsigned n = 0; n < on.caps().address_ranges(); ++n) {
            ctl const with{on.usual_ctl().raw | uint64_t{1} << (ctl::ADDR0_CFG::lsb + 4 * n)};
            // The range that a processor could take instead.
            for (unsigned other = 0; other < on.caps().address_ranges(); ++other) {
                if (!detail::set_range(on, other, snippets::areas, 0, 0)) { return on.result(); }
            }
            if (!detail::set_range(on, n, snippets::areas, detail::area(0), detail::area(4))) {
                return on.result();
            }
            if (!on.trace(snippets::areas, with).has_run) { return on.result(); }
            on.expect("GEN-080"_rule, snippets::areas, detail::filtered);
            if (on.is_broken()) { return on.result(); }
        }
        return on.result();
    }
};

/// Both ends of a range belong to it, by the first byte of the target.
struct range_ends {
    static constexpr text name = "range-ends";
    static constexpr rule_list rules{"GEN-080", "REG-078", "GEN-101", "GEN-100", "PKT-074"};
    static constexpr needs need = needs::tracing().with(snippets::indirect).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::indirect;
        uint64_t const first = detail::mark(code, 0);
        uint64_t const second = detail::mark(code, 1);
        auto const with = detail::as_filter(on.usual_ctl());
        // The range is the first target alone.
        wanted const alone[] = {expected::pge_to(first), expected::not_taken,
                                expected::pgd(second)};
        if (!detail::set_range(on, 0, code, first, first) || !on.trace(code, with).has_run) {
            return on.result();
        }
        on.expect("GEN-080"_rule, code, alone);
        // Up to the byte before the second target, and up to it.
        if (!detail::set_range(on, 0, code, first, second - 1) || !on.trace(code, with).has_run) {
            return on.result();
        }
        on.expect("GEN-080"_rule, code, alone);
        wanted const both[] = {expected::pge_to(first), expected::not_taken,
                               expected::tip_to(second), expected::fup_at(code.disable_at),
                               expected::pgd()};
        if (!detail::set_range(on, 0, code, first, second) || !on.trace(code, with).has_run) {
            return on.result();
        }
        on.expect("REG-078"_rule, code, both);
        // From the byte after the first target on.
        wanted const later[] = {expected::pge_to(second), expected::fup_at(code.disable_at),
                                expected::pgd()};
        if (!detail::set_range(on, 0, code, first + 1, second) || !on.trace(code, with).has_run) {
            return on.result();
        }
        on.expect("GEN-080"_rule, code, later);
        return on.result();
    }
};

/// A range whose first address is above its last matches nothing.
struct empty_range {
    static constexpr text name = "empty-range";
    static constexpr rule_list rules{"GEN-082", "REG-077"};
    static constexpr needs need = needs::tracing().with(snippets::areas).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!detail::set_range(on, 0, snippets::areas, detail::area(4), detail::area(4) - 1)) {
            return on.result();
        }
        if (!on.trace(snippets::areas, detail::as_filter(on.usual_ctl())).has_run) {
            return on.result();
        }
        on.expect_nothing("GEN-082"_rule, snippets::areas);
        return on.result();
    }
};

/// A branch from one filter range to another does not end tracing.
struct two_filters {
    static constexpr text name = "two-filter-ranges";
    static constexpr rule_list rules{"GEN-086", "GEN-081", "GEN-104"};
    static constexpr needs need = needs::tracing().with(snippets::areas).with(features::two_ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using detail::area;
        constexpr auto const& code = snippets::areas;
        // The area, and the code at mark 5.
        if (!detail::set_range(on, 0, code, area(0), area(4)) ||
            !detail::set_range(on, 1, code, area(5), area(6) - 1)) {
            return on.result();
        }
        auto const with =
            detail::as_filter(on.usual_ctl()).with(ctl::ADDR1_CFG{reg::addr_cfg::filter});
        if (!on.trace(code, with).has_run) { return on.result(); }
        wanted const all[] = {
            expected::pge_to(area(0)), expected::not_taken,    expected::taken,
            expected::tip_to(area(5)), expected::not_taken,    expected::pgd(),
            expected::pge_to(area(3)), expected::pgd(area(7)),
        };
        on.expect("GEN-086"_rule, code, all);
        return on.result();
    }
};

/// Code that leaves or enters a range without a branch: tracing changes at the next branch.
struct sequential_flow {
    static constexpr text name = "falling-through-a-range";
    static constexpr rule_list rules{"GEN-084", "GEN-083", "REG-058"};
    static constexpr needs need =
        needs::tracing().with(snippets::falls_through).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::falls_through;
        auto const at = [&](unsigned n) { return detail::mark(code, n); };
        auto const with = detail::as_filter(on.usual_ctl());
        if (!detail::set_range(on, 0, code, at(0), at(1) - 1) || !on.trace(code, with).has_run) {
            return on.result();
        }
        // The branch that is not taken outside is still shown.
        wanted const out[] = {expected::pge_to(at(0)), expected::not_taken, expected::not_taken,
                              expected::pgd()};
        on.expect("GEN-084"_rule, code, out);
        if (!detail::set_range(on, 0, code, at(1), at(3) - 1) || !on.trace(code, with).has_run) {
            return on.result();
        }
        on.expect_nothing("GEN-084"_rule, code);
        return on.result();
    }
};

/// Calls and returns inside a filter range, and a call whose function leaves the range and comes
/// back: no RET is compressed against it.
struct returns_and_filter {
    static constexpr text name = "returns-and-filter";
    static constexpr rule_list rules{"GEN-135", "GEN-130", "GEN-132", "GEN-101", "GEN-100"};
    static constexpr needs need =
        needs::tracing().with(snippets::call_leaves).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = detail::as_filter(on.usual_ctl());
        {
            constexpr auto const& code = snippets::calls_of_next;
            if (!detail::set_range(on, 0, code, 0, code.size - 1U)) { return on.result(); }
            wanted const all[] = {expected::not_taken, expected::tip_to(code.steps[0].to),
                                  expected::taken,     expected::tip_to(detail::mark(code, 1)),
                                  expected::not_taken, expected::ret(detail::mark(code, 1)),
                                  expected::taken};
            detail::require_body(on, "GEN-132"_rule, code, with, all);
        }
        constexpr auto const& code = snippets::call_leaves;
        if (!detail::set_range(on, 0, code, detail::mark(code, 0), detail::mark(code, 3))) {
            return on.result();
        }
        if (!on.trace(code, with).has_run) { return on.result(); }
        wanted const all[] = {
            expected::pge_to(detail::mark(code, 0)), expected::pgd(detail::mark(code, 4)),
            expected::pge_to(detail::mark(code, 3)), expected::tip_to(detail::mark(code, 1)),
            expected::pgd(detail::mark(code, 5))};
        on.expect("GEN-135"_rule, code, all);
        return on.result();
    }
};

/// TraceEn rises inside a filter range, and falls inside it.
struct enabled_in_range {
    static constexpr text name = "enabled-inside-a-range";
    static constexpr rule_list rules{"GEN-083", "GEN-100", "GEN-180", "GEN-183", "GEN-025"};
    static constexpr needs need = needs::tracing().with(snippets::branches).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::branches;
        auto const with = detail::as_filter(on.usual_ctl());
        if (!detail::set_range(on, 0, code, code.body_at, code.size - 1U)) { return on.result(); }
        if (on.trace(code, with).has_run) { detail::require_branches(on, "GEN-083"_rule); }
        // The WRMSR that enables alone is inside: the next instruction is not.
        if (!detail::set_range(on, 0, code, 0, code.body_at - 1U)) { return on.result(); }
        if (on.trace(code, with).has_run) { on.expect_nothing("GEN-100"_rule, code); }
        return on.result();
    }
};

/// A branch into a TraceStop range: TIP.PGD, TraceStop, Stopped = 1, and no packet after.
struct trace_stop {
    static constexpr text name = "tracestop";
    static constexpr rule_list rules{"GEN-090", "REG-068", "GEN-080", "GEN-020",
                                     "GEN-022", "PKT-160", "GEN-101"};
    static constexpr needs need = needs::tracing().with(snippets::areas).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using detail::area;
        constexpr auto const& code = snippets::areas;
        auto const with = detail::as_stop(on.usual_ctl());
        // By an indirect jump.
        if (!detail::set_range(on, 0, code, area(0), area(1))) { return on.result(); }
        auto got = on.trace(code, with);
        if (!got.has_run) { return on.result(); }
        wanted const jumped[] = {expected::pge_to(code.body_at), expected::taken,
                                 expected::pgd(area(0)), expected::trace_stop};
        on.expect("GEN-090"_rule, code, jumped);
        on.require(got.status.template get<status::Stopped>(), "REG-068"_rule, "Stopped", 1, 0,
                   status::address);
        uint64_t const index = on.uses_topa() ? 0 : armed<T>::range_mask;
        on.require(got.index() == index, "OUT-028"_rule, "MaskOrTableOffset", index, got.index(),
                   ia32_rtit_output_mask_ptrs::address);
        // By a taken conditional branch.
        if (!detail::set_range(on, 0, code, area(6), area(6))) { return on.result(); }
        got = on.trace(code, with);
        if (!got.has_run) { return on.result(); }
        wanted const branched[] = {expected::pge_to(code.body_at),
                                   expected::taken,
                                   expected::tip_to(area(0)),
                                   expected::not_taken,
                                   expected::taken,
                                   expected::tip_to(area(5)),
                                   expected::not_taken,
                                   expected::pgd(),
                                   expected::trace_stop};
        on.expect("GEN-090"_rule, code, branched);
        // By a direct jump.
        if (!detail::set_range(on, 0, code, area(7), area(7))) { return on.result(); }
        got = on.trace(code, with);
        if (!got.has_run) { return on.result(); }
        wanted const direct[] = {expected::pge_to(code.body_at),
                                 expected::taken,
                                 expected::tip_to(area(0)),
                                 expected::not_taken,
                                 expected::taken,
                                 expected::tip_to(area(5)),
                                 expected::not_taken,
                                 expected::taken,
                                 expected::taken,
                                 expected::pgd(area(7)),
                                 expected::trace_stop};
        on.expect("GEN-090"_rule, code, direct);
        return on.result();
    }
};

/// TraceStop depends neither on BranchEn nor on FilterEn; a filter and a TraceStop range that
/// overlap stop.
struct trace_stop_always {
    static constexpr text name = "tracestop-without-packeten";
    static constexpr rule_list rules{"GEN-089", "GEN-085", "GEN-341", "REG-068"};
    static constexpr needs need = needs::tracing().with(snippets::areas).with(features::two_ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        using detail::area;
        constexpr auto const& code = snippets::areas;
        wanted const alone[] = {expected::trace_stop};
        if (!detail::set_range(on, 0, code, area(5), area(5)) ||
            !detail::set_range(on, 1, code, area(7), area(7))) {
            return on.result();
        }
        if (on.caps().leaf_14_0_ebx.template get<ebx::MTC>()) {
            auto const with = detail::as_stop(on.usual_ctl()).with(ctl::BranchEn{false});
            if (!on.trace(code, with).has_run) { return on.result(); }
            on.expect("GEN-089"_rule, code, alone);
        }
        // Range 1 is a filter that is not reached before.
        auto const with =
            detail::as_stop(on.usual_ctl()).with(ctl::ADDR1_CFG{reg::addr_cfg::filter});
        auto const filtered = on.trace(code, with);
        if (!filtered.has_run) { return on.result(); }
        on.expect("GEN-341"_rule, code, alone);
        on.require(filtered.status.template get<status::Stopped>(), "GEN-089"_rule, "Stopped", 1, 0,
                   status::address);
        // The overlap of both stops; the rest of the filter is traced.
        if (!detail::set_range(on, 0, code, area(1), area(1)) ||
            !detail::set_range(on, 1, code, area(0), area(4))) {
            return on.result();
        }
        if (!on.trace(code, with).has_run) { return on.result(); }
        wanted const overlap[] = {expected::pge_to(area(0)), expected::not_taken, expected::pgd(),
                                  expected::trace_stop};
        on.expect("GEN-085"_rule, code, overlap);
        return on.result();
    }
};

/// TraceEn rises inside a TraceStop range.
struct enabled_in_stop_range {
    static constexpr text name = "enabled-inside-a-tracestop-range";
    static constexpr rule_list rules{"GEN-088", "REG-068"};
    static constexpr needs need = needs::tracing().with(snippets::branches).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::branches;
        if (!detail::set_range(on, 0, code, code.body_at, code.body_at)) { return on.result(); }
        auto const got = on.trace(code, detail::as_stop(on.usual_ctl()));
        if (!got.has_run) { return on.result(); }
        wanted const all[] = {expected::trace_stop};
        on.expect("GEN-088"_rule, code, all);
        on.require(got.status.template get<status::Stopped>(), "REG-068"_rule, "Stopped", 1, 0,
                   status::address);
        return on.result();
    }
};

using filter_checks = type_list<cr3_filter, no_filter, ip_filter, range_ends, empty_range,
                                two_filters, returns_and_filter, sequential_flow, enabled_in_range,
                                trace_stop, trace_stop_always, enabled_in_stop_range>;

}  // namespace ptspec::suite::checks
