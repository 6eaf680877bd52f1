// SPDX-License-Identifier: BSL-1.0
#pragma once

// Accesses of MSRs, and what changes them: resets, transitions, branches, XSAVES.

#include "values.hpp"

#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>

namespace msr_plan {

inline void access_msr(row_state& row, std::string const& step) {
    if (step.back() != ')') { throw refusal{"an access ends with )"}; }
    std::string const inside = step.substr(6, step.size() - 7);
    std::size_t const comma = inside.find(',');
    auto const index = pc_notation::number_in(inside.substr(0, comma), "an MSR index");
    if (index > 0xFFFF'FFFF) { throw refusal{"an MSR index has 32 bits"}; }
    row_processor port{row.on};
    log_port to{port};
    auto const at = static_cast<std::uint32_t>(index);
    if (step[0] == 'R') {
        if (comma != std::string::npos) { throw refusal{"RDMSR has no value"}; }
        auto const got = to.read(at);
        if (!row.is_log) { return say(row, got ? word(got.value) : "#GP"); }
    } else {
        if (comma == std::string::npos) { throw refusal{"a WRMSR needs a value"}; }
        auto const value = pc_notation::number_in(inside.substr(comma + 1), "a value");
        bool const done = to.write(at, value);
        if (!row.is_log) { return say(row, done ? "ok" : "#GP"); }
    }
    for (auto const& one : to) { say(row, item_of(one, true)); }
}
inline void become(row_state& row, access::msr_state const& next) {
    row.on.set_state(next);
    say(row, "ok");
}
inline void rsm(row_state& row) {
    auto const got = access::rsm(row.on.of, row.on.now);
    if (got.outcome == access::rsm_outcome::resumed) { row.on.apply(got.effect); }
    say(row, got.outcome == access::rsm_outcome::resumed    ? "ok"
             : got.outcome == access::rsm_outcome::shutdown ? "shutdown"
                                                            : "#UD");
}
/// An authenticated code module. TraceEn after it is that of before.
inline void acm(row_state& row, words& in) {
    bool const begins = pc_notation::expect_one_of(in, "begin or end", {"end", "begin"}) == 1;
    if (!begins) {
        return become(row, access::acm_exit(row.on.of, row.on.now, row.trace_en_before_acm));
    }
    row.trace_en_before_acm = row.on.now.ctl.get<reg::ia32_rtit_ctl::TraceEn>();
    become(row, access::acm_entry(row.on.now));
}
inline void branch(row_state& row, words& in) {
    in.expect("to");
    access::processor_context code;
    code.ip = in.number("an IP");
    row.on.set_state(access::after_branch(row.on.of, row.on.now, code));
    for (char const* const name : {"FilterEn", "Stopped"}) {
        say(row, std::string{name} + "=" + *value_of(row, name));
    }
}

/// `RFBM[8]=1`, `XSTATE_BV[8]=0`. Returns `otherwise` if it is not there.
inline auto bit_8(words& in, std::string_view name, bool otherwise) -> bool {
    if (!in.accept(name)) { return otherwise; }
    in.expect("[");
    in.expect("8");
    in.expect("]");
    in.expect("=");
    return pc_notation::expect_one_of(in, "a bit: 0 or 1", {"0", "1"}) == 1;
}
/// `XSAVES RFBM[8]=1`, and `faults` for one that faults midway.
inline void xsaves(row_state& row, words& in) {
    if (!bit_8(in, "RFBM", true)) { return say(row, "ok"); }
    if (in.accept("faults")) { return say(row, "#PF"); }  // TraceEn is put back: PRG-111
    auto const saved = access::xsaves(row.on.of, row.on.now);
    row.on.set_state(saved.state);
    for (unsigned i = 0; i < 16; ++i) {
        say(row, "image+" + hex(8 * i) + "=" + word(saved.image.quadwords[i]));
    }
}
/// `XRSTORS RFBM[8]=1 XSTATE_BV[8]=1 {570=250D, 561=7F}`: quadwords that are not listed are 0,
/// and MASK_PTRS is 7F.
inline void xrstors(row_state& row, words& in) {
    if (!bit_8(in, "RFBM", true)) { return say(row, "ok"); }
    access::xrstors_result done;
    if (!bit_8(in, "XSTATE_BV", true)) {
        done = access::xrstors_init(row.on.now);
    } else {
        setup image;
        if (!in.at_end()) {
            std::string list;
            while (!in.at_end()) { list += in.next("a quadword"); }
            if (list.front() != '{' || list.back() != '}') {
                throw refusal{tool::quoted(list) + " is not {NAME=v, ..}"};
            }
            list = list.substr(1, list.size() - 2);
            for (auto const& one : pc_notation::split(list, ",")) {
                pc_notation::read_item(image, one);
            }
        }
        auto made = reg::xsave_pt_state{};
        for (auto const& msr : access::pt_msrs) {
            if (msr.is_saved) {
                made.quadwords[msr.quadword] = access::value_of(image.msrs, msr.index);
            }
        }
        done = access::xrstors(row.on.of, row.on.now, made);
    }
    if (done) { row.on.apply(done.effect); }
    say(row, done ? "ok" : "#GP");
}

}  // namespace msr_plan
