// SPDX-License-Identifier: BSL-1.0
#pragma once

// All words and packets as named constants, for languages without bit-field types; and the parts
// that the generated sources of all languages share.

#include "entries.hpp"
#include "write_rules.hpp"

#include <ptspec/base/version.hpp>

namespace regmap {

/// A constant of a generated source.
struct constant_value {
    std::string name;
    std::uint64_t number;
    unsigned bits;  ///< 32 or 64, or 8 for the elements of `bytes`
    std::string comment{};
    std::vector<std::uint8_t> bytes{};  ///< an array, when not empty
};

/// The constants of a word or a packet.
struct constant_group {
    std::string title;
    std::string remark;
    std::vector<constant_value> constants;
};

inline auto joined(std::vector<std::string> const& parts, std::string const& separator)
    -> std::string {
    std::string out;
    for (auto const& one : parts) { out += (out.empty() ? "" : separator) + one; }
    return out;
}

inline auto c_hex(std::uint64_t number, unsigned digits = 1) -> std::string {
    return "0x" + printed([=](auto& out) { print::hex(number, out, digits); });
}

inline auto row_mask(row_info const& row) -> std::uint64_t {
    return low_bits(row.msb - row.lsb + 1) << row.lsb;
}

/// The text of each element of a range.
template <class Range, class Text>
auto texts_of(Range const& all, Text const& text) -> std::vector<std::string> {
    std::vector<std::string> texts;
    texts.reserve(all.size());
    for (auto const& one : all) { texts.push_back(text(one)); }
    return texts;
}

/// Breaks a text into lines of at most `width` characters.
inline auto lines_of(std::string text, std::size_t width) -> std::vector<std::string> {
    std::vector<std::string> lines;
    while (text.size() > width) {
        auto const blank = text.rfind(' ', width);
        if (blank == std::string::npos) { break; }
        lines.push_back(text.substr(0, blank));
        text.erase(0, blank + 1);
    }
    lines.push_back(text);
    return lines;
}

/// The value of a payload size that is reserved.
inline constexpr std::uint8_t reserved_payload_size = 0xFF;

/// True for an area in memory. It becomes a structure.
inline auto is_area(entry const& one) -> bool {
    return !one.layout.is_packet && one.layout.bits > 64;
}

// ------------------------------------------------------------------------------------ words

inline void add_fields_of_word(entry const& of, constant_group& to) {
    auto const& name = of.constant_name;
    unsigned const bits = of.layout.bits;
    std::uint64_t reserved = 0;
    std::uint64_t write_ignored = 0;
    std::uint64_t reads_1 = 0;
    for (std::size_t i = 0; i < of.layout.count; ++i) {
        auto const& one = of.layout.first[i];
        auto const mask = row_mask(one.row);
        reserved |= one.row.kind == row_kind::reserved ? mask : 0;
        write_ignored |= one.row.access == row_access::write_ignored ? mask : 0;
        reads_1 |= one.row.access == row_access::forced_1 ? mask : 0;
        if (one.row.kind != row_kind::field) { continue; }
        auto const field = name + "_" + plain(one.row.name);
        auto const& text = of.rows[i];
        std::vector<std::string> comment;
        if (text.access != "read/write" && text.access != "read only") {
            comment.push_back(text.access);
        }
        if (one.enumerator_count == 0 && !text.meaning.empty()) { comment.push_back(text.meaning); }
        to.constants.push_back({field + "_MASK", mask, bits, joined(comment, "; ")});
        to.constants.push_back({field + "_SHIFT", one.row.lsb, 32});
        for (std::size_t encoding = 0; encoding < one.enumerator_count; ++encoding) {
            auto const enumerator = one.enumerators[encoding];
            if (enumerator.size() == 0) { continue; }
            to.constants.push_back({field + "_" + upper(plain(enumerator)), encoding, bits});
        }
    }
    to.constants.push_back({name + "_RESERVED_MASK", reserved, bits});
    if (write_ignored != 0) {
        to.constants.push_back({name + "_WRITE_IGNORED_MASK", write_ignored, bits});
    }
    if (reads_1 != 0) { to.constants.push_back({name + "_READS_1_MASK", reads_1, bits}); }
}

// ------------------------------------------------------------------------------------ packets

/// The packets whose first bytes also match the opcode of `general`, which has fewer fixed bits.
inline auto more_specific(entry const& general, std::vector<entry> const& entries)
    -> std::vector<std::string> {
    std::vector<std::string> names;
    auto const& of = general.bytes;
    for (auto const& other : entries) {
        if (!other.layout.is_packet || &other == &general) { continue; }
        bool matches = other.bytes.mask.size() >= of.mask.size();
        for (std::size_t i = 0; matches && i < of.mask.size(); ++i) {
            matches = (of.mask[i] & ~other.bytes.mask[i]) == 0 &&
                      (other.bytes.value[i] & of.mask[i]) == of.value[i];
        }
        if (matches) { names.push_back(other.name); }
    }
    return names;
}

inline void add_packet(entry const& of, constant_group& to) {
    auto const& name = of.constant_name;
    auto const& bytes = of.bytes;
    auto const add = [&](std::string const& what, std::uint64_t number) {
        to.constants.push_back({name + what, number, 32});
    };
    to.constants.push_back({name + "_OPCODE_VALUE", 0, 8, "", bytes.value});
    to.constants.push_back({name + "_OPCODE_MASK", 0, 8, "", bytes.mask});
    add("_MIN_BYTES", bytes.lengths.front());
    add("_MAX_BYTES", bytes.lengths.back());
    if (!bytes.payload_sizes.empty()) {
        std::vector<std::uint8_t> sizes;
        sizes.reserve(bytes.payload_sizes.size());
        for (auto const& size : bytes.payload_sizes) {
            sizes.push_back(size ? static_cast<std::uint8_t>(*size) : reserved_payload_size);
        }
        to.constants.push_back({name + "_PAYLOAD_BYTES", 0, 8,
                                "by the field that selects the size; FFH is reserved", sizes});
    }
    for (std::size_t i = 0; i < of.layout.count; ++i) {
        auto const& one = of.layout.first[i];
        if (one.row.kind != row_kind::field) { continue; }
        auto const field = "_" + plain(one.row.name);
        to.constants.push_back({name + field + "_SHIFT", one.row.lsb, 32, of.rows[i].meaning});
        add(field + "_WIDTH", width_of(one.row));
    }
}

// ------------------------------------------------------------------------------------ all

/// The constants of all words and packets. Areas in memory have none.
inline auto constant_groups(std::vector<entry> const& entries) -> std::vector<constant_group> {
    std::vector<constant_group> groups;
    for (auto const& one : entries) {
        if (is_area(one)) { continue; }
        constant_group group{one.name + ": " + one.place, "", {}};
        if (one.layout.is_packet) {
            auto const remarks = texts_of(one.remarks, [](auto const& remark) {
                return remark.first + ": " + remark.second;
            });
            group.title += "; " + joined(remarks, ", ");
            if (one.bytes.only_in_block) { group.remark = "Only inside a block of PEBS items."; }
            if (auto const others = more_specific(one, entries); !others.empty()) {
                group.remark = "Compare bytes with these opcodes first: " + joined(others, ", ") +
                               ".";
            }
            add_packet(one, group);
        } else {
            for (auto const& place : one.locations) {
                group.constants.push_back({place.name + "_" + place.kind, place.number, 32});
            }
            add_fields_of_word(one, group);
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

/// The defaults for processors without CPUID leaf 80000008H.
inline auto default_widths() -> constant_group {
    cpu::capabilities const none{};
    return {"The widths of addresses where CPUID leaf 80000008H is absent",
            "",
            {{"DEFAULT_MAXPHYADDR", none.max_phys_addr().bits, 32},
             {"DEFAULT_LINEAR_BITS", none.linear_address_bits(), 32},
             {"TOPA_SMALLEST_REGION", topa::bytes_in(topa::region_size::size_4K), 64}}};
}

/// All rules that the library returns.
inline auto all_rules() -> std::vector<rule> {
    std::vector<rule> rules;
    auto const unknown = describe(static_cast<rule>(0xFFFF));
    for (std::uint16_t number = 1; number < 10'000; ++number) {
        auto const one = static_cast<rule>(number);
        if (describe(one) != unknown) { rules.push_back(one); }
    }
    return rules;
}

inline auto id_of(rule which) -> std::string { return plain(rule_id{which}.view()); }

/// `REG_044`; `NONE` for no rule.
inline auto identifier_of(rule which) -> std::string {
    auto id = upper(id_of(which));
    std::replace(id.begin(), id.end(), '-', '_');
    return id;
}

inline auto version_text() -> std::string {
    return std::to_string(version.major_version) + "." + std::to_string(version.minor_version) +
           "." + std::to_string(version.patch_version);
}

// ------------------------------------------------------------------------------------ checks

/// The names of the fields that have one of `bits`; `reserved` for reserved bits.
inline auto names_of_bits(std::uint32_t msr, std::uint64_t bits) -> std::string {
    std::vector<std::string> names;
    for (auto const& one : layout_of_msr(msr)) {
        if ((row_mask(one.row) & bits) == 0) { continue; }
        auto const name = plain(one.row.name);
        if (names.empty() || names.back() != name) { names.push_back(name); }
    }
    return joined(names, ", ");
}

/// Names for the rows of the tables, in one language. `prefix` begins each name.
class row_names {
public:
    row_names(std::vector<entry> const& entries, std::string prefix)
        : entries_{entries}, prefix_{std::move(prefix)} {}

    /// The name of an MSR; empty for a number that is none.
    [[nodiscard]] auto register_name(std::uint32_t number) const -> std::string {
        for (auto const& one : entries_) {
            for (auto const& place : one.locations) {
                if (place.kind == "MSR" && place.number == number) { return place.name; }
            }
        }
        return {};
    }
    [[nodiscard]] auto msr(std::uint32_t number) const -> std::string {
        auto const name = register_name(number);
        return name.empty() ? c_hex(number) : prefix_ + name + "_MSR";
    }
    /// The masks of the fields of a capability: `0` for none.
    [[nodiscard]] auto mask(capability const& of) const -> std::string {
        std::vector<std::string> masks;
        auto const& word = capability_words()[of.word];
        for (auto const& one : word.layout) {
            if (one.row.kind == row_kind::field && (row_mask(one.row) & of.mask) != 0) {
                masks.push_back(prefix_ + upper(word.name()) + "_" + plain(one.row.name) + "_MASK");
            }
        }
        return of.mask == 0 ? "0" : joined(masks, " | ");
    }

private:
    std::vector<entry> const& entries_;
    std::string prefix_;
};

/// The capability words that the checks read, in the order of cpu::capabilities.
inline auto words_of_checks(write_rules const& rules) -> std::vector<capability_word> {
    std::vector<std::uint64_t> used(capability_words().size());
    for (auto const& row : rules.msrs) { used[row.needs.of.word] |= row.needs.of.mask; }
    for (auto const& row : rules.bits) { used[row.needs.of.word] |= row.needs.of.mask; }
    for (auto const& row : rules.encodings) { used[row.enumerated.word] |= row.enumerated.mask; }
    std::vector<capability_word> words;
    for (std::size_t i = 0; i < used.size(); ++i) {
        auto const& word = capability_words()[i];
        bool const has_widths = word.layout.name == name_of<reg::cpuid_80000008h_eax>();
        if (used[i] != 0 || has_widths) { words.push_back(word); }
    }
    return words;
}

}  // namespace regmap
