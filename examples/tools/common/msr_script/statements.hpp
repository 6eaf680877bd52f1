// SPDX-License-Identifier: BSL-1.0
#pragma once

// All statements, by their first word.

#include "../script.hpp"
#include "changes.hpp"
#include "questions.hpp"
#include "setup.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace msr_script {

struct statement {
    std::string_view verb;
    void (*run)(session&, words&);
};
inline constexpr statement statements[] = {
    {"cpu", cpu_statement}, {"maxphyaddr", maxphyaddr},
    {"set", set},           {"[", store},
    {"enable", enable},     {"disable", disable},
    {"state", state},       {"locate", locate},
    {"context", context},   {"branch", branch},
    {"validate", validate}, {"encode", encode},
    {"decode", decode},     {"build", build},
    {"COLD", cold_reset},   {"WARM", warm_reset},
    {"INIT", init},         {"SMI", smi},
    {"RSM", rsm},           {"VMXON", vmxon},
    {"VMXOFF", vmxoff},     {"XSAVES", xsaves},
    {"XRSTORS", xrstors},   {"scheme", choose_scheme},
    {"smrr", smrr},         {"apic", apic},
    {"pmi_lead", pmi_lead}, {"restricted", restricted},
    {"write", write_trace}, {"total", total},
    {"explain", explain},
};

/// WRMSR and RDMSR: the statements `W570=1` and `R570`, with the MSR's index in hex.
inline void access_msr(session& in, std::string_view verb, words& given) {
    auto const index = number_in(verb.substr(1));
    if (!index || (verb[0] != 'W' && verb[0] != 'R')) {
        throw refusal{"no such statement: " + quoted(verb) + "; --help lists them"};
    }
    if (*index > 0xFFFF'FFFF || !access::is_covered_msr(static_cast<std::uint32_t>(*index))) {
        throw refusal{"no rules about MSR " + hex(*index) + " here; --help lists those there are"};
    }
    (verb[0] == 'W' ? wrmsr : rdmsr)(in, given, static_cast<std::uint32_t>(*index));
}

/// Runs one statement. Throws `refusal` when it is invalid.
inline void run(session& in, std::string_view text) {
    words given{text};
    auto const verb = given.next("a statement");
    for (auto const& one : statements) {
        if (one.verb == verb) { return one.run(in, given); }
    }
    access_msr(in, verb, given);
}

/// Runs a script, and calls `done` after each statement. Throws `tool::failure` for an invalid
/// statement.
template <class Done>
void run_script(session& in, tool::script_choice const& choice, Done&& done) {
    auto from = choice.open();
    tool::script source{from, "statement", tool::comments::anywhere};
    std::string text;
    while (source.next(text)) {
        try {
            run(in, text);
        } catch (refusal const& why) { source.refuse(why.what()); }
        done();
    }
}

}  // namespace msr_script
