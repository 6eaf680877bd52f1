// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/classify.hpp>
#include <ptspec/packet/decode.hpp>

#include <support/check_twice.hpp>
#include <support/packet_samples.hpp>

#include <spec_tables.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

using namespace ptspec;
using namespace ptspec::packet;
using test::opcode_row;
using test::opcode_rows;
using meaning = opcode_byte::meaning;

namespace {

/// The number of opcode bytes before the row's byte.
constexpr auto bytes_before(opcode_row const& row) -> unsigned {
    return row.space == "first" ? 0 : row.space == "ext" ? 1 : row.space == "ext2" ? 2 : 99;
}

/// Sixteen bytes that begin with the row's opcode. The rest is 02, which is a valid payload for
/// every packet except PSB, which needs its pattern.
constexpr auto bytes_of(opcode_row const& row) -> test::hex_bytes {
    auto bytes = test::hex("02 C3 02 02 02 02 02 02 02 02 02 02 02 02 02 02");
    unsigned const at = bytes_before(row);
    bytes.bytes[at] = row.byte;
    if (at == 0) { bytes.bytes[1] = 0x02; }
    if (row.packet == "PSB") {
        for (unsigned i = 1; i < 16; i += 2) { bytes.bytes[i] = 0x82; }
    }
    return bytes;
}

constexpr auto classified(opcode_row const& row, block items) -> opcode_byte {
    switch (bytes_before(row)) {
        case 0: return classify_first(row.byte, items);
        case 1: return classify_ext(row.byte);
        default: return classify_ext2(row.byte);
    }
}

/// The length in the row for the bytes of `bytes_of`.
constexpr auto least_length(text cell) -> unsigned {
    if (cell == "2..10") { return 2; }
    if (cell == "3|5") { return 3; }
    unsigned length = 0;
    for (char const digit : cell) { length = length * 10 + static_cast<unsigned>(digit - '0'); }
    return length;
}

/// The other lengths of a packet whose row gives more than one.
constexpr auto other_lengths_hold(opcode_row const& row, decode_options how) -> bool {
    auto bytes = bytes_of(row);
    bool good = true;
    if (row.length == "2..10") {
        for (unsigned length = 2; length <= 10; ++length) {
            // Byte length-1 has bit 0 clear, all bytes before it have it set.
            auto longer = bytes;
            for (unsigned i = 1; i + 1 < length; ++i) { longer.bytes[i] |= 1; }
            auto const got = decode(longer, how);
            good = good && got && got.length() == length && got.packet.is<cyc>();
        }
        for (unsigned i = 1; i < 10; ++i) { bytes.bytes[i] |= 1; }
        good = good && decode(bytes, how).error == error::bad_packet;
    } else if (row.length == "3|5") {
        bytes.bytes[1] = 0x42;
        auto const got = decode(bytes, how);
        good = got && got.length() == 5 && got.packet.is<trig>();
    }
    return good;
}

/// True if the library decodes these bytes as the row says, in a context where the row applies.
constexpr auto decoding_holds(opcode_row const& row, decode_options how) -> bool {
    auto const bytes = bytes_of(row);
    auto const got = decode(bytes, how);
    auto const alone = decode(bytes.prefix(bytes_before(row) + 1), how);
    if (row.error == "bad_opcode") {
        return got.error == error::bad_opcode && alone.error == error::bad_opcode &&
               row.length == "" && row.packet == "-";
    }
    if (row.error == "reserved") {
        return got.error == error::reserved && alone.error == error::reserved && row.length == "" &&
               got.length() == 0;
    }
    unsigned const length = least_length(row.length);
    bool const is_mode = row.packet == "MODE";
    auto const name = name_of(got.packet.kind());
    bool const named = is_mode ? name == "MODE.Exec" : name == row.packet;
    bool const whole = length == bytes_before(row) + 1;
    return row.error == "" && got && got.length() == length && named &&
           (whole ? alone.packet == got.packet && alone.length() == length
                  : alone.error == error::truncated && alone.need <= length) &&
           other_lengths_hold(row, how);
}

constexpr auto classification_holds(opcode_row const& row, opcode_byte got) -> bool {
    if (row.packet == "-") { return got == opcode_byte{}; }
    if (row.packet == "EXT" || row.packet == "EXT2") {
        return got.what == meaning::prefix &&
               row.length == (row.packet == "EXT" ? text{"see ext"} : text{"see ext2"});
    }
    auto const name = name_of(got.id);
    return got.what == meaning::packet &&
           (row.packet == "MODE" ? name == "MODE.Exec" : name == row.packet);
}

constexpr auto holds(opcode_row const& row) -> bool {
    bool const goes_on = row.packet == "EXT" || row.packet == "EXT2";
    return classification_holds(row, classified(row, block::none)) &&
           (goes_on || decoding_holds(row, {}));
}

/// PKT-203: inside a block a first byte with low bits 100 is BIP, whatever the row says. All other
/// rows apply unchanged.
constexpr auto holds_in_block(opcode_row const& row, block items) -> bool {
    bool const goes_on = row.packet == "EXT" || row.packet == "EXT2";
    auto const got = classified(row, items);
    if (row.space == "first" && row.byte % 8 == 4) {
        auto const one = decode(bytes_of(row), {.block = items});
        return got == opcode_byte{meaning::packet, kind::bip} && row.packet == "TNT.short" &&
               one.packet.is<bip>() && one.length() == (items == block::items_of_4 ? 5 : 9) &&
               one.packet.as<bip>().get<bip::id>() == row.byte / 8;
    }
    return classification_holds(row, got) && (goes_on || decoding_holds(row, {.block = items}));
}

/// A row that does not hold stops the build here; the compiler prints its number.
template <std::size_t Number>
struct row_holds {
    static_assert(holds(opcode_rows[Number]), "first 00 has the number 0, ext 00 256");
    static_assert(holds_in_block(opcode_rows[Number], block::items_of_4));
    static_assert(holds_in_block(opcode_rows[Number], block::items_of_8));
};

template <std::size_t... Numbers>
constexpr auto all_hold(std::index_sequence<Numbers...>) -> std::size_t {
    std::size_t const sizes[] = {sizeof(row_holds<Numbers>)...};
    return sizeof sizes / sizeof *sizes;
}

auto to_view(text from) -> std::string_view { return {from.data(), from.size()}; }

}  // namespace

TEST_CASE("the map has every byte of each of its three opcode spaces once") {
    REQUIRE(test::opcode_rows_count == 3 * 256);
    std::string_view const spaces[] = {"first", "ext", "ext2"};
    for (unsigned i = 0; i < test::opcode_rows_count; ++i) {
        CHECK(to_view(opcode_rows[i].space) == spaces[i / 256]);
        CHECK(opcode_rows[i].byte == i % 256);
    }
}

TEST_CASE("every row of the map holds as a constant, inside and outside a block (PKT-010..016, "
          "PKT-203)") {
    static_assert(all_hold(std::make_index_sequence<test::opcode_rows_count>{}) ==
                  test::opcode_rows_count);
}

TEST_CASE(
    "every row of the map holds at run time, inside and outside a block (PKT-010..016, PKT-203)") {
    for (auto const& row : opcode_rows) {
        INFO(to_view(row.space), ' ', unsigned{row.byte});
        auto const unseen = test::unknown{}(row);
        CHECK(holds(unseen));
        CHECK(holds_in_block(unseen, test::unknown{}(block::items_of_4)));
        CHECK(holds_in_block(unseen, test::unknown{}(block::items_of_8)));
    }
}

TEST_CASE("encoding gives the first bytes that the map has for a packet (PKT-010, PKT-012, "
          "PKT-014, PKT-016)") {
    for (auto const& sample : test::packet_samples) {
        if (sample.where != test::context_of::any) { continue; }
        auto const& bytes = sample.bytes.bytes;
        unsigned const row = bytes[0] != 0x02   ? bytes[0]
                             : bytes[1] != 0xC3 ? 256U + bytes[1]
                                                : 512U + bytes[2];
        auto const name = to_view(opcode_rows[row].packet);
        auto const expected = to_view(name_of(sample.id));
        CHECK((name == expected || (name == "MODE" && expected.starts_with("MODE."))));
        if (opcode_rows[row].length != "2..10" && opcode_rows[row].length != "3|5") {
            CHECK(least_length(opcode_rows[row].length) == sample.bytes.size());
        }
    }
}

TEST_CASE("a modified row does not hold") {
    for (auto row : opcode_rows) {
        INFO(to_view(row.space), ' ', unsigned{row.byte});
        auto other = row;
        other.packet = row.packet == "OVF" ? text{"PIP"} : text{"OVF"};
        CHECK_FALSE(holds(other));
        other = row;
        other.length = "4711";
        CHECK_FALSE(holds(other));
        other = row;
        other.error = row.error == "reserved" ? text{"bad_opcode"} : text{"reserved"};
        CHECK((!holds(other) || row.packet == "EXT" || row.packet == "EXT2"));
    }
}
