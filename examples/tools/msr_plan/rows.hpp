// SPDX-License-Identifier: BSL-1.0
#pragma once

// Rows of the form of tests/spec/notation.md, section 4: what a setup says is executed step by step
// on the MSRs and the output of a processor. No packets are generated: `fill` and `write` store
// bytes.

#include "row/accesses.hpp"
#include "row/output.hpp"
#include "row/procedures.hpp"
#include "row/values.hpp"

#include <ptspec/access/pmi.hpp>
#include <ptspec/access/resets.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace msr_plan {

/// Executes a step.
inline void execute(row_state& row, std::string const& step) {
    words in{step};
    if (step.compare(0, 6, "WRMSR(") == 0 || step.compare(0, 6, "RDMSR(") == 0) {
        return access_msr(row, step);
    }
    if (auto const run = procedure_of(in)) {
        (void)in.next("a step");
        row_processor port{row.on};
        log_port to{port};
        run(row, in, to);
        in.end();
        for (auto const& one : to) { say(row, item_of(one, true)); }
        return;
    }
    struct named {
        std::string_view name;
        void (*run)(row_state&, words&);
    };
    constexpr named all[] = {
        {"XSAVES", [](row_state& r, words& w) { xsaves(r, w); }},
        {"XRSTORS", [](row_state& r, words& w) { xrstors(r, w); }},
        {"VMXON", [](row_state& r, words&) { become(r, access::vmxon(r.on.of, r.on.now)); }},
        {"VMXOFF", [](row_state& r, words&) { become(r, access::vmxoff(r.on.now)); }},
        {"SMI", [](row_state& r, words&) { become(r, access::smi(r.on.now)); }},
        {"RSM", [](row_state& r, words&) { rsm(r); }},
        {"INIT", [](row_state& r, words&) { become(r, access::init(r.on.of, r.on.now)); }},
        {"SENTER", [](row_state& r, words&) { become(r, access::measured_launch(r.on.now)); }},
        {"ACM", [](row_state& r, words& w) { acm(r, w); }},
        {"warm",
         [](row_state& r, words& w) {
             w.expect("reset");
             become(r, access::warm_reset(r.on.of, r.on.now));
         }},
        {"cold",
         [](row_state& r, words& w) {
             w.expect("reset");
             become(r, access::cold_reset());
         }},
        {"PMI",
         [](row_state& r, words&) { become(r, access::deliver_pmi(r.on.of, r.on.now).state); }},
        {"branch", [](row_state& r, words& w) { branch(r, w); }},
        {"fill", [](row_state& r, words& w) { fill(r, w); }},
        {"write", [](row_state& r, words& w) { write_bytes(r, number_of_bytes(w)); }},
        {"locate",
         [](row_state& r, words& w) {
             w.expect("end");
             say(r, "pos=" + hex(position(r)));
         }},
        {"read",
         [](row_state& r, words& w) {
             w.expect("out");
             read_out(r);
         }},
        {"next", [](row_state& r, words& w) { next_mtc(r, w); }},
        {"state", [](row_state& r, words&) { claim_all(r); }},
    };
    auto const first = in.next("a step");
    for (auto const& one : all) {
        if (one.name != first) { continue; }
        one.run(row, in);
        return in.end();
    }
    in.end();
    auto const value = value_of(row, first);
    if (!value) { throw refusal{tool::quoted(first) + " is not understood"}; }
    say(row, std::string{first} + "=" + *value);
}

/// The state before the first step.
inline auto begin_row(setup const& from, std::vector<std::string> const& steps)
    -> std::unique_ptr<row_state> {
    if (steps.empty()) { throw refusal{"an empty operation"}; }
    std::unique_ptr<row_state> made{new row_state{from}};
    made->is_log = std::any_of(steps.begin(), steps.end(), [](std::string const& step) {
        return procedure_of(words{step}) != nullptr;
    });
    auto& on = made->on;
    on.of = from.caps;
    on.now = from.msrs;
    for (auto const& one : from.memory) { (void)on.memory.put(one.address, one.value); }
    using status = reg::ia32_rtit_status;
    bool const has_ended = on.now.status.get<status::Stopped>() ||
                           on.now.status.get<status::Error>();
    if (!on.now.ctl.get<reg::ia32_rtit_ctl::TraceEn>() || has_ended) { return made; }
    on.now.status = on.now.status.with(status::TriggerEn{true});
    (void)on.output.start(on.of, on.now, on.memory, on.how);
    on.output.write_back(on.now);
    return made;
}

/// What the column `expected` holds: the results of the steps, in order.
inline auto run_setup(setup const& from, std::string_view operation) -> std::string {
    auto const steps = pc_notation::items_of(operation);
    auto const made = begin_row(from, steps);
    for (auto const& step : steps) {
        try {
            execute(*made, step);
        } catch (refusal const& why) {
            throw refusal{"operation: " + tool::quoted(step) + ": " + why.what()};
        }
    }
    return join(made->results, from.condition.empty() ? "; " : ", ");
}

/// Runs a row: once for each alternative of its setup.
inline auto run_row(std::string_view setup_cell, std::string_view operation) -> std::string {
    std::vector<std::string> lines;
    for (auto const& one : pc_notation::setups_of(setup_cell)) {
        auto const condition = one.condition.empty() ? "" : one.condition + ": ";
        lines.push_back(condition + run_setup(one, operation));
    }
    return join(lines, " / ");
}

}  // namespace msr_plan
