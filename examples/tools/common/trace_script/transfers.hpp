// SPDX-License-Identifier: BSL-1.0
#pragma once

// Interrupts, exceptions, far transfers, and transitions between machine modes.

#include "event_run.hpp"

namespace trace_script {

/// INT v, optionally through a task gate, whose packets come at given cycles.
template <class Processor>
constexpr auto software_interrupt(event_run<Processor>& run, std::uint64_t here) -> string_view {
    auto& e = run.text;
    auto words = e.rest;
    auto const number_of_it = number_in(take_word(words));
    if (!number_of_it || *number_of_it > 0xFF) { return "INT and a vector"; }
    auto code = run.after(0);
    if (!words.empty()) {
        if (take_word(words) != "task_gate") { return "task_gate"; }
        std::uint64_t last = run.code.cycle;
        while (!words.empty()) {
            auto const word = take_word(words);
            auto const sign = word.find('@');
            auto const name = word.substr(0, sign);
            auto const cycle = sign == string_view::npos ? maybe_number{}
                                                         : number_in(word.substr(sign + 1), 10);
            if (!cycle || *cycle < last) { return "PACKET@cycle, in their order"; }
            action::moment now{.before = packet::kind::tip, .cycles = *cycle - last};
            if (name == "PIP") {
                now.before = packet::kind::pip;
                code.cr3 += 0x1000;
            } else if (name == "MODE.Exec" || name == "TIP") {
                if (name == "MODE.Exec") {
                    now.before = packet::kind::mode_exec;
                    code.width = code.width == engine::code_width::bits_16
                                     ? engine::code_width::bits_32
                                     : engine::code_width::bits_16;
                }
            } else {
                return "PIP, MODE.Exec or TIP before @";
            }
            last = *cycle;
            if (!run.moments.add(now)) { return "at most 32 packets"; }
        }
        run.code.cycle = last;
        run.takes = run.moments.view();
    }
    (void)run.next();
    run.execute(action::software_interrupt{here, run.target(kernel), code,
                                           static_cast<std::uint8_t>(*number_of_it)});
    return valid;
}

template <class Processor>
constexpr auto far_away(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto const here = run.at();
    auto const next_ip = run.next();
    auto const kind = e.kind;
    if (kind == "interrupt" || kind == "NMI") {
        run.execute(action::interrupt{next_ip, run.target(kernel), run.after(0),
                                      run.vector(kind == "NMI" ? 2 : 0x20)});
    } else if (kind == "fault") {
        std::uint64_t const usual = e.rest == "#PF" ? 0x0E : e.rest == "#BR" ? 5 : 0x0D;
        run.execute(action::exception{here, run.target(kernel), run.after(0), run.vector(usual),
                                      run.number("cr2", 0)});
    } else if (kind == "INT") {
        return software_interrupt(run, here);
    } else if (kind == "SYSCALL" || kind == "SYSRET" || kind == "IRET" || kind == "ERETU" ||
               kind == "ERETS") {
        bool const to_user = kind == "SYSRET" || kind == "ERETU";
        auto const cpl = kind == "SYSCALL" ? std::uint64_t{0}
                         : to_user         ? std::uint64_t{3}
                                           : std::uint64_t{run.state().code.cpl};
        auto const what = kind == "SYSCALL"  ? action::far_kind::syscall
                          : kind == "IRET"   ? action::far_kind::iret
                          : kind == "SYSRET" ? action::far_kind::sysret
                                             : action::far_kind::eret;
        run.execute(action::far_transfer{here, run.target(kernel), run.after(cpl), what});
    } else if (kind == "INIT") {
        if (e.rest != "BSP" && e.rest != "AP") { return "INIT BSP or INIT AP"; }
        auto code = run.after(0);
        code.cr3 = 0;
        code.real_mode = true;
        run.execute(action::init{next_ip, run.target(0xFFFF'FFF0), code, e.rest == "AP"});
    } else {
        run.execute(action::sipi{run.target(0), run.after(0), run.vector(0)});
    }
    return valid;
}

template <class Processor>
constexpr auto transition(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto const here = run.at();
    auto const kind = e.kind;
    if (kind == "VM") {
        auto code = run.after(0);
        if (run.value("VMX").empty()) { code.vmx_non_root = e.rest == "entry"; }
        // The transition may load IA32_RTIT_CTL.
        auto const enable = run.number("TraceEn", 2, 1);
        action::ctl_load const loads{enable < 2, run.ctl_with(enable == 1)};
        if (e.rest == "exit") {
            run.execute(action::vm_exit{
                .from = here, .to = run.target(kernel), .after = code, .loads = loads});
        } else if (e.rest == "entry") {
            run.execute(action::vm_entry{
                .at = here, .to = run.target(kernel), .after = code, .loads = loads});
        } else {
            return "VM exit or VM entry";
        }
    } else if (kind == "VMPTRLD") {
        auto const value = number_in(e.rest);
        if (!value) { return "the address of a VMCS"; }
        run.execute(action::vmptrld{run.next(), *value});
    } else if (kind == "EENTER" || kind == "ERESUME" || kind == "EEXIT" || kind == "AEX") {
        auto code = run.after(run.state().code.cpl);
        bool const enters = kind == "EENTER" || kind == "ERESUME";
        if (enters && e.rest != "production" && e.rest != "debug") { return "production or debug"; }
        code.inside = !enters                  ? engine::enclave::none
                      : e.rest == "production" ? engine::enclave::production
                                               : engine::enclave::debug;
        run.execute(action::enclave_transfer{here, run.target(here + 0x1000), code});
    } else if (kind == "SMI") {
        run.execute(action::smi{run.next(), 0x8000, run.after(0)});
    } else {
        auto const saved = run.value("TraceEn");
        bool const is_saved = run.on.unit().msrs().smram_trace_en;
        if (!saved.empty() && saved != (is_saved ? "1" : "0")) {
            return "the TraceEn that the last SMI saved";
        }
        run.execute(action::rsm{run.target(run.ip()), run.after(3)});
    }
    return valid;
}

}  // namespace trace_script
