// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/classify.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using says = opcode_byte::says;

namespace {

/// Opcodes that no packet has, to see what becomes of each of their bits. Behind 82, of which seven
/// bits are those of the escape; behind 02 C4; and with a free bit 0.
struct behind_82 : packet_word<behind_82, 2> {
    static constexpr facts about{.id = kind::mtc, .name = "behind 82"};
    struct Opcode : fixed<15, 0, 0x1182> {};
    struct layout : bit_layout<16, Opcode> {};
};
struct behind_02_c4 : packet_word<behind_02_c4, 3> {
    static constexpr facts about{.id = kind::mnt, .name = "behind 02 C4"};
    struct Opcode : fixed<23, 0, 0x22'C402> {};
    struct layout : bit_layout<24, Opcode> {};
};
struct even_or_odd : packet_word<even_or_odd, 1> {
    static constexpr facts about{.id = kind::trig, .name = "even or odd"};
    struct Free : flag<0> {};
    struct Opcode : fixed<7, 1, 0x33> {};
    struct layout : bit_layout<8, Free, Opcode> {};
};
using toys = type_list<behind_82, behind_02_c4, even_or_odd>;

constexpr opcode_byte go_on{says::go_on, kind::pad};
constexpr opcode_byte nothing{};

constexpr auto packet_of(kind id) -> opcode_byte { return {says::a_packet, id}; }

/// PKT-010 and PKT-014, step by step.
constexpr auto plain_first(unsigned b, bool in_block) -> opcode_byte {
    if (in_block && (b & 0x07) == 0x04) { return packet_of(kind::bip); }
    if (b == 0x00) { return packet_of(kind::pad); }
    if (b == 0x02) { return go_on; }
    if ((b & 0x01) == 0) { return packet_of(kind::tnt_short); }
    if ((b & 0x03) == 0x03) { return packet_of(kind::cyc); }
    switch (b & 0x1F) {
        case 0x0D: return packet_of(kind::tip);
        case 0x11: return packet_of(kind::tip_pge);
        case 0x01: return packet_of(kind::tip_pgd);
        case 0x1D: return packet_of(kind::fup);
        default: break;
    }
    switch (b) {
        case 0x19: return packet_of(kind::tsc);
        case 0x59: return packet_of(kind::mtc);
        case 0x99: return packet_of(kind::mode_exec);
        case 0xD9: return packet_of(kind::trig);
        default: return nothing;
    }
}

/// The second table of PKT-016.
constexpr auto plain_ext(unsigned b) -> opcode_byte {
    switch (b) {
        case 0x03: return packet_of(kind::cbr);
        case 0x13: return packet_of(kind::cfe);
        case 0x22: return packet_of(kind::pwre);
        case 0x23: return packet_of(kind::psbend);
        case 0x33:
        case 0xB3: return packet_of(kind::bep);
        case 0x43: return packet_of(kind::pip);
        case 0x53: return packet_of(kind::evd);
        case 0x62:
        case 0xE2: return packet_of(kind::exstop);
        case 0x63: return packet_of(kind::bbp);
        case 0x73: return packet_of(kind::tma);
        case 0x82: return packet_of(kind::psb);
        case 0x83: return packet_of(kind::tracestop);
        case 0xA2: return packet_of(kind::pwrx);
        case 0xA3: return packet_of(kind::tnt_long);
        case 0xC2: return packet_of(kind::mwait);
        case 0xC3: return go_on;
        case 0xC8: return packet_of(kind::vmcs);
        case 0xF3: return packet_of(kind::ovf);
        case 0x12:
        case 0x32:
        case 0x52:
        case 0x72:
        case 0x92:
        case 0xB2:
        case 0xD2:
        case 0xF2: return packet_of(kind::ptw);
        default: return nothing;
    }
}

}  // namespace

TEST_CASE("all 256 first bytes outside a block (PKT-010, PKT-014, PKT-015)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned b = 0; b < 256; ++b) {
            good = good && classify_first(value(static_cast<uint8_t>(b))) == plain_first(b, false);
        }
        return good;
    });
}

TEST_CASE("inside a block the bytes with low bits 100 are BIP, the others as outside (PKT-203)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        unsigned items_seen = 0;
        for (unsigned b = 0; b < 256; ++b) {
            auto const byte = value(static_cast<uint8_t>(b));
            auto const in_4 = classify_first(byte, block::items_of_4);
            auto const in_8 = classify_first(byte, block::items_of_8);
            auto const outside = classify_first(byte, block::none);
            good = good && in_4 == plain_first(b, true) && in_8 == in_4 &&
                   (b % 8 == 4
                        ? in_4 == packet_of(kind::bip) && outside == packet_of(kind::tnt_short)
                        : in_4 == outside);
            items_seen += in_4.which == kind::bip ? 1 : 0;
        }
        return good && items_seen == 32;
    });
}

TEST_CASE("census of the first bytes: 1 + 1 + 126 + 64 + 32 + 4 + 28 (PKT-011)") {
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
            if (one.what == says::nothing) {
                ++unused;
            } else if (one.what == says::go_on) {
                ++escapes;
            } else if (one.which == kind::pad) {
                ++pads;
            } else if (one.which == kind::tnt_short) {
                ++tnts;
            } else if (one.which == kind::cyc) {
                ++cycs;
            } else if (one.which >= kind::tip && one.which <= kind::fup) {
                ++ips;
            } else {
                ++singles;
            }
        }
        return pads == 1 && escapes == 1 && tnts == 126 && cycs == 64 && ips == 32 &&
               singles == 4 && unused == 28;
    });
}

TEST_CASE("all 256 bytes behind 02, of which 28 are used (PKT-012, PKT-016)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        unsigned used = 0;
        for (unsigned b = 0; b < 256; ++b) {
            auto const one = classify_ext(value(static_cast<uint8_t>(b)));
            good = good && one == plain_ext(b);
            used += one.what == says::nothing ? 0 : 1;
        }
        return good && used == 28;
    });
}

TEST_CASE("behind 02 C3 only 88 is used, for MNT (PKT-013)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned b = 0; b < 256; ++b) {
            good = good && classify_ext2(value(static_cast<uint8_t>(b))) ==
                               (b == 0x88 ? packet_of(kind::mnt) : nothing);
        }
        return good;
    });
}

TEST_CASE("a shorter list of packets knows the bytes of those only") {
    CHECK_TWICE([](auto value) {
        using few = type_list<tip, tnt_short, cbr>;
        bool good = true;
        for (unsigned b = 0; b < 256; ++b) {
            auto const byte = value(static_cast<uint8_t>(b));
            // Without PAD its byte looks like a TNT.short; the escape demands more bits.
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

TEST_CASE("an opcode_byte equals one that says the same of the same packet") {
    CHECK_TWICE([](auto value) {
        auto const one = value(packet_of(kind::tip));
        return one == packet_of(kind::tip) && one != packet_of(kind::fup) && one != go_on &&
               go_on != nothing && opcode_byte{} == nothing;
    });
}

TEST_CASE("every bit of an opcode counts, and every value of the bits that are free") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned b = 0; b < 256; ++b) {
            auto const byte = value(static_cast<uint8_t>(b));
            auto const first = b == 0x82 || b == 0x02   ? go_on
                               : b == 0x66 || b == 0x67 ? packet_of(kind::trig)
                                                        : nothing;
            good = good && classify_first<toys>(byte) == first &&
                   classify_ext<toys>(byte) == (b == 0xC4 ? go_on : nothing) &&
                   classify_ext2<toys>(byte) == nothing;
        }
        return good;
    });
}

TEST_CASE("the opcode of a packet, which the two kinds of MODE share") {
    CHECK_TWICE([](auto value) {
        auto const opcode = [&](kind which) {
            return packet::detail::opcode_of(value(which), all{});
        };
        return opcode(kind::pad) == 0x00 && opcode(kind::tip) == 0x0D &&
               opcode(kind::mode_exec) == 0x99 && opcode(kind::mode_tsx) == 0x99 &&
               opcode(kind::ptw) == 0x1202 && opcode(kind::exstop) == 0x6202 &&
               opcode(kind::mnt) == 0x88'C302 && opcode(kind::psb) == 0x8202 &&
               opcode(kind::trig) == 0xD9 &&
               packet::detail::opcode_of(value(kind::tip), toys{}) == 0;
    });
}
