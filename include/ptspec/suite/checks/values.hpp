// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/filters.hpp>

/// PIP, PTW, MODE.TSX and CFE.
namespace ptspec::suite::checks {

/// MOV CR3 has a PIP, also if CR3 does not change; so it has with BranchEn = 0.
struct mov_to_cr3 {
    static constexpr text name = "mov-cr3";
    static constexpr rule_list rules{"GEN-240", "GEN-241", "PKT-080", "PKT-082", "PKT-083",
                                     "GEN-123", "GEN-029", "GEN-028", "PKT-081"};
    static constexpr needs need = needs::tracing().with(snippets::paging);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        wanted const all[] = {expected::taken, expected::pip_of_cr3(), expected::taken};
        detail::require_body(on, "GEN-240"_rule, snippets::paging, on.usual_ctl(), all);
        if (!features::mtc.is_met(on.caps())) { return on.result(); }
        auto const with = on.usual_ctl().with(ctl::BranchEn{false});
        if (!on.trace(snippets::paging, with).has_run) { return on.result(); }
        wanted const alone[] = {expected::pip_of_cr3()};
        on.expect("GEN-029"_rule, snippets::paging, alone);
        return on.result();
    }
};

/// MOV CR3 outside a filter range has a PIP, too.
struct mov_cr3_outside {
    static constexpr text name = "mov-cr3-outside-a-filter-range";
    static constexpr rule_list rules{"GEN-031", "GEN-240", "PKT-083", "GEN-028"};
    static constexpr needs need = needs::tracing().with(snippets::paging).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (!detail::set_range(on, 0, snippets::paging, 0, 0)) { return on.result(); }
        if (!on.trace(snippets::paging, detail::as_filter(on.usual_ctl())).has_run) {
            return on.result();
        }
        wanted const alone[] = {expected::pip_of_cr3()};
        on.expect("GEN-031"_rule, snippets::paging, alone);
        return on.result();
    }
};

/// MOV CR3 inside a TraceStop range stops tracing.
struct mov_cr3_stops {
    static constexpr text name = "mov-cr3-inside-a-tracestop-range";
    static constexpr rule_list rules{"GEN-087", "REG-068", "GEN-090", "GEN-240"};
    static constexpr needs need = needs::tracing().with(snippets::paging).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        // MOV CR3 alone, and the next instruction: at the edges processors may differ.
        uint64_t const next = detail::mark(snippets::paging, 0);
        if (!detail::set_range(on, 0, snippets::paging, next - 3, next)) { return on.result(); }
        auto const got = on.trace(snippets::paging, detail::as_stop(on.usual_ctl()));
        if (!got.has_run) { return on.result(); }
        on.require(got.status.template get<status::Stopped>(), "GEN-087"_rule, "Stopped", 1, 0,
                   status::address);
        wanted const all[] = {expected::pge_to(snippet::body_at), expected::taken,
                              expected::pip_of_cr3(), expected::pgd(next), expected::trace_stop};
        on.expect("GEN-090"_rule, snippets::paging, all);
        return on.result();
    }
};

/// PTWRITE, of 4 and 8 bytes, with and without FUP, and with BranchEn = 0.
struct ptwrite_packets {
    static constexpr text name = "ptwrite";
    static constexpr rule_list rules{"GEN-300", "PKT-170", "PKT-171", "PKT-172",
                                     "PKT-174", "GEN-123", "GEN-029", "GEN-028",
                                     "REG-032", "PKT-012", "PKT-173"};
    static constexpr needs need = needs::tracing().with(snippets::ptwrites);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::ptwrites;
        auto const with = on.usual_ctl().with(ctl::PTWEn{true});
        wanted const plain[] = {expected::taken, expected::ptw_of(snippets::ptwrite_value, false),
                                expected::ptw_of(snippets::ptwrite_value_64, false)};
        detail::require_body(on, "GEN-300"_rule, code, with, plain);
        wanted const with_fup[] = {expected::taken, expected::ptw_of(snippets::ptwrite_value, true),
                                   expected::fup_at(code.steps[1].at),
                                   expected::ptw_of(snippets::ptwrite_value_64, true),
                                   expected::fup_at(code.steps[2].at)};
        detail::require_body(on, "PKT-172"_rule, code, with.with(ctl::FUPonPTW{true}), with_fup);
        // Without PTWEn it is a NOP.
        wanted const none[] = {expected::taken};
        detail::require_body(on, "GEN-300"_rule, code, on.usual_ctl(), none);
        detail::require_body(on, "GEN-300"_rule, code, on.usual_ctl().with(ctl::FUPonPTW{true}),
                             none);
        if (!features::mtc.is_met(on.caps())) { return on.result(); }
        auto const alone = with.with(ctl::BranchEn{false}, ctl::FUPonPTW{true});
        if (!on.trace(code, alone).has_run) { return on.result(); }
        wanted const values[] = {
            expected::ptw_of(snippets::ptwrite_value, true), expected::fup_at(code.steps[1].at),
            expected::ptw_of(snippets::ptwrite_value_64, true), expected::fup_at(code.steps[2].at)};
        on.expect("GEN-029"_rule, code, values);
        return on.result();
    }
};

/// PTWRITE outside a filter range, and in a context that is not traced, has no packet.
struct ptwrite_outside {
    static constexpr text name = "ptwrite-outside";
    static constexpr rule_list rules{"GEN-300", "GEN-030", "GEN-028"};
    static constexpr needs need = needs::tracing().with(snippets::ptwrites).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::PTWEn{true});
        if (!detail::set_range(on, 0, snippets::ptwrites, 0, 0)) { return on.result(); }
        if (!on.trace(snippets::ptwrites, detail::as_filter(with)).has_run) { return on.result(); }
        on.expect_nothing("GEN-300"_rule, snippets::ptwrites);
        if (on.trace(snippets::ptwrites, with.with(ctl::OS{false})).has_run) {
            on.expect_nothing("GEN-030"_rule, snippets::ptwrites);
        }
        return on.result();
    }
};

/// A transaction begins and commits.
struct transaction_commits {
    static constexpr text name = "transaction-commits";
    static constexpr rule_list rules{"GEN-250", "GEN-251", "PKT-088", "PKT-093", "PKT-085"};
    static constexpr needs need = needs::tracing().with(snippets::transaction);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::transaction;
        wanted const all[] = {expected::tsx(1), expected::fup_at(detail::mark(code, 0)),
                              expected::tsx(0), expected::fup_at(detail::mark(code, 1))};
        detail::require_body(on, "GEN-250"_rule, code, on.usual_ctl(), all);
        return on.result();
    }
};

/// A transaction aborts: MODE.TSX, FUP, and TIP of the fallback address.
struct transaction_aborts {
    static constexpr text name = "transaction-aborts";
    static constexpr rule_list rules{"GEN-252", "GEN-250", "PKT-088",
                                     "PKT-093", "GEN-007", "PKT-090"};
    static constexpr needs need = needs::tracing().with(snippets::aborted_transaction);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::aborted_transaction;
        wanted const all[] = {expected::tsx(1), expected::fup_at(detail::mark(code, 0)),
                              expected::tsx(2), expected::fup_at(detail::mark(code, 1)),
                              expected::tip_to(detail::mark(code, 2))};
        detail::require_body(on, "GEN-252"_rule, code, on.usual_ctl(), all);
        return on.result();
    }
};

/// An abort that leaves a filter range, and one that enters it.
struct transaction_and_filter {
    static constexpr text name = "transaction-and-filter";
    static constexpr rule_list rules{"GEN-255", "GEN-256", "GEN-257", "GEN-031", "GEN-252"};
    static constexpr needs need =
        needs::tracing().with(snippets::aborted_transaction).with(features::ranges);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::aborted_transaction;
        auto const with = detail::as_filter(on.usual_ctl());
        uint64_t const fallback = detail::mark(code, 2);
        if (!detail::set_range(on, 0, code, 0, fallback - 1) || !on.trace(code, with).has_run) {
            return on.result();
        }
        wanted const left[] = {expected::pge_to(code.body_at),          expected::tsx(1),
                               expected::fup_at(detail::mark(code, 0)), expected::tsx(2),
                               expected::fup_at(detail::mark(code, 1)), expected::pgd(fallback)};
        on.expect("GEN-256"_rule, code, left);
        if (!detail::set_range(on, 0, code, fallback, code.size - 1U) ||
            !on.trace(code, with).has_run) {
            return on.result();
        }
        wanted const entered[] = {expected::tsx(1), expected::tsx(2), expected::pge_to(fallback),
                                  expected::fup_at(code.disable_at), expected::pgd()};
        on.expect("GEN-257"_rule, code, entered);
        return on.result();
    }
};

/// Event Trace: IRET has a CFE, which a FUP follows if its IP bit is 1, then its TIP. BranchEn = 0
/// leaves only the CFE and its FUP.
struct iret_event {
    static constexpr text name = "event-trace-iret";
    static constexpr rule_list rules{"GEN-301", "GEN-303", "PKT-220", "PKT-221",
                                     "PKT-222", "GEN-029", "GEN-114", "PKT-087"};
    static constexpr needs need =
        needs::tracing().with(snippets::interrupt_return).with(features::event_trace);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::EventEn{true});
        if (!on.trace(code, with).has_run) { return on.result(); }
        if (bool const has_fup = has_cfe_with_ip(on.seen())) {
            wanted const all[] = {cfe(has_fup), fup, tip, ret};
            on.expect_body("GEN-301"_rule, code, all);
        } else {
            wanted const all[] = {cfe(has_fup), tip, ret};
            on.expect_body("GEN-301"_rule, code, all);
        }
        // A snippet executes with interrupts disabled.
        on.require(!has_mode_with_if(on.seen()), "PKT-087"_rule, "IF of MODE.Exec", 0, 1);
        if (!features::mtc.is_met(on.caps())) { return on.result(); }
        if (!on.trace(code, with.with(ctl::BranchEn{false})).has_run) { return on.result(); }
        bool const has_fup = has_cfe_with_ip(on.seen());
        wanted const alone[] = {cfe(has_fup), fup};
        on.expect("GEN-303"_rule, code, alone, has_fup ? 2 : 1);
        on.observe("CFE of IRET with a FUP, without BranchEn", has_fup);
        return on.result();
    }

private:
    static constexpr snippet const& code = snippets::interrupt_return;
    static constexpr wanted fup = expected::fup_at(code.steps[1].at);
    static constexpr wanted tip = expected::tip_to(code.marks[1]);
    static constexpr wanted ret = expected::ret(code.marks[0]);

    static constexpr auto cfe(bool has_ip) noexcept -> wanted {
        return expected::cfe_of(packet::cfe_type::IRET, has_ip);
    }
    static constexpr auto has_mode_with_if(seen_trace const& seen) noexcept -> bool {
        for (unsigned i = 0; i < seen.count; ++i) {
            if (seen.packets[i].is_64_bit_mode() && seen.packets[i].value != 1) { return true; }
        }
        return false;
    }
    static constexpr auto has_cfe_with_ip(seen_trace const& seen) noexcept -> bool {
        for (unsigned i = 0; i < seen.count; ++i) {
            if (seen.packets[i].kind == packet::kind::cfe) { return seen.packets[i].has_ip; }
        }
        return false;
    }
};

using value_checks =
    type_list<mov_to_cr3, mov_cr3_outside, mov_cr3_stops, ptwrite_packets, ptwrite_outside,
              transaction_commits, transaction_aborts, transaction_and_filter, iret_event>;

}  // namespace ptspec::suite::checks
