// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/output_run.hpp>

/// The packets of branches.
namespace ptspec::suite::checks {

namespace detail {

using expected::not_taken;
using expected::pip_of_cr3;
using expected::ret;
using expected::tip_to;

/// An offset of a snippet.
constexpr auto mark(snippet const& code, unsigned number) noexcept -> uint64_t {
    return code.marks[number];
}
/// Traces a snippet with the usual output, and requires its packets between enabling and disabling.
template <size_t Count, target T>
constexpr void require_body(armed<T>& on, rule which, snippet const& code, ctl with,
                            wanted const (&all)[Count]) noexcept {
    if (on.trace(code, with).has_run) { on.expect_body(which, code, all); }
}
template <target T>
constexpr void require_empty_body(armed<T>& on, rule which, snippet const& code,
                                  ctl with) noexcept {
    if (on.trace(code, with).has_run) { on.expect_empty_body(which, code); }
}

}  // namespace detail

/// TraceEn rises and falls: TIP.PGE of the next instruction, then FUP of the WRMSR and TIP.PGD.
struct enable_and_disable {
    static constexpr text name = "enable-and-disable";
    static constexpr rule_list rules{"GEN-180", "GEN-100", "GEN-183", "GEN-106", "GEN-185",
                                     "PKT-076", "PKT-077", "PKT-073", "PRG-035", "GEN-235",
                                     "GEN-236", "PKT-072", "GEN-027", "REG-059", "PKT-089"};
    static constexpr needs need = needs::tracing().with(snippets::nothing);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        detail::require_empty_body(on, "GEN-180"_rule, snippets::nothing, on.usual_ctl());
        return on.result();
    }
};

/// Conditional branches are bits of TNT packets, the oldest first.
struct conditional_branches {
    static constexpr text name = "conditional-branches";
    static constexpr rule_list rules{"GEN-121", "GEN-110", "PKT-030", "PKT-031", "PKT-032",
                                     "PKT-038", "GEN-124", "GEN-123", "GEN-340"};
    static constexpr needs need = needs::tracing().with(snippets::branches);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        if (on.trace(snippets::branches, on.usual_ctl()).has_run) {
            detail::require_branches(on, "GEN-121"_rule);
        }
        return on.result();
    }
};

/// 47 conditional branches: none is lost or repeated where a TNT is full.
struct full_tnt {
    static constexpr text name = "full-tnt";
    static constexpr rule_list rules{"GEN-120", "GEN-122", "GEN-121", "GEN-124", "PKT-033",
                                     "PKT-034", "PKT-035", "PKT-031", "PKT-036", "PKT-037"};
    static constexpr needs need = needs::tracing().with(snippets::many_conditionals);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        wanted all[47] = {};
        for (unsigned i = 0; i < 47; ++i) {
            all[i] = i % 3 == 2 ? expected::not_taken : expected::taken;
        }
        detail::require_body(on, "GEN-120"_rule, snippets::many_conditionals, on.usual_ctl(), all);
        on.observe("TNT.long packets", on.seen().long_tnts);
        return on.result();
    }
};

/// Direct jumps and calls have no packets.
struct direct_branches {
    static constexpr text name = "direct-branches";
    static constexpr rule_list rules{"GEN-112", "GEN-110"};
    static constexpr needs need = needs::tracing().with(snippets::direct);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        detail::require_empty_body(on, "GEN-112"_rule, snippets::direct, on.usual_ctl());
        return on.result();
    }
};

/// Indirect jumps have a TIP, after the TNT of the branches before.
struct indirect_branches {
    static constexpr text name = "indirect-branches";
    static constexpr rule_list rules{"GEN-110", "GEN-123", "PKT-050", "PKT-051",
                                     "PKT-059", "PKT-070", "PKT-071", "PKT-060",
                                     "GEN-174", "PKT-015", "PKT-052"};
    static constexpr needs need = needs::tracing().with(snippets::indirect);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        wanted const all[] = {expected::tip_to(detail::mark(snippets::indirect, 0)),
                              expected::not_taken,
                              expected::tip_to(detail::mark(snippets::indirect, 1))};
        detail::require_body(on, "GEN-110"_rule, snippets::indirect, on.usual_ctl(), all);
        return on.result();
    }
};

/// A RET to the instruction after its call is a taken branch of a TNT.
struct compressed_returns {
    static constexpr text name = "compressed-returns";
    static constexpr rule_list rules{"GEN-130", "GEN-132", "GEN-138",
                                     "GEN-133", "PKT-067", "PKT-038"};
    static constexpr needs need = needs::tracing().with(snippets::calls);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        wanted const all[] = {expected::ret(detail::mark(snippets::calls, 0)),
                              expected::tip_to(detail::mark(snippets::calls, 2)),
                              expected::ret(detail::mark(snippets::calls, 1))};
        detail::require_body(on, "GEN-130"_rule, snippets::calls, on.usual_ctl(), all);
        if (on.uncompressed() != 0) { on.observe("returns not compressed", on.uncompressed()); }
        return on.result();
    }
};

/// A RET elsewhere has a TIP, and uses up the entry of the call.
struct mismatched_returns {
    static constexpr text name = "mismatched-returns";
    static constexpr rule_list rules{"GEN-133", "GEN-134", "GEN-130"};
    static constexpr needs need = needs::tracing().with(snippets::mismatched_returns);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::mismatched_returns;
        // Whether the entry is used up is the processor's choice.
        wanted const all[] = {expected::tip_to(detail::mark(code, 0)),
                              expected::tip_to(detail::mark(code, 2)),
                              expected::ret(detail::mark(code, 1))};
        detail::require_body(on, "GEN-134"_rule, code, on.usual_ctl(), all);
        on.observe("mismatched entries used up", on.uncompressed());
        return on.result();
    }
};

/// A direct call of the next instruction predicts no RET, an indirect one does.
struct calls_of_next {
    static constexpr text name = "calls-of-the-next-instruction";
    static constexpr rule_list rules{"GEN-132", "GEN-130"};
    static constexpr needs need = needs::tracing().with(snippets::calls_of_next);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::calls_of_next;
        wanted const all[] = {expected::not_taken, expected::tip_to(code.steps[0].to),
                              expected::taken,     expected::tip_to(detail::mark(code, 1)),
                              expected::not_taken, expected::ret(detail::mark(code, 1)),
                              expected::taken};
        detail::require_body(on, "GEN-132"_rule, code, on.usual_ctl(), all);
        if (on.uncompressed() != 0) { on.observe("returns not compressed", on.uncompressed()); }
        return on.result();
    }
};

/// The processor remembers 64 calls.
struct nested_calls {
    static constexpr text name = "nested-calls";
    static constexpr rule_list rules{"GEN-131", "GEN-133"};
    static constexpr needs need = needs::tracing().with(snippets::nested_calls);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        constexpr auto const& code = snippets::nested_calls;
        wanted all[132] = {};
        for (unsigned i = 0; i < 65; ++i) { all[i] = expected::not_taken; }
        all[65] = expected::taken;
        for (unsigned i = 66; i < 130; ++i) { all[i] = expected::ret(detail::mark(code, 1)); }
        all[130] = expected::tip_to(detail::mark(code, 1));
        all[131] = expected::tip_to(detail::mark(code, 0));
        detail::require_body(on, "GEN-131"_rule, code, on.usual_ctl(), all);
        if (on.uncompressed() != 0) { on.observe("returns not compressed", on.uncompressed()); }
        return on.result();
    }
};

/// DisRETC: each near RET has a TIP.
struct dis_retc {
    static constexpr text name = "disretc";
    static constexpr rule_list rules{"GEN-139", "REG-039"};
    static constexpr needs need = needs::tracing().with(snippets::calls);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        wanted const all[] = {expected::tip_to(detail::mark(snippets::calls, 0)),
                              expected::tip_to(detail::mark(snippets::calls, 2)),
                              expected::tip_to(detail::mark(snippets::calls, 1))};
        detail::require_body(on, "GEN-139"_rule, snippets::calls,
                             on.usual_ctl().with(ctl::DisRETC{true}), all);
        return on.result();
    }
};

/// A far RET and an IRET have a TIP without a FUP, and do not use up the entry of a call.
struct far_transfers {
    static constexpr text name = "far-transfers";
    static constexpr rule_list rules{"GEN-114", "GEN-136", "GEN-110", "GEN-236",
                                     "PKT-071", "GEN-237", "PKT-092"};
    static constexpr needs need = needs::tracing().with(snippets::far_return);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        for (auto const* const code : few{&snippets::far_return, &snippets::interrupt_return}) {
            wanted const all[] = {expected::tip_to(detail::mark(*code, 1)),
                                  expected::ret(detail::mark(*code, 0))};
            detail::require_body(on, "GEN-114"_rule, *code, on.usual_ctl(), all);
        }
        if (on.uncompressed() != 0) { on.observe("returns not compressed", on.uncompressed()); }
        return on.result();
    }
};

/// DisTNT: no TNT packets.
struct dis_tnt {
    static constexpr text name = "distnt";
    static constexpr rule_list rules{"GEN-325", "REG-036"};
    static constexpr needs need = needs::tracing().with(snippets::branches).with(features::dis_tnt);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::DisTNT{true});
        wanted const all[] = {expected::tip_to(detail::mark(snippets::branches, 0))};
        detail::require_body(on, "GEN-325"_rule, snippets::branches, with, all);
        wanted const called[] = {expected::tip_to(detail::mark(snippets::calls, 2))};
        detail::require_body(on, "GEN-325"_rule, snippets::calls, with, called);
        return on.result();
    }
};

/// BranchEn = 0: no packet of a branch.
struct no_branch_en {
    static constexpr text name = "branchen-0";
    static constexpr rule_list rules{"GEN-029", "GEN-026", "GEN-028", "REG-040",
                                     "GEN-027", "GEN-105", "GEN-160", "PKT-140"};
    static constexpr needs need = needs::tracing().with(snippets::indirect).with(features::mtc);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::BranchEn{false});
        if (!on.trace(snippets::indirect, with).has_run) { return on.result(); }
        on.expect_nothing("GEN-029"_rule, snippets::indirect);
        on.require(on.seen().begins_with_psb_plus, "GEN-160"_rule, "PSB+ without BranchEn", 1, 0);
        on.require(!on.seen().first_psb.has_ip, "GEN-028"_rule, "FUP in PSB+", 0, 1);
        return on.result();
    }
};

/// Code at CPL 0 with OS = 0: no packet of a branch, and no IP.
struct other_context {
    static constexpr text name = "kernel-code-without-os";
    static constexpr rule_list rules{"GEN-030", "GEN-050", "GEN-028", "GEN-023", "GEN-105",
                                     "REG-057", "GEN-240", "GEN-170", "GEN-160"};
    static constexpr needs need = needs::tracing().with(snippets::paging);

    template <target T>
    static constexpr auto run(armed<T>& on) noexcept -> finding {
        auto const with = on.usual_ctl().with(ctl::OS{false}, ctl::User{true});
        if (!on.trace(snippets::indirect, with).has_run) { return on.result(); }
        on.expect_nothing("GEN-030"_rule, snippets::indirect);
        auto const& psb = on.seen().first_psb;
        on.require(on.seen().begins_with_psb_plus, "GEN-160"_rule, "PSB+ while ContextEn is 0", 1,
                   0);
        on.require(!psb.has_ip && !psb.has(packet::kind::pip) && !psb.has(packet::kind::vmcs) &&
                       !psb.has(packet::kind::mode_tsx),
                   "GEN-170"_rule, "PSB+ while ContextEn is 0");
        if (!on.trace(snippets::paging, with).has_run) { return on.result(); }
        on.expect_nothing("GEN-240"_rule, snippets::paging);
        return on.result();
    }
};

using branch_checks =
    type_list<enable_and_disable, conditional_branches, full_tnt, direct_branches,
              indirect_branches, compressed_returns, mismatched_returns, calls_of_next,
              nested_calls, dis_retc, far_transfers, dis_tnt, no_branch_en, other_context>;

}  // namespace ptspec::suite::checks
