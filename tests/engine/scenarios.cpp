// SPDX-License-Identifier: BSL-1.0
// Every row of tests/spec/scenarios.csv in each combination of its conditions that can occur:
// GEN-005, GEN-028..032, GEN-052, GEN-063, GEN-087..090, GEN-100..106, GEN-110..114, GEN-130,
// GEN-145, GEN-170, GEN-171, GEN-180..183, GEN-185, GEN-205, GEN-227, GEN-236, GEN-237,
// GEN-240..245, GEN-250..257, GEN-260..262, GEN-270..278, GEN-285..290, GEN-300..305,
// GEN-310..318, GEN-320, GEN-340..342, PKT-072.
#include <support/scenario_rows.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptspec::test::scenarios {

namespace {

// ------------------------------------------------------------------------------------ scenes

auto at(std::uint64_t ip) -> std::function<std::uint64_t(combination const&)> {
    return [=](combination const&) { return ip; };
}

constexpr flag flow_flags[] = {&combination::c0, &combination::f0, &combination::f1,
                               &combination::stop, &combination::branch};
auto varying(std::initializer_list<flag> more) -> std::vector<flag> {
    std::vector<flag> all{std::begin(flow_flags), std::end(flow_flags)};
    all.insert(all.end(), more);
    return all;
}
auto stays(combination const& in) -> bool { return in.f0 == in.f1 && !in.stop; }

/// A near branch, or another operation that changes only the IP.
auto branching(std::function<void(traced&, combination const&)> does) -> scene {
    scene made;
    made.does = std::move(does);
    made.by_cr3 = true;
    made.varies = varying({&combination::pending});
    made.occurs = [](combination const& in) { return in.pkt0() || !in.pending; };
    return made;
}
/// A far transfer, or an event.
auto transferring(
    std::function<void(traced&, combination const&, engine::execution_context const&)> does)
    -> scene {
    scene made;
    made.does = [=](traced& on, combination const& in) {
        does(on, in, running_after(on, in, scene{}));
    };
    made.varies = varying({&combination::c1, &combination::os, &combination::cr3_changed,
                           &combination::mode_changed, &combination::mode_unknown,
                           &combination::guest, &combination::conceal});
    made.occurs = [](combination const& in) { return !in.pkt0() || !in.mode_unknown; };
    return made;
}
/// An operation that starts tracing and continues at `target`.
auto starts(std::function<void(traced&, combination const&, engine::execution_context const&)> does)
    -> scene {
    auto made = transferring(std::move(does));
    made.starts_off = true;
    made.from = target;
    made.varies = varying({&combination::os, &combination::tsc, &combination::mtc,
                           &combination::tsx, &combination::vmx, &combination::guest,
                           &combination::conceal, &combination::counted});
    // The code before is not traced, so f0 keeps its default.
    made.occurs = [](combination const& in) { return !(in.vmx && in.guest) && in.f0; };
    return made;
}
auto is_off(combination const& in) -> bool { return !in.f1 && !in.stop; }

auto instruction(std::function<void(traced&, combination const&)> does) -> scene {
    auto made = branching(std::move(does));
    made.varies = {&combination::c0,       &combination::f0,   &combination::branch,
                   &combination::os,       &combination::tsc,  &combination::mtc,
                   &combination::with_fup, &combination::ptwen};
    made.sets = [](trace_script::start& to, combination const& in) {
        to.msrs.ctl = to.msrs.ctl.with(ctl::PTWEn{in.ptwen}, ctl::FUPonPTW{in.with_fup});
    };
    return made;
}
auto powered(std::function<void(traced&, combination const&)> does) -> scene {
    auto made = instruction(std::move(does));
    made.sets = [](trace_script::start& to, combination const&) {
        to.msrs.ctl = to.msrs.ctl.with(ctl::PwrEvtEn{true});
    };
    return made;
}
auto event_traced(scene made) -> scene {
    auto const before = made.sets;
    made.sets = [=](trace_script::start& to, combination const& in) {
        before(to, in);
        to.msrs.ctl = to.msrs.ctl.with(ctl::EventEn{true});
    };
    made.varies = {&combination::mode_changed, &combination::os};
    return made;
}

// Control-flow operations: rows S50.

auto next_instruction_scenes(row const&) -> std::vector<scene> {
    auto made = branching(
        [](traced& on, combination const&) { on.does(action::sequential{nlip}); });
    made.occurs = [](combination const& in) { return stays(in) && !in.pending; };
    return {made};
}

auto wrmsr_that_enables_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto by_wrmsr = starts([](traced& on, combination const& in, engine::execution_context const&) {
        on.writes(ctl::address, on.msrs().ctl.with(ctl::TraceEn{true}).raw, clip, target(in));
    });
    by_wrmsr.by_cr3 = true;
    auto const occurs = by_wrmsr.occurs;
    by_wrmsr.occurs = [=](combination const& in) {
        bool const this_one = (id == "S50-2a" || id == "S50-2d") == in.counted;
        return occurs(in) && this_one && (in.os || !in.c1) && in.c0 == in.c1;
    };
    by_wrmsr.varies.push_back(&combination::c1);
    if (id == "S50-2e-printed") {
        by_wrmsr.sets = [](trace_script::start& to, combination const&) {
            to.how.psb_after_pge = true;
        };
    }
    return {by_wrmsr};
}

auto wrmsr_that_disables_scenes(row const&) -> std::vector<scene> {
    auto made = branching([](traced& on, combination const&) {
        on.writes(ctl::address, on.msrs().ctl.with(ctl::TraceEn{false}).raw, clip, nlip);
    });
    made.occurs = [](combination const& in) { return is_off(in) && !in.pending; };
    return {made};
}

auto mov_cr3_scenes(row const&) -> std::vector<scene> {
    scene made;
    made.does = [](traced& on, combination const& in) {
        on.does(action::mov_cr3{in.stop ? 0x4010 : clip, target(in), cr3_new});
    };
    made.by_cr3 = true;
    made.from = [](combination const& in) { return in.f1 ? 0x1100 : in.stop ? 0x4100 : 0x3000; };
    made.varies = varying({&combination::c1, &combination::os, &combination::mode_unknown,
                           &combination::guest, &combination::conceal});
    made.occurs = [](combination const& in) {
        return (in.os || (!in.c0 && !in.c1)) && (!in.pkt0() || !in.mode_unknown);
    };
    return {made};
}

auto direct_branch_scenes(row const&) -> std::vector<scene> {
    auto const jump = branching(
        [](traced& on, combination const& in) { on.does(action::direct_jump{target(in)}); });
    auto const call = branching(
        [](traced& on, combination const& in) { on.does(action::direct_call{nlip, target(in)}); });
    std::vector<scene> both{jump, call};
    for (auto& one : both) {
        one.varies.push_back(&combination::mode_unknown);
        one.occurs = [](combination const& in) {
            return !in.pending && (!in.pkt0() || !in.mode_unknown);
        };
    }
    return both;
}

auto taken_branch_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    bool const fills = id == "S50-7d";
    auto taken = branching(
        [](traced& on, combination const& in) { on.does(action::conditional{target(in), true}); });
    taken.varies.push_back(&combination::mode_unknown);
    taken.fills = fills;
    bool const empty = of.scenario.find("TNT empty") != std::string::npos;
    bool const not_empty = of.scenario.find("TNT non-empty") != std::string::npos;
    taken.occurs = [=](combination const& in) {
        return (in.pkt0() ? !in.mode_unknown : !in.pending) && !(fills && in.pending) &&
               !(empty && in.pending) && !(not_empty && !in.pending);
    };
    auto returned = taken;
    returned.does = [](traced& on, combination const& in) {
        on.does(action::near_return{target(in)});
    };
    auto const occurs = taken.occurs;
    returned.occurs = [=](combination const& in) { return occurs(in) && in.pkt0(); };
    returned.remembers_call = true;
    return {taken, returned};
}

auto not_taken_branch_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    bool const fills = id == "S50-8d";
    auto made = branching(
        [](traced& on, combination const&) { on.does(action::conditional{nlip, false}); });
    made.fills = fills;
    made.occurs = [=](combination const& in) {
        return stays(in) && (in.pkt0() || !in.pending) && !(fills && in.pending);
    };
    return {made};
}

auto indirect_branch_scenes(row const&) -> std::vector<scene> {
    std::vector<scene> all{branching([](traced& on, combination const& in) {
                               on.does(action::indirect_jump{target(in)});
                           }),
                           branching([](traced& on, combination const& in) {
                               on.does(action::indirect_call{nlip, target(in)});
                           }),
                           branching([](traced& on, combination const& in) {
                               on.does(action::near_return{target(in)});
                           })};
    for (auto& one : all) {
        one.varies.push_back(&combination::mode_unknown);
        one.occurs = [](combination const& in) {
            return in.pkt0() ? !in.mode_unknown : !in.pending;
        };
    }
    return all;
}

auto far_transfer_scenes(row const&) -> std::vector<scene> {
    return {
        transferring([](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::far_transfer{.at = clip, .to = target(in), .after = code});
        })};
}

auto interrupt_scenes(row const&) -> std::vector<scene> {
    auto made = transferring(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::interrupt{.next = nlip, .to = target(in), .after = code});
        });
    made.from = at(nlip);
    return {made};
}

auto software_interrupt_scenes(row const&) -> std::vector<scene> {
    return {
        transferring([](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::software_interrupt{.at = clip, .to = target(in), .after = code});
        })};
}

auto exception_scenes(row const&) -> std::vector<scene> {
    return {
        transferring([](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::exception{.at = clip, .to = target(in), .after = code});
        })};
}

auto smi_scenes(row const&) -> std::vector<scene> {
    auto made = transferring(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::smi{nlip, target(in), code});
        });
    made.from = at(nlip);
    made.varies = {&combination::c0, &combination::f0, &combination::branch, &combination::os};
    made.occurs = [](combination const& in) { return !in.c1; };
    made.fixed = [](combination& in) { in.c1 = false; };
    return {made};
}

auto rsm_scenes(row const& of) -> std::vector<scene> {
    bool const shuts = of.scenario.find("shutdown") != std::string::npos;
    bool const saved = of.scenario.find("saved TraceEn=1") != std::string::npos;
    auto made = starts(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::rsm{target(in), code});
        });
    made.starts_off = !shuts;
    made.sets = [=](trace_script::start& to, combination const&) {
        to.msrs.in_smm = true;
        to.msrs.smram_trace_en = saved;
    };
    if (!saved && !shuts) {
        made.fixed = [](combination& in) { in.c1 = in.c0 = false; };
    }
    if (shuts) {
        made.varies = {&combination::c0, &combination::f0, &combination::branch, &combination::c1,
                       &combination::f1};
        made.occurs = [](combination const&) { return true; };
    } else {
        made.varies.push_back(&combination::c1);
    }
    return {made};
}

auto vm_exit_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto const exit = [](traced& on, combination const& in, engine::execution_context code,
                         action::ctl_load loads) {
        code.vmx_non_root = false;
        code.cr3 = cr3_new;
        on.does(action::vm_exit{.from = clip, .to = target(in), .after = code, .loads = loads});
    };
    auto made = transferring(
        [=](traced& on, combination const& in, engine::execution_context const& code) {
            exit(on, in, code, {});
        });
    if (id == "S50-16b" || id == "S50-16c") {
        made = starts(
            [=](traced& on, combination const& in, engine::execution_context const& code) {
                exit(on, in, code, {true, on.msrs().ctl.with(ctl::TraceEn{true})});
            });
        made.varies.push_back(&combination::c1);
        made.occurs = [](combination const& in) { return in.guest && !in.vmx && in.f0; };
        made.leaves_guest = true;
    } else if (id == "S50-16f") {
        made.does = [=](traced& on, combination const& in) {
            auto to = in;
            to.c1 = true;
            exit(on, in, running_after(on, to, scene{}), {true, ctl{}});
        };
        made.fixed = [](combination& in) { in.c1 = false; };
        made.levels_as_if_c1 = true;
        made.varies = varying({&combination::os, &combination::conceal});
        made.occurs = is_off;
    } else {
        made.varies = varying({&combination::c1, &combination::os, &combination::mode_changed,
                               &combination::mode_unknown, &combination::conceal});
    }
    made.fixed_more = [](combination& in) { in.guest = true; };
    return {made};
}

auto vm_entry_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto const enter = [](traced& on, combination const& in, engine::execution_context code,
                          action::ctl_load loads) {
        code.vmx_non_root = true;
        code.cr3 = cr3_new;
        on.does(action::vm_entry{.at = clip, .to = target(in), .after = code, .loads = loads});
    };
    auto made = transferring(
        [=](traced& on, combination const& in, engine::execution_context const& code) {
            enter(on, in, code, {});
        });
    if (id == "S50-17c" || id == "S50-17d") {
        made = starts(
            [=](traced& on, combination const& in, engine::execution_context const& code) {
                enter(on, in, code, {true, on.msrs().ctl.with(ctl::TraceEn{true})});
            });
        made.varies.push_back(&combination::c1);
        made.occurs = [](combination const& in) { return !in.guest && in.f0; };
        made.enters_guest = true;
    } else if (id == "S50-17g") {
        made.does = [=](traced& on, combination const& in) {
            auto to = in;
            to.c1 = true;
            enter(on, in, running_after(on, to, scene{}), {true, ctl{}});
        };
        made.fixed = [](combination& in) { in.c1 = false; };
        made.levels_as_if_c1 = true;
        made.varies = varying({&combination::os, &combination::conceal});
        made.occurs = is_off;
    } else {
        made.varies = varying({&combination::c1, &combination::os, &combination::mode_changed,
                               &combination::mode_unknown, &combination::conceal});
        auto const occurs = made.occurs;
        // With OS = 1 a PIP reports the CR3 of a guest that enters the context: GEN-240.
        made.occurs = [=](combination const& in) {
            return occurs(in) && (id != "S50-17f" || in.c0) &&
                   (id != "S50-17j" || (!in.c0 && !in.os));
        };
    }
    made.fixed_more = [](combination& in) { in.vmx = true; };
    made.enters_guest = true;
    return {made};
}
/// A transfer into an enclave or out of it.
auto of_enclave(row const& of, engine::enclave before, engine::enclave after)
    -> std::vector<scene> {
    bool const says_stop = of.optional.count("TraceStop") != 0;
    bool const has_mode = of.optional.count("MODE.Exec") != 0;
    auto made = transferring([=](traced& on, combination const&, engine::execution_context code) {
        code.inside = after;
        on.does(action::enclave_transfer{clip, 0, code});
    });
    made.does = [=](traced& on, combination const& in) {
        auto code = running_after(on, in, scene{});
        code.inside = after;
        on.does(action::enclave_transfer{clip, target(in), code});
    };
    made.sets = [=](trace_script::start& to, combination const&) { to.code.inside = before; };
    auto const occurs = made.occurs;
    made.varies = varying({&combination::c1, &combination::os, &combination::mode_changed,
                           &combination::mode_unknown});
    made.occurs = [=](combination const& in) {
        // A row without a TraceStop packet does not cover TraceStop ranges; GEN-089 does.
        bool const leads = after != engine::enclave::production;
        bool const was = before != engine::enclave::production;
        return occurs(in) && (says_stop || !in.stop) && (leads || !in.c1) && (was || !in.c0) &&
               (!in.mode_changed || has_mode);
    };
    return {made};
}

using scenes_of_row = std::vector<scene> (*)(row const& of);
using engine::enclave;

struct control_flow_row {
    int number;
    scenes_of_row scenes;
};
constexpr control_flow_row control_flow_rows[] = {
    {1, next_instruction_scenes},
    {2, wrmsr_that_enables_scenes},
    {3, wrmsr_that_disables_scenes},
    {5, mov_cr3_scenes},
    {6, direct_branch_scenes},
    {7, taken_branch_scenes},
    {8, not_taken_branch_scenes},
    {9, indirect_branch_scenes},
    {10, far_transfer_scenes},
    {11, interrupt_scenes},
    {12, software_interrupt_scenes},
    {13, exception_scenes},
    {14, smi_scenes},
    {15, rsm_scenes},
    {16, vm_exit_scenes},
    {17, vm_entry_scenes},
    {20, [](row const& of) { return of_enclave(of, enclave::none, enclave::production); }},
    {21, [](row const& of) { return of_enclave(of, enclave::production, enclave::none); }},
    {22, [](row const& of) { return of_enclave(of, enclave::production, enclave::none); }},
    {23, [](row const& of) { return of_enclave(of, enclave::none, enclave::debug); }},
    {24, [](row const& of) { return of_enclave(of, enclave::debug, enclave::none); }},
    {25, [](row const& of) { return of_enclave(of, enclave::debug, enclave::none); }},
};

auto control_flow(row const& of) -> std::vector<scene> {
    auto const number = std::stoi(of.id.substr(4));
    for (auto const& one : control_flow_rows) {
        if (one.number == number) { return one.scenes(of); }
    }
    return {};
}

/// Transactions: rows S50-26 to S50-28, and S10.
auto transaction(row const& of, char what) -> std::vector<scene> {
    bool const none = of.packets.empty() && of.scenario.find("=0") == std::string::npos &&
                      what != 'a';
    auto made = branching([=](traced& on, combination const& in) {
        if (what == 'b') { on.does(action::transaction_begin{clip, nlip}); }
        if (what == 'e') { on.does(action::transaction_end{clip, nlip}); }
        if (what == 'a') { on.does(action::transaction_abort{clip, target(in)}); }
    });
    made.prepares = [=](traced& on, combination const&) {
        // A begin or end without packets is nested in another transaction.
        int const depth = (what == 'b' ? 0 : 1) + (none ? 1 : 0);
        for (int i = 0; i < depth; ++i) { on.does(action::transaction_begin{clip, clip}); }
    };
    made.varies.push_back(&combination::mode_unknown);
    bool const out = of.scenario.find("ContextEn=0 or BranchEn=0") != std::string::npos;
    bool const filtered = of.scenario.find("FilterEn=0") != std::string::npos;
    made.occurs = [=](combination const& in) {
        bool const fine = (what == 'a' ? in.branch : stays(in)) && !in.pending &&
                          (!in.pkt0() || !in.mode_unknown);
        return fine && (!out || !(in.c0 && in.branch)) && (!filtered || (!in.f0 && in.c0));
    };
    return {made};
}

/// INIT, SIPI, MWAIT: rows S50-30 to S50-33.
auto others_of_table(row const& of) -> std::vector<scene> {
    auto const number = std::stoi(of.id.substr(4, 2));
    if (number < 33) {
        auto made = transferring(
            [=](traced& on, combination const& in, engine::execution_context code) {
                code.cr3 = 0;
                if (number == 32) {
                    on.does(action::sipi{target(in), code, 0});
                } else {
                    on.does(action::init{nlip, target(in), code, number == 31});
                }
            });
        made.from = at(nlip);
        made.varies = varying({&combination::c1, &combination::os, &combination::mode_changed,
                               &combination::mode_unknown});
        if (number == 31) {
            made.varies = {&combination::c0, &combination::f0, &combination::branch,
                           &combination::os};
        }
        return {made};
    }
    bool const deep = of.id == "S50-33b";
    auto made = instruction([=](traced& on, combination const&) {
        on.does(action::mwait{
            .at = clip, .next = nlip, .thread = {static_cast<std::uint8_t>(deep ? 3 : 0), 0}});
        on.does(action::wake{3, 3});
    });
    return {made};
}

/// Power events: rows S51.
auto power(row const& of) -> std::vector<scene> {
    auto const id = of.id.substr(4);
    auto const is = [&](std::string_view begin) { return id.substr(0, begin.size()) == begin; };
    auto const waits = [](action::mwait e) {
        e.at = clip;
        e.next = nlip;
        return powered([=](traced& on, combination const&) { on.does(e); });
    };
    auto const halts = [](std::uint64_t from) {
        auto made = powered(
            [=](traced& on, combination const&) { on.does(action::halt{from, nlip}); });
        made.from = at(from);
        return made;
    };
    auto const wakes = [](action::wake_reason why) {
        auto made = powered(
            [=](traced& on, combination const&) { on.does(action::wake{6, 6, why}); });
        made.prepares = [](traced& on, combination const&) {
            on.does(action::mwait{.at = clip, .next = clip, .thread = {6, 0}});
        };
        return made;
    };
    if (is("16.10") || is("16.11") || is("16.15") || is("16.9")) { return {halts(clip)}; }
    if (is("16.12") || is("16.13")) { return {halts(nlip)}; }
    if (is("16.14")) {
        auto made = powered([](traced& on, combination const&) {
            on.does(action::duty_cycle{nlip});
            on.does(action::wake{6, 6, action::wake_reason::hardware});
        });
        made.from = at(nlip);
        return {made};
    }
    if (is("16.16")) {
        auto made = powered([](traced& on, combination const&) {
            on.does(action::clock_stop{nlip}).does(action::clock_resume{});
        });
        made.from = at(nlip);
        return {made};
    }
    if (is("16.17")) {
        auto made = wakes({});
        // The clock was off and stays off; only the wake reports a change.
        made.does = [](traced& on, combination const&) { on.does(action::clock_stop{nlip}); };
        return {made};
    }
    if (is("16.18b") || is("16.19") || is("16.22")) { return {wakes(action::wake_reason::other)}; }
    if (is("16.18")) { return {wakes(action::wake_reason::interrupt)}; }
    if (is("16.20")) { return {wakes(action::wake_reason::store)}; }
    if (is("16.1") || is("16.3")) { return {waits({})}; }
    if (is("16.2")) {
        auto made = transferring(
            [](traced& on, combination const& in, engine::execution_context code) {
                code.vmx_non_root = false;
                code.cr3 = cr3_new;
                on.does(action::vm_exit{.from = clip, .to = target(in), .after = code});
            });
        made.fixed = [](combination& in) { in.guest = true; };
        made.varies = varying({&combination::c1, &combination::os, &combination::conceal});
        return {made};
    }
    if (is("16.4")) { return {waits({.hints = 0x20, .thread = {3, 0}})}; }
    if (is("16.5")) {
        return {powered([](traced& on, combination const&) {
            on.does(action::mwait{.at = clip, .next = nlip, .thread = {3, 0}, .is_pending = true});
            on.does(action::wake{3, 3});
        })};
    }
    if (is("16.6")) { return {waits({.hints = 5, .thread = {1, 0}})}; }
    return {};
}

/// PTWRITE: rows S52.
auto values(row const& of) -> std::vector<scene> {
    if (of.id == "S52-16.25a") {
        return {transferring(
            [](traced& on, combination const& in, engine::execution_context const& code) {
                on.does(action::exception{.at = clip, .to = target(in), .after = code});
            })};
    }
    bool const wide = of.id == "S52-16.24e";
    return {instruction([=](traced& on, combination const&) {
        on.does(action::ptwrite{clip, nlip, 0x1234, wide});
    })};
}

// Event Trace: rows SEV.

auto same_mode(scene made) -> scene {
    made.varies = {&combination::os};
    return made;
}
auto traced_transfer(
    std::function<void(traced&, combination const&, engine::execution_context const&)> does)
    -> scene {
    return event_traced(transferring(std::move(does)));
}

auto event_pf_scenes(row const&) -> std::vector<scene> {
    return {traced_transfer(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::exception{
                .at = clip, .to = target(in), .after = code, .vector = 0x0E, .cr2 = 0xBEEF});
        })};
}

auto event_intr_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto made = traced_transfer([](traced& on, combination const& in,
                                   engine::execution_context const& code) {
        on.does(action::interrupt{.next = nlip, .to = target(in), .after = code, .vector = 0x20});
    });
    made.from = at(nlip);
    if (id == "SEV-intr-be0") {
        made.varies = {&combination::branch, &combination::f0, &combination::f1, &combination::os};
        // The target is not traced either.
        made.occurs = [](combination const& in) { return !in.pkt1(); };
    }
    return {made};
}

auto event_iret_scenes(row const&) -> std::vector<scene> {
    return {traced_transfer(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::far_transfer{
                .at = clip, .to = target(in), .after = code, .kind = action::far_kind::iret});
        })};
}

auto event_smi_scenes(row const&) -> std::vector<scene> {
    auto made = same_mode(traced_transfer(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::smi{clip, target(in), code});
        }));
    return {made};
}

auto event_rsm_scenes(row const&) -> std::vector<scene> {
    auto made = starts(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::rsm{target(in), code});
        });
    made = event_traced(made);
    auto const before = made.sets;
    made.sets = [=](trace_script::start& to, combination const& in) {
        before(to, in);
        to.msrs.in_smm = true;
        to.msrs.smram_trace_en = true;
    };
    made.varies = {&combination::os, &combination::counted};
    made.drops = {"PSB", "TSC", "TMA", "CBR", "PIP", "PSBEND", "MODE.Exec"};
    return {made};
}

auto event_init_scenes(row const&) -> std::vector<scene> {
    auto made = same_mode(traced_transfer(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::init{nlip, target(in), code, false});
        }));
    made.from = at(nlip);
    made.varies = {&combination::os, &combination::f1};
    made.drops = {"PIP"};
    return {made};
}

auto event_sipi_scenes(row const&) -> std::vector<scene> {
    auto made = same_mode(traced_transfer(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::sipi{target(in), code, 0x9A});
        }));
    made.varies = {&combination::os, &combination::f0, &combination::f1};
    made.occurs = [](combination const& in) { return in.f0 || in.f1; };
    return {made};
}

auto event_vmexit_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    bool const vectored = id == "SEV-vmexit-i";
    auto made = traced_transfer(
        [=](traced& on, combination const& in, engine::execution_context code) {
            code.vmx_non_root = false;
            code.cr3 = cr3_new;
            on.does(action::vm_exit{.from = clip,
                                    .to = target(in),
                                    .after = code,
                                    .qualification = 0x11,
                                    .reason = 0x22,
                                    .is_vectored = vectored,
                                    .vector = 0x33});
        });
    made.fixed = [](combination& in) { in.guest = true; };
    made.varies = {&combination::mode_changed, &combination::conceal};
    return {made};
}

auto event_vmentry_scenes(row const&) -> std::vector<scene> {
    auto made = traced_transfer(
        [](traced& on, combination const& in, engine::execution_context code) {
            code.vmx_non_root = true;
            code.cr3 = cr3_new;
            on.does(action::vm_entry{.at = clip, .to = target(in), .after = code});
        });
    made.fixed = [](combination& in) { in.vmx = true; };
    made.varies = {&combination::mode_changed, &combination::conceal};
    made.enters_guest = true;
    return {made};
}

auto event_if_scenes(row const&) -> std::vector<scene> {
    auto made = same_mode(
        traced_transfer([](traced& on, combination const&, engine::execution_context const&) {
            on.does(action::interrupt_flag{nlip, true});
        }));
    made.from = at(nlip);
    return {made};
}

auto event_uintr_scenes(row const&) -> std::vector<scene> {
    auto made = same_mode(
        traced_transfer([](traced& on, combination const& in, engine::execution_context const&) {
            on.does(action::user_interrupt{nlip, target(in), 5});
        }));
    made.from = at(nlip);
    return {made};
}

auto event_uiret_scenes(row const&) -> std::vector<scene> {
    return {same_mode(traced_transfer(
        [](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::far_transfer{
                .at = clip, .to = target(in), .after = code, .kind = action::far_kind::uiret});
        }))};
}

struct named_row {
    std::string_view id;
    scenes_of_row scenes;
};
auto scenes_in(std::initializer_list<named_row> rows, row const& of) -> std::vector<scene> {
    for (auto const& one : rows) {
        if (of.id == one.id) { return one.scenes(of); }
    }
    return {};
}

auto events(row const& of) -> std::vector<scene> {
    return scenes_in(
        {
            {"SEV-pf", event_pf_scenes},
            {"SEV-intr", event_intr_scenes},
            {"SEV-intr-be0", event_intr_scenes},
            {"SEV-iret", event_iret_scenes},
            {"SEV-smi", event_smi_scenes},
            {"SEV-rsm", event_rsm_scenes},
            {"SEV-init", event_init_scenes},
            {"SEV-sipi", event_sipi_scenes},
            {"SEV-vmexit", event_vmexit_scenes},
            {"SEV-vmexit-i", event_vmexit_scenes},
            {"SEV-vmentry", event_vmentry_scenes},
            {"SEV-if", event_if_scenes},
            {"SEV-uintr", event_uintr_scenes},
            {"SEV-uiret", event_uiret_scenes},
        },
        of);
}

/// VMX operations outside the control-flow table: rows S47 to S49 and SVM.
auto virtual_machines(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto const leaves = [](action::vm_exit e) {
        auto made = transferring(
            [=](traced& on, combination const& in, engine::execution_context code) {
                auto exit = e;
                code.vmx_non_root = false;
                code.cr3 = cr3_new;
                exit.from = clip;
                exit.to = target(in);
                exit.after = code;
                on.does(exit);
            });
        made.fixed = [](combination& in) { in.guest = true; };
        made.varies = {&combination::mode_changed, &combination::conceal, &combination::os};
        return made;
    };
    auto const enters = [](action::vm_entry e) {
        auto made = transferring(
            [=](traced& on, combination const& in, engine::execution_context code) {
                auto entry = e;
                code.vmx_non_root = true;
                code.cr3 = cr3_new;
                entry.at = clip;
                entry.to = target(in);
                entry.after = code;
                on.does(entry);
            });
        made.fixed = [](combination& in) { in.vmx = true; };
        made.varies = {&combination::mode_changed, &combination::conceal, &combination::os};
        made.enters_guest = true;
        return made;
    };
    auto const fails = [](bool late, bool conceals) {
        auto made = transferring(
            [=](traced& on, combination const&, engine::execution_context code) {
                code.cr3 = cr3_new;
                on.does(action::vm_entry_failure{late ? 0x1100 : nlip, code, late});
            });
        made.from = at(nlip);
        made.fixed = [=](combination& in) {
            in.vmx = true;
            in.conceal = conceals;
        };
        made.varies = {};
        return made;
    };
    if (id == "S47-exit") { return {leaves({})}; }
    if (id == "S47-entry") { return {enters({})}; }
    if (id == "S48-exit") {
        auto made = control_flow(row_of("S50-16c"))[0];
        made.only_tail = true;
        auto const occurs = made.occurs;
        made.occurs = [=](combination const& in) { return occurs(in) && in.pkt1(); };
        return {made};
    }
    if (id == "S48-entry") {
        auto made = control_flow(row_of("S50-17g"))[0];
        auto const occurs = made.occurs;
        made.occurs = [=](combination const& in) { return occurs(in) && in.pkt0(); };
        return {made};
    }
    if (id == "S49-sys-early" || id == "S49-vmm-early") { return {fails(false, false)}; }
    if (id == "S49-sys-late") { return {fails(true, false)}; }
    if (id == "S49-vmm-late") { return {fails(true, true)}; }
    if (id == "S49-vm-early" || id == "S49-vm-late") {
        auto made = fails(id == "S49-vm-late", false);
        made.starts_off = true;  // only the guest is traced: TraceEn is 0 in the host
        return {made};
    }
    if (id == "SVM-ptrld") {
        auto made = branching(
            [](traced& on, combination const&) { on.does(action::vmptrld{nlip, 0x9000}); });
        made.fixed = [](combination& in) { in.vmx = true; };
        made.varies = {&combination::c0, &combination::f0, &combination::branch};
        return {made};
    }
    if (id == "SVM-ptrld-fail" || id == "SVM-abort") {
        // No VMCS becomes current, and execution continues.
        auto made = branching(
            [](traced& on, combination const&) { on.does(action::sequential{nlip}); });
        made.occurs = stays;
        made.varies = {&combination::c0};
        return {made};
    }
    if (id == "SVM-smmexit") { return {leaves({.to_stm = true, .vmcs = 0x9000})}; }
    if (id == "SVM-smmret") { return {enters({.from_stm = true, .vmcs = 0x9000})}; }
    return {};
}

// Rows outside the other groups.

auto with_flags(scene made, std::vector<flag> varies = {}) -> scene {
    made.varies = std::move(varies);
    return made;
}

auto s02_enter_scenes(row const&) -> std::vector<scene> {
    auto made = branching(
        [](traced& on, combination const&) { on.does(action::direct_jump{0x1000}); });
    made.fixed = [](combination& in) { in.f0 = false; };
    return {with_flags(made)};
}

auto s02_inside_scenes(row const&) -> std::vector<scene> {
    auto made = branching([](traced& on, combination const&) {
        on.does(action::conditional{nlip, false}).does(action::direct_jump{0x2000});
    });
    made.fixed = [](combination& in) { in.f1 = false; };
    return {with_flags(made)};
}

auto s02_outside_scenes(row const&) -> std::vector<scene> {
    auto made = branching([](traced& on, combination const&) {
        on.does(action::sequential{0x2000}).does(action::conditional{0x3000, true});
    });
    made.fixed = [](combination& in) { in.f0 = in.f1 = false; };
    return {with_flags(made)};
}

auto s19_plain_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto made = branching([](traced& on, combination const&) {
        on.does(action::conditional{0x1302, false}).does(action::indirect_jump{0x1308});
        on.does(action::conditional{0x130A, false}).does(action::conditional{0x1310, true});
        on.does(action::conditional{0x1312, false}).does(action::indirect_jump{0x1100});
        on.does(action::conditional{0x110C, false});
        on.does(action::interrupt{.next = 0x110C, .to = 0xCC00, .after = on.state().code});
    });
    bool const defers = id == "S19-deferred";
    made.sets = [=](trace_script::start& to, combination const&) {
        to.how.defers_tips = defers;
        to.msrs.ctl = to.msrs.ctl.with(ctl::ADDR0_CFG{reg::addr_cfg::off});
    };
    return {with_flags(made)};
}

auto s10_begin_scenes(row const& of) -> std::vector<scene> {
    return {with_flags(transaction(of, 'b')[0])};
}

auto s10_commit_scenes(row const& of) -> std::vector<scene> {
    return {with_flags(transaction(of, 'e')[0])};
}

auto s10_abort_scenes(row const& of) -> std::vector<scene> {
    return {with_flags(transaction(of, 'a')[0])};
}

auto s10_other_scenes(row const& of) -> std::vector<scene> {
    return {with_flags(transaction(of, 'b')[0]), with_flags(transaction(of, 'e')[0])};
}

auto s15_transfer_scenes(row const&) -> std::vector<scene> {
    auto event = control_flow(row_of("S50-11e"))[0];
    auto instruction = control_flow(row_of("S50-10e"))[0];
    event.is_asynchronous = true;
    for (auto* one : {&event, &instruction}) {
        one->varies = {&combination::cr3_changed, &combination::mode_changed, &combination::f1};
        // MODE.Exec belongs to the state after: GEN-237.
        one->occurs = [](combination const& in) { return in.f1 || !in.mode_changed; };
    }
    return {event, instruction};
}

auto s15_tsx_scenes(row const&) -> std::vector<scene> {
    auto begins = with_flags(transaction(row_of("S50-26e"), 'b')[0], {&combination::f0});
    auto ends = with_flags(transaction(row_of("S50-27e"), 'e')[0], {&combination::f0});
    auto aborts = with_flags(transaction(row_of("S50-28d"), 'a')[0], {&combination::f1});
    for (auto* one : {&begins, &ends}) {
        one->fixed = [](combination& in) { in.f1 = in.f0; };
        one->occurs = [](combination const& in) { return in.f0 == in.f1; };
    }
    aborts.is_abort = true;
    return {begins, ends, aborts};
}

auto s15_ovf_scenes(row const& of) -> std::vector<scene> {
    auto const& id = of.id;
    auto made = branching([=](traced& on, combination const& in) {
        on.does(action::overflow{});
        if (in.pending) { on.does(action::psb_due{}); }
        on.does(action::overflow_end{0x1100});
        if (!in.pkt0() && id == "S15-ovf") { on.does(action::direct_jump{0x1100}); }
    });
    made.fixed = [](combination& in) { in.mode_unknown = false; };
    made.drops = {"MODE.Exec"};
    made.varies = {&combination::f0};
    made.occurs = [](combination const& in) { return in.f0 || in.f1; };
    if (id == "S15-ovf") {
        made.varies.push_back(&combination::pending);
        made.sets = [](trace_script::start& to, combination const&) {
            to.how.psb_before_ovf_fup = true;
        };
    }
    if (id == "SOVF-be0") { made.varies.push_back(&combination::branch); }
    made.keeps_tnt_empty = true;
    return {made};
}

auto smpx_br_scenes(row const&) -> std::vector<scene> {
    return {with_flags(
        transferring([](traced& on, combination const& in, engine::execution_context const& code) {
            on.does(action::exception{.at = clip, .to = target(in), .after = code, .vector = 5});
        }))};
}

auto ssenter_scenes(row const&) -> std::vector<scene> {
    auto made = branching(
        [](traced& on, combination const&) { on.does(action::measured_launch{}); });
    made.fixed = [](combination& in) { in.f1 = false; };
    return {with_flags(made)};
}

auto sacm_scenes(row const&) -> std::vector<scene> {
    auto made = branching([](traced& on, combination const&) {
        on.does(action::acm_begin{}).does(action::indirect_jump{0x1200});
        on.does(action::acm_end{nlip});
    });
    return {with_flags(made, {&combination::tsc})};
}

auto spsb_scenes(row const&) -> std::vector<scene> {
    auto made = branching([](traced& on, combination const&) { on.does(action::psb_due{}); });
    made.varies = {&combination::c0,  &combination::f0,  &combination::branch, &combination::tsc,
                   &combination::mtc, &combination::tsx, &combination::vmx,    &combination::guest};
    made.occurs = [](combination const& in) { return !(in.vmx && in.guest); };
    return {made};
}

auto spebs_scenes(row const&) -> std::vector<scene> {
    static constexpr action::pebs_item items[] = {{0, 1}, {1, 2}};
    static constexpr action::pebs_group group{1, false, items, 2};
    return {with_flags(branching(
        [](traced& on, combination const&) { on.does(action::pebs_record{clip, &group, 1}); }))};
}

auto singles(row const& of) -> std::vector<scene> {
    return scenes_in(
        {
            {"S02-enter", s02_enter_scenes},
            {"S02-inside", s02_inside_scenes},
            {"S02-outside", s02_outside_scenes},
            {"S19-plain", s19_plain_scenes},
            {"S19-deferred", s19_plain_scenes},
            {"S10-begin", s10_begin_scenes},
            {"S10-commit", s10_commit_scenes},
            {"S10-abort", s10_abort_scenes},
            {"S10-other", s10_other_scenes},
            {"S15-transfer", s15_transfer_scenes},
            {"S15-tsx", s15_tsx_scenes},
            {"S15-ovf", s15_ovf_scenes},
            {"SOVF-1", s15_ovf_scenes},
            {"SOVF-0", s15_ovf_scenes},
            {"SOVF-be0", s15_ovf_scenes},
            {"SMPX-br", smpx_br_scenes},
            {"SSENTER", ssenter_scenes},
            {"SACM", sacm_scenes},
            {"SPSB-1", spsb_scenes},
            {"SPSB-f0", spsb_scenes},
            {"SPSB-c0", spsb_scenes},
            {"SPEBS", spebs_scenes},
        },
        of);
}

/// True for effects of the output engine, which no packet reports: tests/engine/trace_unit.cpp.
auto is_of_output(row const& of) -> bool { return of.id == "STOPA-stop" || of.id == "SERR"; }

auto scenes_of(row const& of) -> std::vector<scene> {
    auto const is = [&](std::string_view begin) { return of.id.substr(0, begin.size()) == begin; };
    if (is("S50-26")) { return transaction(of, 'b'); }
    if (is("S50-27")) { return transaction(of, 'e'); }
    if (is("S50-28")) { return transaction(of, 'a'); }
    if (is("S50-3") && !is("S50-3a") && !is("S50-3b")) { return others_of_table(of); }
    if (is("S50-")) { return control_flow(of); }
    if (is("S51-")) { return power(of); }
    if (is("S52-")) { return values(of); }
    if (is("SEV-")) { return events(of); }
    if (is("S47") || is("S48") || is("S49") || is("SVM")) { return virtual_machines(of); }
    return singles(of);
}

// ------------------------------------------------------------------------------------ runs

/// The packets of the operation in a combination.
auto packets_in(combination const& in, scene const& s) -> std::vector<std::string> {
    auto of_levels = in;
    if (s.levels_as_if_c1) { of_levels.c1 = true; }
    auto made = running_before(of_levels, s);
    s.sets(made, in);
    traced on{made};
    if (in.mode_unknown) { on.does(action::psb_due{}); }
    s.prepares(on, in);
    if (s.remembers_call) {
        on.does(action::direct_call{target(in), 0x1500}).does(action::sequential{clip});
    }
    if (!s.keeps_tnt_empty) {
        for (char const bit : held(in, s)) { on.does(action::conditional{clip, bit == '1'}); }
    }
    auto const before = on.bytes.size();
    s.does(on, in);
    auto const after = test::packets_in(on.bytes.written().from(before),
                                        on.state().ctl<reg::ia32_rtit_ctl::EventEn>());
    std::string const all{after.characters, after.length};
    std::vector<std::string> packets;
    for (auto const& one : split(all, ',')) {
        if (all != "none" && s.drops.count(parts_of(one).name) == 0) { packets.push_back(one); }
    }
    return packets;
}

auto described(combination const& in, std::vector<std::string> const& packets) -> std::string {
    std::string text;
    for (auto const& one : packets) { text += (text.empty() ? "" : ", ") + one; }
    auto const add = [&](char const* name, bool is) { text += is ? std::string{" "} + name : ""; };
    text += " |";
    add("c0", in.c0), add("c1", in.c1), add("f0", in.f0), add("f1", in.f1), add("stop", in.stop);
    add("os", in.os), add("branch", in.branch), add("tsc", in.tsc), add("mtc", in.mtc);
    add("tsx", in.tsx), add("vmx", in.vmx), add("guest", in.guest), add("conceal", in.conceal);
    add("mode_changed", in.mode_changed), add("mode_unknown", in.mode_unknown);
    add("cr3_changed", in.cr3_changed), add("pending", in.pending), add("counted", in.counted);
    return text;
}

/// The number of combinations in which a row applies, and of those in which the packets match it.
struct score {
    std::size_t combinations = 0;
    std::size_t fitting = 0;
};
auto scored(row const& of, scene const& s, bool told = true) -> score {
    score done;
    for (std::size_t bits = 0; bits < std::size_t{1} << s.varies.size(); ++bits) {
        combination in;
        for (std::size_t i = 0; i < s.varies.size(); ++i) {
            in.*s.varies[i] = (bits >> i & 1) != 0;
        }
        if (s.by_cr3 && !s.starts_off &&
            std::find(s.varies.begin(), s.varies.end(), &combination::c1) == s.varies.end()) {
            in.c1 = in.c0;
        }
        in.off = s.starts_off;
        s.fixed(in);
        s.fixed_more(in);
        if ((in.stop && in.f1) || !s.occurs(in) || !applies(of, in)) { continue; }
        auto const packets = packets_in(in, s);
        auto seen = in;
        if (s.leaves_guest) { seen.guest = false, seen.vmx = true; }
        if (s.enters_guest) { seen.guest = true, seen.vmx = false; }
        bool const fits = fit(packets, of, seen, s);
        ++done.combinations;
        done.fitting += fits ? 1 : 0;
        if (told && !fits) {
            CAPTURE(of.id);
            CAPTURE(described(in, packets));
            CHECK(fits);
        }
    }
    return done;
}

}  // namespace

TEST_CASE("every scenario row matches in every combination of its conditions") {
    std::size_t rows = 0;
    std::size_t impossible = 0;
    std::size_t of_output = 0;
    std::size_t unconfirmed = 0;
    std::size_t combinations = 0;
    for (auto const& of : all_rows()) {
        CAPTURE(of.id);
        if (of.cannot_happen) {
            ++impossible;
            continue;
        }
        if (is_of_output(of)) {
            ++of_output;
            continue;
        }
        for (auto const& [name, condition] : of.optional) {
            unconfirmed += condition == "unconfirmed" ? 1 : 0;
        }
        std::size_t count = 0;
        auto const scenes = scenes_of(of);
        CHECK(!scenes.empty());
        for (auto const& s : scenes) {
            auto const done = scored(of, s);
            count += done.combinations;
            CHECK(done.fitting == done.combinations);
        }
        CHECK(count != 0);
        combinations += count;
        ++rows;
    }
    MESSAGE(rows << " rows in " << combinations << " combinations; " << impossible
                 << " cannot happen, " << of_output << " concern the output engine; " << unconfirmed
                 << " unconfirmed packets");
    CHECK(rows + impossible + of_output == test::read_csv("tests/spec/scenarios.csv").rows.size());
}

TEST_CASE("a row with an extra packet or another first packet matches in no combination") {
    for (auto of : all_rows()) {
        if (of.cannot_happen || is_of_output(of)) { continue; }
        CAPTURE(of.id);
        auto const scenes = scenes_of(of);
        of.packets.emplace_back("MNT");
        for (auto const& s : scenes) { CHECK(scored(of, s, false).fitting == 0); }
        of.packets.pop_back();
        if (of.packets.empty()) { continue; }
        of.packets.front() = "MNT";
        for (auto const& s : scenes) { CHECK(scored(of, s, false).fitting == 0); }
    }
}

TEST_CASE("text outside the notation is rejected") {
    auto const is_read = [](std::string const& conditions, std::string const& packets) {
        try {
            auto const of = read_row({"here",
                                      {{"id", "X"},
                                       {"scenario", ""},
                                       {"preconditions", conditions},
                                       {"packets_in_order", packets}}});
            auto const some = branching([](traced&, combination const&) {});
            (void)fit({"CBR"}, of, {}, some);
            return true;
        } catch (std::runtime_error const&) { return false; }
    };
    CHECK(is_read("pkt0=1; opt:TSC=TSCEn&MTCEn", "TSC? ; CBR"));
    CHECK(!is_read("pkt2=1", "CBR"));
    CHECK(!is_read("pkt0", "CBR"));
    CHECK(!is_read("opt:TSC=Nothing", "TSC? ; CBR"));
    CHECK(!is_read("", "@S50-99"));
}

}  // namespace ptspec::test::scenarios
