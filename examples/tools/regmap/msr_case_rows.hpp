// SPDX-License-Identifier: BSL-1.0
#pragma once

// Test cases of WRMSR as rows. The conditions under which a row holds come from the tables of
// write_rules.hpp, and what is read back from access::effect_of_write. Where the rules leave a
// choice, or a later processor may define what is reserved now, no row holds.

#include "constants.hpp"

#include <ptspec/access/effect.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace regmap {

// ------------------------------------------------------------------------------------ conditions

/// A condition of a row: the bits `mask` of a number that the processor enumerates are at least
/// `least` and at most `most`. All are in place.
struct case_condition {
    std::string word;  ///< as capability_word, or `max_phys_addr` or `linear_bits`
    std::uint64_t mask = 0;
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    std::string name{};  ///< `HAS_MTC`, `RANGECNT(2, 7)`

    [[nodiscard]] auto excludes(case_condition const& other) const -> bool {
        return word == other.word && mask == other.mask &&
               (least > other.most || most < other.least);
    }
    friend auto operator==(case_condition const&, case_condition const&) -> bool = default;
};

/// The two sides of a condition, and the rule that a write breaks on the second one.
struct case_need {
    std::optional<case_condition> met{};
    std::optional<case_condition> unmet{};
    rule broken = rule::none;
    bool may_be_defined = false;  ///< by a later processor
};

inline auto field_name(capability const& of) -> std::string {
    std::string names;
    auto const& word = capability_words()[of.word];
    for (auto const& one : word.layout) {
        auto const bits = low_bits(one.row.msb - one.row.lsb + 1) << one.row.lsb;
        if (one.row.kind != row_kind::field || (bits & of.mask) == 0) { continue; }
        names += (names.empty() ? "" : "_OR_") + plain(one.row.name);
    }
    return names;
}

/// A number of a capability between two bounds, which are not in place.
inline auto between(capability const& of, std::uint64_t least, std::uint64_t most)
    -> case_condition {
    auto const name = field_name(of) + "(" + std::to_string(least) + ", " + std::to_string(most) +
                      ")";
    return {capability_words()[of.word].name(), of.mask, least << of.shift(), most << of.shift(),
            name};
}
/// One of the flags of a capability, or none.
inline auto has(capability const& of, bool is_set) -> case_condition {
    std::uint64_t const lowest = of.mask & (~of.mask + 1);
    return {capability_words()[of.word].name(), of.mask, is_set ? lowest : 0, is_set ? of.mask : 0,
            (is_set ? "HAS_" : "LACKS_") + field_name(of)};
}
/// An encoding that a bitmap lists, or not.
inline auto lists(capability const& of, std::uint64_t encoding, bool is_set) -> case_condition {
    std::uint64_t const bit = std::uint64_t{1} << (of.shift() + encoding);
    return {capability_words()[of.word].name(), bit, is_set ? bit : 0, is_set ? bit : 0,
            (is_set ? "LISTS_" : "OMITS_") + field_name(of) + "(" + std::to_string(encoding) + ")"};
}
inline constexpr std::uint64_t most_bits = 255;
inline auto width(std::string const& word, std::uint64_t least, std::uint64_t most)
    -> case_condition {
    auto const name = word == "max_phys_addr" ? std::string{"MAXPHYADDR"} : "LINEAR_BITS";
    return {word, most_bits, least, most,
            name + "(" + std::to_string(least) + ", " + std::to_string(most) + ")"};
}
/// The processor enumerates no feature that this version does not know.
inline auto known_features() -> std::vector<case_condition> {
    using ebx = reg::cpuid_14h_0_ebx;
    using ecx = reg::cpuid_14h_0_ecx;
    return {{"cpuid_14h_0_ebx", ebx::reserved_mask(), 0, 0, "KNOWN_EBX"},
            {"cpuid_14h_0_ecx", ecx::reserved_mask(), 0, 0, "KNOWN_ECX"}};
}

inline auto capability_named(std::string_view name) -> capability {
    for (auto const& one : capability_fields()) {
        if (field_name(one) == name) { return one; }
    }
    throw std::logic_error{"no capability has this name"};
}

inline auto case_need_of(need const& one) -> case_need {
    case_need made{.broken = one.broken};
    if (one.of.mask == 0) {
        made.may_be_defined = true;
    } else if (one.least == 1 &&
               (one.of.largest() == 1 || (one.of.mask & (one.of.mask - 1)) != 0) &&
               field_name(one.of).find("RANGECNT") == std::string::npos) {
        made.met = has(one.of, true);
        made.unmet = has(one.of, false);
    } else {
        made.met = between(one.of, one.least, one.of.largest());
        made.unmet = between(one.of, 0, one.least - 1);
    }
    return made;
}

// ------------------------------------------------------------------------------------ writes

/// A WRMSR, and the value of IA32_RTIT_CTL before it.
struct case_write {
    std::uint32_t msr = 0;
    std::uint64_t value = 0;
    std::uint64_t ctl = 0;
    bool in_page = false;  ///< `value` is an offset in the given memory
};

enum class case_result : std::uint8_t { faults, reads, absent };

struct case_row {
    case_write write{};
    case_result result{};
    std::uint64_t reads = 0;  ///< by RDMSR after the write
    std::string id;           ///< of the rule
    std::vector<case_condition> conditions;

    /// True if the row sets TraceEn: the given memory must be ready for output.
    [[nodiscard]] auto needs_output() const -> bool {
        return ((write.ctl | (write.msr == reg::ia32_rtit_ctl::address ? write.value : 0)) & 1) !=
               0;
    }
};

namespace case_bits {

using ctl = reg::ia32_rtit_ctl;
inline constexpr std::uint64_t trace_en = ctl{}.with(ctl::TraceEn{true}).raw;
inline constexpr std::uint64_t topa = ctl{}.with(ctl::ToPA{true}).raw;
inline constexpr std::uint64_t fabric = ctl{}.with(ctl::FabricEn{true}).raw;
inline constexpr std::uint64_t branch = ctl{}.with(ctl::BranchEn{true}).raw;

}  // namespace case_bits

/// A rule by which a write is accepted that needs no capability but the MSR.
struct accepting_rule {
    std::uint32_t msr;
    std::uint64_t bits;  ///< a value with one of them; 0: every value
    char const* id;
    char const* sentence;  ///< empty: that of the library
};

/// The first that fits counts. The last two are by what IA32_RTIT_CTL was before.
inline auto accepting_rules() -> std::vector<accepting_rule> const& {
    using status = reg::ia32_rtit_status;
    constexpr auto ctl = reg::ia32_rtit_ctl::address;
    static std::vector<accepting_rule> const rules{
        {ctl, case_bits::branch, "REG-040", ""},
        {ctl, ~std::uint64_t{0}, "REG-039",
         "TraceEn, OS, User, TSCEn and DisRETC need no capability"},
        {ctl, 0, "REG-023", "while TraceEn is 0 every field may be written"},
        {status::address, status::write_ignored_mask(), "REG-050",
         "a write of FilterEn, ContextEn and TriggerEn is ignored"},
        {status::address, status{}.with(status::Error{true}, status::Stopped{true}).raw, "REG-053",
         "Error and Stopped may be set and cleared while TraceEn is 0"},
        {status::address, 0, "REG-052", ""},
        {reg::ia32_rtit_output_base::address, 0, "REG-070", ""},
        {reg::ia32_rtit_output_mask_ptrs::address, reg::ia32_rtit_output_mask_ptrs::forced_1_mask(),
         "REG-072", "bits 6:0 of IA32_RTIT_OUTPUT_MASK_PTRS are ignored, and read as ones"},
        {reg::ia32_rtit_output_mask_ptrs::address, 0, "REG-073",
         "IA32_RTIT_OUTPUT_MASK_PTRS accepts every value"},
        {reg::ia32_rtit_cr3_match::address, 0, "REG-074", ""},
        {ctl, 0, "REG-020", "a write of the value that IA32_RTIT_CTL has does not fault"},
        {ctl, 0, "REG-022", "a write that clears TraceEn may change every other field"},
    };
    return rules;
}

/// The rule by which a write is accepted. `last` is that of its last need.
inline auto accepting_id(case_write const& write, rule last) -> std::string {
    if ((write.ctl & case_bits::trace_en) != 0) {
        return write.value == write.ctl ? "REG-020" : "REG-022";
    }
    if (last != rule::none) { return id_of(last); }
    for (auto const& one : accepting_rules()) {
        if (one.msr == write.msr && (one.bits == 0 || (one.bits & write.value) != 0)) {
            return one.id;
        }
    }
    throw std::logic_error{"no rule accepts this write"};
}

// ------------------------------------------------------------------------------------ needs

/// No processor with Intel PT has fewer bits.
inline constexpr std::uint64_t least_phys_addr = 32;
inline constexpr std::uint64_t least_linear = 48;

/// The least width of linear addresses with which an address is canonical.
inline auto canonical_width(std::uint64_t address) -> std::uint64_t {
    std::uint64_t width = 1;
    while (width < 64 && !is_canonical(address, static_cast<unsigned>(width))) { ++width; }
    return width;
}

/// True for the number of sub-leaves: sub-leaf 1 counts as 0 where it does not exist.
inline auto counts_subleaves(need const& one) -> bool {
    return one.of.mask != 0 && field_name(one.of) == "MaxSubleaf";
}

/// The needs of a value of an MSR that exists, the most specific first.
inline auto needs_of_value(write_rules const& rules, case_write const& write)
    -> std::vector<case_need> {
    std::vector<case_need> needs;
    bool const is_ctl = write.msr == reg::ia32_rtit_ctl::address;
    bool const was_on = (write.ctl & case_bits::trace_en) != 0;
    if (was_on && !is_ctl) { return {{.broken = rule::REG_004}}; }
    if (was_on && write.value == write.ctl) { return {}; }
    auto const add_bits = [&](bool late) {
        for (auto const& row : rules.bits) {
            if (row.msr == write.msr && row.late == late && (write.value & row.bits) != 0 &&
                (write.value & row.without) == 0 && !counts_subleaves(row.needs)) {
                needs.push_back(case_need_of(row.needs));
            }
        }
    };
    add_bits(false);
    for (auto const& row : rules.encodings) {
        auto const encoding = (write.value & row.field) >> lowest_bit(row.field);
        if (row.msr != write.msr || (row.listed >> encoding & 1) != 0) { continue; }
        if (row.enumerated.mask == 0) {
            needs.push_back({.broken = row.broken, .may_be_defined = true});
        } else {
            needs.push_back({lists(row.enumerated, encoding, true),
                             lists(row.enumerated, encoding, false), row.broken});
        }
    }
    if (was_on && (write.value & case_bits::trace_en) != 0) {
        needs.push_back({.broken = rule::REG_021});
    }
    add_bits(true);
    if (write.msr == reg::ia32_rtit_output_base::address && write.value >> 7 != 0) {
        std::uint64_t bits = 64;
        while ((write.value >> (bits - 1) & 1) == 0) { --bits; }
        case_need inside{.met = width("max_phys_addr", bits, most_bits), .broken = rule::REG_070};
        if (bits > least_phys_addr) { inside.unmet = width("max_phys_addr", 0, bits - 1); }
        needs.push_back(inside);
    }
    if (write.msr >= reg::ia32_rtit_addr::address(0, reg::range_end::a)) {
        // With 57 bits it is open whether addresses that are not canonical with 48 are accepted
        // while CR4.LA57 is 0.
        auto const bits = canonical_width(write.value);
        case_need canonical{.broken = rule::REG_076};
        if (bits <= least_linear) { canonical.met = width("linear_bits", bits, most_bits); }
        if (bits > least_linear) { canonical.unmet = width("linear_bits", 0, bits - 1); }
        needs.push_back(canonical);
    }
    return needs;
}

/// The needs of an MSR. Leaf 14H counts as 0 without Intel PT.
inline auto needs_of_msr(write_rules const& rules, std::uint32_t msr) -> std::vector<case_need> {
    std::vector<case_need> needs;
    for (auto const& row : rules.msrs) {
        if (row.in_vmx || msr < row.first || msr > row.last || counts_subleaves(row.needs)) {
            continue;
        }
        needs.push_back(case_need_of(row.needs));
    }
    return needs;
}

// ------------------------------------------------------------------------------------ rows

/// Removes conditions that follow from others, or hold on each processor.
inline auto reduced(std::vector<case_condition> const& all) -> std::vector<case_condition> {
    std::vector<case_condition> kept;
    auto const is_leaf_14 = [](case_condition const& one) {
        return one.word.starts_with("cpuid_14h") && one.least != 0;
    };
    for (auto const& one : all) {
        bool const is_known = std::find(kept.begin(), kept.end(), one) != kept.end() ||
                              (one.word == "linear_bits" && one.least <= 1 &&
                               one.most == most_bits);
        bool const follows = std::any_of(all.begin(), all.end(), [&](auto const& other) {
            bool const is_pt = one.name == "HAS_INTEL_PT" && is_leaf_14(other);
            bool const is_stricter = one.name != other.name && one.word == other.word &&
                                     (other.mask & ~one.mask) == 0 && other.least == other.mask &&
                                     one.name.starts_with("HAS_");
            return is_pt || is_stricter;
        });
        if (!is_known && !follows) { kept.push_back(one); }
    }
    return kept;
}

/// What RDMSR returns after a write that no rule refuses on a processor with all capabilities.
inline auto reads_back(case_write const& write) -> std::uint64_t {
    access::msr_state before;
    before.ctl = {write.ctl};
    auto const after = access::effect_of_write(every_capability(), before, write.msr, write.value);
    if (!after) { throw std::logic_error{"a row accepts what a rule refuses"}; }
    return access::value_of(after.state, write.msr);
}

/// The rows of a write that has these needs, where the conditions `given` hold.
inline auto rows_of(case_write const& write, std::vector<case_need> const& needs,
                    std::vector<case_condition> given) -> std::vector<case_row> {
    std::vector<case_row> rows;
    auto const add = [&](case_result result, std::string const& id,
                         std::vector<case_condition> const& also) {
        auto conditions = given;
        conditions.insert(conditions.end(), also.begin(), also.end());
        for (auto const& one : conditions) {
            for (auto const& other : conditions) {
                if (one.excludes(other)) { return; }
            }
        }
        rows.push_back({write, result, result == case_result::reads ? reads_back(write) : 0, id,
                        reduced(conditions)});
    };
    rule last = rule::none;
    for (auto const& one : needs) {
        auto const named = id_of(one.broken);
        if (!one.met && !one.unmet) {
            add(case_result::faults, named,
                one.may_be_defined ? known_features() : std::vector<case_condition>{});
            return rows;
        }
        if (one.unmet) { add(case_result::faults, named, {*one.unmet}); }
        if (!one.met) { return rows; }
        given.push_back(*one.met);
        last = one.broken;
    }
    add(case_result::reads, accepting_id(write, last), {});
    return rows;
}

/// The rows of a processor that lacks an MSR.
inline auto rows_of_absence(write_rules const& rules, std::uint32_t msr) -> std::vector<case_row> {
    auto rows = rows_of({.msr = msr}, needs_of_msr(rules, msr), {});
    std::erase_if(rows, [](auto const& row) { return row.result == case_result::reads; });
    for (auto& row : rows) { row.result = case_result::absent; }
    return rows;
}

/// The rows of a write to an MSR that the processor has. While TraceEn is 1, the processor must
/// have the output of IA32_RTIT_CTL.
inline auto rows_of(write_rules const& rules, case_write const& write) -> std::vector<case_row> {
    auto const topaout = capability_named("TOPAOUT");
    auto const single = capability_named("SNGLRNGOUT");
    std::vector<case_condition> given;
    for (auto const& one : needs_of_msr(rules, write.msr)) { given.push_back(*one.met); }
    bool const was_on = (write.ctl & case_bits::trace_en) != 0;
    if (was_on) {
        given.push_back(has((write.ctl & case_bits::topa) != 0 ? topaout : single, true));
    }
    auto rows = rows_of(write, needs_of_value(rules, write), given);
    for (auto& row : rows) {
        // The MSRs of the output must exist.
        auto const is_there = [&](case_condition const& one) {
            return one == has(topaout, true) || one == has(single, true);
        };
        auto const& all = row.conditions;
        if (!row.needs_output() || std::any_of(all.begin(), all.end(), is_there)) { continue; }
        bool const by_table = (write.value & case_bits::topa) == 0;
        row.conditions.push_back(has(by_table ? topaout : single, true));
        row.conditions = reduced(row.conditions);
    }
    return rows;
}

// ------------------------------------------------------------------------------------ groups

/// The rows about one thing.
struct case_group {
    std::string name;
    std::string remark;
    std::vector<case_row> rows;

    void add(std::vector<case_row> const& more) {
        rows.insert(rows.end(), more.begin(), more.end());
    }
};

/// The values that are written to an MSR while TraceEn is 0: 0, each encoding of a field of up to
/// five bits, each bit of a wider one or of reserved bits, and all bits of a field.
inline auto values_of(std::uint32_t msr) -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> values{0};
    for (auto const& one : layout_of_msr(msr)) {
        unsigned const width = one.row.msb - one.row.lsb + 1;
        bool const is_field = one.row.kind == row_kind::field;
        if (is_field && width <= 5) {
            for (std::uint64_t e = 1; e < std::uint64_t{1} << width; ++e) {
                values.push_back(e << one.row.lsb);
            }
            continue;
        }
        for (unsigned bit = one.row.lsb; bit <= one.row.msb; ++bit) {
            values.push_back(std::uint64_t{1} << bit);
        }
        if (is_field && width > 1) { values.push_back(low_bits(width) << one.row.lsb); }
    }
    return values;
}

/// The ends of an address range: on both sides of the bounds of canonical addresses, and each bit
/// above them.
inline auto values_of_range() -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> values{0, 0x1000, ~std::uint64_t{0}};
    for (unsigned const width : {48U, 57U}) {
        std::uint64_t const half = std::uint64_t{1} << (width - 1);
        for (auto const value : {half - 1, ~(half - 1), half, ~half}) { values.push_back(value); }
    }
    for (unsigned bit = 46; bit < 64; ++bit) {
        auto const value = std::uint64_t{1} << bit;
        if (std::find(values.begin(), values.end(), value) == values.end()) {
            values.push_back(value);
        }
    }
    return values;
}

/// Where a row sets TraceEn, the place of output in the given memory.
inline constexpr std::uint64_t range_offset = 0x80;
inline auto offset_of_output(std::uint64_t ctl) -> std::uint64_t {
    return (ctl & case_bits::topa) != 0 ? 0 : range_offset;
}

/// All bits of IA32_RTIT_CTL that a row may change while TraceEn is 1: not those that choose the
/// output, and of a field of several bits the lowest.
inline auto bits_while_enabled() -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> bits;
    for (auto const& one : layout_of_msr(reg::ia32_rtit_ctl::address)) {
        bool const is_field = one.row.kind == row_kind::field;
        for (unsigned bit = one.row.lsb; bit <= (is_field ? one.row.lsb : one.row.msb); ++bit) {
            auto const value = std::uint64_t{1} << bit;
            constexpr auto output = case_bits::trace_en | case_bits::topa | case_bits::fabric;
            if ((value & output) == 0) { bits.push_back(value); }
        }
    }
    return bits;
}

/// The values with which TraceEn is 1, of each kind of output.
inline auto enabled_values() -> std::vector<std::uint64_t> {
    auto const usual = case_bits::trace_en | case_bits::branch;
    return {usual, usual | case_bits::topa};
}

inline auto enabling_group(write_rules const& rules) -> case_group {
    case_group made{"enabling", "IA32_RTIT_CTL: writes that set TraceEn", {}};
    constexpr auto ctl = reg::ia32_rtit_ctl::address;
    for (auto const usual : enabled_values()) {
        made.add(rows_of(rules, {.msr = ctl, .value = usual}));
        for (auto const bit : bits_while_enabled()) {
            made.add(rows_of(rules, {.msr = ctl, .value = usual ^ bit}));
        }
    }
    return made;
}

inline auto enabled_group(write_rules const& rules) -> case_group {
    case_group made{"enabled", "IA32_RTIT_CTL: writes while TraceEn is 1", {}};
    constexpr auto ctl = reg::ia32_rtit_ctl::address;
    for (auto const usual : enabled_values()) {
        std::set<std::uint64_t> added;
        auto const add = [&](std::uint64_t value) {
            if (!added.insert(value).second) { return; }
            made.add(rows_of(rules, {.msr = ctl, .value = value, .ctl = usual}));
        };
        add(usual);
        add(usual & ~case_bits::trace_en);
        add(0);
        for (auto const bit : bits_while_enabled()) {
            add(usual ^ bit);
            add((usual ^ bit) & ~case_bits::trace_en);
        }
    }
    return made;
}

inline auto locked_group(write_rules const& rules) -> case_group {
    case_group made{"locked", "The other MSRs while TraceEn is 1", {}};
    using status = reg::ia32_rtit_status;
    for (auto const usual : enabled_values()) {
        auto const add = [&](std::uint32_t msr, std::uint64_t value, bool in_page = false) {
            made.add(rows_of(rules, {msr, value, usual, in_page}));
        };
        for (auto const& msr : access::pt_msrs) {
            auto const index = msr.index.value;
            switch (index) {
                case reg::ia32_rtit_ctl::address: break;
                case status::address:
                    add(index, status{}.with(status::Stopped{true}).raw);
                    add(index, 0);
                    break;
                case reg::ia32_rtit_output_base::address:
                    add(index, offset_of_output(usual), true);
                    add(index, offset_of_output(usual) + range_offset, true);
                    break;
                case reg::ia32_rtit_output_mask_ptrs::address:
                    add(index, reg::ia32_rtit_output_mask_ptrs::forced_1_mask());
                    break;
                default:
                    add(index, 0);
                    add(index, 0x1000);
                    break;
            }
        }
    }
    return made;
}

/// All rows, by what they are about.
inline auto case_groups(write_rules const& rules) -> std::vector<case_group> {
    std::vector<case_group> groups;
    case_group absent{"absent", "MSRs that the processor lacks: RDMSR faults, too", {}};
    case_group ranges{"addr", "IA32_RTIT_ADDRn_A and IA32_RTIT_ADDRn_B", {}};
    for (auto const& msr : access::pt_msrs) {
        auto const index = msr.index.value;
        absent.add(rows_of_absence(rules, index));
        auto const layout = layout_of_msr(index);
        if (index >= reg::ia32_rtit_addr::address(0, reg::range_end::a)) {
            for (auto const value : values_of_range()) {
                ranges.add(rows_of(rules, {.msr = index, .value = value}));
            }
            continue;
        }
        auto const name = plain(layout.name);
        case_group one{name.substr(std::string_view{"ia32_rtit_"}.size()),
                       upper(name) + " while TraceEn is 0",
                       {}};
        for (auto const value : values_of(index)) {
            bool const enables = index == reg::ia32_rtit_ctl::address &&
                                 (value & case_bits::trace_en) != 0;
            if (!enables) { one.add(rows_of(rules, {.msr = index, .value = value})); }
        }
        groups.push_back(one);
    }
    groups.push_back(ranges);
    groups.push_back(enabling_group(rules));
    groups.push_back(enabled_group(rules));
    groups.push_back(locked_group(rules));
    groups.push_back(absent);
    return groups;
}

}  // namespace regmap
