// SPDX-License-Identifier: BSL-1.0
#pragma once

// All words and packets, and the checks of WRMSR and ToPA entries, as a Rust module.

#include "constants.hpp"

namespace regmap {

inline constexpr std::string_view rust_begin = R"(//!
//! Bit positions count from bit 0 of a word, and from bit 0 of byte 0 of a packet. A _RESERVED_MASK
//! has the bits that are reserved on all processors; in an address of physical memory the bits
//! from MAXPHYADDR on are reserved too.
//!
//! `write_check` returns the rule by which a WRMSR raises #GP(0), and `topa_entry_check` the rule
//! that a ToPA entry breaks. The module uses neither `std` nor another crate.

#![allow(
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]
)";

inline constexpr std::string_view rust_needs = R"(
/// The state before a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// IA32_RTIT_CTL
    pub ctl: u64,
    pub in_vmx_operation: bool,
}

/// A capability: the bits `mask` of a word are at least `least`, both in place. No processor has
/// one of `Word::NONE`.
#[derive(Clone, Copy)]
struct Need {
    word: Word,
    mask: u64,
    least: u64,
    rule: Rule,
}

impl Need {
    const fn is_met(&self, caps: &Caps) -> bool {
        caps.word(self.word) & self.mask >= self.least
    }
}

/// A write of an MSR from `first` to `last`, with `in_vmx` only in VMX operation.
struct MsrRow {
    first: u32,
    last: u32,
    in_vmx: bool,
    need: Need,
}

/// A value with one of `bits` and none of `without`. The rule of a late row is less specific than
/// `Rule::REG_021`.
struct BitsRow {
    msr: u32,
    bits: u64,
    without: u64,
    late: bool,
    need: Need,
}

/// A field whose legal encodings are those of the bitmap `listed`, and those that the bits
/// `enumerated` of a capability word list.
struct EncodingRow {
    msr: u32,
    field: u64,
    shift: u32,
    listed: u64,
    word: Word,
    enumerated: u64,
    enumerated_shift: u32,
    rule: Rule,
}
)";

inline constexpr std::string_view rust_checks = R"(
/// The rule by which a WRMSR raises #GP(0) whatever the value: the MSR is absent, read-only, or not
/// allowed in VMX operation.
const fn check_msr(caps: &Caps, in_vmx: bool, msr: u32) -> Rule {
    let mut i = 0;
    while i < MSR_ROWS.len() {
        let row = &MSR_ROWS[i];
        if msr >= row.first && msr <= row.last && (in_vmx || !row.in_vmx) && !row.need.is_met(caps)
        {
            return row.need.rule;
        }
        i += 1;
    }
    Rule::NONE
}

/// The rule that the bits of a value break, among the rows that are `late` or not.
const fn check_bits(caps: &Caps, msr: u32, value: u64, late: bool) -> Rule {
    let mut i = 0;
    while i < BITS_ROWS.len() {
        let row = &BITS_ROWS[i];
        if msr == row.msr
            && late == row.late
            && value & row.bits != 0
            && value & row.without == 0
            && !row.need.is_met(caps)
        {
            return row.need.rule;
        }
        i += 1;
    }
    Rule::NONE
}

/// The rule that an encoding breaks.
const fn check_encodings(caps: &Caps, msr: u32, value: u64) -> Rule {
    let mut i = 0;
    while i < ENCODING_ROWS.len() {
        let row = &ENCODING_ROWS[i];
        let encoding = (value & row.field) >> row.shift;
        let enumerated = (caps.word(row.word) & row.enumerated) >> row.enumerated_shift;
        if msr == row.msr && (row.listed | enumerated) >> encoding & 1 == 0 {
            return row.rule;
        }
        i += 1;
    }
    Rule::NONE
}

impl Caps {
    /// MAXPHYADDR, in bits.
    #[must_use]
    pub const fn max_phys_addr(&self) -> u32 {
        let bits = (self.cpuid_80000008h_eax & CPUID_80000008H_EAX_MAXPHYADDR_MASK)
            >> CPUID_80000008H_EAX_MAXPHYADDR_SHIFT;
        if bits == 0 {
            DEFAULT_MAXPHYADDR
        } else {
            bits
        }
    }

    /// The width of linear addresses, in bits.
    #[must_use]
    pub const fn linear_bits(&self) -> u32 {
        let bits = (self.cpuid_80000008h_eax & CPUID_80000008H_EAX_LinearBits_MASK)
            >> CPUID_80000008H_EAX_LinearBits_SHIFT;
        if bits == 0 || bits > 64 {
            DEFAULT_LINEAR_BITS
        } else {
            bits
        }
    }

    /// The bits of a physical address from MAXPHYADDR on.
    const fn bits_beyond_memory(&self) -> u64 {
        let bits = self.max_phys_addr();
        if bits >= 64 {
            0
        } else {
            u64::MAX << bits
        }
    }

    /// True when the bits from the highest bit of a linear address on are equal.
    const fn is_canonical(&self, address: u64) -> bool {
        let highest = self.linear_bits() - 1;
        address >> highest == 0 || address >> highest == u64::MAX >> highest
    }
}

/// The rule by which a WRMSR of IA32_RTIT_CTL at CPL 0 raises #GP(0).
#[must_use]
pub const fn ctl_check(caps: &Caps, state: &State, value: u64) -> Rule {
    let msr = IA32_RTIT_CTL_MSR;
    let rule = check_msr(caps, state.in_vmx_operation, msr);
    if !rule.is_none() || value == state.ctl {
        return rule;
    }
    let rule = check_bits(caps, msr, value, false);
    if !rule.is_none() {
        return rule;
    }
    let rule = check_encodings(caps, msr, value);
    if !rule.is_none() {
        return rule;
    }
    if state.ctl & value & IA32_RTIT_CTL_TraceEn_MASK != 0 {
        return Rule::REG_021;
    }
    check_bits(caps, msr, value, true)
}

/// The rule by which a WRMSR at CPL 0 raises #GP(0). Covers 560H to 587H, IA32_DEBUGCTL, IA32_XSS
/// and the three IA32_PERF_GLOBAL_STATUS registers; a write of another MSR breaks no rule.
#[must_use]
pub const fn write_check(caps: &Caps, state: &State, msr: u32, value: u64) -> Rule {
    if msr == IA32_RTIT_CTL_MSR {
        return ctl_check(caps, state, value);
    }
    let rule = check_msr(caps, state.in_vmx_operation, msr);
    if !rule.is_none() {
        return rule;
    }
    let is_addr = msr >= IA32_RTIT_ADDR0_A_MSR && msr <= IA32_RTIT_ADDR3_B_MSR;
    let is_pt = msr >= IA32_RTIT_OUTPUT_BASE_MSR && msr <= IA32_RTIT_ADDR3_B_MSR;
    if is_pt && state.ctl & IA32_RTIT_CTL_TraceEn_MASK != 0 {
        return Rule::REG_004;
    }
    let rule = check_bits(caps, msr, value, false);
    if !rule.is_none() {
        return rule;
    }
    if msr == IA32_RTIT_OUTPUT_BASE_MSR && value & caps.bits_beyond_memory() != 0 {
        return Rule::REG_070;
    }
    if is_addr && !caps.is_canonical(value) {
        return Rule::REG_076;
    }
    Rule::NONE
}

/// The rule that entry `index` of the ToPA table at address `table` breaks.
#[must_use]
pub const fn topa_entry_check(caps: &Caps, table: u64, index: u32, entry: u64) -> Rule {
    let many_entries = CPUID_14H_0_ECX_TOPAOUT_MASK | CPUID_14H_0_ECX_MENTRY_MASK;
    let one_entry = caps.cpuid_14h_0_ecx & many_entries != many_entries;
    let end = entry & TOPA_ENTRY_END_MASK != 0;
    let base = entry & TOPA_ENTRY_Base_MASK;
    let size = (entry & TOPA_ENTRY_Size_MASK) >> TOPA_ENTRY_Size_SHIFT;
    if entry & TOPA_ENTRY_RESERVED_MASK != 0 {
        return Rule::OUT_060;
    }
    if !end && base & ((TOPA_SMALLEST_REGION << size) - 1) != 0 {
        return Rule::OUT_062;
    }
    if base & caps.bits_beyond_memory() != 0 {
        return Rule::OUT_063;
    }
    if end && entry & (TOPA_ENTRY_INT_MASK | TOPA_ENTRY_STOP_MASK) != 0 {
        return Rule::OUT_065;
    }
    if end && index == 0 {
        return Rule::OUT_066;
    }
    if one_entry && !end && index != 0 {
        return Rule::OUT_067;
    }
    if one_entry && end && base != table {
        return Rule::OUT_068;
    }
    Rule::NONE
}
)";

class rust_module {
public:
    explicit rust_module(std::vector<entry> const& entries)
        : entries_{entries}, rules_{find_write_rules()}, names_{entries, ""} {}

    auto text() -> std::string {
        out_ = "// SPDX-License-Identifier: BSL-1.0\n\n"
               "//! Intel Processor Trace: the registers, the packets, and the checks of a "
               "processor.\n//! Generated from ptspec " +
               version_text() + " by `regmap --rust`.\n";
        out_ += rust_begin;
        for (auto const& group : constant_groups(entries_)) { constants(group); }
        constants(default_widths());
        for (auto const& one : entries_) {
            if (is_area(one)) { area(one); }
        }
        rules();
        capabilities();
        out_ += rust_needs;
        tables();
        out_ += rust_checks;
        return std::move(out_);
    }

private:
    static auto number_of(constant_value const& of) -> std::string {
        if (!of.bytes.empty()) {
            auto const numbers = texts_of(of.bytes, [](auto byte) { return c_hex(byte, 2); });
            return "[" + joined(numbers, ", ") + "]";
        }
        return of.number < 100 && !of.name.ends_with("_MASK") ? decimal(of.number)
                                                              : c_hex(of.number, of.bits / 4);
    }
    static auto type_of(constant_value const& of) -> std::string {
        return of.bytes.empty() ? "u" + decimal(of.bits) : "[u8; " + decimal(of.bytes.size()) + "]";
    }
    /// An array of bytes, with its elements on lines of their own.
    static auto on_own_lines(std::string const& array) -> std::string {
        return "[\n    " + joined(lines_of(array.substr(1, array.size() - 2), 94), "\n    ") +
               ",\n]";
    }
    /// A case of a match, as rustfmt writes it.
    static auto case_of(std::string const& id, std::string const& text) -> std::string {
        auto const pattern = "            Rule::" + id + " => ";
        if (pattern.size() + text.size() + 3 <= 100) { return pattern + "\"" + text + "\",\n"; }
        return pattern + "{\n                \"" +
               joined(lines_of(text, 78), " \\\n                 ") + "\"\n            }\n";
    }
    void comment(std::string const& text) {
        out_ += "/// " + joined(lines_of(text, 96), "\n/// ") + "\n";
    }
    void constants(constant_group const& group) {
        auto const title = group.title + (group.remark.empty() ? "" : ". " + group.remark);
        out_ += "\n// " + joined(lines_of(title, 97), "\n// ") + "\n";
        for (auto const& one : group.constants) {
            if (!one.comment.empty()) { comment(one.comment); }
            auto const number = number_of(one);
            out_ += "pub const " + one.name + ": " + type_of(one) + " = " +
                    (number.size() < 64 ? number : on_own_lines(number)) + ";\n";
        }
    }

    /// An area in memory as a structure of quadwords.
    void area(entry const& one) {
        std::string name;  // in camel case
        for (auto const& part : words_of(key_of(one.constant_name))) {
            name += upper(part.substr(0, 1)) + part.substr(1);
        }
        out_ += "\n";
        comment(one.name + ": " + one.place);
        out_ += "#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct " +
                name + " {\n";
        unsigned reserved = 0;
        for (auto const& row : one.layout) {
            if (row.row.kind == row_kind::reserved) {
                reserved += width_of(row.row) / 64;
            } else {
                out_ += "    pub " + key_of(plain(row.row.name)) + ": u64,\n";
            }
        }
        // The reserved quadwords are the last ones.
        out_ += "    pub reserved: [u64; " + decimal(reserved) +
                "],\n}\n\nconst _: () = assert!(core::mem::size_of::<" + name +
                ">() == " + decimal(one.layout.bits / 8) + ");\n";
    }
    static auto words_of(std::string const& name) -> std::vector<std::string> {
        std::vector<std::string> words{""};
        for (char const letter : name) {
            if (letter == '_') {
                words.emplace_back();
            } else {
                words.back() += letter;
            }
        }
        return words;
    }

    void rules() {
        std::string texts;
        std::string names;
        out_ +=
            "\n/// The rules of ptspec's catalogue, by their numbers.\n#[must_use]\n#[repr(u16)]\n"
            "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Rule {\n    NONE = 0,\n";
        for (auto const one : all_rules()) {
            auto const id = identifier_of(one);
            out_ += "    " + id + " = " + decimal(underlying(one)) + ",\n";
            names += "            Rule::" + id + " => \"" + id_of(one) + "\",\n";
            texts += case_of(id, plain(describe(one)));
        }
        out_ += "}\n\nimpl Rule {\n    /// True when no rule is broken.\n    #[must_use]\n"
                "    pub const fn is_none(self) -> bool {\n        matches!(self, Rule::NONE)\n"
                "    }\n\n    /// The name of the rule in the catalogue.\n    #[must_use]\n"
                "    pub const fn name(self) -> &'static str {\n        match self {\n"
                "            Rule::NONE => \"none\",\n" +
                names +
                "        }\n    }\n\n    /// One sentence that states the rule.\n    #[must_use]\n"
                "    pub const fn text(self) -> &'static str {\n        match self {\n"
                "            Rule::NONE => \"" +
                plain(describe(rule::none)) + "\",\n" + texts + "        }\n    }\n}\n";
    }

    void capabilities() {
        std::string members;
        std::string enumerators = "    NONE,\n";
        std::string cases = "            Word::NONE => 0,\n";
        for (auto const& word : words_of_checks(rules_)) {
            auto const id = upper(word.name());
            members += "    pub " + word.name() + ": u" + decimal(word.layout.bits) + ",\n";
            enumerators += "    " + id + ",\n";
            cases += "            Word::" + id + " => self." + word.name() +
                     (word.layout.bits == 64 ? ",\n" : " as u64,\n");
        }
        out_ += "\n/// What the processor enumerates: CPUID leaves and capability MSRs, 0 where "
                "there is "
                "none.\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\npub struct Caps {\n";
        out_ += members + "}\n\n#[derive(Clone, Copy)]\nenum Word {\n" + enumerators + "}\n";
        out_ += "\nimpl Caps {\n    const fn word(&self, word: Word) -> u64 {\n"
                "        match word {\n" +
                cases + "        }\n    }\n}\n";
    }

    [[nodiscard]] static auto word_name(capability const& of) -> std::string {
        return "Word::" + (of.mask == 0 ? "NONE" : upper(capability_words()[of.word].name()));
    }
    /// The masks of a capability as a number of 64 bits.
    [[nodiscard]] auto mask_of(capability const& of) const -> std::string {
        auto mask = names_.mask(of);
        if (of.mask == 0 || capability_words()[of.word].layout.bits == 64) { return mask; }
        return (mask.find('|') == std::string::npos ? mask : "(" + mask + ")") + " as u64";
    }
    /// The members of a row, one a line.
    void table_row(std::string const& type, std::vector<std::string> const& members) {
        out_ += "    " + type + " {\n";
        for (auto const& one : members) { out_ += "        " + one + ",\n"; }
        out_ += "    },\n";
    }
    [[nodiscard]] auto need_of(need const& one) const -> std::string {
        return "need: Need {\n            word: " + word_name(one.of) +
               ",\n            mask: " + mask_of(one.of) + ",\n            least: " +
               c_hex(one.of.mask == 0 ? 1 : one.least << one.of.shift()) +
               ",\n            rule: Rule::" + identifier_of(one.broken) + ",\n        }";
    }
    static auto truth(bool value) -> std::string { return value ? "true" : "false"; }

    void tables() {
        auto const begin = [&](std::string const& name, std::string const& type, std::size_t rows) {
            out_ += "\nconst " + name + ": [" + type + "; " + decimal(rows) + "] = [\n";
        };
        begin("MSR_ROWS", "MsrRow", rules_.msrs.size());
        for (auto const& row : rules_.msrs) {
            table_row("MsrRow", {"first: " + names_.msr(row.first), "last: " + names_.msr(row.last),
                                 "in_vmx: " + truth(row.in_vmx), need_of(row.needs)});
        }
        out_ += "];\n";
        begin("BITS_ROWS", "BitsRow", rules_.bits.size());
        for (auto const& row : rules_.bits) {
            out_ += "    // " + names_of_bits(row.msr, row.bits) + "\n";
            table_row("BitsRow", {"msr: " + names_.msr(row.msr), "bits: " + c_hex(row.bits, 16),
                                  "without: " + c_hex(row.without), "late: " + truth(row.late),
                                  need_of(row.needs)});
        }
        out_ += "];\n";
        begin("ENCODING_ROWS", "EncodingRow", rules_.encodings.size());
        for (auto const& row : rules_.encodings) {
            auto const& of = row.enumerated;
            out_ += "    // " + names_of_bits(row.msr, row.field) + "\n";
            table_row("EncodingRow",
                      {"msr: " + names_.msr(row.msr), "field: " + c_hex(row.field, 16),
                       "shift: " + decimal(lowest_bit(row.field)), "listed: " + c_hex(row.listed),
                       "word: " + word_name(of), "enumerated: " + mask_of(of),
                       "enumerated_shift: " + decimal(of.mask == 0 ? 0 : of.shift()),
                       "rule: Rule::" + identifier_of(row.broken)});
        }
        out_ += "];\n";
    }

    std::vector<entry> const& entries_;
    write_rules rules_;
    row_names names_;
    std::string out_;
};

}  // namespace regmap
