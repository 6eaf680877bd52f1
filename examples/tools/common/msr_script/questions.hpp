// SPDX-License-Identifier: BSL-1.0
#pragma once

// The statements that change no state. They implement no rule themselves: each calls the library
// and prints the result.

#include "session.hpp"

#include <ptspec/access/enables.hpp>
#include <ptspec/engine/output/explain.hpp>
#include <ptspec/print/word.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/validate.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msr_script {

inline void state(session& in, words& given) {
    using status = reg::ia32_rtit_status;
    given.end();
    auto const& now = in.now;
    bool const error = now.status.get<status::Error>();
    bool const stopped = now.status.get<status::Stopped>();
    std::string pending = in.psb_due ? " PSB+ due" : "";
    if (in.pmi_pending) { pending += in.psb_due ? ", PMI pending" : " PMI pending"; }
    in.line("Error=" + hex(error) + " Stopped=" + hex(stopped) +
            "; BASE=" + hex(now.output.base.raw) + " MASK_PTRS=" + hex(now.output.mask_ptrs) +
            "; CTL=" + hex(now.ctl.raw) + " STATUS=" + hex(now.status.raw) +
            " GLOBAL_STATUS=" + hex(now.perf_global_status.raw) + ";" + pending);
    if (error || stopped) {
        in.explain(engine::explain(in.of, in.now, in.memory, in.how).ended_by);
    }
}

inline void explain(session& in, words& given) {
    given.end();
    auto const found = engine::explain(in.of, in.now, in.memory, in.how);
    if (found.ended_by == rule::none) { return in.line("nothing stopped it"); }
    std::string const place = found.has_place ? " table " + hex(found.at.table) + " entry " +
                                                    hex(found.at.index)
                                              : "";
    in.line(string_of(rule_id{found.ended_by}.view()) + place + ": " +
            string_of(describe(found.ended_by)));
}

inline void locate(session& in, words& given) {
    given.end();
    auto const where = topa::position_in(in.now.output.base, in.now.output.mask_ptrs);
    in.line("idx=" + hex(where.index) + " entry=" + hex(topa::table_pointer(where)) +
            " off=" + hex(where.offset));
}

inline void context(session& in, words& given) {
    access::processor_context running;
    given.expect("cr3");
    running.cr3 = given.number("the value of CR3");
    given.expect("cpl");
    auto const cpl = given.number("CPL");
    if (cpl > 3) { throw refusal{"CPL is 0 to 3"}; }
    running.cpl = static_cast<unsigned>(cpl);
    while (!given.at_end()) {
        if (given.accept("pae")) {
            running.pae = true;
        } else {
            given.expect("enclave");
            running.production_enclave = true;
        }
    }
    in.line(hex(access::context_en(in.now.ctl, in.now.cr3_match, running)));
}

inline void branch(session& in, words& given) {
    auto const ip = given.number("an IP");
    given.end();
    auto const hit = access::match_ranges(in.now, ip);
    in.line("FilterEn=" + hex(hit.filter_en) + (hit.trace_stop ? ", TraceStop" : ""));
}

// ------------------------------------------------------------------------------------ words

/// Prints the fields of a word, its reserved bits that are set, and the rules that it breaks.
template <class Word>
auto decoded(Word word, max_phys_addr width, sorted_rules const& broken) -> std::string {
    auto how = print::style::plain_hex;
    how.max_phys_addr = width.bits;
    std::string out;
    print::word(word, [&](text piece) { out += string_of(piece); }, how);
    return out + (broken.empty() ? "" : "; violates " + ids_of(broken));
}

inline void decode(session& in, words& given) {
    auto const name = given.next("a register");
    auto const value = given.number("its value");
    given.end();
    auto const width = in.of.max_phys_addr();
    sorted_rules broken;
    if (name == "TOPA_ENTRY") {
        topa::entry const it{value};
        topa::find_broken_rules(it, width, into(broken));
        return in.line(decoded(it, width, broken));
    }
    with_register(in, name, [&]<class Word>(Word const&) {
        if constexpr (same_as<Word, reg::ia32_vmx_misc>) {
            throw refusal{"VMX_MISC14 is one bit"};
        } else {
            access::find_broken_rules(in.of, access::cold_reset(), index_for_writing<Word>(), value,
                                      {}, into(broken));
            in.line(decoded(Word{value}, width, broken));
        }
    });
}

/// Sets a field of an entry if the field has this name.
template <class Field>
auto put(topa::entry& into, std::string_view name, std::uint64_t value) -> bool {
    if (name != string_of(name_of<Field>())) { return false; }
    auto const field = checked<Field>(value);
    if (!field) { throw refusal{quoted(name) + " has no room for " + hex(value)}; }
    into = into.with(field.field);
    return true;
}

inline void encode(session& in, words& given) {
    using topa::entry;
    given.expect("TOPA_ENTRY");
    entry it;
    std::uint64_t base = 0;
    while (!given.at_end()) {
        auto const name = given.next("a field");
        given.expect("=");
        auto const value = given.number("its value");
        if (name == "Base") {
            base = value;
        } else if (!put<entry::END>(it, name, value) && !put<entry::INT>(it, name, value) &&
                   !put<entry::STOP>(it, name, value) && !put<entry::Size>(it, name, value)) {
            throw refusal{"no such field: " + quoted(name)};
        }
    }
    it = it.with(entry::Base{wrapped{base}});
    sorted_rules broken;
    topa::find_broken_rules_of_base(it, base, in.of.max_phys_addr(), into(broken));
    topa::find_broken_rules(it, in.of.max_phys_addr(), into(broken));
    in.line(broken.empty() ? hex(it.raw) : "violates " + ids_of(broken));
}

// ------------------------------------------------------------------------------------ output

inline void build(session& in, words& given) {
    single_range::region wanted;
    wanted.base = given.number("the first address");
    wanted.bytes = given.number("the number of bytes");
    wanted.offset = given.number("the offset");
    given.end();
    auto const width = in.of.max_phys_addr();
    if (auto const built = single_range::build(wanted, width)) {
        return in.line("BASE=" + hex(built.base.raw) + " MASK_PTRS=" + hex(built.pointers));
    }
    reported_rules broken;
    single_range::find_broken_rules(wanted, width, into(broken));
    in.line("violates " + ids_of(broken));
}

/// How many entries of the table at an address are read: up to the last word that was put within a
/// table of the largest size.
inline auto entries_to_read(session const& in, phys_addr table) -> std::uint64_t {
    std::uint64_t const least = in.of.has_topa_of_many_entries() ? 1 : 2;
    auto const& put = in.memory.put_words();
    phys_addr const last_byte = topa::table_pointer({table, topa::last_index, 0}) + 7;
    auto const after_last = last_byte > table ? put.upper_bound(last_byte.value) : put.end();
    if (after_last == put.begin()) { return least; }
    std::uint64_t const last = std::prev(after_last)->first;
    return last < table ? least : std::max((last - table) / 8 + 1, least);
}

inline void validate(session& in, words& given) {
    auto const table = given.number("the table's address");
    given.end();
    auto const of = topa::limits::of(in.of);
    topa::output_hazards const around{in.how.restricted, in.apic};
    auto const most = entries_to_read(in, table);

    std::vector<std::pair<std::uint32_t, rule>> findings;
    constexpr std::size_t max_findings = 0x1'0000;
    bool too_many = false;
    auto const found = [&](topa::position at, rule broken) {
        too_many = too_many || findings.size() == max_findings;
        if (!too_many) { findings.emplace_back(at.index, broken); }
    };
    (void)topa::validate(  // loads never fail here
        in.memory, table, of,
        [&](topa::violation one) {
            // Without MENTRY this is the missing link after entry 0, which is reported already.
            if (one.broken != rule::OUT_056 || of.many_entries) { found(one.at, one.broken); }
        },
        most, around.restricted);
    (void)topa::for_each_entry(in.memory, table, most, [&](topa::position at, topa::entry current) {
        topa::find_warnings(current, at, around, [&](rule warning) {
            if (warning != rule::OUT_070) { found(at, warning); }
        });
    });
    if (too_many) { return in.line("more than " + hex(max_findings) + " findings"); }
    std::sort(findings.begin(), findings.end());
    findings.erase(std::unique(findings.begin(), findings.end()), findings.end());

    std::string items;
    for (std::size_t i = 0; i < findings.size(); ++i) {
        auto const [index, broken] = findings[i];
        bool const same_entry = i != 0 && findings[i - 1].first == index;
        items += same_entry ? "," : (items.empty() ? "" : " | ") + hex(index) + ": ";
        items += string_of(rule_id{broken}.view());
    }
    in.line(items.empty() ? "ok" : items);
}

}  // namespace msr_script
