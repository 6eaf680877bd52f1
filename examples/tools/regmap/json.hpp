// SPDX-License-Identifier: BSL-1.0
#pragma once

// All words and packets, the rules and the tables of WRMSR as JSON.

#include "constants.hpp"

namespace regmap {

class json_document {
public:
    explicit json_document(std::vector<entry> const& entries) : entries_{entries} {}

    auto text() const -> std::string {
        std::vector<std::string> words;
        std::vector<std::string> packets;
        std::vector<std::string> rules;
        for (auto const& one : entries_) {
            (one.layout.is_packet ? packets : words)
                .push_back(one.layout.is_packet ? packet(one) : word(one));
        }
        for (auto const one : all_rules()) {
            rules.push_back(object({{"id", quoted(id_of(one))},
                                    {"number", decimal(underlying(one))},
                                    {"text", quoted(plain(describe(one)))}}));
        }
        return "{\n\"generator\": " + quoted("ptspec " + version_text()) +
               ",\n\"words\": " + lines(words) + ",\n\"packets\": " + lines(packets) +
               ",\n\"rules\": " + lines(rules) + ",\n\"write_checks\": " + checks() + "\n}\n";
    }

private:
    using members = std::vector<std::pair<std::string, std::string>>;

    static auto quoted(std::string const& text) -> std::string {
        std::string out = "\"";
        for (char const letter : text) {
            if (letter == '"' || letter == '\\') { out += '\\'; }
            out += letter;
        }
        return out + "\"";
    }
    /// A number that may have more than 53 bits, as text.
    static auto mask(std::uint64_t number) -> std::string { return quoted(c_hex(number)); }
    static auto truth(bool value) -> std::string { return value ? "true" : "false"; }
    static auto object(members const& all) -> std::string {
        std::vector<std::string> parts;
        for (auto const& [name, value] : all) { parts.push_back(quoted(name) + ": " + value); }
        return "{" + joined(parts, ", ") + "}";
    }
    /// An array on one line, and one with a line for each element.
    static auto array(std::vector<std::string> const& all) -> std::string {
        return "[" + joined(all, ", ") + "]";
    }
    static auto lines(std::vector<std::string> const& all) -> std::string {
        return all.empty() ? "[]" : "[\n" + joined(all, ",\n") + "\n]";
    }

    static auto kind_of(row_kind kind) -> std::string {
        return kind == row_kind::field      ? "field"
               : kind == row_kind::reserved ? "reserved"
               : kind == row_kind::other    ? "other"
                                            : "fixed";
    }
    /// True for an address whose bits from MAXPHYADDR on are reserved.
    static auto is_bounded(print::row_facts const& of) -> bool {
        unsigned const highest = of.row.lowest_address_bit + width_of(of.row) - 1;
        return of.ends_at_max_phys_addr && highest == 63;
    }
    static auto rows_of(entry const& of) -> std::string {
        std::vector<std::string> rows;
        for (std::size_t i = 0; i < of.layout.count; ++i) {
            auto const& one = of.layout.first[i];
            members row{{"name", quoted(plain(one.row.name))},
                        {"msb", decimal(one.row.msb)},
                        {"lsb", decimal(one.row.lsb)},
                        {"kind", quoted(kind_of(one.row.kind))}};
            auto const& text = of.rows[i];
            if (!text.access.empty()) { row.emplace_back("access", quoted(text.access)); }
            if (one.row.kind == row_kind::fixed) { row.emplace_back("value", mask(one.value)); }
            if (one.row.is_address) {
                row.emplace_back("lowest_address_bit", decimal(one.row.lowest_address_bit));
                row.emplace_back("reserved_from_maxphyaddr", truth(is_bounded(one)));
            }
            std::vector<std::string> encodings;
            for (std::size_t encoding = 0; encoding < one.enumerator_count; ++encoding) {
                auto const name = one.enumerators[encoding];
                if (name.size() == 0) { continue; }
                encodings.push_back(
                    object({{"value", decimal(encoding)}, {"name", quoted(plain(name))}}));
            }
            if (!encodings.empty()) { row.emplace_back("encodings", array(encodings)); }
            if (encodings.empty() && !text.meaning.empty()) {
                row.emplace_back("meaning", quoted(text.meaning));
            }
            rows.push_back("  " + object(row));
        }
        return lines(rows);
    }

    static auto word(entry const& one) -> std::string {
        auto const locations = texts_of(one.locations, [](auto const& place) {
            return object({{"name", quoted(place.name)},
                           {"kind", quoted(place.kind)},
                           {"number", decimal(place.number)}});
        });
        return object({{"name", quoted(one.name)},
                       {"cpp_name", quoted(one.cpp_name)},
                       {"section", quoted(one.section)},
                       {"place", quoted(one.place)},
                       {"bits", decimal(one.layout.bits)},
                       {"locations", array(locations)},
                       {"rows", rows_of(one)}});
    }

    static auto bytes_of(std::vector<std::uint8_t> const& bytes) -> std::string {
        return array(texts_of(bytes, decimal));
    }
    static auto packet(entry const& one) -> std::string {
        auto const& bytes = one.bytes;
        auto const sizes = texts_of(bytes.payload_sizes, [](auto const& size) {
            return size ? decimal(*size) : std::string{"null"};
        });
        members all{{"name", quoted(one.name)},
                    {"cpp_name", quoted(one.cpp_name)},
                    {"opcode_value", bytes_of(bytes.value)},
                    {"opcode_mask", bytes_of(bytes.mask)},
                    {"only_in_block", truth(bytes.only_in_block)},
                    {"lengths", array(texts_of(bytes.lengths, decimal))},
                    {"payload_sizes", array(sizes)}};
        for (auto const& [what, answer] : one.remarks) {
            auto const name = key_of(what);
            all.emplace_back(name.ends_with('+') ? name.substr(0, name.size() - 1) + "_plus" : name,
                             quoted(answer));
        }
        all.emplace_back("rows", rows_of(one));
        return object(all);
    }

    static auto capability_of(capability const& of) -> std::string {
        if (of.mask == 0) { return "null"; }
        return object(
            {{"word", quoted(capability_words()[of.word].name())}, {"mask", mask(of.mask)}});
    }
    /// What a row needs; `capability` is null where no processor has it.
    static auto need_of(need const& one) -> members {
        return {{"capability", capability_of(one.of)},
                {"least", decimal(one.least)},
                {"rule", quoted(id_of(one.broken))}};
    }
    static auto checks() -> std::string {
        auto const all = find_write_rules();
        std::vector<std::string> msrs;
        std::vector<std::string> bits;
        std::vector<std::string> encodings;
        auto const add = [](std::vector<std::string>& to, members row, members const& more) {
            row.insert(row.end(), more.begin(), more.end());
            to.push_back(object(row));
        };
        for (auto const& row : all.msrs) {
            add(msrs,
                {{"first", decimal(row.first)},
                 {"last", decimal(row.last)},
                 {"in_vmx", truth(row.in_vmx)}},
                need_of(row.needs));
        }
        for (auto const& row : all.bits) {
            add(bits,
                {{"msr", decimal(row.msr)},
                 {"bits", mask(row.bits)},
                 {"without", mask(row.without)},
                 {"late", truth(row.late)}},
                need_of(row.needs));
        }
        for (auto const& row : all.encodings) {
            add(encodings,
                {{"msr", decimal(row.msr)},
                 {"field", mask(row.field)},
                 {"listed", mask(row.listed)}},
                {{"capability", capability_of(row.enumerated)},
                 {"rule", quoted(id_of(row.broken))}});
        }
        return object(
            {{"msrs", lines(msrs)}, {"bits", lines(bits)}, {"encodings", lines(encodings)}});
    }

    std::vector<entry> const& entries_;
};

}  // namespace regmap
