// SPDX-License-Identifier: BSL-1.0
#pragma once

// The state that statements work on: a logical processor, its memory, and the printed text.

#include "memory.hpp"
#include "script.hpp"

#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/print/text.hpp>
#include <ptspec/reg/apic.hpp>
#include <ptspec/base/rule.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace msr_script {

using namespace ptspec;

// ------------------------------------------------------------------------------------ text

inline auto string_of(text it) -> std::string { return {it.data(), it.size()}; }

/// Formats a number in upper-case hexadecimal.
inline auto hex(std::uint64_t value, unsigned digits = 1) -> std::string {
    std::string out;
    print::hex(value, [&](text piece) { out += string_of(piece); }, digits);
    return out;
}
inline auto hex(phys_addr address) -> std::string { return hex(address.value); }
/// IA32_RTIT_OUTPUT_MASK_PTRS is printed with all its digits.
inline auto hex(reg::ia32_rtit_output_mask_ptrs pointers) -> std::string {
    return hex(pointers.raw, 16);
}

/// Rules in the order of the library's reports, or in the order of their numbers.
using reported_rules = std::vector<rule>;
using sorted_rules = std::set<rule>;

/// A callback that collects the rules that the library reports.
template <class Rules>
auto into(Rules& rules) {
    return [&rules](rule broken) { rules.insert(rules.end(), broken); };
}

/// The ids of rules, separated by commas.
template <class Rules>
auto ids_of(Rules const& rules) -> std::string {
    std::string ids;
    for (auto const which : rules) {
        ids += (ids.empty() ? "" : ",") + string_of(rule_id{which}.view());
    }
    return ids;
}

// ------------------------------------------------------------------------------------ the model

struct session {
    bool explains = false;  ///< print the text of each rule
    std::string out{};      ///< printed text

    cpu::capabilities of{};
    access::msr_state now{};  ///< current, also while output is on
    physical_memory memory{};
    engine::output output{};
    engine::output_options how{};  ///< options for the output, applied when TraceEn next rises
    reg::ia32_apic_base apic{};
    std::optional<cpu::output_scheme> scheme{};  ///< for each `enable`
    engine::write_result total{};                ///< since TraceEn rose
    /// What RDMSR of an output MSR returns while output is on: the value when TraceEn rose, the
    /// oldest value that a processor may return.
    std::optional<access::msr_state> msrs_at_start{};
    bool psb_due = false;      ///< the next packets are a PSB+
    bool pmi_pending = false;  ///< a PMI was pended and not cleared since

    void line(std::string const& text) { out += text + '\n'; }

    void explain(rule why) {
        if (!explains) { return; }
        line("  " + string_of(rule_id{why}.view()) + ": " + string_of(describe(why)));
    }
    void gp(reported_rules const& broken) {
        line("GP " + ids_of(broken));
        for (auto const why : broken) { explain(why); }
    }

    [[nodiscard]] auto output_is_on() const -> bool {
        return access::trigger_en(now.ctl, now.status);
    }

    /// Changes the state of the processor. Output ends unless TriggerEn remains 1.
    void set_state(access::msr_state const& next) {
        now = next;
        if (!output_is_on()) { output = {}; }
    }

    /// Applies the effects of an access or an event, which may have set TraceEn.
    void apply(access::effect const& done) {
        using ctl = reg::ia32_rtit_ctl;
        bool const rose = !now.ctl.get<ctl::TraceEn>() && done.state.ctl.get<ctl::TraceEn>();
        pmi_pending = pmi_pending || done.pmi;
        set_state(done.state);
        if (!rose) { return; }
        psb_due = done.psb == access::psb_plus_generation::yes;
        total = {};
        (void)output.start(of, now, memory, how);
        output.write_back(now);
        msrs_at_start = now;
    }

    /// The state after power-up. Memory and the parameters of the model are kept.
    void reset() {
        set_state(access::msr_state{});
        total = {};
        psb_due = false;
        pmi_pending = false;
    }
};

// ------------------------------------------------------------------------------------ registers

/// Calls `body` with the register that has this name in scripts.
template <class Body>
void with_register(session& in, std::string_view name, Body&& body) {
    auto& now = in.now;
    if (name == "CTL") {
        body(now.ctl);
    } else if (name == "STATUS") {
        body(now.status);
    } else if (name == "BASE") {
        body(now.output.base);
    } else if (name == "MASK_PTRS") {
        body(now.output.mask_ptrs);
    } else if (name == "CR3_MATCH") {
        body(now.cr3_match);
    } else if (name == "GLOBAL_STATUS") {
        body(now.perf_global_status);
    } else if (name == "DEBUGCTL") {
        body(now.debugctl);
    } else if (name == "VMX_MISC14") {
        body(in.of.vmx_misc);
    } else if (name.size() == 7 && name.starts_with("ADDR") && name[4] >= '0' && name[4] <= '3' &&
               (name.ends_with("_A") || name.ends_with("_B"))) {
        auto& range = now.addr[name[4] - '0'];
        body(name.ends_with('A') ? range.a : range.b);
    } else {
        throw refusal{"no such register: " + quoted(name) + "; --help lists them"};
    }
}

/// The MSR index of a register type.
template <class Word>
constexpr auto index_for_writing() -> std::uint32_t {
    if constexpr (same_as<Word, reg::ia32_rtit_addr>) {
        return Word::address(0, reg::range_end::a);
    } else if constexpr (same_as<Word, reg::ia32_perf_global_status>) {
        return reg::ia32_perf_global_status_set::address;
    } else {
        return Word::address;
    }
}

}  // namespace msr_script
