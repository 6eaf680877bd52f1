// SPDX-License-Identifier: BSL-1.0
#pragma once

// Instructions that write registers or values, and transactions.

#include "event_run.hpp"

namespace trace_script {

/// WRMSR to IA32_RTIT_CTL that changes TraceEn, or to IA32_RTIT_STATUS.
template <class Processor>
constexpr auto wrmsr(event_run<Processor>& run, std::uint64_t here, std::uint64_t next_ip)
    -> string_view {
    using ctl = reg::ia32_rtit_ctl;
    using status = reg::ia32_rtit_status;
    status zeroed{};
    auto const count = number_in(run.value("PacketByteCnt"));
    auto const enable = number_in(run.value("TraceEn"));
    bool const is_status = count && put_field(zeroed, "PacketByteCnt", *count);
    if (!is_status && (!enable || *enable > 1)) {
        return "WRMSR TraceEn=0, WRMSR TraceEn=1 or WRMSR PacketByteCnt=v";
    }
    auto const word = run.ctl_with(*enable == 1);
    auto const takes = run.taken();
    bool const is_done = is_status ? run.on.wrmsr({status::address, zeroed.raw, here, next_ip})
                                   : run.on.wrmsr({ctl::address, word.raw, here, next_ip}, takes);
    return is_done ? valid : "a value that does not fault";
}

template <class Processor>
constexpr auto ptwrite(event_run<Processor>& run, std::uint64_t here, std::uint64_t next_ip)
    -> string_view {
    auto& e = run.text;
    for (std::size_t i = 0; i < e.count; ++i) {
        auto& one = e.arguments[i];
        if (one.name == "at" || one.name == "next") { continue; }
        auto const value = number_in(one.value);
        bool const wide = starts_with(one.name, "R");
        if (!value || (!wide && !starts_with(one.name, "E"))) { break; }
        one.used = true;
        run.execute(action::ptwrite{here, next_ip, *value, wide});
        return valid;
    }
    return "the name of a register, = and a number";
}

template <class Processor>
constexpr auto instruction(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto const here = run.at();
    auto const next_ip = run.next();
    auto const kind = e.kind;
    if (kind == "MOV") {
        if (!starts_with(e.rest, "CR3,")) { return "MOV CR3,value"; }
        auto const text = e.rest.substr(4);
        auto const value = text == "?" ? maybe_number{true, run.state().code.cr3 + 0x1000}
                                       : number_in(text);
        if (!value) { return "a hexadecimal number after CR3,"; }
        run.execute(action::mov_cr3{here, next_ip, *value});
    } else if (kind == "WRMSR") {
        return wrmsr(run, here, next_ip);
    } else if (kind == "STI" || kind == "CLI") {
        run.execute(action::interrupt_flag{next_ip, kind == "STI"});
    } else if (kind == "XBEGIN") {
        (void)run.value("fallback");
        run.execute(action::transaction_begin{here, next_ip});
    } else if (kind == "XEND") {
        run.execute(action::transaction_end{here, next_ip});
    } else if (kind == "abort") {
        run.execute(action::transaction_abort{here, run.target(here)});
    } else if (kind == "ACM") {
        if (e.rest != "begin" && e.rest != "end") { return "ACM begin or ACM end"; }
        if (e.rest == "begin") {
            run.execute(action::acm_begin{});
        } else {
            run.execute(action::acm_end{next_ip});
        }
    } else {
        return ptwrite(run, here, next_ip);
    }
    return valid;
}

}  // namespace trace_script
