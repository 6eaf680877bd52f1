// SPDX-License-Identifier: BSL-1.0
#pragma once

// Every hardware word and packet of the library as data, taken from its declaration.

#include "../common/draw/figure.hpp"

#include <ptspec/packet/decode.hpp>
#include <ptspec/print/packet.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace regmap {

using namespace ptspec;

/// A row of a field table.
struct row {
    std::string where;  ///< `17:14`; in a packet `1.5..1.6`
    std::string name;
    std::string access;
    std::string meaning;
    row_kind kind;
};

/// Wrong usage of the command line.
struct misuse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Bytes that are not an encoding of the given packet.
struct refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The text for a decoded value: a headline, and one line for each field.
struct decoded_value {
    std::string summary;
    std::vector<std::pair<std::string, std::string>> fields;
};

/// A number that locates a word: the address of an MSR, the leaf of a CPUID word and so on.
struct location {
    std::string name;  ///< `IA32_RTIT_ADDR0_A`
    std::string kind;  ///< `MSR`, `LEAF`
    std::uint32_t number;
};

/// The bytes of a packet.
struct packet_bytes {
    std::vector<std::uint8_t> value;  ///< of the fixed bits, up to the last byte that has some
    std::vector<std::uint8_t> mask;   ///< the fixed bits
    std::vector<unsigned> lengths;    ///< in bytes
    /// The payload size for each value of the field that selects it; nothing for a reserved value.
    std::vector<std::optional<unsigned>> payload_sizes;
    bool only_in_block = false;
};

struct entry {
    std::string name;  ///< spelled as in the manual
    std::string cpp_name;
    std::string constant_name;  ///< in constants of other languages: `TOPA_ENTRY`, `PACKET_TIP`
    std::string section;
    std::string place;  ///< size, and address or index
    std::vector<location> locations;
    std::vector<std::pair<std::string, std::string>> remarks;  ///< further facts about a packet
    std::vector<std::string> keys;  ///< names for look-up; `#` stands for a number
    print::row_list layout;
    packet_bytes bytes;  ///< of a packet
    std::vector<row> rows;
    decoded_value (*decode)(std::span<std::string const> values, unsigned max_phys_addr);
};

inline auto plain(text what) -> std::string { return {what.data(), what.size()}; }

/// The output of all print functions. One type, so that they are instantiated once.
struct string_writer {
    std::string written;

    void operator()(text piece) { written.append(piece.data(), piece.size()); }
};

/// The output of a print function as a string.
template <class Prints>
auto printed(Prints&& prints) -> std::string {
    string_writer out;
    prints(out);
    return std::move(out.written);
}

inline auto hex(std::uint64_t number, unsigned digits = 1) -> std::string {
    return printed([=](auto& out) { print::hex(number, out, digits); }) + "H";
}
inline auto decimal(std::uint64_t number) -> std::string { return std::to_string(number); }

/// The form in which names are compared: no namespaces, lower case, `_` for every other separator.
inline auto key_of(std::string_view name) -> std::string {
    if (auto const colons = name.rfind("::"); colons != std::string_view::npos) {
        name.remove_prefix(colons + 2);
    }
    std::string key;
    for (char const letter : name) {
        key += letter == '.' || letter == ':' || letter == '-' || letter == ' '
                   ? '_'
                   : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return key;
}

inline auto upper(std::string text) -> std::string {
    for (char& letter : text) {
        letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    }
    return text;
}

// ------------------------------------------------------------------------------------ rows

inline auto width_of(row_info const& row) -> unsigned { return row.msb - row.lsb + 1; }

inline auto place_of(row_info const& row, bool in_bytes) -> std::string {
    auto const place = [=](unsigned bit) {
        return in_bytes ? decimal(bit / 8) + "." + decimal(bit % 8) : decimal(bit);
    };
    return row.msb == row.lsb ? place(row.lsb)
           : in_bytes         ? place(row.lsb) + ".." + place(row.msb)
                              : place(row.msb) + ":" + place(row.lsb);
}

/// The names of a field's encodings: `0=off, 1=filter, 2=trace_stop`.
inline auto names_of_encodings(print::row_facts const& field) -> std::string {
    std::string out;
    for (std::size_t encoding = 0; encoding < field.enumerator_count; ++encoding) {
        auto const name = field.enumerators[encoding];
        if (name.size() == 0) { continue; }
        out += (out.empty() ? "" : ", ") + (encoding < 10 ? decimal(encoding) : hex(encoding)) +
               "=" + plain(name);
    }
    return out;
}

/// The quantities that a field's encodings stand for: `1, 2, 4 to 32768 crystal cycles`.
inline auto amounts_of_encodings(print::row_facts const& field) -> std::string {
    std::uint64_t const last = low_bits(width_of(field.row));
    auto const highest = field.amount_of(last);
    auto const unit = plain(highest.unit);
    if (highest.count == last) { return "in " + unit; }
    std::string out;
    for (std::uint64_t encoding = 0; encoding < 3; ++encoding) {
        auto const amount = field.amount_of(encoding);
        out += (encoding == 0 ? "" : ", ") +
               (amount.unit.size() == 0 ? "none" : decimal(amount.count));
    }
    return out + " to " + decimal(highest.count) + " " + unit;
}

inline auto meaning_of(print::row_facts const& of) -> std::string {
    auto const& row = of.row;
    if (row.kind == row_kind::fixed) { return "is " + hex(of.value, (width_of(row) + 3) / 4); }
    if (of.payload_sizes != 0) {
        return printed([&](auto& out) { draw::byte_counts(of.payload_sizes, out); });
    }
    if (row.is_address) {
        unsigned const lowest = row.lowest_address_bit;
        unsigned const highest = lowest + width_of(row) - 1;
        auto const bits = "address bits " + decimal(highest) + ":" + decimal(lowest);
        return of.ends_at_max_phys_addr && highest == 63 ? bits + ", reserved from MAXPHYADDR on"
                                                         : bits;
    }
    if (of.enumerator_count != 0) { return names_of_encodings(of); }
    bool const amounts = of.amount_of(low_bits(width_of(row))).unit.size() != 0;
    return amounts ? amounts_of_encodings(of) : "";
}

inline auto rows_of(print::row_list const& layout) -> std::vector<row> {
    bool const in_bytes = draw::drawn_in_bytes(layout);
    std::vector<row> rows;
    for (auto const& one : layout) {
        bool const field = one.row.kind == row_kind::field;
        bool const opcode = one.row.kind == row_kind::fixed;
        rows.push_back({one.payload_sizes != 0 ? decimal(one.row.lsb / 8) + ".0.."
                                               : place_of(one.row, in_bytes),
                        plain(one.row.name),
                        !field || layout.is_packet ? "" : plain(print::access_name(one.row.access)),
                        opcode || field ? meaning_of(one) : "", one.row.kind});
    }
    return rows;
}

// ------------------------------------------------------------------------------------ values

/// Parses a hexadecimal number: with prefix 0x, with suffix H, or bare.
inline auto number_from(std::string_view text) -> std::optional<std::uint64_t> {
    if (text.starts_with("0x") || text.starts_with("0X")) {
        text.remove_prefix(2);
    } else if (text.ends_with('H') || text.ends_with('h')) {
        text.remove_suffix(1);
    }
    std::uint64_t value = 0;
    unsigned digits = 0;
    for (char const letter : text) {
        auto const at = std::string_view{"0123456789abcdef"}.find(
            static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
        if (at == std::string_view::npos) { return {}; }
        digits += digits != 0 || at != 0 ? 1 : 0;
        value = value << 4 | at;
    }
    return text.empty() || digits > 16 ? std::optional<std::uint64_t>{} : value;
}

/// The single value on the command line; it has at most `bits` bits.
inline auto only_number(std::span<std::string const> values, unsigned bits) -> std::uint64_t {
    if (bits > 64) { throw misuse{"this has more than 64 bits: decode its registers one by one"}; }
    if (values.size() != 1) { throw misuse{"one value is needed"}; }
    auto const number = number_from(values[0]);
    if (!number) { throw misuse{values[0] + " is no hexadecimal number of 64 bits"}; }
    if ((*number & ~low_bits(bits)) != 0) {
        throw misuse{values[0] + " has more than " + decimal(bits) + " bits"};
    }
    return *number;
}

/// One line for each field and its value.
inline auto fields_of(print::row_list const& layout, wide_bits raw, print::style how)
    -> std::vector<std::pair<std::string, std::string>> {
    std::vector<std::pair<std::string, std::string>> fields;
    print::for_each_field(layout, raw, [&](print::field_value const& field) {
        fields.emplace_back(plain(field.facts->row.name),
                            printed([&](auto& out) { print::value(field, out, how); }));
    });
    return fields;
}

template <class Word>
auto decode_word(std::span<std::string const> values, unsigned max_phys_addr) -> decoded_value {
    auto const layout = print::row_list_of<Word>();
    auto const number = only_number(values, layout.bits);
    if constexpr (requires(Word word) { word.raw; }) {
        Word const word{static_cast<typename Word::raw_type>(number)};
        print::style const how{.max_phys_addr = max_phys_addr};
        string_writer out;
        print::word(word, out, how);
        return {std::move(out.written), fields_of(layout, {number, 0}, how)};
    } else {
        return {};
    }
}

/// Parses bytes from groups of hexadecimal digits: `02 12 78563412`.
inline auto bytes_from(std::span<std::string const> values) -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> bytes;
    for (std::string_view text : values) {
        if (text.starts_with("0x")) { text.remove_prefix(2); }
        std::string digits;
        for (char const letter : text) {
            if (letter != ' ') { digits += letter; }
        }
        for (std::size_t i = 0; i < digits.size(); i += 2) {
            auto const byte = digits.size() % 2 == 0 ? number_from("0x" + digits.substr(i, 2))
                                                     : std::nullopt;
            if (!byte) {
                throw misuse{std::string{text} + ": bytes are pairs of hexadecimal digits"};
            }
            bytes.push_back(static_cast<std::uint8_t>(*byte));
        }
    }
    return bytes;
}

inline auto refusal_of(rule broken) -> refusal {
    return refusal{plain(describe(broken)) + " (" + plain(rule_id{broken}.view()) + ")"};
}
inline auto refusal_of(std::size_t length, std::size_t given) -> refusal {
    return refusal{"more bytes than the packet has: " + decimal(given) + ", not " +
                   decimal(length)};
}

template <class Packet>
auto decode_packet(std::span<std::string const> values, unsigned max_phys_addr) -> decoded_value {
    auto const bytes = bytes_from(values);
    // The length of a BIP depends on its block (BBP); here it is derived from the number of bytes.
    using packet::block;
    bool const is_item = same_as<typename Packet::payload_type, packet::payload_of_block>;
    bool const items_of_4 = bytes.size() == Packet::length_of({}, block::items_of_4);
    packet::decode_options const context{.block = !is_item     ? block::none
                                                  : items_of_4 ? block::items_of_4
                                                               : block::items_of_8};
    auto const read = packet::decode_as<Packet>(byte_view{bytes.data(), bytes.size()}, context);
    if (!read) { throw refusal_of(read.broken); }
    if (read.length != bytes.size()) { throw refusal_of(read.length, bytes.size()); }
    print::style how = print::style::full;
    how.max_phys_addr = max_phys_addr;
    string_writer out;
    print::packet(read.packet, out, how);
    return {std::move(out.written),
            fields_of(print::row_list_of<Packet>(), to_wide(read.packet.raw), how)};
}

// ------------------------------------------------------------------------------------ words

/// The manual's name of a CPUID word: `CPUID.14H.0:EBX` for `cpuid_14h_0_ebx`. The `x` of a
/// numbered name stays in lower case.
template <class Word>
auto manual_name(std::string_view prefix, bool numbered) -> std::string {
    std::string name = std::string{prefix} + plain(name_of<Word>());
    if constexpr (requires { Word::leaf; }) {
        auto const words = name.substr(name.find('_') + 1);
        auto const last = words.rfind('_');
        auto leaf = words.substr(0, last);
        std::replace(leaf.begin(), leaf.end(), '_', '.');
        return upper("cpuid." + leaf + ":" + words.substr(last + 1));
    }
    auto upper_case = upper(name);
    for (std::size_t i = 1; numbered && i < name.size(); ++i) {
        if (name[i] == 'x' && (i + 1 == name.size() || name[i + 1] == '_')) { upper_case[i] = 'x'; }
    }
    return upper_case;
}

template <class Word>
concept numbered_by_range = requires { Word::address(0U, reg::range_end::b); };
template <class Word>
concept numbered = numbered_by_range<Word> || requires { Word::address(0U); };

/// The address or index of a word, from the constants of its declaration.
template <class Word>
auto place_of_word() -> std::string {
    constexpr unsigned bits = print::row_list_of<Word>().bits;
    std::string const size = bits > 64 ? decimal(bits / 8) + "-byte" : decimal(bits) + "-bit";
    if constexpr (numbered_by_range<Word>) {
        return size + " MSRs " + hex(Word::address(0, reg::range_end::a)) + " to " +
               hex(Word::address(Word::count - 1, reg::range_end::b));
    } else if constexpr (numbered<Word>) {
        return size + " MSRs from " + hex(Word::address(0)) + " on";
    } else if constexpr (requires { Word::address; }) {
        return size + " MSR " + hex(Word::address);
    } else if constexpr (requires { Word::leaf; }) {
        return size + " word, CPUID leaf " + hex(Word::leaf, 2) + ", sub-leaf " +
               decimal(Word::subleaf) + ", " + upper(plain(name_of_enumerator<Word::output>()));
    } else if constexpr (requires { Word::encoding_high; }) {
        return size + " VMCS field " + hex(Word::encoding) + ", high half " +
               hex(Word::encoding_high);
    } else if constexpr (requires { Word::encoding; }) {
        return size + " VMCS field " + hex(Word::encoding);
    } else if constexpr (requires { Word::offset; }) {
        return size + " word in memory at offset " + hex(Word::offset);
    } else {
        return size + (bits > 64 ? " area" : " word");
    }
}

/// The numbers that locate a word, from the constants of its declaration.
template <class Word>
auto locations_of() -> std::vector<location> {
    auto const name = upper(plain(name_of<Word>()));
    std::vector<location> found;
    auto const add = [&](std::string const& kind, std::uint32_t number) {
        found.push_back({name, kind, number});
    };
    if constexpr (numbered_by_range<Word>) {
        for (unsigned n = 0; n < Word::count; ++n) {
            for (auto const which : {reg::range_end::a, reg::range_end::b}) {
                found.push_back({name + decimal(n) + (which == reg::range_end::a ? "_A" : "_B"),
                                 "MSR", Word::address(n, which)});
            }
        }
    } else if constexpr (numbered<Word>) {
        add("FIRST_MSR", Word::address(0));
    } else if constexpr (requires { Word::address; }) {
        add("MSR", Word::address);
    } else if constexpr (requires { Word::leaf; }) {
        add("LEAF", Word::leaf);
        add("SUBLEAF", Word::subleaf);
        add("REGISTER", static_cast<std::uint32_t>(Word::output));
    } else if constexpr (requires { Word::encoding; }) {
        add("VMCS_ENCODING", Word::encoding);
        if constexpr (requires { Word::encoding_high; }) {
            add("VMCS_ENCODING_HIGH", Word::encoding_high);
        }
    } else if constexpr (requires { Word::offset; }) {
        add("OFFSET", Word::offset);
    }
    return found;
}

/// The section of the atlas for a word of namespace `reg`.
inline auto section_of(std::string_view name) -> std::string {
    auto const begins = [=](std::string_view with) { return name.starts_with(with); };
    return begins("ia32_rtit") || begins("dr7")    ? "Trace unit"
           : begins("cpuid")                       ? "CPUID"
           : begins("ia32_vmx") || begins("vmcs")  ? "VMX"
           : begins("xsave") || begins("ia32_xss") ? "XSAVE"
           : begins("ia32_perf") || begins("ia32_pebs") || begins("msr_re")
               ? "Performance monitoring"
           : begins("msr_l") || begins("ia32_debugctl") ? "Last branches"
                                                        : "Memory, APIC, platform";
}

template <class Word>
auto make_word(std::string const& space, std::string const& prefix, std::string const& section)
    -> entry {
    auto const cpp = plain(name_of<Word>());
    entry made;
    made.name = manual_name<Word>(prefix, numbered<Word> || cpp.find("x_cfg") != std::string::npos);
    made.cpp_name = "ptspec::" + space + "::" + cpp;
    made.section = section.empty() ? section_of(cpp) : section;
    made.place = place_of_word<Word>();
    made.locations = locations_of<Word>();
    made.constant_name = upper(prefix + cpp);
    made.keys = {key_of(made.name), key_of(cpp)};
    if constexpr (numbered_by_range<Word>) {
        for (unsigned n = 0; n < Word::count; ++n) {
            made.keys.push_back(cpp + decimal(n) + "_a");
            made.keys.push_back(cpp + decimal(n) + "_b");
        }
        made.keys.push_back(cpp + "n_a");
        made.keys.push_back(cpp + "n_b");
    }
    for (std::size_t i = 1; i < made.name.size(); ++i) {
        if (made.name[i] == 'x') { made.keys.push_back(std::string{cpp}.replace(i, 1, "#")); }
    }
    made.layout = print::row_list_of<Word>();
    made.rows = rows_of(made.layout);
    made.decode = &decode_word<Word>;
    return made;
}

// ------------------------------------------------------------------------------------ packets

inline auto words_of(packet::cyc_rule answer) -> std::string {
    return answer == packet::cyc_rule::yes  ? "yes"
           : answer == packet::cyc_rule::no ? "no"
                                            : "unconfirmed";
}
inline auto words_of(packet::ip_binding binding) -> std::string {
    return binding == packet::ip_binding::yes  ? "yes"
           : binding == packet::ip_binding::no ? "no"
                                               : "conditional";
}

template <class Packet>
auto bytes_of_packet() -> packet_bytes {
    packet_bytes made{};
    auto const layout = print::row_list_of<Packet>();
    for (auto const& one : layout) {
        if (one.row.kind != row_kind::fixed) { continue; }
        made.value.resize(one.row.msb / 8 + 1);
        made.mask.resize(one.row.msb / 8 + 1);
        for (unsigned bit = one.row.lsb; bit <= one.row.msb; ++bit) {
            auto const in_byte = static_cast<std::uint8_t>(1U << bit % 8);
            made.mask[bit / 8] |= in_byte;
            if ((one.value >> (bit - one.row.lsb) & 1) != 0) { made.value[bit / 8] |= in_byte; }
        }
    }
    auto const payload = layout.last().payload_sizes;
    for (unsigned size = 0; size < 32; ++size) {
        if ((payload == 0 ? size == 0 : (payload >> size & 1) != 0)) {
            made.lengths.push_back(Packet::head_bytes + size);
        }
    }
    using sizes = typename Packet::payload_type;
    if constexpr (requires { sizes::size(std::uint64_t{}); }) {
        constexpr auto most = low_bits(packet::payload_selector<Packet>::width);
        for (std::uint64_t number = 0; number <= most; ++number) {
            unsigned const size = sizes::size(number);
            made.payload_sizes.push_back(size == packet::undefined_size ? std::nullopt
                                                                        : std::optional{size});
        }
    }
    made.only_in_block = same_as<sizes, packet::payload_of_block>;
    return made;
}

template <class Packet>
auto make_packet() -> entry {
    constexpr auto about = Packet::about;
    entry made;
    string_writer out;
    made.name = plain(about.name);
    made.cpp_name = "ptspec::packet::" + plain(name_of<Packet>());
    made.section = "Packets";
    made.layout = print::row_list_of<Packet>();
    auto const payload = made.layout.last().payload_sizes;
    draw::byte_counts((payload == 0 ? 1 : payload) << Packet::head_bytes, out);
    made.place = std::move(out.written);
    if (made.place == "1 bytes") { made.place = "1 byte"; }
    made.bytes = bytes_of_packet<Packet>();
    made.constant_name = "PACKET_" + upper(plain(name_of<Packet>()));
    made.remarks = {{"binds to IP", words_of(about.binds_to_ip)},
                    {"in PSB+", about.in_psb_plus ? "yes" : "no"},
                    {"CYC eligible", words_of(about.cyc_eligible)}};
    made.keys = {key_of(made.name), key_of(plain(name_of<Packet>()))};
    made.rows = rows_of(made.layout);
    made.decode = &decode_packet<Packet>;
    return made;
}

// ------------------------------------------------------------------------------------ all entries

/// All words and packets, by section.
inline auto all_entries() -> std::vector<entry> {
    std::vector<entry> entries;
    [&]<class... Words>(type_list<Words...>) {
        (entries.push_back(make_word<Words>("reg", "", "")), ...);
    }(reg::all{});
    entries.push_back(make_word<topa::entry>("topa", "topa_", "Tables of physical addresses"));
    entries.push_back(make_word<topa::end_entry>("topa", "topa_", "Tables of physical addresses"));
    [&]<class... Packets>(type_list<Packets...>) {
        (entries.push_back(make_packet<Packets>()), ...);
    }(packet::all{});
    return entries;
}

/// True when `key` matches `pattern`, whose `#` stands for a number.
inline auto matches(std::string_view key, std::string_view pattern) -> bool {
    auto const hash = pattern.find('#');
    if (hash == std::string_view::npos) { return key == pattern; }
    auto const before = pattern.substr(0, hash);
    auto const after = pattern.substr(hash + 1);
    if (key.size() <= before.size() + after.size() || !key.starts_with(before) ||
        !key.ends_with(after)) {
        return false;
    }
    auto const number = key.substr(hash, key.size() - before.size() - after.size());
    return number == "n" || std::all_of(number.begin(), number.end(),
                                        [](char letter) { return letter >= '0' && letter <= '9'; });
}

inline auto find(std::vector<entry> const& entries, std::string_view name) -> entry const* {
    auto const key = key_of(name);
    for (auto const& one : entries) {
        for (auto const& pattern : one.keys) {
            if (matches(key, pattern)) { return &one; }
        }
    }
    return nullptr;
}

/// The edit distance: the number of insertions, deletions and substitutions between two texts.
inline auto edit_distance(std::string_view one, std::string_view other) -> std::size_t {
    std::vector<std::size_t> costs(other.size() + 1);
    for (std::size_t i = 0; i <= other.size(); ++i) { costs[i] = i; }
    for (std::size_t row = 1; row <= one.size(); ++row) {
        std::size_t diagonal = costs[0];
        costs[0] = row;
        for (std::size_t i = 1; i <= other.size(); ++i) {
            auto const changed = diagonal + (one[row - 1] == other[i - 1] ? 0 : 1);
            diagonal = costs[i];
            costs[i] = std::min({changed, costs[i] + 1, costs[i - 1] + 1});
        }
    }
    return costs[other.size()];
}

/// Up to three names that are most similar to an unknown one. Names that contain it come first.
inline auto nearest(std::vector<entry> const& entries, std::string_view name)
    -> std::vector<std::string> {
    auto const key = key_of(name);
    std::vector<std::pair<std::size_t, std::size_t>> found;  // distance, index of the entry
    for (auto const& one : entries) {
        std::size_t least = ~std::size_t{0};
        for (auto const& other : one.keys) {
            bool const holds = key.size() > 2 && other.find(key) != std::string::npos;
            least = std::min(least, holds ? 1 : edit_distance(key, other));
        }
        found.emplace_back(least, found.size());
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> names;
    for (auto const& [cost, which] : found) {
        if (names.size() < 3 && cost <= found[0].first + 1) {
            names.push_back(entries[which].name);
        }
    }
    return names;
}

}  // namespace regmap
