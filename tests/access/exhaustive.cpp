// SPDX-License-Identifier: BSL-1.0
// Millions of accesses, compared with tests/support/reference_rules.hpp, an independent formulation
// of the rules: whether they fault, by which rules, and with what effect (REG-001, REG-004,
// REG-007, REG-008, REG-011..015, REG-017, REG-020..041, REG-044..047, REG-050..055, REG-070..077,
// REG-120, REG-121, REG-230..232).
#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/reference_rules.hpp>

#include <cstdio>
#include <string>
#include <utility>

using namespace ptspec;
using cpu::capabilities;
using reference::number;
using reference::processor;
using reference::msrs;

namespace {

// ------------------------------------------------------------------------------ both sides

/// The library's capabilities of a processor of the independent formulation.
constexpr auto capabilities_of(processor const& from) -> capabilities {
    capabilities to;
    to.leaf_07_0_ebx = {from.pt ? 1U << 25 : 0U};
    to.leaf_14_0_eax = {from.eax0};
    to.leaf_14_0_ebx = {from.ebx0};
    to.leaf_14_0_ecx = {from.ecx0};
    to.leaf_14_1_eax = {from.eax1};
    to.leaf_14_1_ebx = {from.ebx1};
    to.leaf_80000008_eax = {from.la << 8 | from.m};
    to.vmx_misc = {from.vmx14 ? uint64_t{1} << 14 : 0};
    return to;
}

/// The preset of the same name.
constexpr auto preset_of(processor const& plain) -> capabilities {
    size_t length = 0;
    while (plain.name[length] != 0) { ++length; }
    return cpu::preset::find({plain.name, length})->value;
}

/// A processor state with its context, for both sides.
struct scenario {
    msrs plain{};
    reference::code_context code{};
    access::msr_state state{};
    access::processor_context context{};

    constexpr scenario(msrs const& from, reference::code_context const& runs)
        : plain{from}, code{runs} {
        state.ctl = {from.ctl};
        state.status = {from.status};
        state.output.base = {from.base};
        state.output.mask_ptrs = {from.mask_ptrs};
        state.cr3_match = {from.cr3_match};
        for (unsigned n = 0; n < 4; ++n) {
            state.addr[n] = {{from.addr[2 * n]}, {from.addr[2 * n + 1]}};
        }
        state.in_vmx_operation = from.in_vmx;
        context = {runs.cpl, runs.cr3, runs.pae, runs.enclave, runs.ip};
    }
};

constexpr auto same_state(access::msr_state const& one, msrs const& two) -> bool {
    bool same = one.ctl.raw == two.ctl && one.status.raw == two.status &&
                one.output.base.raw == two.base && one.output.mask_ptrs.raw == two.mask_ptrs &&
                one.cr3_match.raw == two.cr3_match && one.in_vmx_operation == two.in_vmx;
    for (unsigned n = 0; n < 4; ++n) {
        same = same && one.addr[n].a.raw == two.addr[2 * n] &&
               one.addr[n].b.raw == two.addr[2 * n + 1];
    }
    return same;
}

constexpr auto id_of(rule one) -> unsigned { return underlying(one) - 1000U; }

/// What differs between the two sides.
enum class difference { none, fault, verdict, rules, order, state, psb, pmi, trace_stop, value };

/// WRMSR on both sides: whether it faults, by which rules, and what the state is afterwards.
constexpr auto compare_write(capabilities const& of, processor const& cpu, scenario const& now,
                             unsigned index, number value, access::policy const& how)
    -> difference {
    auto const text = how.only_enabling_faults_in_vmx ? reference::vmx_text::of_2016
                                                      : reference::vmx_text::newer;
    bool const covered = reference::is_covered(index);
    auto const expected = covered ? reference::broken_by_write(cpu, now.plain, index, value, text)
                                  : reference::rule_set{};

    reference::rule_set broken;
    rule first = rule::none;
    access::find_broken_rules(of, now.state, index, value, how, [&](rule one) {
        if (first == rule::none) { first = one; }
        broken.add(id_of(one));
    });
    if (!broken.same_as(expected)) { return difference::rules; }
    if (access::write_faults(of, now.state, index, value, how) == expected.empty()) {
        return difference::fault;
    }
    if (access::broken_rule(of, now.state, index, value, how) != first) {
        return difference::order;
    }
    auto const verdict = access::check_write(of, now.state, index, value, 0, how);
    auto const expected_outcome = !covered           ? access::outcome::not_covered
                                  : expected.empty() ? access::outcome::allowed
                                                     : access::outcome::general_protection;
    if (verdict.what != expected_outcome || verdict.broken != first) { return difference::verdict; }

    auto context = now.context;
    context.cpl = 0;  // the CPL of the access
    auto code = now.code;
    code.cpl = 0;
    auto const done = access::effect_of_write(of, now.state, index, value, context, how);
    if (done.verdict != verdict) { return difference::verdict; }
    auto const after = covered && expected.empty()
                           ? reference::after_write(cpu, now.plain, index, value, code)
                           : reference::effect{now.plain};
    if (!same_state(done.state, after.state)) { return difference::state; }
    auto const psb = done.psb == access::psb_plus_generation::yes   ? reference::psb::yes
                     : done.psb == access::psb_plus_generation::may ? reference::psb::may
                                                                    : reference::psb::no;
    if (psb != after.plus) { return difference::psb; }
    if (done.pmi != after.pmi || done.state.perf_global_status.raw >> 55 != after.pmi) {
        return difference::pmi;
    }
    return done.trace_stop == after.trace_stop ? difference::none : difference::trace_stop;
}

/// RDMSR on both sides.
constexpr auto compare_read(capabilities const& of, processor const& cpu, scenario const& now,
                            unsigned index) -> difference {
    bool const covered = reference::is_covered(index);
    auto const expected = covered ? reference::absence(cpu, index) : reference::rule_set{};
    auto const got = access::read(of, now.state, index);
    auto const expected_outcome = !covered           ? access::outcome::not_covered
                                  : expected.empty() ? access::outcome::allowed
                                                     : access::outcome::general_protection;
    if (got.verdict.what != expected_outcome) { return difference::fault; }
    reference::rule_set why;
    if (got.verdict.broken != rule::none) { why.add(id_of(got.verdict.broken)); }
    if (!why.same_as(expected)) { return difference::rules; }
    number const value = covered && expected.empty() ? reference::value_in(now.plain, index) : 0;
    return got.value == value ? difference::none : difference::value;
}

// ------------------------------------------------------------------------------ moments

/// A value of CTL that traces on this processor, if any does.
constexpr auto tracing(processor const& cpu) -> number {
    if (reference::bit(cpu.ecx0, 0)) { return 0x210D; }  // BranchEn, ToPA, User, OS, TraceEn
    if (reference::bit(cpu.ecx0, 2)) { return 0x200D; }
    return 0x204D;  // FabricEn
}

/// STATUS with every bit that this processor can hold except Error and Stopped.
constexpr auto full_status(processor const& cpu) -> number {
    number status = 0x2;  // ContextEn, from an earlier trace
    if (reference::bit(cpu.ebx0, 2)) { status += 0x1; }
    if (reference::bit(cpu.ebx0, 6)) { status += 0xC0; }
    if (reference::bit(cpu.ebx0, 1)) { status += number{0x12345} << 32; }
    return status;
}

inline constexpr reference::code_context in_ranges{0, 0x1234'5000, false, false, 0x2000};
inline constexpr reference::code_context elsewhere{0, 0x1234'6000, true, false, 0x5000};

/// Ranges 0 and 2 contain 2000H, range 1 starts there, range 3 is empty.
constexpr auto stored() -> msrs {
    msrs now;
    now.base = 0x7000;
    now.mask_ptrs = 0x2'0000'00FF;
    now.cr3_match = 0x1234'5FE0;
    number const ends[8] = {0x1000, 0x2000, 0x2000, 0x3000, 0x1FFF, 0x2001, 0x3000, 0x1000};
    for (unsigned i = 0; i < 8; ++i) { now.addr[i] = ends[i]; }
    return now;
}

constexpr unsigned all_moments = 12;

/// One of the states in which every write is tried.
constexpr auto scenario_of(processor const& cpu, unsigned which) -> scenario {
    auto now = stored();
    auto code = in_ranges;
    switch (which) {
        case 0: return {{}, {}};  // cold
        case 1: now.status = full_status(cpu); break;
        case 2:
            now.ctl = tracing(cpu);
            now.status = full_status(cpu) + 4;
            break;
        case 3:
            now.ctl = tracing(cpu) - 1;
            now.in_vmx = true;
            break;
        case 4:
            now.ctl = tracing(cpu);
            now.in_vmx = true;
            break;
        case 5: now.status = full_status(cpu) + 0x10; break;  // Error
        case 6: now.status = 0x20; break;                     // Stopped
        case 7:
            now.ctl = tracing(cpu);
            now.status = 0x20;
            break;
        case 8: code = elsewhere; break;
        case 9:
            now.status = full_status(cpu);
            code = elsewhere;
            break;
        case 10:
            now.cr3_match = 0x1234'6000;
            code.enclave = true;
            break;
        default:  // only the byte count; CR3 differs in bit 12
            now.status = reference::bit(cpu.ebx0, 1) ? number{1} << 48 : 0;
            code.cr3 = 0x1234'4FFF;
            break;
    }
    return {now, code};
}

// ------------------------------------------------------------------------------ run-time side

/// A processor on both sides.
struct subject {
    processor plain;
    capabilities library;
    std::string name;
};

struct counter {
    number done = 0;
    unsigned wrong = 0;

    void differs(subject const& one, char const* access, unsigned which, unsigned index,
                 number value, difference mismatch) {
        if (++wrong > 10) { return; }
        char place[100];
        std::snprintf(place, sizeof(place), " moment %u %s %X = %llX: difference %u", which, access,
                      index, value, static_cast<unsigned>(mismatch));
        FAIL_CHECK(one.name << place);
    }
    void write(subject const& one, scenario const& now, unsigned which, unsigned index,
               number value, access::policy const& how = {}) {
        auto const mismatch = compare_write(one.library, one.plain, now, index, value, how);
        ++done;
        if (mismatch != difference::none) { differs(one, "WRMSR", which, index, value, mismatch); }
    }
    void read(subject const& one, scenario const& now, unsigned which, unsigned index) {
        auto const mismatch = compare_read(one.library, one.plain, now, index);
        ++done;
        if (mismatch != difference::none) { differs(one, "RDMSR", which, index, 0, mismatch); }
    }
};

/// Calls `body` with 0 and with every value of one or two bits.
template <class Body>
void for_each_small(Body&& body) {
    body(number{0});
    for (unsigned one = 0; one < 64; ++one) {
        body(number{1} << one);
        for (unsigned two = one + 1; two < 64; ++two) { body(number{1} << one | number{1} << two); }
    }
}

/// The base values of CTL, on which one or two fields vary: nothing, values that trace, values that
/// almost trace.
constexpr number ctl_bases[] = {
    0x0,                    //
    0x1,                    // TraceEn
    0x101,                  // ToPA, TraceEn
    0x2001,                 // BranchEn, TraceEn
    0x2101,                 // BranchEn, ToPA, TraceEn
    0x2041,                 // BranchEn, FabricEn, TraceEn
    0x210D,                 // BranchEn, ToPA, User, OS, TraceEn
    0x218D,                 // and CR3Filter
    0x0100'0000'0000'210D,  // InjectPsbPmiOnEnable
    0x0180'000F'8000'3FFE,  // every flag but TraceEn, and ADDR0_CFG 15
};

/// Calls `body` with every value of each field of several bits, on top of each base.
template <class Body>
void for_each_field_value(Body&& body) {
    unsigned const lowest[] = {14, 19, 24, 32, 36, 40, 44};
    for (number const base : ctl_bases) {
        for (unsigned const lsb : lowest) {
            for (number value = 0; value < 16; ++value) { body(base ^ value << lsb); }
        }
        for (number value = 0; value < 16; ++value) {  // two ranges at once
            body(base ^ (value % 4) << 32 ^ (value / 4) << 36);
        }
        for (unsigned bit = 0; bit < 64; ++bit) { body(base ^ number{1} << bit); }
    }
}

void compare_ctl(counter& all, subject const& one, unsigned which, access::policy const& how) {
    auto const now = scenario_of(one.plain, which);
    auto const try_it = [&](number value) { all.write(one, now, which, 0x570, value, how); };
    for_each_small(try_it);
    for_each_field_value(try_it);
    for_each_small([&](number value) { try_it(now.plain.ctl ^ value); });
}

void compare_others(counter& all, subject const& one, unsigned which) {
    auto const now = scenario_of(one.plain, which);
    for (unsigned index = 0x560; index <= 0x587; ++index) {
        if (index == 0x570) { continue; }
        auto const try_it = [&](number value) { all.write(one, now, which, index, value); };
        try_it(reference::value_in(now.plain, index));
        bool const named = index <= 0x561 || (0x571 <= index && index <= 0x572) || index >= 0x580;
        if (which > 1 || !named) {
            for (unsigned bit = 0; bit < 64; ++bit) { try_it(number{1} << bit); }
            continue;
        }
        for_each_small([&](number value) {
            try_it(value);
            try_it(~value);
        });
    }
    for (unsigned index = 0x55E; index <= 0x58A; ++index) {
        all.read(one, now, which, index);
        if (!reference::is_covered(index)) { all.write(one, now, which, index, 1); }
    }
}

}  // namespace

// ------------------------------------------------------------------------------ the grids

TEST_CASE("the processors of the independent formulation match the presets of the same names") {
    for (auto const& plain : reference::cpus) {
        auto const of = preset_of(plain);
        auto const typed = capabilities_of(plain);
        CAPTURE(plain.name);
        CHECK(of.leaf_07_0_ebx == typed.leaf_07_0_ebx);
        CHECK(of.leaf_14_0_eax == typed.leaf_14_0_eax);
        CHECK(of.leaf_14_0_ebx == typed.leaf_14_0_ebx);
        CHECK(of.leaf_14_0_ecx == typed.leaf_14_0_ecx);
        CHECK(of.leaf_14_1_eax == typed.leaf_14_1_eax);
        CHECK(of.leaf_14_1_ebx == typed.leaf_14_1_ebx);
        CHECK(of.max_phys_addr() == typed.max_phys_addr());
        CHECK(of.linear_address_bits() == plain.la);
        CHECK((of.vmx_misc.raw >> 14 & 1) == plain.vmx14);
    }
}

TEST_CASE("every profile and every processor agrees with the independent formulation") {
    counter all;
    for (auto const& plain : reference::cpus) {
        subject const one{plain, preset_of(plain), plain.name};
        for (unsigned which = 0; which < all_moments; ++which) {
            compare_ctl(all, one, which, {});
            if (scenario_of(one.plain, which).plain.in_vmx) {
                compare_ctl(all, one, which, {.only_enabling_faults_in_vmx = true});
            }
            compare_others(all, one, which);
        }
        auto const cold = scenario_of(one.plain, 0);
        for (number count = 0; count < 0x2'0000; ++count) {  // PacketByteCnt
            all.write(one, cold, 0, 0x571, count << 32);
        }
    }
    CHECK(all.done > 5'000'000);
    CHECK(all.wrong == 0);
}

namespace {

/// A processor outside the tables, with the capabilities of `plain`.
auto made_up(processor const& plain, std::string name) -> subject {
    return {plain, capabilities_of(plain), std::move(name)};
}

void compare_made_up(counter& all, processor const& plain, std::string const& name) {
    auto const one = made_up(plain, name);
    for (unsigned const which : {0U, 1U, 2U, 4U}) {
        auto const now = scenario_of(plain, which);
        auto const try_it = [&](number value) { all.write(one, now, which, 0x570, value); };
        if (which == 0) { for_each_small(try_it); }
        if (which != 2) { for_each_field_value(try_it); }
        for (unsigned bit = 0; bit < 64; ++bit) { try_it(now.plain.ctl ^ number{1} << bit); }
        for (unsigned index = 0x560; index <= 0x587; ++index) {
            all.read(one, now, which, index);
            if (index == 0x570) { continue; }
            for (unsigned bit = 0; bit < 64; ++bit) {
                all.write(one, now, which, index, number{1} << bit);
                all.write(one, now, which, index, ~number{0} << bit);
            }
        }
    }
}

constexpr auto with_bit(processor cpu, unsigned processor::* word, unsigned bit, bool set)
    -> processor {
    cpu.*word = set ? cpu.*word | 1U << bit : cpu.*word & ~(1U << bit);
    return cpu;
}

}  // namespace

TEST_CASE("a processor with all capabilities but one, or with only one, agrees") {
    counter all;
    auto const everything = reference::cpus[4];
    processor nothing = reference::cpus[0];
    nothing.pt = true;
    struct {
        unsigned processor::* word;
        char const* name;
    } const words[] = {{&processor::eax0, "14.0.EAX"},
                       {&processor::ebx0, "14.0.EBX"},
                       {&processor::ecx0, "14.0.ECX"},
                       {&processor::eax1, "14.1.EAX"},
                       {&processor::ebx1, "14.1.EBX"}};
    for (auto const& [word, name] : words) {
        for (unsigned bit = 0; bit < 32; ++bit) {
            auto const place = std::string{name} + "[" + std::to_string(bit) + "]";
            compare_made_up(all, with_bit(everything, word, bit, false), "P-FUT without " + place);
            compare_made_up(all, with_bit(nothing, word, bit, true), "nothing but " + place);
            auto second = with_bit(nothing, word, bit, true);
            second.eax0 = 1;
            second.eax1 = everything.eax1;
            second.ebx1 = everything.ebx1;
            compare_made_up(all, second, "sub-leaf 1 and " + place);
        }
    }
    processor hidden = everything;
    hidden.pt = false;
    compare_made_up(all, hidden, "P-FUT without 07.0.EBX[25]");
    hidden.pt = true;
    hidden.vmx14 = false;
    compare_made_up(all, hidden, "P-FUT without VMX_MISC[14]");
    CHECK(all.done > 10'000'000);
    CHECK(all.wrong == 0);
}

TEST_CASE("every width of physical and linear addresses and every range count agrees") {
    counter all;
    for (unsigned const base : {2U, 4U, 5U}) {
        for (unsigned const la : {48U, 57U}) {
            for (unsigned m = 35; m <= 52; ++m) {  // 35: leaf absent
                processor cpu = reference::cpus[base];
                cpu.m = m == 35 ? 0 : m;
                cpu.la = la;
                auto const one = made_up(cpu,
                                         "M " + std::to_string(m) + " LA " + std::to_string(la));
                compare_others(all, one, 0);
            }
        }
    }
    for (unsigned ranges = 0; ranges < 8; ++ranges) {
        processor cpu = reference::cpus[4];
        cpu.eax1 = (cpu.eax1 & ~7U) + ranges;
        auto const one = made_up(cpu, "RANGECNT " + std::to_string(ranges));
        for (unsigned const which : {0U, 1U, 2U, 9U}) {
            compare_ctl(all, one, which, {});
            compare_others(all, one, which);
        }
    }
    CHECK(all.done > 2'000'000);
    CHECK(all.wrong == 0);
}

namespace {

struct random_source : test::random_numbers {
    auto next() -> number { return (*this)(); }
    auto below(unsigned limit) -> unsigned { return unsigned(next() % limit); }
    /// Few bits, half of the bits, or nearly all.
    auto bits() -> number {
        switch (below(4)) {
            case 0: return next() & next() & next() & next();
            case 1: return ~(next() & next() & next());
            default: return next();
        }
    }
    auto word() -> unsigned { return static_cast<unsigned>(bits()); }
};

auto random_cpu(random_source& random) -> processor {
    processor cpu{"random",      random.below(4) != 0, random.word(),
                  random.word(), random.word(),        random.word()};
    cpu.m = 36 + random.below(17);
    cpu.la = random.below(2) == 0 ? 48 : 57;
    cpu.vmx14 = random.below(2) == 0;
    cpu.pt = random.below(32) != 0;
    return cpu;
}

/// A random state whose register bits this processor can hold.
auto random_scenario(random_source& random, processor const& cpu) -> scenario {
    msrs now;
    now.ctl = random.bits() & 0x0180'3333'8F7B'FFFF;
    if (random.below(2) == 0) { now.ctl &= ~number{1}; }
    now.status = random.bits() & 0x0001'FFFF'0000'00F7;
    if (random.below(2) == 0) { now.status &= ~number{0x30}; }
    if (!reference::bit(cpu.ebx0, 2)) { now.status &= ~number{1}; }
    if (!reference::bit(cpu.ebx0, 1) || random.below(4) == 0) { now.status &= 0xFFFF'FFFF; }
    now.mask_ptrs = random.next() | 0x7F;
    now.cr3_match = random.next() & ~number{0x1F};
    for (number& end : now.addr) { end = random.below(64); }
    now.in_vmx = random.below(4) == 0;
    auto const cr3 = random.below(2) == 0 ? random.next()
                                          : now.cr3_match ^ number { 1 } << random.below(13);
    return {now, {0, cr3, random.below(2) == 0, random.below(8) == 0, number{random.below(64)}}};
}

}  // namespace

TEST_CASE("random values on random processors in random states agree") {
    counter all;
    random_source random{{0x5EED}};
    for (unsigned i = 0; i < 20'000; ++i) {
        auto const one = made_up(random_cpu(random), "random " + std::to_string(i));
        auto const now = random_scenario(random, one.plain);
        for (unsigned j = 0; j < 8; ++j) {
            all.write(one, now, i, 0x570, random.bits());
            // Values that are legal more often: no reserved bits, ADDRn_CFG 0 to 3.
            auto const likely = random.bits() & random.bits() & 0x0180'3333'8F7B'FFFF;
            all.write(one, now, i, 0x570, likely | 0x2001);
            all.write(one, now, i, 0x570, now.plain.ctl & ~number{1},
                      {.only_enabling_faults_in_vmx = random.below(2) == 0});
            unsigned const index = 0x55E + random.below(0x2D);
            all.write(one, now, i, index, random.bits());
            all.write(one, now, i, index, ~number{0} << random.below(64));
            all.read(one, now, i, index);
        }
    }
    for (unsigned i = 0; i < 200'000; ++i) {  // on the processors of the tables
        auto const& plain = reference::cpus[random.below(reference::all_cpus)];
        subject const one{plain, preset_of(plain), plain.name};
        auto const now = random_scenario(random, one.plain);
        all.write(one, now, i, 0x570, (random.bits() & 0x0180'0033'0000'1FFE) | 0x2101);
        all.write(one, now, i, 0x560 + random.below(0x28), random.bits());
    }
    CHECK(all.done > 1'000'000);
    CHECK(all.wrong == 0);
}

// ------------------------------------------------------------------------------ as constants

namespace {

/// Values of one bit; for CTL a value that traces, with one bit inverted.
constexpr auto agrees_as_a_constant(unsigned which_cpu, unsigned which, unsigned index) -> bool {
    auto const& plain = reference::cpus[which_cpu];
    auto const of = preset_of(plain);
    auto const now = scenario_of(plain, which);
    for (unsigned bit = 0; bit <= 64; ++bit) {
        number const one = bit < 64 ? number{1} << bit : 0;
        if (compare_write(of, plain, now, index, one ^ (index == 0x570 ? 0x210D : 0), {}) !=
            difference::none) {
            return false;
        }
    }
    return compare_read(of, plain, now, index) == difference::none;
}

/// One constant for each combination: compilers limit the steps of a constant evaluation.
template <unsigned Index, unsigned Which, unsigned Cpu>
constexpr bool agrees = agrees_as_a_constant(Cpu, Which, Index);

template <unsigned Index, unsigned Which, unsigned... Cpus>
constexpr bool agree = (... && agrees<Index, Which, Cpus>);

static_assert(agree<0x570, 0, 0, 1, 2, 3, 4, 5, 6>);
static_assert(agree<0x570, 2, 1, 2, 3, 4, 5, 6>);
static_assert(agree<0x571, 0, 1, 2, 4>);
static_assert(agree<0x560, 0, 2, 6> && agree<0x572, 0, 2, 5> && agree<0x582, 0, 1, 2, 4>);

}  // namespace
