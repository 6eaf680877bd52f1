// SPDX-License-Identifier: BSL-1.0
#pragma once

// All words and packets, and the checks of WRMSR and ToPA entries, as a C99 header.

#include "constants.hpp"

namespace regmap {

inline constexpr std::string_view c_begin = R"(
 * Bit positions count from bit 0 of a word, and from bit 0 of byte 0 of a packet. A _RESERVED_MASK
 * has the bits that are reserved on all processors; in an address of physical memory the bits from
 * MAXPHYADDR on are reserved too. Opcodes are initialisers of byte arrays.
 *
 * ptspec_write_check returns the rule by which a WRMSR raises #GP(0), and ptspec_topa_entry_check
 * the rule that a ToPA entry breaks; PTSPEC_RULE_NONE is 0.
 */
#ifndef PTSPEC_H
#define PTSPEC_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#if defined(__cplusplus)
#define PTSPEC_STATIC_ASSERT(condition, name) static_assert(condition, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define PTSPEC_STATIC_ASSERT(condition, name) _Static_assert(condition, #name)
#else
#define PTSPEC_STATIC_ASSERT(condition, name) typedef char name[(condition) ? 1 : -1]
#endif

#ifdef __cplusplus
extern "C" {
#endif
)";

inline constexpr std::string_view c_needs = R"(
/* A capability: the bits `mask` of a word are at least `least`, both in place. No processor has
 * one of PTSPEC_WORD_NONE. */
struct ptspec_need {
    enum ptspec_word word;
    uint64_t mask;
    uint64_t least;
    enum ptspec_rule rule; /* broken without the capability */
};

static inline int ptspec_is_met(const struct ptspec_caps *caps, const struct ptspec_need *need)
{
    return (ptspec_caps_word(caps, need->word) & need->mask) >= need->least;
}

/* A write of an MSR from `first` to `last`, with `in_vmx` only in VMX operation. */
struct ptspec_msr_row {
    uint32_t first;
    uint32_t last;
    int in_vmx;
    struct ptspec_need need;
};

/* A value with one of `bits` and none of `without`. The rule of a late row is less specific than
 * PTSPEC_RULE_REG_021. */
struct ptspec_bits_row {
    uint32_t msr;
    uint64_t bits;
    uint64_t without;
    int late;
    struct ptspec_need need;
};

/* A field whose legal encodings are those of the bitmap `listed`, and those that the bits
 * `enumerated` of a capability word list. */
struct ptspec_encoding_row {
    uint32_t msr;
    uint64_t field;
    unsigned shift;
    uint32_t listed;
    enum ptspec_word word;
    uint64_t enumerated;
    unsigned enumerated_shift;
    enum ptspec_rule rule;
};
)";

inline constexpr std::string_view c_check_msr = R"(
/* The rule by which a WRMSR raises #GP(0) whatever the value: the MSR is absent, read-only, or not
 * allowed in VMX operation. */
static inline enum ptspec_rule ptspec_check_msr(const struct ptspec_caps *caps, int in_vmx,
                                                uint32_t index)
{
    static const struct ptspec_msr_row rows[] = {
)";

inline constexpr std::string_view c_check_bits = R"(    };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (index >= rows[i].first && index <= rows[i].last && (in_vmx || !rows[i].in_vmx) &&
            !ptspec_is_met(caps, &rows[i].need)) {
            return rows[i].need.rule;
        }
    }
    return PTSPEC_RULE_NONE;
}

/* The rule that the bits of a value break, among the rows that are `late` or not. */
static inline enum ptspec_rule ptspec_check_bits(const struct ptspec_caps *caps, uint32_t index,
                                                 uint64_t value, int late)
{
    static const struct ptspec_bits_row rows[] = {
)";

inline constexpr std::string_view c_check_encodings = R"(    };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (index == rows[i].msr && late == rows[i].late && (value & rows[i].bits) != 0 &&
            (value & rows[i].without) == 0 && !ptspec_is_met(caps, &rows[i].need)) {
            return rows[i].need.rule;
        }
    }
    return PTSPEC_RULE_NONE;
}

/* The rule that an encoding breaks. */
static inline enum ptspec_rule ptspec_check_encodings(const struct ptspec_caps *caps,
                                                      uint32_t index, uint64_t value)
{
    static const struct ptspec_encoding_row rows[] = {
)";

inline constexpr std::string_view c_end = R"(    };
    unsigned i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        uint64_t encoding = (value & rows[i].field) >> rows[i].shift;
        uint64_t enumerated = ptspec_caps_word(caps, rows[i].word) & rows[i].enumerated;
        uint64_t listed = rows[i].listed | enumerated >> rows[i].enumerated_shift;

        if (index == rows[i].msr && (listed >> encoding & 1) == 0) {
            return rows[i].rule;
        }
    }
    return PTSPEC_RULE_NONE;
}

/* MAXPHYADDR and the width of linear addresses, in bits. */
static inline unsigned ptspec_max_phys_addr(const struct ptspec_caps *caps)
{
    unsigned bits = (caps->cpuid_80000008h_eax & PTSPEC_CPUID_80000008H_EAX_MAXPHYADDR_MASK) >>
                    PTSPEC_CPUID_80000008H_EAX_MAXPHYADDR_SHIFT;

    return bits == 0 ? PTSPEC_DEFAULT_MAXPHYADDR : bits;
}

static inline unsigned ptspec_linear_bits(const struct ptspec_caps *caps)
{
    unsigned bits = (caps->cpuid_80000008h_eax & PTSPEC_CPUID_80000008H_EAX_LinearBits_MASK) >>
                    PTSPEC_CPUID_80000008H_EAX_LinearBits_SHIFT;

    return bits == 0 || bits > 64 ? PTSPEC_DEFAULT_LINEAR_BITS : bits;
}

/* The bits of a physical address from MAXPHYADDR on. */
static inline uint64_t ptspec_bits_beyond_memory(const struct ptspec_caps *caps)
{
    unsigned bits = ptspec_max_phys_addr(caps);

    return bits >= 64 ? 0 : ~(uint64_t)0 << bits;
}

/* True when the bits from the highest bit of a linear address on are equal. */
static inline int ptspec_is_canonical(const struct ptspec_caps *caps, uint64_t address)
{
    unsigned highest = ptspec_linear_bits(caps) - 1;

    return address >> highest == 0 || address >> highest == ~(uint64_t)0 >> highest;
}

/* The rule by which a WRMSR of IA32_RTIT_CTL at CPL 0 raises #GP(0). */
static inline enum ptspec_rule ptspec_ctl_check(const struct ptspec_caps *caps,
                                                const struct ptspec_state *state, uint64_t value)
{
    const uint32_t index = PTSPEC_IA32_RTIT_CTL_MSR;
    enum ptspec_rule rule = ptspec_check_msr(caps, state->in_vmx_operation, index);

    if (rule != PTSPEC_RULE_NONE || value == state->ctl) {
        return rule;
    }
    rule = ptspec_check_bits(caps, index, value, 0);
    if (rule == PTSPEC_RULE_NONE) {
        rule = ptspec_check_encodings(caps, index, value);
    }
    if (rule == PTSPEC_RULE_NONE &&
        (state->ctl & value & PTSPEC_IA32_RTIT_CTL_TraceEn_MASK) != 0) {
        rule = PTSPEC_RULE_REG_021;
    }
    if (rule == PTSPEC_RULE_NONE) {
        rule = ptspec_check_bits(caps, index, value, 1);
    }
    return rule;
}

/* The rule by which a WRMSR at CPL 0 raises #GP(0). Covers 560H to 587H, IA32_DEBUGCTL, IA32_XSS
 * and the three IA32_PERF_GLOBAL_STATUS registers; a write of another MSR breaks no rule. */
static inline enum ptspec_rule ptspec_write_check(const struct ptspec_caps *caps,
                                                  const struct ptspec_state *state,
                                                  uint32_t index, uint64_t value)
{
    const int is_addr = index >= PTSPEC_IA32_RTIT_ADDR0_A_MSR &&
                        index <= PTSPEC_IA32_RTIT_ADDR3_B_MSR;
    const int is_pt = index >= PTSPEC_IA32_RTIT_OUTPUT_BASE_MSR &&
                      index <= PTSPEC_IA32_RTIT_ADDR3_B_MSR;
    enum ptspec_rule rule;

    if (index == PTSPEC_IA32_RTIT_CTL_MSR) {
        return ptspec_ctl_check(caps, state, value);
    }
    rule = ptspec_check_msr(caps, state->in_vmx_operation, index);
    if (rule == PTSPEC_RULE_NONE && is_pt &&
        (state->ctl & PTSPEC_IA32_RTIT_CTL_TraceEn_MASK) != 0) {
        rule = PTSPEC_RULE_REG_004;
    }
    if (rule == PTSPEC_RULE_NONE) {
        rule = ptspec_check_bits(caps, index, value, 0);
    }
    if (rule == PTSPEC_RULE_NONE && index == PTSPEC_IA32_RTIT_OUTPUT_BASE_MSR &&
        (value & ptspec_bits_beyond_memory(caps)) != 0) {
        rule = PTSPEC_RULE_REG_070;
    }
    if (rule == PTSPEC_RULE_NONE && is_addr && !ptspec_is_canonical(caps, value)) {
        rule = PTSPEC_RULE_REG_076;
    }
    return rule;
}

/* The rule that entry `index` of the ToPA table at address `table` breaks. */
static inline enum ptspec_rule ptspec_topa_entry_check(const struct ptspec_caps *caps,
                                                       uint64_t table, uint32_t index,
                                                       uint64_t entry)
{
    const uint64_t many_entries = PTSPEC_CPUID_14H_0_ECX_TOPAOUT_MASK |
                                  PTSPEC_CPUID_14H_0_ECX_MENTRY_MASK;
    const int one_entry = (caps->cpuid_14h_0_ecx & many_entries) != many_entries;
    const int end = (entry & PTSPEC_TOPA_ENTRY_END_MASK) != 0;
    const uint64_t base = entry & PTSPEC_TOPA_ENTRY_Base_MASK;
    const unsigned size = (unsigned)((entry & PTSPEC_TOPA_ENTRY_Size_MASK) >>
                                     PTSPEC_TOPA_ENTRY_Size_SHIFT);

    if ((entry & PTSPEC_TOPA_ENTRY_RESERVED_MASK) != 0) {
        return PTSPEC_RULE_OUT_060;
    }
    if (!end && (base & ((PTSPEC_TOPA_SMALLEST_REGION << size) - 1)) != 0) {
        return PTSPEC_RULE_OUT_062;
    }
    if ((base & ptspec_bits_beyond_memory(caps)) != 0) {
        return PTSPEC_RULE_OUT_063;
    }
    if (end && (entry & (PTSPEC_TOPA_ENTRY_INT_MASK | PTSPEC_TOPA_ENTRY_STOP_MASK)) != 0) {
        return PTSPEC_RULE_OUT_065;
    }
    if (end && index == 0) {
        return PTSPEC_RULE_OUT_066;
    }
    if (one_entry && !end && index != 0) {
        return PTSPEC_RULE_OUT_067;
    }
    if (one_entry && end && base != table) {
        return PTSPEC_RULE_OUT_068;
    }
    return PTSPEC_RULE_NONE;
}

#ifdef __cplusplus
}
#endif

#endif
)";

class c_header {
public:
    explicit c_header(std::vector<entry> const& entries)
        : entries_{entries},
          rules_{find_write_rules()},
          words_{words_of_checks(rules_)},
          names_{entries, "PTSPEC_"} {}

    auto text() -> std::string {
        out_ =
            "/* SPDX-License-Identifier: BSL-1.0\n *\n"
            " * Intel Processor Trace: the registers, the packets, and the checks of a processor.\n"
            " * Generated from ptspec " +
            version_text() + " by `regmap --c`.\n *";
        out_ += c_begin;
        for (auto const& group : constant_groups(entries_)) { constants(group); }
        constants(default_widths());
        for (auto const& one : entries_) {
            if (is_area(one)) { area(one); }
        }
        rules();
        capabilities();
        out_ += c_needs;
        out_ += c_check_msr;
        for (auto const& row : rules_.msrs) {
            table_row({names_.msr(row.first), names_.msr(row.last), decimal(row.in_vmx)},
                      need_of(row.needs));
        }
        out_ += c_check_bits;
        for (auto const& row : rules_.bits) {
            out_ += "        /* " + names_of_bits(row.msr, row.bits) + " */\n";
            table_row({names_.msr(row.msr), c_hex(row.bits, 16) + "ULL", c_hex(row.without) + "ULL",
                       decimal(row.late)},
                      need_of(row.needs));
        }
        out_ += c_check_encodings;
        for (auto const& row : rules_.encodings) {
            auto const& of = row.enumerated;
            out_ += "        /* " + names_of_bits(row.msr, row.field) + " */\n";
            table_row({names_.msr(row.msr), c_hex(row.field, 16) + "ULL",
                       decimal(lowest_bit(row.field)), c_hex(row.listed)},
                      word_name(of) + ", " + names_.mask(of) + ", " +
                          decimal(of.mask == 0 ? 0 : of.shift()) + ", PTSPEC_RULE_" +
                          identifier_of(row.broken));
        }
        out_ += c_end;
        return std::move(out_);
    }

private:
    /// A row of a table, with its last cell on lines of its own.
    void table_row(std::vector<std::string> const& cells, std::string const& last) {
        out_ += "        {" + joined(cells, ", ") + ",\n         " +
                joined(lines_of(last, 88), "\n          ") + "},\n";
    }
    static auto bytes_of(std::vector<std::uint8_t> const& bytes) -> std::string {
        auto const numbers = texts_of(bytes, [](auto byte) { return c_hex(byte, 2); });
        return "{" + joined(numbers, ", ") + "}";
    }
    static auto number_of(constant_value const& of) -> std::string {
        if (!of.bytes.empty()) { return bytes_of(of.bytes); }
        if (of.bits == 64) { return c_hex(of.number, 16) + "ULL"; }
        return of.number < 100 && !of.name.ends_with("_MASK") && !of.name.ends_with("_MSR")
                   ? decimal(of.number)
                   : c_hex(of.number, 8) + "U";
    }
    void comment(std::string const& text) {
        out_ += "/* " + joined(lines_of(text, 93), "\n * ") + " */\n";
    }
    void constants(constant_group const& group) {
        out_ += "\n";
        comment(group.title + (group.remark.empty() ? "" : ". " + group.remark));
        for (auto const& one : group.constants) {
            if (!one.comment.empty()) { comment(one.comment); }
            auto const define = "#define PTSPEC_" + one.name + " ";
            out_ += define + joined(lines_of(number_of(one), 98 - define.size()), " \\\n    ") +
                    "\n";
        }
    }

    /// An area in memory as a structure of quadwords.
    void area(entry const& one) {
        auto const name = key_of(one.constant_name);
        out_ += "\n/* " + one.name + ": " + one.place + " */\nstruct ptspec_" + name + " {\n";
        unsigned reserved = 0;
        auto const end_reserved = [&] {
            if (reserved != 0) { out_ += "    uint64_t reserved[" + decimal(reserved) + "];\n"; }
            reserved = 0;
        };
        for (auto const& row : one.layout) {
            if (row.row.kind == row_kind::reserved) {
                reserved += width_of(row.row) / 64;
                continue;
            }
            end_reserved();
            out_ += "    uint64_t " + key_of(plain(row.row.name)) + ";\n";
        }
        end_reserved();
        out_ += "};\nPTSPEC_STATIC_ASSERT(sizeof(struct ptspec_" + name +
                ") == " + decimal(one.layout.bits / 8) + ", ptspec_size_of_" + name + ");\n";
    }

    void rules() {
        auto const rules = all_rules();
        out_ += "\n/* The rules of ptspec's catalogue, by their numbers. */\nenum ptspec_rule {\n"
                "    PTSPEC_RULE_NONE = 0,\n";
        std::string texts;
        std::string names;
        for (std::size_t i = 0; i < rules.size(); ++i) {
            auto const id = "PTSPEC_RULE_" + identifier_of(rules[i]);
            out_ += "    " + id + " = " + decimal(underlying(rules[i])) +
                    (i + 1 == rules.size() ? "\n" : ",\n");
            names += "    case " + id + ":\n        return \"" + id_of(rules[i]) + "\";\n";
            texts += "    case " + id + ":\n        return \"" +
                     joined(lines_of(plain(describe(rules[i])), 80), " \"\n               \"") +
                     "\";\n";
        }
        out_ += "};\n";
        auto const function = [&](std::string const& what, std::string const& name,
                                  std::string const& none, std::string const& cases) {
            out_ += "\n/* " + what + " */\nstatic inline const char *" + name +
                    "(enum ptspec_rule rule)\n{\n    switch (rule) {\n"
                    "    case PTSPEC_RULE_NONE:\n        return \"" +
                    none + "\";\n" + cases + "    }\n    return \"unknown rule\";\n}\n";
        };
        function("The name of a rule in the catalogue.", "ptspec_rule_name", "none", names);
        function("One sentence that states a rule.", "ptspec_rule_text",
                 plain(describe(rule::none)), texts);
    }

    [[nodiscard]] static auto word_name(capability const& of) -> std::string {
        return "PTSPEC_WORD_" + (of.mask == 0 ? "NONE" : upper(capability_words()[of.word].name()));
    }
    [[nodiscard]] auto need_of(need const& one) const -> std::string {
        return "{" + word_name(one.of) + ", " + names_.mask(one.of) + ", " +
               c_hex(one.of.mask == 0 ? 1 : one.least << one.of.shift()) + ", PTSPEC_RULE_" +
               identifier_of(one.broken) + "}";
    }

    void capabilities() {
        std::string members;
        std::string enumerators = "    PTSPEC_WORD_NONE";
        std::string cases = "    case PTSPEC_WORD_NONE:\n        break;\n";
        for (auto const& word : words_) {
            auto const id = "PTSPEC_WORD_" + upper(word.name());
            members += "    uint" + decimal(word.layout.bits) + "_t " + word.name() + ";\n";
            enumerators += ",\n    " + id;
            cases += "    case " + id + ":\n        return caps->" + word.name() + ";\n";
        }
        out_ +=
            "\n/* What the processor enumerates: CPUID leaves and capability MSRs, 0 where there "
            "is none. */\nstruct ptspec_caps {\n";
        out_ += members + "};\n\nenum ptspec_word {\n" + enumerators + "\n};\n";
        out_ += "\nstatic inline uint64_t ptspec_caps_word(const struct ptspec_caps *caps,\n"
                "                                        enum ptspec_word word)\n"
                "{\n    switch (word) {\n" +
                cases + "    }\n    return 0;\n}\n";
        out_ += "\n/* The state before a write. */\nstruct ptspec_state {\n"
                "    uint64_t ctl; /* IA32_RTIT_CTL */\n    int in_vmx_operation;\n};\n";
    }

    std::vector<entry> const& entries_;
    write_rules rules_;
    std::vector<capability_word> words_;
    row_names names_;
    std::string out_;
};

}  // namespace regmap
