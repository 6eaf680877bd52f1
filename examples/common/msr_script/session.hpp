// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the statements of what_if work on: a logical processor, its memory, and what was printed.

#include "memory.hpp"
#include "script.hpp"

#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/print/text.hpp>
#include <ptspec/reg/apic.hpp>
#include <ptspec/rule.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace what_if {

using namespace ptspec;

// ------------------------------------------------------------------------------------ text

inline auto string_of(text it) -> std::string { return {it.data(), it.size()}; }

/// A number as what_if prints it: hexadecimal, upper case.
inline auto hex(std::uint64_t value, unsigned digits = 1) -> std::string {
    std::string out;
    print::hex(value, [&](text piece) { out += string_of(piece); }, digits);
    return out;
}
/// IA32_RTIT_OUTPUT_MASK_PTRS is always printed whole.
inline auto hex(reg::ia32_rtit_output_mask_ptrs pointers) -> std::string {
    return hex(pointers.raw, 16);
}

/// Rules in the order in which they are told, or in the order of their numbers.
using told_rules = std::vector<rule>;
using sorted_rules = std::set<rule>;

/// What collects the rules that the library finds.
template <class Rules>
auto into(Rules& rules) {
    return [&rules](rule broken) { rules.insert(rules.end(), broken); };
}

/// The ids of rules, with commas between them.
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
    bool explains = false;  ///< print the sentences of rules
    std::string out{};      ///< what the statements printed

    cpu::capabilities of{};
    access::msr_state now{};  ///< up to date, also while trace goes out
    physical_memory memory{};
    engine::output output{};
    engine::output_options how{};  ///< of the output, when TraceEn next rises
    reg::ia32_apic_base apic{};
    std::optional<cpu::output_scheme> scheme{};  ///< of each `enable`
    engine::write_result total{};                ///< since TraceEn rose
    /// What RDMSR reads of the output MSRs while trace goes out: as when TraceEn rose, which is as
    /// late as a processor may be.
    std::optional<access::msr_state> at_start{};
    bool psb_due = false;      ///< a PSB+ is the first that will be written
    bool pmi_pending = false;  ///< an interrupt was pended, and its bit not cleared since

    void line(std::string const& text) { out += text + '\n'; }

    void explain(rule why) {
        if (!explains) { return; }
        line("  " + string_of(rule_id{why}.view()) + ": " + string_of(describe(why)));
    }
    void gp(told_rules const& broken) {
        line("GP " + ids_of(broken));
        for (auto const why : broken) { explain(why); }
    }

    [[nodiscard]] auto goes_out() const -> bool { return access::trigger_en(now.ctl, now.status); }

    /// Goes on from another state of the processor: no trace goes out in which it is not on.
    void become(access::msr_state const& next) {
        now = next;
        if (!goes_out()) { output = {}; }
    }

    /// Goes on from what an access or an event left behind, which may have raised TraceEn.
    void go_on(access::effect const& done) {
        using ctl = reg::ia32_rtit_ctl;
        bool const rose = !now.ctl.get<ctl::TraceEn>() && done.state.ctl.get<ctl::TraceEn>();
        pmi_pending = pmi_pending || done.pmi;
        become(done.state);
        if (!rose) { return; }
        psb_due = done.psb == access::psb_plus::yes;
        total = {};
        (void)output.start(of, now, memory, how);
        output.sync(now);
        at_start = now;
    }

    /// As after power was applied. Memory, and the parameters of the model, stay.
    void reset() {
        become(access::msr_state{});
        total = {};
        psb_due = false;
        pmi_pending = false;
    }
};

// ------------------------------------------------------------------------------------ registers

/// Calls `body` with the register of a name that scripts use.
template <class Body>
void with_register(session& in, std::string_view name, Body&& body) {
    auto& now = in.now;
    if (name == "CTL") {
        body(now.ctl);
    } else if (name == "STATUS") {
        body(now.status);
    } else if (name == "BASE") {
        body(now.output_base);
    } else if (name == "MASK_PTRS") {
        body(now.output_mask_ptrs);
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

/// The index by which a register of that kind is written.
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

}  // namespace what_if
