// SPDX-License-Identifier: BSL-1.0
#pragma once

// Near branches, and code that must produce no packets where a script has it.

#include "event_run.hpp"

namespace trace_script {

/// One conditional branch, or several, which have the same target.
template <class Processor>
constexpr auto conditionals(event_run<Processor>& run, std::uint64_t here, std::uint64_t next_ip)
    -> string_view {
    auto& e = run.text;
    if (e.rest.empty() || e.rest.find_first_not_of("TN") != string_view::npos) {
        return "Jcc T, Jcc N or several letters";
    }
    bool const is_one = e.rest.size() == 1;
    if (is_one && e.rest == "N" && e.has_target) { return "no target: the branch is not taken"; }
    for (char const letter : e.rest) {
        bool const taken = letter == 'T';
        run.execute(
            action::conditional{taken || !is_one ? run.target(here + 0x10) : next_ip, taken});
    }
    return valid;
}

template <class Processor>
constexpr auto ret(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    bool const matches = e.rest == "compressed" || e.rest == "matching";
    if (!matches && e.rest != "uncompressed" && !e.rest.empty()) {
        return "compressed, uncompressed or matching";
    }
    if (e.rest == "compressed" && run.state().calls.size() == 0) { run.call(run.ip() + 0x10); }
    auto const to = run.target(e.rest == "uncompressed" ? run.returns_to() + 0x10
                                                        : run.returns_to());
    run.code.pop();
    run.execute(action::near_return{to});
    return valid;
}

template <class Processor>
constexpr auto near_branch(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    auto const here = run.at();
    auto const next_ip = run.next(e.kind == "CALL" ? 5 : 2);
    if (e.kind == "Jcc") { return conditionals(run, here, next_ip); }
    if (e.kind == "RET") { return ret(run); }
    bool const nested = e.rest == "rel nested" && e.kind == "CALL";
    bool const direct = e.rest == "rel" || nested;
    if (e.rest.empty() || (!direct && e.rest.find(' ') != string_view::npos)) {
        return "rel or the name of a register";
    }
    auto const to = run.target(here + 0x100);
    if (e.kind == "JMP" && direct) {
        run.execute(action::direct_jump{to});
    } else if (e.kind == "JMP") {
        run.execute(action::indirect_jump{to});
    } else {
        // Nested calls return to different addresses.
        auto const back = nested ? 0x505 + 0x10 * run.code.depth : next_ip;
        run.code.push(back);
        if (direct) {
            run.execute(action::direct_call{back, nested ? back + 0x100 : to});
        } else {
            run.execute(action::indirect_call{back, to});
        }
    }
    return valid;
}

/// Code that must produce no packets where the script has it.
template <class Processor>
constexpr auto silent(event_run<Processor>& run) -> string_view {
    auto& e = run.text;
    if (e.kind == "fall") {
        if (e.rest != "through" || !e.has_target) { return "fall through->ip"; }
        run.execute(action::sequential{run.target(0)});
    } else if (e.kind == "PUSH" || e.kind == "POP" || e.kind == "NOP") {
        if (e.kind == "POP") { run.code.pop(); }
        run.execute(action::sequential{run.next(1)});
    } else {
        if (e.kind == "any" && e.rest != "branches") { return "any branches"; }
        auto const ip = run.ip();
        run.execute(action::conditional{ip + 0x10, true});
        run.execute(action::conditional{ip + 0x12, false});
        run.execute(action::direct_jump{ip + 0x20});
        run.execute(action::indirect_jump{ip + 0x30});
        run.execute(action::indirect_call{ip + 0x32, ip + 0x40});
        run.execute(action::near_return{ip + 0x32});
    }
    return valid;
}

}  // namespace trace_script
