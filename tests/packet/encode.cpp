// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/encode.hpp>

#include <support/check_twice.hpp>
#include <support/packet_samples.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::all_contexts;
using test::hex;

TEST_CASE("a decoded packet encodes to the same bytes, typed or not (PKT-346)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            for (auto const items : all_contexts) {
                if (!sample.stands_in(items)) { continue; }
                auto const any = decode(sample.bytes, {.block = items}).packet;
                auto const out = encode(any, items);
                good = good && out && out.broken == rule::none && out == sample.bytes &&
                       out.length == sample.bytes.size() && out.size() == sample.bytes.size();
                visit(
                    [&]<class Packet>(Packet const& packet) {
                        auto const typed = encode(packet, items);
                        good = good && typed && typed == sample.bytes &&
                               typed.size() == sample.bytes.size() &&
                               typed.data()[0] == sample.bytes.bytes[0];
                    },
                    any);
            }
        }
        return good;
    });
}

TEST_CASE("reserved bits are written as 0 (PKT-003, PKT-340)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        unsigned dirty = 0;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::dirty_samples[i]);
            auto const out = encode(decode(sample.dirty, {.block = sample.items}).packet,
                                    sample.items);
            good = good && out && out == sample.clean;
            dirty += sample.dirty == sample.clean ? 0 : 1;
        }
        return good && dirty > 20;
    });
}

TEST_CASE("opcode bits are written correctly whatever the raw bits are (PKT-340, PKT-345)") {
    CHECK_TWICE([](auto value) {
        return encode(tsc{value(uint64_t{0x0706'0504'0302'0100})}) ==
                   hex("19 01 02 03 04 05 06 07") &&
               encode(mode_tsx{value(uint64_t{0xE1FF})}) == hex("99 21") &&
               encode(psb{value(wide_bits{~uint64_t{0}, 0})}) ==
                   hex("0282 0282 0282 0282 0282 0282 0282 0282") &&
               encode(cbr{value(uint64_t{0xFFFF'FFFF'0018'0302})}).broken == rule::PKT_340;
    });
}

TEST_CASE("a packet that would not decode to itself is refused, and nothing is written (PKT-033, "
          "PKT-036,037, PKT-052, PKT-090, PKT-110, PKT-173, PKT-340,341, PKT-344)") {
    CHECK_TWICE([](auto value) {
        auto const is_refused = [&](auto const& packet, rule broken, block items = block::none) {
            auto const out = encode(value(packet), items);
            auto const any = encode(any_packet{value(packet), 1}, items);
            return !out && out.broken == broken && out.length == 0 && out.size() == 0 && !any &&
                   any.broken == broken && any.length == 0 && out.bytes == decltype(out.bytes){} &&
                   any.bytes == decltype(any.bytes){};
        };
        return is_refused(tnt_short{}, rule::PKT_033) &&
               is_refused(tnt_short::of({7, 0}), rule::PKT_033) &&
               is_refused(tnt_long{}, rule::PKT_036) &&
               is_refused(tnt_long::of({48, 0}), rule::PKT_036) &&
               is_refused(tnt_long{}.with(tnt_long::bits{1}), rule::PKT_037) &&
               is_refused(tip{}.with(tip::IPBytes{static_cast<ip_bytes>(5)}), rule::PKT_052) &&
               is_refused(fup{}.with(fup::IPBytes{static_cast<ip_bytes>(7)}), rule::PKT_052) &&
               is_refused(mode_exec{}.with(mode_exec::CS_L{true}, mode_exec::CS_D{true}),
                          rule::PKT_090) &&
               is_refused(mode_tsx{}.with(mode_tsx::InTX{true}, mode_tsx::TXAbort{true}),
                          rule::PKT_090) &&
               is_refused(ptw{}.with(ptw::PayloadBytes{2}), rule::PKT_173) &&
               is_refused(cyc{wide_bits{~uint64_t{0}, 0x10FF}}, rule::PKT_110) &&
               is_refused(tip{}.with_payload(1), rule::PKT_340) &&
               is_refused(tip::of(ip_bytes::update_16, 0).with_payload(0x1'0000), rule::PKT_340) &&
               is_refused(ptw{}.with_payload(0x1'0000'0000), rule::PKT_340) &&
               is_refused(trig{}.with_payload(1), rule::PKT_340) &&
               is_refused(cyc{wide_bits{0x0203, 0}}, rule::PKT_340) &&
               is_refused(bip{}, rule::PKT_344) &&
               is_refused(bip{}.with_payload(0x1'0000'0000), rule::PKT_340, block::items_of_4);
    });
}

TEST_CASE("inside a block, only a TNT.short that decodes as BIP is refused (PKT-344)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        unsigned refused = 0;
        for (unsigned byte = 4; byte < 256; byte += 2) {
            auto const packet = tnt_short{uint64_t{value(byte)}};
            bool const like_bip = byte % 8 == 4;
            for (auto const items : all_contexts) {
                auto const out = encode(packet, items);
                bool const may = items == block::none || !like_bip;
                good = good && (may ? out.length == 1 && out.bytes[0] == byte
                                    : out.broken == rule::PKT_344 && out.length == 0);
                refused += may ? 0 : 1;
            }
        }
        return good && refused == 64;
    });
}

TEST_CASE("a BIP outside a block is refused for every id (PKT-344)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned id = 0; id < 32; ++id) {
            auto const packet = bip{}.with(bip::id{wrapped{value(id)}});
            good = good && encode(packet).broken == rule::PKT_344 &&
                   encode(packet, block::items_of_4).length == 5 &&
                   encode(packet, block::items_of_8).length == 9;
        }
        return good;
    });
}

TEST_CASE("a block does not change the encoding of any other packet (PKT-344)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            if (sample.where != test::context_of::any) { continue; }
            auto const packet = decode(sample.bytes).packet;
            good = good && encode(packet, block::items_of_4) == sample.bytes &&
                   encode(packet, block::items_of_8) == sample.bytes;
        }
        return good;
    });
}

TEST_CASE("an encoded packet can be compared with bytes") {
    CHECK_TWICE([](auto value) {
        auto const out = encode(mtc{}.with(mtc::CTC{0x80}));
        return out == value(hex("59 80")) && !(out == value(hex("59 81"))) &&
               !(out == value(hex("59"))) && !(out == value(hex("59 80 00")));
    });
}

// ------------------------------------------------------------------------------------ append

TEST_CASE("append writes each packet after the previous one (PKT-347)") {
    CHECK_TWICE([](auto value) {
        uint8_t room[8] = {};
        byte_buffer out{room};
        auto const first = append(out, mtc{}.with(mtc::CTC{wrapped{value(0x80U)}}));
        auto const second = append(out, any_packet{tip::of(ip_bytes::update_16, value(0x3412U))});
        return first == rule::none && second == rule::none &&
               out.written() == byte_view{hex("59 80 2D 12 34")} && out.room() == 3;
    });
}

TEST_CASE("a packet is written completely or not at all (PKT-347)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            auto const items = sample.a_context();
            auto const packet = decode(sample.bytes, {.block = items}).packet;
            for (size_t room = 0; room <= sample.bytes.size(); ++room) {
                // One byte is already written. The bytes after the buffer must not change.
                uint8_t bytes[20] = {0xEE};
                for (auto& byte : bytes) { byte = 0xEE; }
                byte_buffer out{bytes, room + 1};
                good = good && append(out, pad{}) == rule::none;
                bool const fits = room == sample.bytes.size();
                good = good && append(out, packet, items) == (fits ? rule::none : rule::PKT_347);
                good = good && out.size() == (fits ? 1 + room : 1) && bytes[0] == 0;
                for (size_t k = 1; k < 20; ++k) {
                    good = good &&
                           bytes[k] == (fits && k <= room ? sample.bytes.bytes[k - 1] : 0xEE);
                }
            }
        }
        return good;
    });
}

TEST_CASE("typed packets are also appended completely or not at all (PKT-347)") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[15] = {};
        byte_buffer small{bytes};
        bool good = append(small, psb{}) == rule::PKT_347 && small.size() == 0 && bytes[0] == 0;
        good = good && append(small, value(psbend{})) == rule::none && small.size() == 2;
        return good;
    });
}

TEST_CASE(
    "a refused packet does not change the buffer and reports the rule (PKT-015, PKT-341, PKT-344, "
    "PKT-347)") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[16] = {};
        byte_buffer out{bytes};
        bool good = append(out, value(tnt_short{})) == rule::PKT_033;
        good = good &&
               append(out, value(tnt_short::of({1, 0})), block::items_of_4) == rule::PKT_344;
        good = good && append(out, any_packet{value(bip{}), 5}) == rule::PKT_344;
        good = good && append(out, value(any_packet{})) == rule::PKT_015;
        good = good && out.size() == 0 && bytes[0] == 0;
        good = good && append(out, value(bip{}), block::items_of_8) == rule::none;
        return good && out.size() == 9;
    });
}

TEST_CASE("encode_wide() gives the bytes of encode() as a number (PKT-340, PKT-344)") {
    CHECK_TWICE([](auto value) {
        auto const set = packet::encode_wide(cbr{value(uint64_t{0xFF18'0302})});
        auto const psb_bytes = packet::encode_wide(psb{});
        auto const refused = packet::encode_wide(bip{}, value(block::none));
        return set && set.bytes == wide_bits{0x0018'0302, 0} && set.length == 4 && psb_bytes &&
               psb_bytes.length == 16 &&
               psb_bytes.bytes == wide_bits{0x8202'8202'8202'8202, 0x8202'8202'8202'8202} &&
               !refused && refused.broken == rule::PKT_344 && refused.length == 0 &&
               refused.bytes == wide_bits{};
    });
}
