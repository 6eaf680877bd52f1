// SPDX-License-Identifier: BSL-1.0
#pragma once

// The procedures of a driver.

#include "output.hpp"

#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/driver/enable.hpp>
#include <ptspec/driver/guards.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/driver/reset.hpp>
#include <ptspec/driver/topa_pmi.hpp>

namespace msr_plan {

/// The plan of the setup. `ctl` follows the name of the procedure, else it is the setup's, else
/// the base configuration.
inline auto plan(row_state const& row, words& in) -> access::msr_state {
    auto made = row.on.now;
    made.status = {};
    made.ctl = row.from.msrs.ctl.raw != 0 ? row.from.msrs.ctl : row.from.base_ctl();
    if (!in.at_end()) { made.ctl = {in.number("IA32_RTIT_CTL")}; }
    made.ctl = made.ctl.with(reg::ia32_rtit_ctl::TraceEn{true});
    return made;
}
/// The same at the start of the output.
inline auto plan_from_start(row_state const& row, words& in) -> access::msr_state {
    auto made = plan(row, in);
    made.output.base = row.from.msrs.output.base;
    made.output.mask_ptrs = {row.from.is_range ? row.from.msrs.output.mask_ptrs.raw & low_bits(32)
                                               : 0x7F};
    return made;
}

using procedure = void (*)(row_state&, words&, log_port&);

/// The procedure that a step names; nullptr: none.
inline auto procedure_of(words in) -> procedure {
    struct named {
        std::string_view name;
        procedure run;
    };
    constexpr named all[] = {
        {"detect",
         [](row_state& r, words&, log_port& to) {
             simulate::capabilities_cpuid cpuid{r.on.of};
             (void)driver::detect(cpuid, to);
         }},
        {"enable",
         [](row_state& r, words& w, log_port& to) { (void)driver::enable(to, plan(r, w)); }},
        {"check_enabled",
         [](row_state& r, words& w, log_port& to) { (void)driver::check_enabled(to, plan(r, w)); }},
        {"disable", [](row_state&, words&, log_port& to) { (void)driver::disable(to); }},
        {"flush",
         [](row_state& r, words&, log_port& to) { (void)driver::flush(to, r.on.now.ctl); }},
        {"pause",
         [](row_state& r, words&, log_port& to) { (void)driver::pause(to, r.on.now.ctl); }},
        {"resume",
         [](row_state& r, words&, log_port& to) { (void)driver::resume(to, r.on.now.ctl); }},
        {"save", [](row_state&, words&, log_port& to) { (void)driver::save(to); }},
        {"restore",
         [](row_state& r, words& w, log_port& to) {
             auto saved = plan(r, w);
             saved.status = r.on.now.status;
             (void)driver::restore(to, saved);
         }},
        {"switch",
         [](row_state&, words&, log_port& to) {
             auto const saved = driver::save(to);
             to.note("switch");
             (void)driver::restore(to, saved.state);
         }},
        {"restart", [](row_state& r, words& w,
                       log_port& to) { (void)driver::restart(to, plan_from_start(r, w)); }},
        {"recover",
         [](row_state& r, words&, log_port& to) { (void)driver::recover(to, r.on.now.ctl); }},
        {"pmi",
         [](row_state&, words&, log_port& to) {
             (void)driver::on_topa_pmi(
                 to,
                 [&](driver::stopped_trace const&) {
                     to.note("drain");
                     return driver::pmi_decision{};
                 },
                 [&] { to.note("unmask LVT"); });
         }},
        {"while_disabled",
         [](row_state& r, words&, log_port& to) {
             (void)driver::while_disabled(to, r.on.now.ctl, [&] { to.note("edit table"); });
         }},
        {"check_lbr",
         [](row_state& r, words&, log_port& to) { (void)driver::check_lbr(to, r.on.of); }},
        {"read_uncovered",
         [](row_state& r, words&, log_port& to) {
             auto plan = r.on.now;
             (void)driver::read_uncovered(to, plan);
         }},
        {"write_uncovered", [](row_state& r, words&,
                               log_port& to) { (void)driver::write_uncovered(to, r.from.msrs); }},
        {"after_cold_reset",
         [](row_state& r, words&, log_port& to) {
             auto const placed = ring_of(r);
             (void)driver::after_cold_reset(to, placed.ring, r.on.memory);
         }},
        {"after_warm_reset",
         [](row_state& r, words&, log_port& to) { (void)driver::after_warm_reset(to, r.on.of); }},
    };
    auto const first = in.next("a step");
    for (auto const& one : all) {
        if (one.name == first) { return one.run; }
    }
    return nullptr;
}

}  // namespace msr_plan
