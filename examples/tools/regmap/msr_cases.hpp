// SPDX-License-Identifier: BSL-1.0
#pragma once

// Test cases of WRMSR as arrays in C89, for those who test a kernel, a hypervisor or an emulator.

#include "constants.hpp"
#include "msr_case_rows.hpp"

#include <map>
#include <set>

namespace regmap {

inline constexpr std::string_view cases_begin = R"(
 * Each row is a WRMSR at CPL 0, and what must follow on a processor that meets its conditions: one
 * file for all processors. examples/msr_cases of ptspec has a runner. In a row are
 *
 *   the MSR; PTSPEC_OUTPUT, PTSPEC_IN_PAGE; IA32_RTIT_CTL before the write; the value, as two
 *   halves; PTSPEC_FAULTS, PTSPEC_READS or PTSPEC_ABSENT; what RDMSR returns then, as two halves;
 *   the rule; the conditions. The row is used if each of them is true.
 *
 * PTSPEC_OUTPUT: the row sets TraceEn. Before it write IA32_RTIT_OUTPUT_BASE and
 * IA32_RTIT_OUTPUT_MASK_PTRS so that output stays in memory that you give: the base is
 * PTSPEC_TABLE_OFFSET from its beginning if the IA32_RTIT_CTL with TraceEn = 1 has ToPA = 1, else
 * PTSPEC_RANGE_OFFSET; and write PTSPEC_STATUS_BEFORE to IA32_RTIT_STATUS: Stopped is 1, so a
 * processor that follows the rules stores nothing.
 * PTSPEC_IN_PAGE: add the address of that memory to the value.
 * PTSPEC_FAULTS: #GP(0), and the MSR keeps its value. PTSPEC_ABSENT: RDMSR faults, too.
 *
 * The rows hold outside VMX operation, or in it where IA32_VMX_MISC[14] is 1. TraceEn is 0 before
 * each row, but for its IA32_RTIT_CTL. Nothing else may use Intel PT meanwhile, and the rows and
 * CPUID must be executed by the same logical processor.
 */
#ifndef PTSPEC_MSR_CASES_H
#define PTSPEC_MSR_CASES_H

)";

inline constexpr std::string_view cases_types = R"(
/* The bits `mask` of a number are at least `least` and at most `most`. An unused condition is 0,
 * and holds. */
struct ptspec_condition {
    enum ptspec_number number;
    unsigned mask;
    unsigned least;
    unsigned most;
};

enum ptspec_expected {
    PTSPEC_FAULTS,
    PTSPEC_READS,
    PTSPEC_ABSENT
};

#define PTSPEC_OUTPUT 1
#define PTSPEC_IN_PAGE 2

struct ptspec_case {
    unsigned msr;
    unsigned flags;
    unsigned ctl;
    unsigned value_high;
    unsigned value_low;
    enum ptspec_expected expected;
    unsigned reads_high;
    unsigned reads_low;
    const char *rule;
    struct ptspec_condition conditions[PTSPEC_CONDITIONS];
};

struct ptspec_case_list {
    const char *name;
    const struct ptspec_case *rows;
    unsigned count;
};

/* An MSR, and its bits that belong to the processor: RDMSR may return any value of them. */
struct ptspec_case_msr {
    unsigned msr;
    const char *name;
    unsigned own_high;
    unsigned own_low;
};
)";

class case_header {
public:
    explicit case_header(std::vector<entry> const& entries)
        : entries_{entries}, groups_{case_groups(find_write_rules())} {
        for (auto const& group : groups_) {
            for (auto const& row : group.rows) { collect(row); }
        }
    }

    auto text() -> std::string {
        out_ = "/* SPDX-License-Identifier: BSL-1.0\n *\n"
               " * Intel Processor Trace: test cases of WRMSR, " +
               decimal(count_) +
               " rows.\n"
               " * Generated from ptspec " +
               version_text() + " by `regmap --cases`. C89; needs no other header.\n *";
        out_ += cases_begin;
        numbers();
        define("CONDITIONS", decimal(most_conditions_));
        define("TABLE_OFFSET", c_hex(offset_of_output(case_bits::topa)));
        define("RANGE_OFFSET", c_hex(range_offset));
        using status = reg::ia32_rtit_status;
        define("STATUS_BEFORE", c_hex(status{}.with(status::Stopped{true}).raw));
        out_ += cases_types;
        rules();
        out_ += "\n/* The conditions of the rows. */\n";
        for (auto const& [name, definition] : macros_) { define(name, definition); }
        for (auto const& group : groups_) { arrays(group); }
        out_ += "\nstatic const struct ptspec_case_list ptspec_case_lists[] = {\n";
        for (auto const& name : lists_) {
            out_ += "    {\"" + name + "\", ptspec_cases_" + name + ",\n     sizeof(ptspec_cases_" +
                    name + ") / sizeof(ptspec_cases_" + name + "[0])},\n";
        }
        out_ += "};\n";
        msrs();
        out_ += "\n#endif\n";
        return std::move(out_);
    }

private:
    static constexpr std::size_t most_bytes = 30'000;  ///< of an array

    void define(std::string const& name, std::string const& value) {
        auto const begin = "#define PTSPEC_" + name + " ";
        bool const is_long = begin.size() + value.size() > 98;
        out_ += begin + (is_long ? "\\\n    " : "") + value + "\n";
    }

    static auto number_name(std::string const& word) -> std::string {
        return word == "max_phys_addr" ? "PTSPEC_NUMBER_MAXPHYADDR"
                                       : "PTSPEC_NUMBER_" + upper(word);
    }

    /// Remembers the macros that a row needs.
    void collect(case_row const& row) {
        ++count_;
        most_conditions_ = std::max(most_conditions_, row.conditions.size());
        used_rules_.insert(row.id);
        for (auto const& one : row.conditions) {
            auto const number = "{" + number_name(one.word) + ", ";
            auto const bracket = one.name.find('(');
            auto const name = one.name.substr(0, bracket);
            used_words_.insert(one.word);
            if (bracket == std::string::npos) {
                macros_[name] = number + c_hex(one.mask) + ", " + c_hex(one.least) + ", " +
                                c_hex(one.most) + "}";
            } else if (name.starts_with("LISTS_") || name.starts_with("OMITS_")) {
                auto const encoding = std::stoul(one.name.substr(bracket + 1));
                auto const bit = c_hex(one.mask >> encoding) + "U << (n)";
                auto const bound = name.starts_with("LISTS_") ? bit : std::string{"0"};
                macros_[name + "(n)"] = number + bit + ", " + bound + ", " + bound + "}";
            } else {
                auto const shift = lowest_bit(one.mask);
                auto const place = shift == 0 ? std::string{} : " << " + decimal(shift);
                macros_[name + "(least, most)"] = number + c_hex(one.mask) + ", (least)" + place +
                                                  ", (most)" + place + "}";
            }
        }
    }

    /// The numbers of the conditions, and where CPUID has them.
    void numbers() {
        std::string enumerators;
        std::string places;
        for (auto const& word : capability_words()) {
            if (!used_words_.contains(word.name()) && word.name() != "cpuid_80000008h_eax") {
                continue;
            }
            enumerators += "    " + number_name(word.name()) + ",\n";
            for (auto const& one : entries_) {
                if (key_of(one.name) != key_of(word.name())) { continue; }
                std::vector<std::string> numbers;
                for (auto const& place : one.locations) { numbers.push_back(c_hex(place.number)); }
                places += "    {" + joined(numbers, ", ") + "},\n";
            }
        }
        out_ +=
            "/* Numbers that a processor enumerates. A leaf or a sub-leaf of CPUID that does not "
            "exist counts\n * as 0: so does leaf 14H without Intel PT, and its sub-leaf 1 where "
            "14H.0:EAX is 0. MAXPHYADDR and\n * LINEAR_BITS are bits 7:0 and 15:8 of "
            "CPUID.80000008H:EAX; " +
            decimal(cpu::capabilities{}.max_phys_addr().bits) + " and " +
            decimal(cpu::capabilities{}.linear_address_bits()) +
            " where these are 0. */\nenum ptspec_number {\n" + enumerators +
            "    PTSPEC_NUMBER_MAXPHYADDR,\n    PTSPEC_NUMBER_LINEAR_BITS,\n"
            "    PTSPEC_NUMBERS\n};\n\n"
            "/* The leaf, the sub-leaf and the register, 0 for EAX to 3 for EDX, of the first "
            "numbers. */\nstatic const unsigned ptspec_number_places[][3] = {\n" +
            places + "};\n\n";
    }

    [[nodiscard]] static auto halves(std::uint64_t value) -> std::string {
        return value == 0 ? "0, 0" : c_hex(value >> 32, 8) + ", " + c_hex(value & 0xFFFF'FFFF, 8);
    }

    [[nodiscard]] static auto row_text(case_row const& row) -> std::string {
        auto const& write = row.write;
        std::string const flags = write.in_page        ? "PTSPEC_OUTPUT | PTSPEC_IN_PAGE"
                                  : row.needs_output() ? "PTSPEC_OUTPUT"
                                                       : "0";
        std::string const result = row.result == case_result::faults  ? "PTSPEC_FAULTS"
                                   : row.result == case_result::reads ? "PTSPEC_READS"
                                                                      : "PTSPEC_ABSENT";
        auto const conditions = texts_of(row.conditions,
                                         [](auto const& one) { return "PTSPEC_" + one.name; });
        auto const cells = c_hex(write.msr) + ", " + flags + ", " + c_hex(write.ctl) + ", " +
                           halves(write.value) + ", " + result + ", " + halves(row.reads) +
                           ", PTSPEC_" + rule_name(row.id) + ",";
        return "    {" + joined(lines_of(cells, 95), "\n     ") + "\n     {" +
               joined(lines_of(joined(conditions, ", "), 92), "\n      ") + "}},\n";
    }

    /// The rows of a group, in as many arrays as their size requires.
    void arrays(case_group const& group) {
        std::vector<std::string> parts(1);
        std::string before;
        bool const is_one = std::all_of(group.rows.begin(), group.rows.end(), [&](auto const& row) {
            return row.write.msr == group.rows[0].write.msr;
        });
        for (auto const& row : group.rows) {
            auto const text = row_text(row);
            if (parts.back().size() + text.size() + 100 > most_bytes) {
                parts.emplace_back();
                before.clear();
            }
            auto const about = is_one ? names_of_bits(row.write.msr, row.write.value)
                                      : row_names{entries_, ""}.register_name(row.write.msr);
            if (about != before) {
                parts.back() += "    /* " + (about.empty() ? "0" : about) + " */\n";
            }
            before = about;
            parts.back() += text;
        }
        for (std::size_t i = 0; i < parts.size(); ++i) {
            auto const name = group.name + (parts.size() == 1 ? "" : "_" + decimal(i + 1));
            lists_.push_back(name);
            out_ += "\n/* " + group.remark + ". */\nstatic const struct ptspec_case ptspec_cases_" +
                    name + "[] = {\n" + parts[i] + "};\n";
        }
    }

    void msrs() {
        out_ += "\n/* All MSRs of Intel PT. */\n"
                "static const struct ptspec_case_msr ptspec_case_msrs[] = {\n";
        for (auto const& msr : access::pt_msrs) {
            auto const index = msr.index.value;
            std::uint64_t own = 0;
            for (auto const& one : layout_of_msr(index)) {
                own |= one.row.access == row_access::write_ignored ? row_mask(one.row) : 0;
            }
            out_ += "    {" + c_hex(index) + ", \"" + row_names{entries_, ""}.register_name(index) +
                    "\", " + halves(own) + "},\n";
        }
        out_ += "};\n";
    }

    static auto rule_name(std::string id) -> std::string {
        std::replace(id.begin(), id.end(), '-', '_');
        return id;
    }

    void rules() {
        out_ += "\n/* The rules of ptspec's catalogue that the rows cite. */\n";
        std::map<std::string, std::string> texts;
        for (auto const one : all_rules()) { texts[id_of(one)] = plain(describe(one)); }
        for (auto const& one : accepting_rules()) {
            if (one.sentence[0] != '\0') { texts[one.id] = one.sentence; }
        }
        for (auto const& id : used_rules_) {
            define(rule_name(id),
                   "\"" + joined(lines_of(id + ": " + texts.at(id), 90), " \" \\\n    \"") + "\"");
        }
    }

    std::vector<entry> const& entries_;
    std::vector<case_group> groups_;
    std::size_t count_ = 0;
    std::size_t most_conditions_ = 0;
    std::map<std::string, std::string> macros_;
    std::set<std::string> used_words_;
    std::set<std::string> used_rules_;
    std::vector<std::string> lists_;
    std::string out_;
};

}  // namespace regmap
