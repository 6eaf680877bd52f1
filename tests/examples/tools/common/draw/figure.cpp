// SPDX-License-Identifier: BSL-1.0
#include <tools/common/draw/figure.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/apic.hpp>
#include <ptspec/reg/cpuid_14h.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

/// The lines of a figure as `63..32/32 31..0/32`.
template <class Type>
constexpr auto lines_of(unsigned bits_per_line = 32) {
    return print::written<400>([=](auto& out) {
        draw::for_each_line(print::row_list_of<Type>(), bits_per_line,
                            [&](draw::picture_line line) {
                                print::decimal(line.msb, out);
                                out("..");
                                print::decimal(line.lsb, out);
                                out("/");
                                print::decimal(line.columns, out);
                                out(" ");
                            });
    });
}

/// The labels of all lines with the ends of each piece, at ten pixels per bit.
template <class Type>
constexpr auto pieces_of(unsigned bits_per_line = 32) {
    return print::written<800>([=](auto& out) {
        auto const rows = print::row_list_of<Type>();
        draw::for_each_line(rows, bits_per_line, [&](draw::picture_line line) {
            draw::for_each_piece(rows, line, [&](draw::piece one) {
                auto const place = draw::place_of(one, line, 10);
                print::decimal(place.left, out);
                out("-");
                print::decimal(place.right, out);
                out(one.named() ? text{"="} : text{"~"});
                draw::label(one, out);
                out(one.whole() ? text{" "} : text{"* "});
            });
        });
    });
}

/// A packet with rows that fill bytes only partly, and with a payload of one size.
///
/// Shape:  10 bytes.
/// Source: none.
struct sample : packet::packet_word<sample, 6, packet::payload_of<4, 4>> {
    static constexpr packet::facts about{.id = packet::kind::pad, .name = "SAMPLE"};

    struct Opcode : fixed<15, 0, 0x0301> {};
    struct Fifteen : field<30, 16> {};
    struct Selector : selects_payload<flag<31>> {};
    struct Seven : field<38, 32> {};
    struct Nine : field<47, 39> {};
    struct layout : bit_layout<48, Opcode, Fifteen, Selector, Seven, Nine> {};
};

constexpr auto sizes(uint32_t mask) {
    return print::written<60>([=](auto& out) { draw::byte_counts(mask, out); });
}

}  // namespace

TEST_CASE("a word is drawn from its highest bit down, with a given number of bits per line") {
    static_assert(lines_of<topa::entry>() == "63..32/32 31..0/32 ");
    static_assert(lines_of<topa::entry>(64) == "63..0/64 ");
    static_assert(lines_of<topa::entry>(16) == "63..48/16 47..32/16 31..16/16 15..0/16 ");
    static_assert(lines_of<reg::apic_mmio_lvt_pmi>() == "31..0/32 ");
    static_assert(lines_of<reg::apic_mmio_lvt_pmi>(31) == "31..31/1 30..0/31 ");
    static_assert(lines_of<reg::apic_mmio_lvt_pmi>(24) == "31..24/8 23..0/24 ");
    CHECK((lines_of<topa::entry>() == "63..32/32 31..0/32 "));
}

TEST_CASE("a packet is drawn byte by byte, and bytes of the same row share a line") {
    static_assert(lines_of<packet::pad>() == "7..0/8 ");
    static_assert(lines_of<packet::tma>() == "7..0/8 15..8/8 31..16/8 39..32/8 47..40/8 55..48/8 ");
    static_assert(lines_of<packet::pip>() == "7..0/8 15..8/8 23..16/8 63..24/8 ");
    static_assert(lines_of<packet::psb>() == "7..0/8 15..8/8 63..16/8 127..64/8 ");
    static_assert(lines_of<packet::exstop>() == "7..0/8 15..8/8 ");
    static_assert(lines_of<sample>() == "15..0/8 23..16/8 31..24/8 39..32/8 47..40/8 79..48/8 ");
    static_assert(lines_of<packet::ptw>(16) == "7..0/8 15..8/8 79..16/8 ");
    CHECK((lines_of<packet::pad>() == "7..0/8 "));
}

TEST_CASE("a state longer than a word is drawn like a packet") {
    static_assert(draw::drawn_in_bytes(print::row_list_of<reg::xsave_pt_state>()));
    static_assert(draw::drawn_in_bytes(print::row_list_of<packet::pad>()));
    static_assert(!draw::drawn_in_bytes(print::row_list_of<topa::entry>()));
    static_assert(draw::widest_byte_numbers(print::row_list_of<reg::xsave_pt_state>()) == 8);
    static_assert(draw::widest_byte_numbers(print::row_list_of<packet::psb>()) == 6);
    CHECK(!draw::drawn_in_bytes({"", nullptr, 0, 64, false}));
    CHECK(draw::drawn_in_bytes({"", nullptr, 0, 65, false}));
    // 100 bytes have the numbers 0 to 99.
    CHECK(draw::widest_byte_numbers({"", nullptr, 0, 800, false}) == 6);
    CHECK(draw::widest_byte_numbers({"", nullptr, 0, 808, false}) == 8);
}

TEST_CASE("the pieces of a line are adjacent, from left to right") {
    static_assert(pieces_of<topa::entry>() ==
                  "0-320=Base[63:32]* "
                  "0-200=Base[31:12]* 200-220~reserved 220-260=Size 260-270~reserved 270-280=STOP "
                  "280-290~reserved 290-300=INT 300-310~reserved 310-320=END ");
    static_assert(pieces_of<reg::cpuid_14h_0_ecx>() ==
                  "0-10=LIP 10-280~reserved 280-290=FABRIC 290-300=SNGLRNGOUT 300-310=MENTRY "
                  "310-320=TOPAOUT ");
    CHECK((pieces_of<topa::entry>(64) ==
           "0-520=Base 520-540~reserved 540-580=Size 580-590~reserved 590-600=STOP "
           "600-610~reserved 610-620=INT 620-630~reserved 630-640=END "));
}

TEST_CASE("a part of a field is labelled with its bits, a part of an address with address bits") {
    static_assert(pieces_of<packet::pip>() ==
                  "0-80~Escape 0-80~Opcode 0-70=CR3[11:5]* 70-80=NR 0-80=CR3[51:12]* ");
    static_assert(pieces_of<packet::tma>() ==
                  "0-80~Escape 0-80~Opcode 0-80=CTC 0-80~reserved 0-80=FC[7:0]* 0-70~reserved "
                  "70-80=FC[8]* ");
    CHECK((pieces_of<reg::ia32_rtit_output_mask_ptrs>(20) ==
           "0-40=OutputOffset[31:28]* 0-200=OutputOffset[27:8]* "
           "0-80=OutputOffset[7:0]* 80-200=MaskOrTableOffset[24:13]* "
           "0-130=MaskOrTableOffset[12:0]* 130-200=LowerMask "));
}

TEST_CASE("a payload is labelled with its sizes") {
    static_assert(pieces_of<packet::tip>() ==
                  "0-30=IPBytes 30-80~Opcode 0-80=payload (0, 2, 4, 6 or 8 bytes) ");
    static_assert(pieces_of<packet::mnt>() == "0-80~Escape 0-80~Escape2 0-80~Opcode 0-80=payload ");
    static_assert(
        pieces_of<packet::ptw>() ==
        "0-80~Escape 0-10=IP 10-30=PayloadBytes 30-80~Opcode 0-80=payload (4 or 8 bytes) ");
    static_assert(pieces_of<sample>() ==
                  "0-80~Opcode 0-80=Fifteen[7:0]* 0-10=Selector 10-80=Fifteen[14:8]* "
                  "0-10=Nine[0]* 10-80=Seven 0-80=Nine[8:1]* 0-80=payload ");
    CHECK((pieces_of<packet::cyc>() ==
           "0-50=value_4_0 50-60=Exp 60-80~Opcode 0-80=payload (0 to 9 bytes) "));
}

TEST_CASE("byte_counts prints the sizes in words") {
    CHECK_TWICE([](auto value) {
        return sizes(value(1U << 4)) == "4 bytes" &&
               sizes(value(1U << 0 | 1U << 2)) == "0 or 2 bytes" &&
               sizes(value(1U << 3 | 1U << 4)) == "3 or 4 bytes" &&
               sizes(value(1U << 3 | 1U << 4 | 1U << 5)) == "3 to 5 bytes" &&
               sizes(value(1U << 3 | 1U << 4 | 1U << 6)) == "3, 4 or 6 bytes" &&
               sizes(value(1U << 0 | 1U << 31)) == "0 or 31 bytes";
    });
}

TEST_CASE("the bytes of a fixed row are printed in memory order") {
    constexpr auto bytes = [](unsigned row, unsigned msb, unsigned lsb) {
        return print::written<60>([=](auto& out) {
            draw::fixed_bytes({print::row_list_of<packet::psb>().first + row, msb, lsb}, out);
        });
    };
    static_assert(bytes(2, 63, 16) == "02H 82H 02H 82H 02H 82H");
    static_assert(bytes(3, 79, 64) == "02H 82H");
    CHECK((bytes(1, 15, 8) == "82H"));
    CHECK((print::written<20>([](auto& out) {
               draw::fixed_bytes({print::row_list_of<sample>().first, 15, 0}, out);
           }) == "01H 03H"));
}
