// SPDX-License-Identifier: BSL-1.0
#include <tools/common/draw/diagram.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

using namespace ptspec;

namespace {

struct string_writer {
    std::string written;

    void operator()(text piece) { written.append(piece.data(), piece.size()); }
};

auto drawn(print::row_list const& of, draw::drawing how = {}) -> std::string {
    string_writer out;
    draw::diagram(of, out, how);
    return out.written;
}
template <class Type>
auto drawn(draw::drawing how = {}) -> std::string {
    return drawn(print::row_list_of<Type>(), how);
}

auto lines_of(std::string const& picture) -> std::vector<std::string> {
    std::vector<std::string> lines;
    std::istringstream in{picture};
    for (std::string line; std::getline(in, line);) { lines.push_back(line); }
    return lines;
}

/// `count` lines of a drawing from line `first` on.
auto part(std::string const& picture, std::size_t first, std::size_t count) -> std::string {
    std::string out;
    auto const lines = lines_of(picture);
    for (std::size_t i = first; i < first + count && i < lines.size(); ++i) {
        out += lines[i] + "\n";
    }
    return out;
}

/// A word whose labels fit only partly: a name of 20 letters, a part of a field with room for the
/// name but not for its bits, and an `other` row.
///
/// Shape:  40 bits.
/// Source: none.
struct sample : bit_word<sample, uint64_t> {
    struct Length : field<33, 29> {};
    struct A_name_of_20_letters : flag<28> {};
    struct layout : bit_layout<40, other<26, 0>, reserved<27>, A_name_of_20_letters, Length,
                               other<36, 34>, reserved<39, 37>> {};
};

/// A word in which a label with its bits fits exactly, and labels that exactly fit side by side on
/// one level.
///
/// Shape:  40 bits.
/// Source: none.
struct exact : bit_word<exact, uint64_t> {
    struct Ijklm : flag<12> {};
    struct Efgh : flag<15> {};
    struct Abcd : flag<18> {};
    struct Ends : field<35, 20> {};
    struct layout : bit_layout<40, other<11, 0>, Ijklm, other<14, 13>, Efgh, other<17, 16>, Abcd,
                               reserved<19>, Ends, reserved<39, 36>> {};
};

/// A word in which a name without its bits fits exactly.
///
/// Shape:  33 bits.
/// Source: none.
struct exact_name : bit_word<exact_name, uint64_t> {
    struct OK : field<32, 30> {};
    struct layout : bit_layout<33, other<29, 0>, OK> {};
};

/// A packet with a flag whose name is too long for its box.
///
/// Shape:  1 byte.
/// Source: none.
struct sample_packet : packet::packet_word<sample_packet, 1> {
    static constexpr packet::facts about{.id = packet::kind::pad, .name = "SAMPLE"};

    struct Opcode : fixed<5, 0, 0x2A> {};
    struct Eight_or : flag<6> {};
    struct Nine_or_so : flag<7> {};
    struct layout : bit_layout<8, Opcode, Eight_or, Nine_or_so> {};
};

}  // namespace

TEST_CASE("a word is drawn like the manual's figures") {
    constexpr text expected = R"(
 63                                                                                           32
+-----------------------------------------------------------------------------------------------+
|                                          Base[63:32]                                          |
+-----------------------------------------------------------------------------------------------+

 31                                                       12 11 10 9         6  5  4  3  2  1  0
+-----------------------------------------------------------+-----+-----------+--+--+--+--+--+--+
|                        Base[31:12]                        |/////|   Size    |//|  |//|  |//|  |
+-----------------------------------------------------------+-----+-----------+--++-+--++-+--++-+
                                                                            STOP -+     |     |
                                                                                   INT -+     |
                                                                                         END -+
)";
    static_assert(print::written<1500>([](auto& out) {
                      out("\n");
                      draw::diagram<topa::entry>(out);
                  }) == expected);
    CHECK("\n" + drawn<topa::entry>() == std::string(expected.data(), expected.size()));
}

TEST_CASE("labels are placed on both sides of their lines") {
    CHECK("\n" + part(drawn<reg::ia32_rtit_ctl>(), 2, 4) == R"(
|///// reserved /////|  |  |///// reserved /////| ADDR3_CFG | ADDR2_CFG | ADDR1_CFG | ADDR0_CFG |
+--------------------++-++-+--------------------+-----------+-----------+-----------+-----------+
                      |  +- DisTNT
                      +- InjectPsbPmiOnEnable
)");
    CHECK("\n" + part(drawn<reg::ia32_rtit_ctl>(), 9, 4) == R"(
|  |////////|  PSBFreq  |//| CycThresh |//|  MTCFreq  |  |  |  |  |  |  |  |  |  |  |  |OS|  |  |
++-+--------+-----------+--+-----------+--+-----------++-++-++-++-++-++-++-++-++-++-++-+--++-++-+
 +- EventEn                                  BranchEn -+  |  |  |  |  |  |  |  |  |  |     |  |
                                                   PTWEn -+  |  |  |  |  |  |  |  |  |     |  |
)");
    CHECK(lines_of(drawn<reg::ia32_rtit_ctl>()).size() == 24);
}

TEST_CASE("a word can be drawn with box-drawing characters and with other line lengths") {
    CHECK("\n" + part(drawn<topa::end_entry>({.unicode = true, .bits_per_line = 16}), 15, 5) == R"(
 15       12 11 10 9         6  5  4  3  2  1  0
┌───────────┬─────┬───────────┬──┬──┬──┬──┬──┬──┐
│ NextTable │/////│   Size    │//│//│//│//│//│  │
└───────────┴─────┴───────────┴──┴──┴──┴──┴──┴┬─┘
                                         END ─┘
)");
    CHECK("\n" + part(drawn<reg::ia32_rtit_ctl>({.unicode = true}), 3, 3) == R"(
└────────────────────┴┬─┴┬─┴────────────────────┴───────────┴───────────┴───────────┴───────────┘
                      │  └─ DisTNT
                      └─ InjectPsbPmiOnEnable
)");
    CHECK("\n" + drawn<packet::mode_tsx>({.unicode = true}) == R"(
           7        6        5        4        3        2        1        0
       ┌───────────────────────────────────────────────────────────────────────┐
     0 │   1        0        0        1        1        0        0        1    │
       ├──────────────────────────┬──────────────────────────┬────────┬────────┤
     1 │   0        0        1    │//////// reserved ////////│TXAbort │  InTX  │
       └──────────────────────────┴──────────────────────────┴────────┴────────┘
)");
    CHECK("\n" + part(drawn<packet::pwrx>({.unicode = true}), 5, 5) == R"(
       ├───────────────────────────────────┬───────────────────────────────────┤
     2 │               last                │              deepest              │
       ├───────────────────────────────────┼───────────────────────────────────┤
     3 │//////////// reserved /////////////│              reason               │
       ├───────────────────────────────────┴───────────────────────────────────┤
)");
}

TEST_CASE("packets are drawn byte by byte") {
    constexpr text expected = R"(
           7        6        5        4        3        2        1        0
       +-----------------------------------------------------------------------+
     0 |   0        0        0        0        0        0        1        0    |
       +--------+-----------------+--------------------------------------------+
     1 |   IP   |  PayloadBytes   |   1        0        0        1        0    |
       +--------+-----------------+--------------------------------------------+
  2..9 |                        payload (4 or 8 bytes)                         |
       +-----------------------------------------------------------------------+
)";
    static_assert(print::written<800>([](auto& out) {
                      out("\n");
                      draw::diagram<packet::ptw>(out);
                  }) == expected);
    CHECK("\n" + drawn<packet::ptw>() == std::string(expected.data(), expected.size()));
    CHECK("\n" + part(drawn<packet::psb>(), 4, 5) == R"(
     1 |   1        0        0        0        0        0        1        0    |
       +-----------------------------------------------------------------------+
  2..7 |                        02H 82H 02H 82H 02H 82H                        |
       +-----------------------------------------------------------------------+
 8..15 |                    02H 82H 02H 82H 02H 82H 02H 82H                    |
)");
}

TEST_CASE("a state longer than a word is drawn byte by byte, with room for its byte numbers") {
    auto const picture = drawn<reg::xsave_pt_state>();
    CHECK(lines_of(picture).size() == 2 * 16 + 2);
    CHECK("\n" + part(picture, 0, 3) == R"(
             7        6        5        4        3        2        1        0
         +-----------------------------------------------------------------------+
    0..7 |                             IA32_RTIT_CTL                             |
)");
    CHECK("\n" + part(picture, 32, 2) == R"(
120..127 |////////////////////////////// reserved ///////////////////////////////|
         +-----------------------------------------------------------------------+
)");
}

TEST_CASE("labels that do not fit are drawn below, and parts of fields may omit their bits") {
    CHECK("\n" + drawn<sample>() == R"(
 39    37 36    34 33 32
+--------+--------+-----+
|////////| other .|     |
+--------+--------+--+--+
        Length[4:3] -+

 31    29 28 27 26                                                                             0
+--------+--+--+--------------------------------------------------------------------------------+
| Length |  |//|.................................... other .....................................|
+--------++-+--+--------------------------------------------------------------------------------+
          +- A_name_of_20_letters
)");
}

TEST_CASE("labels that fit exactly are inside, and labels below need a space between them") {
    CHECK("\n" + drawn<exact>() == R"(
 39       36 35       32
+-----------+-----------+
| reserved /|Ends[15:12]|
+-----------+-----------+

 31                               20 19 18 17 16 15 14 13 12 11                                0
+-----------------------------------+--+--+-----+--+-----+--+-----------------------------------+
|            Ends[11:0]             |//|  |.....|  |.....|  |.............. other ..............|
+-----------------------------------+--++-+-----++-+-----++-+-----------------------------------+
                                  Abcd -+  Efgh -+        |
                                                   Ijklm -+
)");
    CHECK("\n" + part(drawn<exact_name>(), 0, 4) == R"(
 32
+--+
|OK|
+--+
)");
}

TEST_CASE("drawing past the end of a line is truncated, and lines do not overwrite text") {
    constexpr auto line = print::written<40>([](auto& out) {
        draw::detail::character_line<6> characters;
        characters.put(4, "abc");
        characters.draw(6, characters.up);
        characters.end_line({}, out);
        characters.put(2, "x");
        characters.draw(2, characters.up);
        characters.draw_across(1, 3);
        characters.end_line({}, out);
    });
    CHECK(std::string(line.characters, line.length) == "    ab\n +x+\n");
}

TEST_CASE("a name that does not fit in a byte is truncated") {
    CHECK(part(drawn<sample_packet>(), 2, 1) ==
          "     0 |Nine_or_|Eight_or|   1        0        1        0        1        0    |\n");
}

// ------------------------------------------------------------------------------------ laws

namespace {

/// The bit ranges of the boxes in a drawing, read from the upper borders and the numbers above.
auto boxes_in(std::string const& picture) -> std::vector<std::pair<unsigned, unsigned>> {
    std::vector<std::pair<unsigned, unsigned>> boxes;
    auto const lines = lines_of(picture);
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
        if (lines[i][0] != '+' || lines[i + 1].empty() || lines[i + 1][0] != '|') { continue; }
        std::size_t from = 0;
        while (from + 1 < lines[i].size()) {
            auto const to = lines[i].find('+', from + 1);
            std::istringstream numbers{lines[i - 1].substr(from + 1, to - from - 1)};
            unsigned msb = 0;
            unsigned lsb = 0;
            numbers >> msb;
            if (!(numbers >> lsb)) { lsb = msb; }
            CHECK(to - from == 3 * (msb - lsb + 1));
            boxes.emplace_back(msb, lsb);
            from = to;
        }
    }
    return boxes;
}

auto boxes_of(print::row_list const& of) -> std::vector<std::pair<unsigned, unsigned>> {
    std::vector<std::pair<unsigned, unsigned>> boxes;
    for (auto i = of.count; i-- != 0;) {
        auto const& row = of.first[i].row;
        if (row.msb >= 32 && row.lsb < 32) {
            boxes.emplace_back(row.msb, 32);
            boxes.emplace_back(31, row.lsb);
        } else {
            boxes.emplace_back(row.msb, row.lsb);
        }
    }
    return boxes;
}

void check_lines_and_names(print::row_list const& of) {
    auto const picture = drawn(of);
    CHECK(picture.back() == '\n');
    for (auto const& line : lines_of(picture)) {
        CAPTURE(line);
        CHECK(line.size() <= 100);
        CHECK((line.empty() || line.back() != ' '));
    }
    for (auto const& one : of) {
        if (one.row.kind != row_kind::field) { continue; }
        CAPTURE(std::string(one.row.name.data(), one.row.name.size()));
        CHECK(picture.find(std::string(one.row.name.data(), one.row.name.size())) !=
              std::string::npos);
    }
}

template <class... Types>
auto layouts_of(type_list<Types...> /*types*/) -> std::vector<print::row_list> {
    return {print::row_list_of<Types>()...};
}

}  // namespace

TEST_CASE("the boxes of every word match its rows, with all names, in 100 columns") {
    auto words = layouts_of(reg::all{});
    words.push_back(print::row_list_of<topa::entry>());
    words.push_back(print::row_list_of<topa::end_entry>());
    for (auto const& word : words) {
        CAPTURE(std::string(word.name.data(), word.name.size()));
        check_lines_and_names(word);
        if (word.bits <= 64) { CHECK(boxes_in(drawn(word)) == boxes_of(word)); }
    }
}

TEST_CASE("every packet is drawn with all names, in 100 columns") {
    for (auto const& packet : layouts_of(packet::all{})) {
        CAPTURE(std::string(packet.name.data(), packet.name.size()));
        check_lines_and_names(packet);
    }
}
