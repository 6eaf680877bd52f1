// SPDX-License-Identifier: BSL-1.0
// The worked cases OC of the catalogue, generated from its table. Breaking one of these
// rules breaks a case: OUT-007, OUT-020..024, OUT-040..043, OUT-050..055, OUT-057, OUT-058,
// OUT-060..068, OUT-080..082, OUT-085, OUT-091, OUT-101..104, OUT-110..112, OUT-131, OUT-142,
// OUT-151, OUT-152.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/explain.hpp>
#include <ptspec/topa/single_range.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>
#include <support/tracer.hpp>

#include <oc_cases.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

using namespace ptspec;
using test::oc_engine;
using test::oc_engine_case;
using test::oc_engine_cases;
using test::rc_profile;

namespace {

constexpr auto preset(rc_profile of) -> cpu::capabilities const& {
    switch (of) {
        case rc_profile::P_NONE: break;
        case rc_profile::P_BDW: return cpu::preset::P_BDW;
        case rc_profile::P_SKL: return cpu::preset::P_SKL;
        case rc_profile::P_ATM: return cpu::preset::P_ATM;
        case rc_profile::P_FUT: return cpu::preset::P_FUT;
        case rc_profile::P_SRO: return cpu::preset::P_SRO;
        case rc_profile::P_FAB: return cpu::preset::P_FAB;
    }
    return cpu::preset::P_NONE;
}

constexpr uint8_t some_trace[0x1'1000] = {};

/// The result of running a case.
struct result {
    bool enabled = false;  ///< the WRMSR that sets TraceEn did not fault
    access::msr_state now{};
    engine::write_result sum{};
    uint64_t stored = 0;  ///< bytes counted by the memory
    rule why = rule::none;
    engine::explanation explained{};
};

/// Writes all bytes of a write in one call.
struct at_once {
    template <class Tracer>
    constexpr void operator()(Tracer& one, size_t count) const {
        (void)one.write(byte_view{some_trace}.first(count));
    }
};

/// Writes the bytes in the pieces of OC-51, repeated cyclically.
struct in_pieces {
    template <class Tracer>
    constexpr void operator()(Tracer& one, size_t count) const {
        auto const& row = test::oc_pieces_cases[0];
        for (size_t written = 0, i = 0; written < count; ++i) {
            auto const most = static_cast<size_t>(row.pieces[i % row.piece_count]);
            size_t const piece = count - written < most ? count - written : most;
            (void)one.write(byte_view{some_trace}.from(written).first(piece));
            written += piece;
        }
    }
};

template <class Way>
constexpr auto result_of(oc_engine_case const& row, Way write) -> result {
    constexpr size_t max_words = sizeof(row.memory) / sizeof(row.memory[0]);
    test::word_at words[max_words] = {};
    for (unsigned i = 0; i < row.memory_count; ++i) {
        words[i] = {row.memory[i].address, row.memory[i].word};
    }
    test::listed_memory memory{words, row.memory_count};
    test::tracer<test::listed_memory> one{.of = preset(row.profile), .memory = memory};
    if (row.has_smrr) {
        one.how.restricted.smrr_physbase = {row.smrr_base};
        one.how.restricted.smrr_physmask = {row.smrr_mask};
    }
    one.place(row.base, row.mask_ptrs);
    one.put(0x571, row.stopped ? test::status_bits::stopped : 0);
    uint64_t const ctl = test::ctl_bits::single_range |
                         (row.scheme == test::oc_scheme::topa ? test::ctl_bits::topa : 0) |
                         (row.inject ? test::ctl_bits::inject : 0);
    result got;
    got.enabled = one.enable(ctl) && !one.fault.happened;
    for (unsigned i = 0; i < row.write_count; ++i) {
        write(one, static_cast<size_t>(row.writes[i]));
    }
    one.out.write_back(one.now);
    got.now = one.now;
    got.sum = one.sum;
    for (size_t i = 0; i < memory.run_count; ++i) { got.stored += memory.runs[i].bytes; }
    got.why = one.out.ended_by();
    got.explained = engine::explain(one.of, one.now, memory, one.how);
    return got;
}

/// True if the case lists the rule.
constexpr auto is_listed(oc_engine_case const& row, text id) -> bool {
    for (unsigned i = 0; i < row.rule_count; ++i) {
        if (row.rules[i] == id) { return true; }
    }
    return false;
}

/// True if the unit and the explanation both report a rule of the case as the reason that output
/// ended. In a case that starts with Stopped set, output never starts.
constexpr auto rule_matches(oc_engine_case const& row, result const& got) -> bool {
    if (row.stopped) { return got.why == rule::none && got.explained.ended_by != rule::none; }
    if (!row.wanted.error && !row.wanted.stopped) {
        return got.why == rule::none && got.explained.ended_by == rule::none;
    }
    if (got.why != got.explained.ended_by) { return false; }
    // OUT-083 refines the STOP of OUT-080.
    return is_listed(row, rule_id{got.why}.view()) ||
           (got.why == rule::OUT_080 && is_listed(row, "OUT-083"));
}

/// The claims of a case.
enum class claim : unsigned {
    enabling_does_not_fault,
    error,
    stopped,
    base,
    mask_ptrs,
    has_addresses,
    first,
    last,
    stored,
    lost,
    pmi,
    global_status_55,
    pend_topa_pmi,
    rules,
};
constexpr unsigned claims = 14;

constexpr auto is_true(oc_engine_case const& row, result const& got, claim which) -> bool {
    using status = access::ia32_rtit_status;
    auto const& wanted = row.wanted;
    bool const pmi_pending = (got.now.perf_global_status.raw & test::topa_pmi) != 0;
    switch (which) {
        case claim::enabling_does_not_fault: return got.enabled;
        case claim::error:
            return got.now.status.get<status::Error>() == wanted.error &&
                   got.now.status.get<status::TriggerEn>() == !(wanted.error || wanted.stopped);
        case claim::stopped: return got.now.status.get<status::Stopped>() == wanted.stopped;
        case claim::base: return got.now.output.base.raw == wanted.base;
        case claim::mask_ptrs: return got.now.output.mask_ptrs.raw == wanted.mask_ptrs;
        case claim::has_addresses: return got.sum.has_address == wanted.has_addresses;
        case claim::first: return got.sum.first == wanted.first;
        case claim::last: return got.sum.last == wanted.last;
        case claim::stored:
            return got.sum.stored == wanted.stored && got.stored == wanted.stored &&
                   got.sum.taken == wanted.stored + wanted.lost;
        case claim::lost: return got.sum.lost == wanted.lost;
        case claim::pmi: return got.sum.pmis == wanted.pmi && pmi_pending == (wanted.pmi != 0);
        case claim::global_status_55: return pmi_pending || !wanted.global_status_55;
        case claim::pend_topa_pmi:
            return got.now.status.get<status::PendToPAPMI>() || !wanted.pend_topa_pmi;
        case claim::rules: break;
    }
    return rule_matches(row, got);
}

/// The index of the first false claim of a case; `claims` if all are true.
template <class Way = at_once>
constexpr auto failure_of(oc_engine_case const& row, Way write = {}) -> unsigned {
    auto const got = result_of(row, write);
    unsigned i = 0;
    while (i < claims && is_true(row, got, static_cast<claim>(i))) { ++i; }
    return i;
}

constexpr auto holds(oc_engine_case const& row) -> bool { return failure_of(row) == claims; }

/// A failing case stops the build here; the compiler names the case.
template <oc_engine Case>
struct case_holds {
    static constexpr bool value = holds(oc_engine_cases[static_cast<unsigned>(Case)]);
    static_assert(value, "this case fails");
};

template <std::size_t... Numbers>
constexpr auto all_hold(std::index_sequence<Numbers...>) -> bool {
    return (... & case_holds<static_cast<oc_engine>(Numbers)>::value);
}

/// Falsifies one claim of the case. Returns false if the case has no such claim.
constexpr auto negate(oc_engine_case& row, claim which) -> bool {
    auto& wanted = row.wanted;
    switch (which) {
        case claim::enabling_does_not_fault: return false;
        case claim::error: wanted.error = !wanted.error; break;
        case claim::stopped: wanted.stopped = !wanted.stopped; break;
        case claim::base: wanted.base ^= 0x80; break;
        case claim::mask_ptrs: wanted.mask_ptrs ^= 0x80; break;
        case claim::has_addresses: wanted.has_addresses = !wanted.has_addresses; break;
        case claim::first: ++wanted.first; break;
        case claim::last: ++wanted.last; break;
        case claim::stored: ++wanted.stored; break;
        case claim::lost: ++wanted.lost; break;
        case claim::pmi: ++wanted.pmi; break;
        case claim::global_status_55:  // false claims nothing
            wanted.global_status_55 = true;
            return wanted.pmi == 0;
        case claim::pend_topa_pmi: wanted.pend_topa_pmi = true; return !row.inject;
        case claim::rules:
            row.rule_count = 0;
            return wanted.error || (wanted.stopped && !row.stopped);
    }
    return true;
}

auto shown(text some) -> std::string_view { return {some.data(), some.size()}; }

}  // namespace

TEST_CASE("the cases are all those of the page, numbered from OC-01") {
    std::string ids;
    for (auto const& row : oc_engine_cases) { ids += shown(row.id); }
    for (auto const& row : test::oc_encode_cases) { ids += shown(row.id); }
    for (auto const& row : test::oc_decode_cases) { ids += shown(row.id); }
    for (auto const& row : test::oc_build_cases) { ids += shown(row.id); }
    for (auto const& row : test::oc_locate_cases) { ids += shown(row.id); }
    for (auto const& row : test::oc_pieces_cases) { ids += shown(row.id); }
    std::string wanted;
    for (std::size_t n = 1; n <= test::count_of_rows("tests/spec/output.md", "OC-"); ++n) {
        wanted += (n < 10 ? "OC-0" : "OC-") + std::to_string(n);
    }
    CHECK(ids == wanted);
}

// ------------------------------------------------------------------------------------ the engine

TEST_CASE("every engine case passes at compile time") {
    static_assert(all_hold(std::make_index_sequence<test::oc_engine_cases_count>{}));
    CHECK(test::oc_engine_cases_count != 0);
}

TEST_CASE("every engine case passes at run time") {
    for (auto const& row : oc_engine_cases) {
        auto const first = failure_of(test::unknown{}(row));
        CHECK_MESSAGE(first == claims, shown(row.id), ": claim ", first, " is not true");
    }
}

TEST_CASE("a case with a falsified claim, or without its rules, fails") {
    // Tests the checking function: every claim of every case is checked.
    unsigned turned = 0;
    for (auto const& row : oc_engine_cases) {
        for (unsigned i = 0; i < claims; ++i) {
            auto other = row;
            if (!negate(other, static_cast<claim>(i))) { continue; }
            ++turned;
            INFO(shown(row.id), " claim ", i);
            CHECK_FALSE(holds(other));
        }
    }
    CHECK(turned >= 10 * test::oc_engine_cases_count);
}

TEST_CASE("OC-51: every case passes if its bytes are written 5, 0, 3 at a time (OUT-151,152)") {
    auto const& row = test::oc_pieces_cases[0];
    CHECK(row.pieces[0] + row.pieces[1] + row.pieces[2] == row.whole);
    for (auto const& each : oc_engine_cases) {
        CHECK_MESSAGE(failure_of(each, in_pieces{}) == claims, shown(each.id));
    }
    CHECK_TWICE([](auto value) {
        for (auto const& each : oc_engine_cases) {
            if (each.write_count != 1 || each.writes[0] > 0x80) { continue; }
            if (failure_of(value(each), in_pieces{}) != claims) { return false; }
        }
        return true;
    });
}

// ------------------------------------------------------------------------------------ entries

TEST_CASE("OC-46, OC-47: the fields of an entry encode to its word (OUT-040,041,043)") {
    CHECK_TWICE([](auto value) {
        using topa::entry;
        for (auto const& row : test::oc_encode_cases) {
            auto const& it = row.entry;
            uint64_t const base = value(it.base);
            entry const made = it.end ? topa::link_to(base)
                                      : entry{}.with(entry::INT{it.interrupt}, entry::STOP{it.stop},
                                                     entry::Size{wrapped{it.size}},
                                                     entry::Base{wrapped{base}});
            if (made.raw != row.word) { return false; }
        }
        return true;
    });
}

TEST_CASE("OC-48: a word decodes to its fields and to the rule it breaks (OUT-040,042)") {
    CHECK_TWICE([](auto value) {
        using topa::entry;
        for (auto const& row : test::oc_decode_cases) {
            entry const it{value(row.word)};
            bool const fields = it.get<entry::END>() == row.entry.end &&
                                it.get<entry::INT>() == row.entry.interrupt &&
                                it.get<entry::STOP>() == row.entry.stop &&
                                underlying(it.get<entry::Size>()) == row.entry.size &&
                                it.get<entry::Base>() == row.entry.base;
            rule const broken = topa::broken_rule(it, {}, {{row.max_phys_addr}});
            bool const legal = broken == rule::none ? row.broken == text{}
                                                    : row.broken == rule_id{broken}.view();
            if (!fields || !legal) { return false; }
        }
        return true;
    });
}

TEST_CASE("OC-49: the builder returns the MSRs of a single range (OUT-020)") {
    CHECK_TWICE([](auto value) {
        for (auto const& row : test::oc_build_cases) {
            auto const made = single_range::build(
                {.base = value(row.start), .bytes = row.bytes, .offset = row.offset});
            if (!made || made.base.raw != row.base || made.pointers.raw != row.mask_ptrs) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("OC-50: the two MSRs give the output position (OUT-050)") {
    CHECK_TWICE([](auto value) {
        for (auto const& row : test::oc_locate_cases) {
            auto const at = topa::position_in({value(row.base)}, {value(row.mask_ptrs)});
            if (at.index != row.idx || at.offset != row.off ||
                topa::table_pointer(at) != row.entry) {
                return false;
            }
        }
        return true;
    });
}
