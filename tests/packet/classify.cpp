// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/classify.hpp>

#include <support/check_twice.hpp>
#include <support/reference_decoder.hpp>

#include <initializer_list>

using namespace ptspec;
using namespace ptspec::packet;
using meaning = opcode_byte::meaning;

namespace {

/// Packets with unused opcodes, to test each opcode bit: after 82, which shares seven bits with the
/// escape; after 02 C4; and with bit 0 free.
struct after_82 : packet_word<after_82, 2> {
    static constexpr facts about{.id = kind::mtc, .name = "after 82"};
    struct Opcode : fixed<15, 0, 0x1182> {};
    struct layout : bit_layout<16, Opcode> {};
};
struct after_02_c4 : packet_word<after_02_c4, 3> {
    static constexpr facts about{.id = kind::mnt, .name = "after 02 C4"};
    struct Opcode : fixed<23, 0, 0x22'C402> {};
    struct layout : bit_layout<24, Opcode> {};
};
struct bit_0_free : packet_word<bit_0_free, 1> {
    static constexpr facts about{.id = kind::trig, .name = "bit 0 free"};
    struct Free : flag<0> {};
    struct Opcode : fixed<7, 1, 0x33> {};
    struct layout : bit_layout<8, Free, Opcode> {};
};
using test_packets = type_list<after_82, after_02_c4, bit_0_free>;

constexpr opcode_byte go_on{meaning::prefix, kind::none};
constexpr opcode_byte nothing{};

constexpr auto packet_of(kind id) -> opcode_byte { return {meaning::packet, id}; }

/// The classification that the plain decoder gives for the first bytes of an opcode.
auto reference_byte(std::initializer_list<unsigned> front, bool in_block = false) -> opcode_byte {
    uint8_t bytes[3] = {};
    size_t size = 0;
    for (unsigned const byte : front) { bytes[size++] = static_cast<uint8_t>(byte); }
    auto const got = reference::opcode_at({bytes, size}, in_block);
    return got.packet < kind_count    ? packet_of(static_cast<kind>(got.packet))
           : got.error == "truncated" ? go_on
                                      : nothing;
}

}  // namespace

TEST_CASE("classification of all first bytes, bytes after 02 and after 02 C3 matches the "
          "catalogue (PKT-010, PKT-012..016)") {
    for (unsigned b = 0; b < 256; ++b) {
        CAPTURE(b);
        auto const byte = static_cast<uint8_t>(b);
        CHECK(classify_first(byte) == reference_byte({b}));
        CHECK(classify_first(byte, block::items_of_4) == reference_byte({b}, true));
        CHECK(classify_ext(byte) == reference_byte({0x02, b}));
        CHECK(classify_ext2(byte) == reference_byte({0x02, 0xC3, b}));
    }
    CHECK(reference_byte({0x02, 0xC3}) == go_on);
}

TEST_CASE("inside a block, bytes with low bits 100 are BIP and the others do not change "
          "(PKT-203)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        unsigned items_seen = 0;
        for (unsigned b = 0; b < 256; ++b) {
            auto const byte = value(static_cast<uint8_t>(b));
            auto const in_4 = classify_first(byte, block::items_of_4);
            auto const in_8 = classify_first(byte, block::items_of_8);
            auto const outside = classify_first(byte, block::none);
            good = good && in_8 == in_4 &&
                   (b % 8 == 4
                        ? in_4 == packet_of(kind::bip) && outside == packet_of(kind::tnt_short)
                        : in_4 == outside);
            items_seen += in_4.id == kind::bip ? 1 : 0;
        }
        return good && items_seen == 32;
    });
}

TEST_CASE("census of the first bytes: 1 + 1 + 126 + 64 + 32, and 32 others (PKT-011)") {
    CHECK_TWICE([](auto value) {
        unsigned pads = 0;
        unsigned escapes = 0;
        unsigned tnts = 0;
        unsigned cycs = 0;
        unsigned ips = 0;
        unsigned singles = 0;
        unsigned unused = 0;
        for (unsigned b = 0; b < 256; ++b) {
            auto const one = classify_first(value(static_cast<uint8_t>(b)));
            if (one.what == meaning::invalid) {
                ++unused;
            } else if (one.what == meaning::prefix) {
                ++escapes;
            } else if (one.id == kind::pad) {
                ++pads;
            } else if (one.id == kind::tnt_short) {
                ++tnts;
            } else if (one.id == kind::cyc) {
                ++cycs;
            } else if (one.id >= kind::tip && one.id <= kind::fup) {
                ++ips;
            } else {
                ++singles;
            }
        }
        return pads == 1 && escapes == 1 && tnts == 126 && cycs == 64 && ips == 32 &&
               singles + unused == 32;
    });
}

TEST_CASE("a shorter list of packets classifies only the bytes of those packets") {
    CHECK_TWICE([](auto value) {
        using few = type_list<tip, tnt_short, cbr>;
        bool good = true;
        for (unsigned b = 0; b < 256; ++b) {
            auto const byte = value(static_cast<uint8_t>(b));
            // Without PAD, 00 matches TNT.short. 02 is the escape, which compares more bits.
            auto const first = b == 0x02        ? go_on
                               : b % 2 == 0     ? packet_of(kind::tnt_short)
                               : b % 32 == 0x0D ? packet_of(kind::tip)
                                                : nothing;
            good = good && classify_first<few>(byte) == first &&
                   classify_first<few>(byte, block::items_of_4) == first &&
                   classify_ext<few>(byte) == (b == 0x03 ? packet_of(kind::cbr) : nothing) &&
                   classify_ext2<few>(byte) == nothing;
        }
        return good;
    });
}

TEST_CASE("opcode_bytes are equal if their class and their packet are equal") {
    CHECK_TWICE([](auto value) {
        auto const one = value(packet_of(kind::tip));
        return one == packet_of(kind::tip) && one != packet_of(kind::fup) && one != go_on &&
               go_on != nothing && opcode_byte{} == nothing;
    });
}

TEST_CASE("all opcode bits are compared, and free bits may have any value") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned b = 0; b < 256; ++b) {
            auto const byte = value(static_cast<uint8_t>(b));
            auto const first = b == 0x82 || b == 0x02   ? go_on
                               : b == 0x66 || b == 0x67 ? packet_of(kind::trig)
                                                        : nothing;
            good = good && classify_first<test_packets>(byte) == first &&
                   classify_ext<test_packets>(byte) == (b == 0xC4 ? go_on : nothing) &&
                   classify_ext2<test_packets>(byte) == nothing;
        }
        return good;
    });
}

TEST_CASE("opcode_of() gives the opcode of a packet; both MODE packets have the same") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](masked_opcode one, uint32_t mask, uint32_t opcode) {
            return one == masked_opcode{value(mask), opcode};
        };
        return is(opcode_of<pad>(), 0xFF, 0x00) && is(opcode_of<tip>(), 0x1F, 0x0D) &&
               is(opcode_of<tnt_short>(), 0x01, 0x00) && is(opcode_of<cyc>(), 0x03, 0x03) &&
               is(opcode_of<mode_exec>(), 0xFF, 0x99) && is(opcode_of<mode_tsx>(), 0xFF, 0x99) &&
               is(opcode_of<ptw>(), 0x1FFF, 0x1202) && is(opcode_of<exstop>(), 0x7FFF, 0x6202) &&
               is(opcode_of<mnt>(), 0xFF'FFFF, 0x88'C302) && is(opcode_of<psb>(), 0xFFFF, 0x8202) &&
               is(opcode_of<trig>(), 0xFF, 0xD9);
    });
    CHECK_TWICE([](auto value) {
        return escape == value(2U) && leaf_mask<mode_exec> == value(uint64_t{0xE000}) &&
               leaf_mask<mode_tsx> == 0xE000 && leaf_mask<psb> == 0;
    });
}

namespace {

/// True if two answers are equal for a decoder of one packet, for which all other packets are the
/// same.
constexpr auto agree(opcode_byte of_one, opcode_byte of_all, kind own) -> bool {
    return of_one.what == of_all.what &&
           (of_all.what != meaning::packet || (of_one.id == own) == (of_all.id == own));
}

template <class Packet>
constexpr auto sets_agree_with_tables() -> bool {
    constexpr kind own = Packet::about.id;
    using one = packet::detail::opcodes_of_one<all, own, own == kind::pad ? kind::psb : kind::pad>;
    bool good = true;
    for (unsigned b = 0; b < 256; ++b) {
        auto const byte = static_cast<uint8_t>(b);
        for (auto const items : {block::none, block::items_of_4, block::items_of_8}) {
            good = good && agree(one::first(byte, items), classify_first(byte, items), own);
        }
        good = good && agree(one::ext(byte), classify_ext(byte), own) &&
               agree(one::ext2(byte), classify_ext2(byte), own);
    }
    return good;
}

}  // namespace

TEST_CASE("the opcode lookup of one packet agrees with the tables (PKT-010..016)") {
    static_assert(sets_agree_with_tables<pad>() && sets_agree_with_tables<tip>());
    static_assert(sets_agree_with_tables<tnt_short>() && sets_agree_with_tables<bip>());
    static_assert(sets_agree_with_tables<cyc>() && sets_agree_with_tables<trig>());
    static_assert(sets_agree_with_tables<cbr>() && sets_agree_with_tables<mnt>());
    CHECK((sets_agree_with_tables<bip>() && sets_agree_with_tables<mnt>()));
}
