// SPDX-License-Identifier: BSL-1.0
#pragma once

// Power states, the clocks, and what the trace unit does by itself.

#include "event_run.hpp"

namespace trace_script {

template <class Processor>
constexpr auto power(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto const here = run.at();
    auto const next_ip = run.next(3);
    if (e.kind == "clock") {
        if (e.rest == "stop") {
            run.execute(action::clock_stop{next_ip});
        } else if (e.rest == "resume") {
            run.execute(action::clock_resume{});
        } else {
            return "clock stop or clock resume";
        }
    } else if (e.kind == "HLT") {
        run.code.core = run.c_state("core", 1);
        run.execute(action::halt{here, next_ip});
    } else if (e.kind == "MWAIT") {
        auto words = e.rest;
        auto const hints = words.empty() ? maybe_number{true, 0} : number_in(take_item(words, ','));
        auto const ext = words.empty() ? maybe_number{true, 0} : number_in(trimmed(words));
        if (!hints || !ext || *hints > 0xFF || *ext > 3) { return "MWAIT hints,ext"; }
        auto const thread = run.c_state("thread", 1);
        run.code.core = run.c_state("core", thread);
        run.execute(action::mwait{.at = here,
                                  .next = next_ip,
                                  .hints = static_cast<std::uint8_t>(*hints),
                                  .ext = static_cast<std::uint8_t>(*ext),
                                  .thread = {thread, 0}});
    } else {
        bool const by_interrupt = e.rest == "interrupt";
        if (!by_interrupt && e.rest != "store") { return "wake interrupt or wake store"; }
        run.execute(action::wake{run.code.core, run.code.core,
                                 by_interrupt ? action::wake_reason::interrupt
                                              : action::wake_reason::store});
        if (by_interrupt) {
            run.execute(action::interrupt{run.number("next", run.ip()), run.target(kernel),
                                          run.after(0), 0x20});
        }
    }
    return valid;
}

template <class Processor>
constexpr auto cycles_pass(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto words = e.rest;
    auto const passed = number_in(take_word(words), 10);
    if (!passed || !words.empty()) { return "cycles and a decimal number"; }
    run.execute(action::cycles{*passed});
    return valid;
}

template <class Processor>
constexpr auto clockwork(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto const clocks = run.state().clocks;
    if (e.kind == "psb" && e.rest == "due") {
        run.execute(action::psb_due{});
        return valid;
    }
    if (e.kind == "cycles") { return cycles_pass(run); }
    if (e.kind == "callstack") {
        if (e.rest != "lost") { return "callstack lost"; }
        run.execute(action::return_stack_lost{});
        return valid;
    }
    if (e.kind == "clocks" && e.rest.empty()) {
        auto now = clocks;
        now.art = run.number("ART", now.art);
        now.tsc = run.number("TSC", now.tsc);
        now.tsc_at_edge = run.number("edge", now.tsc);
        now.core_to_bus = static_cast<std::uint8_t>(run.number("ratio", now.core_to_bus, 0xFF));
        run.on.set_clocks(now);
    } else if (e.kind == "ratio") {
        auto const value = number_in(e.rest);
        if (!value || *value > 0xFF) { return "ratio and two hexadecimal digits"; }
        run.execute(action::ratio{static_cast<std::uint8_t>(*value)});
    } else if (e.kind == "wrap" && e.rest == "guard") {
        run.execute(action::cycle_guard{});
    } else if (e.kind == "overflow" && e.rest.empty()) {
        run.execute(action::sequential{run.at()});
        run.execute(action::overflow{});
    } else if (e.kind == "resolved" && e.rest.empty()) {
        run.execute(action::overflow_end{run.at()});
    } else if (e.kind == "ART" && e.rest.empty() && e.has_target) {
        run.execute(action::elapsed{0, run.target(clocks.art), clocks.tsc});
    } else if (e.kind == "mtc") {
        auto const value = number_in(e.rest);
        if (!value || *value > 0xFF) { return "mtc and two hexadecimal digits"; }
        reg::ia32_rtit_ctl const ctl = run.on.unit().msrs().ctl;
        auto const freq = static_cast<unsigned>(ctl.get<reg::ia32_rtit_ctl::MTCFreq>());
        // Set the crystal counter to one tick before the value that the packet reports.
        std::uint64_t const high = (clocks.art >> freq | 0xFF) + 1;
        std::uint64_t const art = (high | *value) << freq;
        run.on.set_clocks({art - 1, clocks.tsc, 0, clocks.core_to_bus, clocks.are_off});
        run.execute(action::elapsed{0, art, clocks.tsc});
    } else {
        return "an event of tests/spec/notation.md, section 3";
    }
    return valid;
}

}  // namespace trace_script
