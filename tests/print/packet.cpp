// SPDX-License-Identifier: BSL-1.0
#include <ptspec/print/packet.hpp>

#include <ptspec/packet/decode.hpp>

#include <support/check_twice.hpp>
#include <support/packet_samples.hpp>
#include <support/reference_decoder.hpp>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

using namespace ptspec;
using test::hex;
using test::hex_bytes;

namespace {

struct printed_packet {
    hex_bytes bytes;
    text line;
    packet::block items = packet::block::none;
};

// Bytes, and their meaning in packets.csv, written manually.
constexpr printed_packet samples[] = {
    {hex("00"), "PAD"},
    {hex("0C"), "TNT.short bits=6"},
    {hex("A6"), "TNT.short bits=53H"},
    {hex("02 A3 EF CD AB 00 00 00"), "TNT.long bits=ABCDEFH"},
    {hex("0D"), "TIP IPBytes=0 (suppressed)"},
    {hex("2D 12 34"), "TIP IPBytes=1 (update_16) payload=3412H"},
    {hex("4D 78 56 34 12"), "TIP IPBytes=2 (update_32) payload=12345678H"},
    {hex("6D 78 56 34 12 9A BC"), "TIP IPBytes=3 (sign_48) payload=BC9A12345678H"},
    {hex("8D 78 56 34 12 01 00"), "TIP IPBytes=4 (update_48) payload=112345678H"},
    {hex("CD EF CD AB 89 67 45 23 01"), "TIP IPBytes=6 (full) payload=123456789ABCDEFH"},
    {hex("31 00 00"), "TIP.PGE IPBytes=1 (update_16) payload=0"},
    {hex("31 0A 00"), "TIP.PGE IPBytes=1 (update_16) payload=AH"},
    {hex("01"), "TIP.PGD IPBytes=0 (suppressed)"},
    {hex("5D 78 56 34 12"), "FUP IPBytes=2 (update_32) payload=12345678H"},
    // CR3[51:5] is bits 63:17 of the packet.
    {hex("02 43 01 12 34 56 78 0A"), "PIP NR=1 CR3=A78563412000H"},
    {hex("99 05"), "MODE.Exec CS_L=1 CS_D=0 IF=1"},
    {hex("99 22"), "MODE.TSX InTX=0 TXAbort=1"},
    {hex("02 83"), "TraceStop"},
    {hex("02 03 18 00"), "CBR CoreBusRatio=18H"},
    {hex("19 01 02 03 04 05 06 07"), "TSC TSC=7060504030201H"},
    {hex("59 80"), "MTC CTC=80H"},
    {hex("02 73 FF FF 00 FF 01"), "TMA CTC=FFFFH FC=1FFH"},
    {hex("FB"), "CYC Exp=0 value_4_0=1FH"},
    {hex("DF FA"), "CYC Exp=1 value_4_0=1BH payload=FAH"},
    {hex("FF FF FF FF FF FF FF FF FE"), "CYC Exp=1 value_4_0=1FH payload=FEFFFFFFFFFFFFFFH"},
    {hex("07 03 05 07 09 0B 0D 0F 01 02"), "CYC Exp=1 value_4_0=0 payload=2010F0D0B09070503H"},
    {hex("02 C8 05 04 03 02 01"), "VMCS base=102030405000H"},
    {hex("02 F3"), "OVF"},
    {hex("0282 0282 0282 0282 0282 0282 0282 0282"), "PSB"},
    {hex("02 23"), "PSBEND"},
    {hex("02 C3 88 01 02 03 04 05 06 07 08"), "MNT payload=807060504030201H"},
    {hex("02 92 78 56 34 12"), "PTW PayloadBytes=0 IP=1 payload=12345678H"},
    {hex("02 32 EF CD AB 89 67 45 23 01"), "PTW PayloadBytes=1 IP=0 payload=123456789ABCDEFH"},
    {hex("02 62"), "EXSTOP IP=0"},
    {hex("02 C2 FF 00 00 00 03 00 00 00"), "MWAIT hints=FFH ext=3"},
    {hex("02 22 80 F1"), "PWRE HW=1 substate=1 state=FH"},
    {hex("02 A2 46 04 00 00 00"), "PWRX deepest=6 last=4 reason=4"},
    {hex("02 63 84"), "BBP type=4 SZ=1"},
    {hex("0C EF BE AD DE"), "BIP id=1 payload=DEADBEEFH", packet::block::items_of_4},
    {hex("FC 88 77 66 55 44 33 22 11"), "BIP id=1FH payload=1122334455667788H",
     packet::block::items_of_8},
    {hex("02 B3"), "BEP IP=1"},
    {hex("02 13 81 03"), "CFE type=1 (INTR) IP=1 vector=3"},
    {hex("02 13 10 FF"), "CFE type=10H IP=0 vector=FFH"},
    {hex("02 53 00 10 32 54 76 98 BA DC FE"), "EVD type=0 (PFA) payload=FEDCBA9876543210H"},
    {hex("D9 80 01"), "TRIG MULT=0 ICNTV=0 IP=1 TRBV=1"},
    {hex("D9 E0 A1 17 00"), "TRIG MULT=1 ICNTV=1 IP=1 TRBV=A1H payload=17H"},
};

// Set reserved bits: a decoder ignores them, but the printer shows them.
constexpr printed_packet dirty_samples[] = {
    {hex("02 03 18 FF"), "CBR CoreBusRatio=18H reserved set FF000000H"},
    {hex("02 C2 11 00 00 00 FE 00 00 80"),
     "MWAIT hints=11H ext=2 reserved set 800000FC000000000000H"},
    {hex("02 53 42 00 00 00 00 00 00 00 00"), "EVD type=2 (VMXR) payload=0 reserved set 400000H"},
};

constexpr auto line_of(packet::any_packet const& one) {
    return print::written<200>([&](auto& out) { print::packet(one, out); });
}

constexpr auto is_printed_as(printed_packet const& sample) -> bool {
    auto const read = packet::decode(sample.bytes, {.block = sample.items});
    return read && read.length() == sample.bytes.size() && line_of(read.packet) == sample.line;
}

template <class Packet>
auto string_of(Packet const& one, print::style how = print::style::full) -> std::string {
    std::string line;
    print::packet(one, [&](text piece) { line.append(piece.data(), piece.size()); }, how);
    return line;
}

/// The printed line of a packet, computed from its row of packets.csv: the fields in bit order.
auto expected_line(test::packet_sample const& sample) -> std::string {
    auto const& row = test::row_of(sample.id);
    reference::bytes const bytes{sample.bytes.data(), sample.bytes.size()};
    std::map<unsigned, std::pair<std::string, std::uint64_t>> fields;
    unsigned begin = 0;
    for (unsigned i = 0; i < row.field_count; ++i) {
        auto const& field = row.fields[i];
        unsigned const end = 8 * static_cast<unsigned>(sample.bytes.size());
        if (field.name == "rsvd" || field.name == "leaf" || field.lsb >= end) { continue; }
        auto const value = bytes.run(field.lsb, field.msb == test::open_end ? end - 1 : field.msb)
                           << field.value_lsb;
        bool const goes_on = i != 0 && field.cpp_name == row.fields[i - 1].cpp_name;
        if (!goes_on) { begin = field.lsb; }
        fields[begin].first = std::string(field.cpp_name.data(), field.cpp_name.size());
        fields[begin].second += value;
    }
    std::string line(row.name.data(), row.name.size());
    for (auto const& [lsb, field] : fields) {
        char digits[20];
        std::snprintf(digits, sizeof digits, "%" PRIX64, field.second);
        line += ' ' + field.first + '=' + digits;
    }
    return line;
}

}  // namespace

TEST_CASE("a packet prints its name, its fields, their meanings and its payload") {
    for (auto const& sample : samples) {
        auto const read = packet::decode(sample.bytes, {.block = sample.items});
        CHECK(string_of(read.packet) == std::string(sample.line.data(), sample.line.size()));
        CHECK(is_printed_as(sample));
    }
}

TEST_CASE("no packet prints as such") { CHECK(string_of(packet::any_packet{}) == "no packet"); }

TEST_CASE("every packet prints the names and bits of packets.csv") {
    for (auto const& sample : test::packet_samples) {
        if (sample.id == packet::kind::cyc) { continue; }  // the continuation bytes are not a field
        auto const read = packet::decode(sample.bytes, {.block = sample.a_context()});
        CHECK(string_of(read.packet, print::style::plain_hex) == expected_line(sample));
    }
}

TEST_CASE("a packet's line can be a constant expression") {
    CHECK_TWICE([](auto value) {
        using packet::ptw;
        auto const one = ptw{}.with(ptw::IP{value(true)}).with_payload(0x1234'5678);
        return print::written<60>([&](auto& out) { print::packet(one, out); }) ==
               "PTW PayloadBytes=0 IP=1 payload=12345678H";
    });
    static_assert(is_printed_as(samples[9]));
    static_assert(is_printed_as(samples[24]));
}

TEST_CASE("the set reserved bits of a packet are printed") {
    for (auto const& sample : dirty_samples) {
        CHECK(string_of(packet::decode(sample.bytes).packet) ==
              std::string(sample.line.data(), sample.line.size()));
    }
}

TEST_CASE("a typed packet prints like a decoded one") {
    CHECK(string_of(packet::tip::of(packet::ip_bytes::update_16, 0x3412)) ==
          "TIP IPBytes=1 (update_16) payload=3412H");
    CHECK(string_of(packet::bip{}.with_payload(0xDEAD'BEEF)) == "BIP id=0 payload=DEADBEEFH");
    CHECK(string_of(packet::cyc::of(0)) == "CYC Exp=0 value_4_0=0");
}

TEST_CASE("bytes that a packet does not have are not printed") {
    using packet::ptw;
    // PayloadBytes selects 4 bytes.
    CHECK(string_of(ptw{}.with_payload(0xFFFF'FFFF'1234'5678)) ==
          "PTW PayloadBytes=0 IP=0 payload=12345678H");
    // PayloadBytes is reserved.
    CHECK(string_of(ptw{}.with(ptw::PayloadBytes{2}).with_payload(1)) == "PTW PayloadBytes=2 IP=0");
    CHECK(string_of(packet::tip{}.with_payload(1)) == "TIP IPBytes=0 (suppressed)");
}

TEST_CASE("a packet's line can be printed with zeros, without meanings, or with bare hexadecimal") {
    auto const one = packet::decode(hex("2D 12 34")).packet;
    CHECK(string_of(one, print::style::plain_hex) == "TIP IPBytes=1 payload=3412");
    CHECK(string_of(packet::tip{}, {}) == "TIP");
    auto const cbr = packet::decode(hex("02 03 00 01")).packet;
    CHECK(string_of(cbr, print::style::plain_hex) == "CBR CoreBusRatio=0; reserved set 1000000");
}
