// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>

#include <support/check_twice.hpp>
#include <support/csv.hpp>
#include <support/packet_fields.hpp>

#include <spec_tables.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

using namespace ptspec;
using namespace ptspec::packet;
using test::are_the_fields;
using test::fields_of;
using test::packet_vector;
using test::packet_vectors;

namespace {

/// The error in the packet column, such as `error:truncated`. `none` for a packet name.
constexpr auto error_in(text name) -> error {
    return name == "error:truncated"    ? error::truncated
           : name == "error:bad_opcode" ? error::bad_opcode
           : name == "error:reserved"   ? error::reserved
           : name == "error:bad_packet" ? error::bad_packet
                                        : error::none;
}

/// The fields that the table lists for an error: `need=3`, or nothing.
constexpr auto need_of(decoded const& got) -> test::field_list {
    return got.error == error::truncated ? test::field_list{}.with("need", got.need)
                                         : test::field_list{};
}

/// Rebuilds a packet from its fields. The length of a CYC is not one of them.
constexpr auto from_fields(any_packet const& packet) -> any_packet {
    return packet.is<cyc>() ? any_packet{cyc::of(packet.as<cyc>().value())} : packet;
}

constexpr auto error_holds(packet_vector const& row, decoded const& got) -> bool {
    return !got && got.error == error_in(row.name) && got.broken != rule::none &&
           got.length() == 0 && row.length == 0 && row.canonical == -1 &&
           are_the_fields(row.fields, need_of(got));
}

constexpr auto packet_holds(packet_vector const& row, decoded const& got) -> bool {
    return got && got.error == error::none && got.broken == rule::none && got.need == 0 &&
           name_of(got.packet.kind()) == row.name && got.length() == row.length &&
           got.packet.length() == row.length &&
           are_the_fields(row.fields, fields_of(got.packet, row.last_ip));
}

/// True if encoding the fields gives the consumed bytes, or other bytes that decode to the same
/// fields.
constexpr auto encoding_holds(packet_vector const& row, decoded const& got) -> bool {
    auto const items = static_cast<block>(row.block);
    auto const consumed = byte_view{row.bytes, row.size}.first(row.length);
    auto const out = encode(from_fields(got.packet), items);
    if (!out || (row.canonical != 0 && row.canonical != 1)) { return false; }
    auto const again = decode(out, {.block = items});
    return (out == consumed) == (row.canonical == 1) && again.length() == out.size() &&
           again.packet.kind() == got.packet.kind() &&
           are_the_fields(row.fields, fields_of(again.packet, row.last_ip)) &&
           encode(from_fields(again.packet), items) == byte_view{out};
}

constexpr auto holds(packet_vector const& row) -> bool {
    auto const got = decode(byte_view{row.bytes, row.size},
                            {.block = static_cast<block>(row.block)});
    return error_in(row.name) != error::none ? error_holds(row, got)
                                             : packet_holds(row, got) && encoding_holds(row, got);
}

/// A vector that does not hold stops the build here; the compiler prints its number.
template <std::size_t Number>
struct vector_holds {
    static_assert(holds(packet_vectors[Number]), "PV-001 has the number 0");
};

template <std::size_t... Numbers>
constexpr auto all_hold(std::index_sequence<Numbers...>) -> std::size_t {
    std::size_t const sizes[] = {sizeof(vector_holds<Numbers>)...};
    return sizeof sizes / sizeof *sizes;
}

}  // namespace

TEST_CASE("the vectors are numbered from PV-001 on, and each packet has at least one") {
    REQUIRE(test::packet_vectors_count ==
            test::read_csv("tests/spec/packet_vectors.csv").rows.size());
    bool seen[kind_count] = {};
    for (unsigned i = 0; i < test::packet_vectors_count; ++i) {
        if (packet_vectors[i].packet < kind_count) { seen[packet_vectors[i].packet] = true; }
        char const digits[] = {static_cast<char>('0' + (i + 1) / 100),
                               static_cast<char>('0' + (i + 1) / 10 % 10),
                               static_cast<char>('0' + (i + 1) % 10)};
        auto const& id = packet_vectors[i].id;
        CHECK(std::string_view{id.data(), id.size()} == "PV-" + std::string{digits, 3});
    }
    for (bool const one : seen) { CHECK(one); }
}

TEST_CASE("every vector holds as a constant (PKT-001..007, PKT-346)") {
    constexpr auto count = test::packet_vectors_count;
    static_assert(all_hold(std::make_index_sequence<count>{}) == count);
}

TEST_CASE(
    "every vector holds at run time: name, fields, length, need, error, encoding (PKT-010..016, "
    "PKT-030..037, PKT-040, PKT-050..062, PKT-133, PKT-170,171, PKT-182, PKT-184, PKT-186, "
    "PKT-200..202, PKT-346)") {
    for (auto const& row : packet_vectors) {
        INFO(std::string_view{row.id.data(), row.id.size()});
        CHECK(holds(test::unknown{}(row)));
    }
}

TEST_CASE("a modified vector does not hold") {
    // Tests the checking function: every cell of every row is compared.
    for (auto row : packet_vectors) {
        INFO(std::string_view{row.id.data(), row.id.size()});
        auto other = row;
        other.name = row.name == "PAD" ? text{"TIP"} : text{"PAD"};
        CHECK_FALSE(holds(other));
        other = row;
        other.fields = "x=1";
        CHECK_FALSE(holds(other));
        other = row;
        other.length += 1;
        CHECK_FALSE(holds(other));
        other = row;
        other.canonical = row.canonical == 1 ? 0 : 1;
        CHECK_FALSE(holds(other));
    }
}
