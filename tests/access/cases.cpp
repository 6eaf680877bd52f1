// SPDX-License-Identifier: BSL-1.0
// The worked cases RC of the catalogue's table. Breaking one of these rules breaks a case: REG-001,
// REG-004, REG-012..014, REG-020..028, REG-032, REG-034..037, REG-040, REG-043, REG-044, REG-050,
// REG-052..058, REG-063, REG-065, REG-066, REG-068, REG-070..076, REG-078, REG-090..093,
// REG-100..102, REG-110, REG-120, REG-121, REG-142..146, OUT-086.
#include <ptspec/access/effect.hpp>
#include <ptspec/access/enables.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <rc_cases.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

using namespace ptspec;
using access::msr_state;
using test::rc;
using test::rc_case;
using test::rc_cases;
using test::rc_claim;
using test::rc_operation;
using test::rc_profile;
using test::rc_profile_row;
using test::rc_step;
using test::rc_what;

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

/// The MSR's place in a state.
template <class State>
constexpr auto place(State& state, unsigned index) -> auto& {
    switch (index) {
        case 0x560: return state.output.base.raw;
        case 0x561: return state.output.mask_ptrs.raw;
        case 0x570: return state.ctl.raw;
        case 0x571: return state.status.raw;
        case 0x572: return state.cr3_match.raw;
        case 0x38E: return state.perf_global_status.raw;
        default: break;
    }
    auto& range = state.addr[(index - 0x580) / 2];
    return index % 2 == 0 ? range.a.raw : range.b.raw;
}

constexpr auto setup_of(rc_case const& row) -> msr_state {
    msr_state state;
    for (unsigned i = 0; i < row.put_count; ++i) {
        auto const& put = row.puts[i];
        auto& raw = place(state, put.index);
        raw = (raw & ~put.mask) | put.value;
    }
    state.in_vmx_operation = row.in_vmx;
    return state;
}

/// The result of a step, with the values that claims refer to.
struct result {
    rc_what outcome = rc_what::no_fault;
    rule why = rule::none;
    msr_state before{};
    access::effect done{};
    access::xsave_pt_state image{};
    bool enabled = false;  ///< ContextEn, the CR3 comparison, or FilterEn
    bool trace_stop = false;
};

constexpr auto of_effect(access::effect const& done, rule why) -> result {
    result got;
    got.outcome = done ? rc_what::no_fault : rc_what::gp;
    got.why = why;
    got.done = done;
    got.trace_stop = done.trace_stop;
    return got;
}

constexpr auto of_state(msr_state const& state) -> result {
    return of_effect(access::effect{.state = state}, rule::none);
}

constexpr auto of_rsm(access::rsm_result const& rsm) -> result {
    auto got = of_effect(rsm.effect, rsm.broken);
    if (!rsm) { got.outcome = rc_what::shutdown; }
    return got;
}

constexpr auto of_xsaves(access::xsaves_result const& xsaves) -> result {
    auto got = of_state(xsaves.state);
    got.image = xsaves.image;
    return got;
}

constexpr auto of_xrstors(access::xrstors_result const& xrstors) -> result {
    return of_effect(xrstors.effect, xrstors.effect.verdict.broken);
}

constexpr auto of_question(msr_state const& state, bool enabled, bool trace_stop = false)
    -> result {
    auto got = of_state(state);
    got.enabled = enabled;
    got.trace_stop = trace_stop;
    return got;
}

constexpr auto of_rdmsr(msr_state const& now, access::verdict outcome) -> result {
    return of_effect(access::effect{.verdict = outcome, .state = now}, outcome.broken);
}

constexpr auto quadwords_of(rc_step const& step) -> access::xsave_pt_state {
    access::xsave_pt_state image;
    for (unsigned i = 0; i < 9; ++i) { image.quadwords[i] = step.quadwords[i]; }
    return image;
}

constexpr auto answer_to(rc_case const& row, cpu::capabilities const& of, msr_state const& now,
                         rc_step const& step) -> result {
    switch (step.operation) {
        case rc_operation::rdmsr: return of_rdmsr(now, access::read(of, now, step.index).verdict);
        case rc_operation::wrmsr: {
            auto const done = access::effect_of_write(of, now, step.index, step.value);
            return of_effect(done, done.verdict.broken);
        }
        case rc_operation::warm_reset: return of_state(access::warm_reset(of, now));
        case rc_operation::smi: return of_state(access::smi(now));
        case rc_operation::rsm: return of_rsm(access::rsm(of, now));
        case rc_operation::vmxon: return of_state(access::vmxon(of, now));
        case rc_operation::xsaves: return of_xsaves(access::xsaves(of, now));
        case rc_operation::xrstors: return of_xrstors(access::xrstors(of, now, quadwords_of(step)));
        case rc_operation::xrstors_init: return of_xrstors(access::xrstors_init(now));
        case rc_operation::cpl: {
            access::processor_context const code{.cpl = static_cast<unsigned>(step.value),
                                                 .production_enclave = row.enclave};
            return of_question(now, access::context_en(now.ctl, now.cr3_match, code));
        }
        case rc_operation::cr3:
            return of_question(now, access::cr3_matches(now.cr3_match, step.value, step.pae));
        case rc_operation::branch: break;
    }
    auto const hit = access::match_ranges(now, step.value);
    return of_question(now, hit.filter_en, hit.trace_stop);
}

/// True when the case lists the reported rule.
constexpr auto is_listed(rc_case const& row, rule why) -> bool {
    bool listed = false;
    for (unsigned i = 0; i < row.rule_count; ++i) {
        listed = listed || rule_id{why}.view() == row.rules[i];
    }
    return listed;
}

constexpr auto reads(cpu::capabilities const& of, msr_state const& now, rc_claim const& claim)
    -> bool {
    auto const got = access::read(of, now, claim.index);
    return got && (got.value & claim.mask) == claim.value;
}

constexpr auto is_true(rc_case const& row, cpu::capabilities const& of, result const& got,
                       rc_claim const& claim) -> bool {
    auto const& after = got.done.state;
    switch (claim.what) {
        case rc_what::gp:
            return got.outcome == rc_what::gp && is_listed(row, got.why) && after == got.before;
        case rc_what::shutdown: return got.outcome == rc_what::shutdown && is_listed(row, got.why);
        case rc_what::no_fault: return got.outcome == rc_what::no_fault && got.why == rule::none;
        case rc_what::reads: return reads(of, after, claim);
        case rc_what::holds: return (place(after, claim.index) & claim.mask) == claim.value;
        case rc_what::stores: return (got.image.quadwords[claim.index] & claim.mask) == claim.value;
        case rc_what::psb_plus:
            return got.done.psb == (claim.value == 0   ? access::psb_plus_generation::no
                                    : claim.value == 1 ? access::psb_plus_generation::yes
                                                       : access::psb_plus_generation::may);
        case rc_what::pmi: return got.done.pmi == (claim.value == 1);
        case rc_what::trace_stop: return got.trace_stop == (claim.value == 1);
        case rc_what::context_en:
        case rc_what::cr3_match:
        case rc_what::filter_en: return got.enabled == (claim.value == 1);
    }
    return false;
}

/// The first false claim of a case: its position, counted from 1.
struct failure {
    unsigned step = 0;
    unsigned claim = 0;
};

constexpr auto failure_of(rc_case const& row) -> failure {
    auto const& of = preset(row.profile);
    auto const setup = setup_of(row);
    auto now = setup;
    for (unsigned i = 0; i < row.step_count; ++i) {
        auto const& step = row.steps[i];
        auto got = answer_to(row, of, now, step);
        got.before = now;
        for (unsigned n = 0; n < step.claim_count; ++n) {
            if (!is_true(row, of, got, step.claims[n])) { return {i + 1, n + 1}; }
        }
        now = row.separate ? setup : got.done.state;
    }
    return {};
}

constexpr auto holds(rc_case const& row) -> bool { return failure_of(row).step == 0; }

/// A case that does not hold stops the build here; the compiler names it.
template <rc Case>
struct case_holds {
    static constexpr bool value = holds(rc_cases[static_cast<unsigned>(Case)]);
    static_assert(value, "this case does not hold");
};

template <std::size_t... Numbers>
constexpr auto all_hold(std::index_sequence<Numbers...>) -> bool {
    return (... & case_holds<static_cast<rc>(Numbers)>::value);
}

/// The negation of a claim about the same step.
constexpr auto opposite(rc_claim claim) -> rc_claim {
    switch (claim.what) {
        case rc_what::no_fault: claim.what = rc_what::gp; break;
        case rc_what::gp:
        case rc_what::shutdown: claim.what = rc_what::no_fault; break;
        case rc_what::psb_plus: claim.value = (claim.value + 1) % 3; break;
        case rc_what::reads:
        case rc_what::holds:
        case rc_what::stores: claim.value ^= claim.mask & (~claim.mask + 1); break;
        default: claim.value ^= 1; break;
    }
    return claim;
}

constexpr auto agrees(rc_profile_row const& row, cpu::capabilities const& of) -> bool {
    return (of.leaf_07_0_ebx.raw >> 25 & 1) == row.leaf_07_0_ebx_25 &&
           of.leaf_14_0_eax.raw == row.leaf_14_0_eax && of.leaf_14_0_ebx.raw == row.leaf_14_0_ebx &&
           of.leaf_14_0_ecx.raw == row.leaf_14_0_ecx && of.leaf_14_1_eax.raw == row.leaf_14_1_eax &&
           of.leaf_14_1_ebx.raw == row.leaf_14_1_ebx && of.leaf_14_1_ecx.raw == row.leaf_14_1_ecx &&
           of.leaf_80000008_eax.raw == (row.max_phys_addr | row.linear_address_bits << 8) &&
           of.vmx_misc.raw == row.vmx_misc_14 << 14;
}

auto shown(text some) -> std::string_view { return {some.data(), some.size()}; }

}  // namespace

TEST_CASE("the cases are complete, numbered from RC-01") {
    REQUIRE(test::rc_cases_count == test::count_of_rows("tests/spec/registers.md", "RC-"));
    for (unsigned i = 0; i < test::rc_cases_count; ++i) {
        char const digits[] = {static_cast<char>('0' + (i + 1) / 10),
                               static_cast<char>('0' + (i + 1) % 10)};
        CHECK(shown(rc_cases[i].id) == "RC-" + std::string{digits, 2});
    }
}

TEST_CASE("the profiles of the cases are the presets with the same names") {
    REQUIRE(test::rc_profiles_count == test::count_of_rows("tests/spec/registers.md", "P-"));
    for (unsigned i = 0; i < test::rc_profiles_count; ++i) {
        INFO(shown(test::rc_profiles[i].name));
        CHECK(agrees(test::rc_profiles[i], preset(static_cast<rc_profile>(i))));
    }
}

TEST_CASE("every case holds as a constant") {
    static_assert(all_hold(std::make_index_sequence<test::rc_cases_count>{}));
}

TEST_CASE("every case holds at run time") {
    for (auto const& row : rc_cases) {
        auto const first = failure_of(test::unknown{}(row));
        CHECK_MESSAGE(first.step == 0, shown(row.id), ": claim ", first.claim, " of step ",
                      first.step, " is not true");
    }
}

TEST_CASE("a case with a negated claim, or without its rules, fails") {
    // Tests the checking function itself: every claim of every case matters.
    unsigned claims = 0;
    for (auto const& row : rc_cases) {
        for (unsigned i = 0; i < row.step_count; ++i) {
            for (unsigned n = 0; n < row.steps[i].claim_count; ++n, ++claims) {
                auto other = row;
                auto& claim = other.steps[i].claims[n];
                claim = opposite(claim);
                auto const first = failure_of(other);
                INFO(shown(row.id), " claim ", n + 1, " of step ", i + 1);
                CHECK((first.step == i + 1 && first.claim == n + 1));
                if (row.steps[i].claims[n].what == rc_what::gp) {
                    other = row;
                    other.rule_count = 0;
                    CHECK_FALSE(holds(other));
                }
            }
        }
    }
    CHECK(claims >= test::rc_cases_count);
}
