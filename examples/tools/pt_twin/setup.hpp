// SPDX-License-Identifier: BSL-1.0
#pragma once

// The state in which a twin begins.

#include "twin_state.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pt_twin {

/// The initial state of the machine, at an IP. `alignment`: bytes before the trace in its buffer.
inline auto start_of(twin_state const& state, std::string_view kind_name, unsigned alignment,
                     std::uint64_t ip) -> trace_script::start {
    using ctl = reg::ia32_rtit_ctl;
    using pointers = reg::ia32_rtit_output_mask_ptrs;
    auto const& with = state.with;
    auto const& traced = state.run.traced;
    auto made = trace_script::base_state(machine::table);
    for (auto const& one : engine::model_kinds) {
        if (std::string_view{one.name.data(), one.name.size()} == kind_name) {
            made.how = one.options;
        }
    }
    // What the packets show are facts, not choices.
    made.how.psb_keeps_remainder = false;
    made.how.psb_step = 1;
    made.how.psb_after_overflow = engine::psb_after_ovf::never;
    made.how.has_tsx = with.has_tsx;
    made.hidden = {.non_root = false, .exits = true, .entries = true};
    made.msrs.ctl = made.msrs.ctl.with(
        ctl::TraceEn{state.now != tracing::off}, ctl::OS{traced.who.os}, ctl::User{traced.who.user},
        ctl::TSCEn{with.tsc}, ctl::MTCEn{with.mtc}, ctl::MTCFreq{wrapped{with.mtc_freq}},
        ctl::CYCEn{with.cyc}, ctl::PSBFreq{15}, ctl::PTWEn{with.ptwrite},
        ctl::FUPonPTW{with.fup_on_ptwrite}, ctl::BranchEn{with.branches},
        ctl::CR3Filter{with.cr3_filter});
    for (std::size_t n = 0; n < with.filters.size(); ++n) {
        made.set_range(n, with.filters[n].first, with.filters[n].last, reg::addr_cfg::filter);
    }
    if (with.cr3_filter) { made.msrs.cr3_match = {with.cr3_match}; }
    made.filter_en = state.now != tracing::out || with.filters.empty();
    made.msrs.output.mask_ptrs = made.msrs.output.mask_ptrs.with(
        pointers::OutputOffset{wrapped{alignment}});
    made.msrs.in_vmx_operation = traced.non_root || with.has_vmcs;
    made.code.vmx_non_root = traced.non_root;
    made.code.width = traced.width;
    made.code.cr3 = traced.cr3;
    made.code.cpl = state.now == tracing::on ? state.run.traced_cpl() : 0;
    made.ip = ip;
    made.cycles = 0;
    trace_script::derive_status(made);
    return made;
}

/// Begins with the first PSB+. Returns the setup as text.
inline auto begin(twin_state& state, std::string_view kind_name, unsigned alignment)
    -> std::string {
    auto const& all = state.all;
    auto const first = psb_plus_at(all, 0);
    auto const& with = state.with;
    auto& run = state.run;
    run.traced.who = with.first.value_or(state.evidence.privilege_from(0, true, {with.os, true}));
    std::size_t pge = after_times(all, first.next);
    if (state.evidence.is_at(pge, kind::mode_exec)) { pge = after_times(all, pge + 1); }
    bool const is_enable = state.evidence.is_at(pge, kind::tip_pge);
    bool const is_on = !with.branches ||
                       (first.fup() &&
                        !state.evidence.is_at(after_times(all, first.next), kind::tip_pge));
    // A CYC in the first PSB+ counts from an instant before the trace; a PSB+ of code that is
    // not traced may have no packet of its context.
    if (is_on) {
        state.now = tracing::on;
    } else if (!first.takes.empty() && !is_enable) {
        state.now = tracing::out;
    }
    if (state.now != tracing::off) {
        if (first.pip()) { run.set_pip(*first.pip()); }
        if (first.exec()) { run.set_mode(*first.exec()); }
    }
    auto const from = start_of(state, kind_name, alignment,
                               first.fup().value_or(state.now == tracing::out ? run.outside() : 0));
    run.begin(from);
    if (state.now != tracing::off && first.vmcs()) { run.set_vmcs(*first.vmcs()); }
    return setup_text(kind_name, from);
}

}  // namespace pt_twin
