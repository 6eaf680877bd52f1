// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/list.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>

#include <spec_tables.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace ptspec;
using namespace ptspec::packet;

namespace {

// ------------------------------------------------------------------------------------ texts

auto to_string(text from) -> std::string { return {from.data(), from.size()}; }

auto split(std::string const& cell, char at) -> std::vector<std::string> {
    std::vector<std::string> parts;
    if (cell.empty()) { return parts; }
    parts.emplace_back();
    for (char const letter : cell) {
        if (letter == at) {
            parts.emplace_back();
        } else {
            parts.back() += letter;
        }
    }
    return parts;
}

/// Removes text in parentheses and the space before it.
auto without_parentheses(std::string const& cell) -> std::string {
    std::string out;
    int depth = 0;
    for (char const letter : cell) {
        if (letter == '(') {
            if (depth++ == 0 && !out.empty() && out.back() == ' ') { out.pop_back(); }
        } else if (letter == ')') {
            --depth;
        } else if (depth == 0) {
            out += letter;
        }
    }
    return out;
}

/// Removes the suffix `end` from `whole`. Returns true if it was there.
auto remove_suffix(std::string& whole, std::string const& end) -> bool {
    bool const there = whole.ends_with(end);
    if (there) { whole.resize(whole.size() - end.size()); }
    return there;
}

auto number(std::string const& digits, int base = 10) -> unsigned {
    std::size_t used = 0;
    auto const value = std::stoul(digits, &used, base);
    if (used != digits.size()) { throw std::runtime_error{"no number: " + digits}; }
    return static_cast<unsigned>(value);
}

// ------------------------------------------------------------------------------------ opcodes

struct opcode {
    wide_bits value{};
    wide_bits mask{};

    friend auto operator==(opcode const&, opcode const&) -> bool = default;
};

/// Parses `02/ff 12/1f`, one value and mask per byte. ` x8` repeats the bytes before it.
auto opcode_in(std::string cell) -> opcode {
    bool const eight_times = remove_suffix(cell, " x8");
    auto const pairs = split(cell, ' ');
    opcode out;
    unsigned at = 0;
    for (unsigned round = 0; round < (eight_times ? 8 : 1); ++round) {
        for (auto const& pair : pairs) {
            auto const parts = split(pair, '/');
            REQUIRE(parts.size() == 2);
            auto& value = at < 64 ? out.value.low : out.value.high;
            auto& mask = at < 64 ? out.mask.low : out.mask.high;
            value |= uint64_t{number(parts[0], 16)} << (at % 64);
            mask |= uint64_t{number(parts[1], 16)} << (at % 64);
            at += 8;
        }
    }
    return out;
}

// ------------------------------------------------------------------------------------ packets

/// The declaration of a packet type as data.
struct declared {
    std::string struct_name;
    facts about;
    std::vector<row_info> rows;
    unsigned head_bytes;
    unsigned max_bytes;
    wide_bits raw;  ///< the raw bits of a default-constructed packet
    bool needs_block;
    unsigned (*length_of)(wide_bits raw, block items);
    rule (*broken_header)(wide_bits raw);
};

template <class Packet>
auto narrowed(wide_bits raw) -> typename Packet::raw_type {
    if constexpr (same_as<typename Packet::raw_type, wide_bits>) {
        return raw;
    } else {
        return raw.low;
    }
}

template <class Packet>
auto declare() -> declared {
    constexpr auto rows = rows_of<Packet>();
    wide_bits raw{};
    if constexpr (same_as<typename Packet::raw_type, wide_bits>) {
        raw = Packet{}.raw;
    } else {
        raw.low = Packet{}.raw;
    }
    return {to_string(ptspec::name_of<Packet>()),
            Packet::about,
            {rows.begin(), rows.end()},
            Packet::head_bytes,
            Packet::max_bytes,
            raw,
            same_as<typename Packet::payload_type, payload_of_block>,
            [](wide_bits bits, block items) {
                return Packet::length_of(narrowed<Packet>(bits), items);
            },
            [](wide_bits bits) {
                if constexpr (requires { Packet::broken_header(narrowed<Packet>(bits)); }) {
                    return Packet::broken_header(narrowed<Packet>(bits));
                } else {
                    return rule::none;
                }
            }};
}

template <class... Packets>
auto declare_all(type_list<Packets...>) -> std::vector<declared> {
    return {declare<Packets>()...};
}

/// The opcode that the fixed rows of a packet give.
auto opcode_of(declared const& packet) -> opcode {
    opcode out;
    for (auto const& row : packet.rows) {
        for (unsigned bit = row.lsb; row.kind == row_kind::fixed && bit <= row.msb; ++bit) {
            (bit < 64 ? out.mask.low : out.mask.high) |= uint64_t{1} << (bit % 64);
        }
    }
    out.value = packet.raw & out.mask;
    CHECK(out.value == packet.raw);  // all other bits of a default-constructed packet are 0
    return out;
}

// ------------------------------------------------------------------------------------ lengths

/// The bits of a default-constructed packet with this value in the row of this name.
auto raw_with(declared const& packet, std::string const& name, unsigned value) -> wide_bits {
    auto const row = std::find_if(packet.rows.begin(), packet.rows.end(),
                                  [&](auto const& one) { return to_string(one.name) == name; });
    REQUIRE_MESSAGE(row != packet.rows.end(), name);
    return packet.raw | wide_bits{uint64_t{value} << row->lsb, 0};
}

/// Checks `1+{0;2} for Field {0;1}`: the length for each value of the field. All other values must
/// be reserved.
void check_selected_length(declared const& packet, std::string const& cell, unsigned values) {
    auto const sizes_at = cell.find("+{");
    auto const field_at = cell.find("} for ");
    auto const values_at = cell.find(" {", field_at);
    REQUIRE(sizes_at != std::string::npos);
    REQUIRE(field_at != std::string::npos);
    REQUIRE(values_at != std::string::npos);
    REQUIRE(cell.ends_with('}'));
    unsigned const head = number(cell.substr(0, sizes_at));
    auto const sizes = split(cell.substr(sizes_at + 2, field_at - sizes_at - 2), ';');
    auto const field = cell.substr(field_at + 6, values_at - field_at - 6);
    auto const named = split(cell.substr(values_at + 2, cell.size() - values_at - 3), ';');
    REQUIRE(sizes.size() == named.size());
    CHECK(head == packet.head_bytes);
    unsigned most = 0;
    for (unsigned value = 0; value < values; ++value) {
        auto const raw = raw_with(packet, field, value);
        auto const found = std::find(named.begin(), named.end(), std::to_string(value));
        if (found == named.end()) {
            CHECK(packet.broken_header(raw) != rule::none);
        } else {
            auto const size = number(sizes[static_cast<size_t>(found - named.begin())]);
            most = std::max(most, head + size);
            CHECK(packet.length_of(raw, block::none) == head + size);
            CHECK(packet.broken_header(raw) == rule::none);
        }
    }
    CHECK(most == packet.max_bytes);
}

/// Checks a length with two possible values.
void check_either(declared const& packet, unsigned head, wide_bits one, wide_bits two,
                  unsigned shorter, unsigned longer) {
    CHECK(packet.head_bytes == head);
    CHECK(packet.max_bytes == longer);
    CHECK(packet.length_of(one, bbp{}.with(bbp::SZ{true}).opens()) == shorter);
    CHECK(packet.length_of(two, bbp{}.with(bbp::SZ{false}).opens()) == longer);
}

void check_length(declared const& packet, std::string const& cell) {
    if (cell.find_first_not_of("0123456789") == std::string::npos) {
        CHECK(packet.head_bytes == number(cell));
        CHECK(packet.max_bytes == number(cell));
        CHECK(packet.length_of(packet.raw, block::none) == number(cell));
        CHECK(packet.length_of(packet.raw, block::items_of_4) == number(cell));
    } else if (cell.find(" for IPBytes ") != std::string::npos) {
        check_selected_length(packet, cell, 8);
    } else if (cell.find(" for PayloadBytes ") != std::string::npos) {
        check_selected_length(packet, cell, 4);
    } else if (cell == "1..10") {
        CHECK(packet.head_bytes == 1);
        CHECK(packet.max_bytes == 10);
        for (unsigned bytes = 1; bytes <= 10; ++bytes) {
            CHECK(packet.length_of(cyc::of(0, bytes).raw, block::none) == bytes);
        }
    } else if (cell == "5 or 9 (BBP.sz)") {
        check_either(packet, 1, packet.raw, packet.raw, 5, 9);
    } else if (cell == "3 or 5 (icntv)") {
        check_either(packet, 3, raw_with(packet, "ICNTV", 0), raw_with(packet, "ICNTV", 1), 3, 5);
    } else {
        FAIL_CHECK("a length that is not understood: ", cell);
    }
}

// ------------------------------------------------------------------------------------ fields

constexpr unsigned any_byte = 1000;  ///< `n`: the last byte, or each byte after the first

/// Parses `byte.bit` to a bit number.
auto position(std::string const& cell) -> unsigned {
    auto const parts = split(cell, '.');
    REQUIRE(parts.size() == 2);
    return (parts[0] == "n" ? any_byte : number(parts[0])) * 8 + number(parts[1]);
}

struct csv_field {
    std::string name;
    std::string row;
    unsigned lsb;
    unsigned msb;
    bool is_per_byte = false;
};

/// Parses `name:from..to` or `name:at` and the text around it.
auto field_in(std::string cell, std::string const& row) -> csv_field {
    csv_field out{"", row, 0, 0};
    std::string const per_byte = "then per byte ";
    if (cell.starts_with(per_byte)) { cell.erase(0, per_byte.size()); }
    remove_suffix(cell, " if icntv");
    if (auto const either = cell.find(" or "); either != std::string::npos) {
        // The longer of two lengths is last.
        auto const colon = cell.find(':');
        cell = cell.substr(0, colon + 1) + cell.substr(either + 4);
    }
    auto const colon = cell.rfind(':');
    REQUIRE(colon != std::string::npos);
    out.name = cell.substr(0, colon);
    auto const place = cell.substr(colon + 1);
    auto const dots = place.find("..");
    out.lsb = position(place.substr(0, dots));
    out.msb = dots == std::string::npos ? out.lsb : position(place.substr(dots + 2));
    out.is_per_byte = out.lsb >= any_byte * 8;
    return out;
}

/// The fields in a row of the table. Parts of one layout row are merged.
auto fields_in(test::csv_row const& row) -> std::vector<csv_field> {
    auto const cells = split(without_parentheses(row["fields"]), ';');
    auto const names = split(row["cpp_name"], ';');
    REQUIRE(names.size() == cells.size() + 1);
    std::vector<csv_field> out;
    for (size_t i = 0; i < cells.size(); ++i) {
        auto const one = field_in(cells[i], names[i + 1]);
        if (!out.empty() && out.back().row == one.row && !one.is_per_byte) {
            CHECK(out.back().msb + 1 == one.lsb);
            out.back().msb = one.msb;
        } else {
            out.push_back(one);
        }
    }
    return out;
}

void check_fields(declared const& packet, test::csv_row const& row) {
    std::vector<bool> matched(packet.rows.size());
    for (auto const& field : fields_in(row)) {
        INFO(field.name);
        if (field.is_per_byte) {
            // Exp and seven bits of each byte after the first; tests/packet/cyc.cpp tests these
            // bits.
            CHECK(packet.about.id == kind::cyc);
            CHECK(field.row == "payload");
            CHECK((field.name == "value" || field.name == "exp"));
            continue;
        }
        auto const at = std::find_if(packet.rows.begin(), packet.rows.end(),
                                     [&](row_info const& one) { return one.lsb == field.lsb; });
        if (at == packet.rows.end()) {
            CHECK(field.row == "payload");
            CHECK(field.lsb == 8 * packet.head_bytes);
            CHECK((field.msb == 8 * packet.max_bytes - 1 || field.msb == any_byte * 8 + 7));
            continue;
        }
        matched[static_cast<size_t>(at - packet.rows.begin())] = true;
        CHECK(to_string(at->name) == field.row);
        CHECK(at->msb == field.msb);
        CHECK((at->kind == row_kind::reserved) == (field.name == "rsvd"));
        CHECK((at->kind == row_kind::fixed) == (field.name == "leaf"));
    }
    for (size_t i = 0; i < matched.size(); ++i) {
        INFO(to_string(packet.rows[i].name));
        CHECK((matched[i] || packet.rows[i].kind == row_kind::fixed));
    }
}

// ------------------------------------------------------------------------------------ all of it

auto binding_in(std::string const& cell) -> ip_binding {
    REQUIRE((cell == "yes" || cell == "no" || cell == "conditional"));
    return cell == "yes"  ? ip_binding::yes
           : cell == "no" ? ip_binding::no
                          : ip_binding::conditional;
}

auto answer_in(std::string const& cell) -> cyc_rule {
    REQUIRE((cell == "y" || cell == "n" || cell == "UNCONFIRMED"));
    return cell == "y" ? cyc_rule::yes : cell == "n" ? cyc_rule::no : cyc_rule::unconfirmed;
}

}  // namespace

TEST_CASE("each packet's declaration matches its row of packets.csv (PKT-003, PKT-007, PKT-010, "
          "PKT-012, PKT-112, PKT-134, PKT-205)") {
    auto const table = test::read_csv("tests/spec/packets.csv");
    auto const packets = declare_all(all{});
    REQUIRE(table.rows.size() == packets.size());
    std::string as_tip;
    for (size_t i = 0; i < packets.size(); ++i) {
        auto const& row = table.rows[i];
        auto const& packet = packets[i];
        INFO(row.place);
        CHECK(row["name"] == to_string(packet.about.name));
        CHECK(split(row["cpp_name"], ';')[0] == packet.struct_name);
        CHECK(binding_in(row["binds_to_IP"]) == packet.about.binds_to_ip);
        auto const in_psb_plus = answer_in(row["allowed_in_psb_plus"]);
        CHECK(in_psb_plus != cyc_rule::unconfirmed);
        CHECK((in_psb_plus == cyc_rule::yes) == packet.about.in_psb_plus);
        CHECK(answer_in(row["cyc_eligible"]) == packet.about.cyc_eligible);
        CHECK((row["block"] == "keeps") == packet.about.keeps_block);

        auto opcode_cell = without_parentheses(row["opcode_bytes_hex"]);
        CHECK(remove_suffix(opcode_cell, " inside a block only") == packet.needs_block);
        CHECK(opcode_in(opcode_cell) == opcode_of(packet));

        auto const length = row["total_length_bytes"];
        if (row["name"] == "TIP") { as_tip = length; }
        check_length(packet, length == "as TIP" ? as_tip : length);
        check_fields(packet, row);
    }
}

TEST_CASE("the list has every row of packets.csv once, in the same order (PKT-007)") {
    static_assert(kind_count == all::size && kind_count == test::packet_rows_count);
    static_assert(packet::detail::are_in_order(all{}));
    static_assert(!packet::detail::are_in_order(type_list<pad, tnt_long>{}));
    static_assert(packet_type<pad> && packet_type<trig> && !packet_type<int>);
}

TEST_CASE("facts and names are found by kind (PKT-007, PKT-134)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < kind_count; ++i) {
            auto const which = static_cast<kind>(value(static_cast<uint8_t>(i)));
            auto const& row = test::packet_rows[i];
            good = good && facts_of(which).id == which && facts_of(which).name == row.name &&
                   name_of(which) == row.name && facts_of(which).in_psb_plus == row.in_psb_plus;
        }
        return good;
    });
}

TEST_CASE("facts_of returns the facts of the requested packet and no other") {
    CHECK_TWICE([](auto value) {
        return facts_of(value(kind::cbr)).keeps_block && !facts_of(value(kind::psb)).keeps_block &&
               facts_of(value(kind::trig)).cyc_eligible == cyc_rule::unconfirmed &&
               facts_of(value(kind::tip)).binds_to_ip == ip_binding::yes;
    });
}

TEST_CASE("a kind that is not in the list has empty facts") {
    CHECK_TWICE([](auto value) {
        return name_of<type_list<mtc>>(value(kind::tsc)) == text{} &&
               name_of<type_list<mtc>>(value(kind::mtc)) == "MTC";
    });
}
