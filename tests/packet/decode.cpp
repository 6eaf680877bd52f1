// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/decode.hpp>

#include <support/check_twice.hpp>
#include <support/packet_samples.hpp>
#include <support/random_numbers.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::all_contexts;
using test::hex;
using test::is_error;

namespace {

/// True if the bytes decode to one complete packet of this kind that consumes no further bytes.
constexpr auto is_whole(decoded const& got, kind id, test::hex_bytes const& bytes) -> bool {
    return got && got.error == error::none && got.broken == rule::none && got.need == 0 &&
           got.packet.kind() == id && got.length() == bytes.size() &&
           got.packet.length() == bytes.size() && got.packet.raw() == bytes.number();
}

}  // namespace

TEST_CASE("every packet decodes at every length in every context where it may appear (PKT-002, "
          "PKT-006)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        bool seen[kind_count] = {};
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            seen[underlying(sample.id)] = true;
            for (auto const items : all_contexts) {
                if (sample.stands_in(items)) {
                    good = good && is_whole(decode(sample.bytes, {.block = items}), sample.id,
                                            sample.bytes);
                }
            }
        }
        for (bool const one : seen) { good = good && one; }
        return good;
    });
}

TEST_CASE("every proper prefix of every packet is truncated and reports its need (PKT-255)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            for (auto const items : all_contexts) {
                good = good && (!sample.stands_in(items) ||
                                test::prefixes_are_truncated(sample.bytes, items));
            }
        }
        return good;
    });
}

TEST_CASE("the need grows as header bytes arrive and is never above 16 (PKT-012,013, PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const need = [&](char const* bytes) {
            auto const one = decode(value(hex(bytes)));
            return one.error == error::truncated ? unsigned{one.need} : 0;
        };
        return need("") == 1 && need("02") == 2 && need("02 C3") == 3 && need("02 C3 88") == 11 &&
               need("02 82") == 16 && need("07") == 2 && need("07 01") == 3 &&
               need("07 01 01 01 01 01 01 01 01") == 10 && need("D9") == 3 && need("D9 00") == 3 &&
               need("D9 40") == 5 && need("D9 40 01 17") == 5 && need("CD") == 9 &&
               need("CD 01 02 03 04 05 06 07") == 9 && need("99") == 2;
    });
}

TEST_CASE("a default-constructed result has no packet and no error") {
    static_assert(decoded{} && decoded{}.packet == any_packet{} && decoded{}.length() == 0);
    static_assert(decoded{}.need == 0 && decoded{}.broken == rule::none);
    static_assert(decoded_as<mtc>{} && decoded_as<mtc>{}.length == 0 &&
                  decoded_as<mtc>{}.need == 0);
}

TEST_CASE("decoding nothing is truncated, need 1 (PKT-255)") {
    CHECK_TWICE([](auto value) {
        return is_error(decode(byte_view{}), error::truncated, rule::PKT_255, value(1U)) &&
               is_error(decode(byte_view{}, {.block = block::items_of_8}), error::truncated,
                        rule::PKT_255, value(1U)) &&
               is_error(decode_as<psb>(byte_view{}), error::truncated, rule::PKT_255, value(1U));
    });
}

TEST_CASE("bytes after a packet do not change its decoding (PKT-002, PKT-006)") {
    // Every value of the byte after the packet, at run time.
    for (auto const& sample : test::packet_samples) {
        for (auto const items : all_contexts) {
            if (!sample.stands_in(items)) { continue; }
            bool good = true;
            for (unsigned byte = 0; byte < 256; ++byte) {
                auto const longer = sample.bytes.and_then(static_cast<uint8_t>(byte));
                good = good &&
                       is_whole(decode(longer, {.block = items}), sample.id, sample.bytes) &&
                       is_whole(decode(longer.and_then(0xFF).and_then(0xFF), {.block = items}),
                                sample.id, sample.bytes);
            }
            CHECK(good);
        }
    }
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            if (!sample.stands_in(block::none)) { continue; }
            auto longer = sample.bytes;
            while (longer.size() < test::hex_bytes::most) { longer = longer.and_then(0xFF); }
            good = good && is_whole(decode(longer), sample.id, sample.bytes);
        }
        return good;
    });
}

TEST_CASE("the four errors and the violated rule of each (PKT-004, PKT-012,013, PKT-015, "
          "PKT-036,037, PKT-052, PKT-089,090, PKT-110, PKT-131, PKT-173)") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](char const* bytes, error why, rule broken) {
            return is_error(decode(value(hex(bytes))), why, broken);
        };
        return is("05", error::bad_opcode, rule::PKT_015) &&
               is("F9", error::bad_opcode, rule::PKT_015) &&
               is("C9 00 00", error::bad_opcode, rule::PKT_015) &&
               is("02 00", error::bad_opcode, rule::PKT_012) &&
               is("02 FF 00 00", error::bad_opcode, rule::PKT_012) &&
               is("02 C3 00", error::bad_opcode, rule::PKT_013) &&
               is("02 C3 89 00", error::bad_opcode, rule::PKT_013) &&
               is("AD", error::reserved, rule::PKT_052) &&
               is("FD", error::reserved, rule::PKT_052) &&
               is("02 52", error::reserved, rule::PKT_173) &&
               is("99 40", error::reserved, rule::PKT_089) &&
               is("99 E3", error::reserved, rule::PKT_089) &&
               is("99 03", error::reserved, rule::PKT_090) &&
               is("99 23", error::reserved, rule::PKT_090) &&
               is("02 A3 00 00 00 00 00 00", error::bad_packet, rule::PKT_036) &&
               is("02 A3 01 00 00 00 00 00", error::bad_packet, rule::PKT_037) &&
               is("FF FF FF FF FF FF FF FF FF 10", error::bad_packet, rule::PKT_110) &&
               is("0282 0282 0282 0282 0282 0282 0282 0283", error::bad_packet, rule::PKT_131);
    });
}

TEST_CASE("checks run in order: opcode, header, length, payload (PKT-004, PKT-132)") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](char const* bytes) { return decode(value(hex(bytes))); };
        return  // reserved, although truncated
            is_error(of("02 52"), error::reserved, rule::PKT_173) &&
            is_error(of("AD"), error::reserved, rule::PKT_052) &&
            is_error(of("ED 01"), error::reserved, rule::PKT_052) &&
            // truncated, although the payload is already wrong
            is_error(of("02 82 FF"), error::truncated, rule::PKT_255, 16) &&
            is_error(of("02 A3 00 00 00 00 00"), error::truncated, rule::PKT_255, 8) &&
            is_error(of("02 73 00 00 FF"), error::truncated, rule::PKT_255, 7) &&
            // bad_opcode although more could follow
            is_error(of("09"), error::bad_opcode, rule::PKT_015) &&
            is_error(of("02 C3 00"), error::bad_opcode, rule::PKT_013);
    });
    CHECK_TWICE([](auto value) {
        auto const short_and_dirty = value(hex("02 73 00 00 FF 00"));
        return is_error(decode(short_and_dirty, {.strict = true}), error::truncated, rule::PKT_255,
                        7);
    });
}

TEST_CASE("a wrong header is reported in every context (PKT-004)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (auto const items : all_contexts) {
            good = good &&
                   is_error(decode(value(hex("05")), {.block = items}), error::bad_opcode,
                            rule::PKT_015) &&
                   is_error(decode(value(hex("BD")), {.block = items}), error::reserved,
                            rule::PKT_052);
        }
        return good;
    });
}

TEST_CASE("an error consumes nothing: length 0 and no packet (PKT-005)") {
    CHECK_TWICE([](auto value) {
        char const* const wrong[] = {"",      "02",    "05",    "02 00",
                                     "02 C3", "AD 00", "99 40", "02 A3 01 00 00 00 00 00"};
        bool good = true;
        for (auto const* bytes : wrong) {
            auto const one = decode(value(hex(bytes)));
            good = good && !one && one.length() == 0 && one.packet == any_packet{};
        }
        return good;
    });
}

TEST_CASE("set reserved bits change no field; only TMA rejects them, in strict mode (PKT-003, "
          "PKT-104)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::dirty_samples[i]);
            auto const lenient = decode(sample.dirty, {.block = sample.items});
            auto const strict = decode(sample.dirty, {.block = sample.items, .strict = true});
            auto const clean = decode(sample.clean, {.block = sample.items, .strict = true});
            good = good && is_whole(lenient, sample.id, sample.dirty) &&
                   is_whole(clean, sample.id, sample.clean);
            good = good &&
                   (sample.id == kind::tma ? is_error(strict, error::bad_packet, rule::PKT_104)
                                           : is_whole(strict, sample.id, sample.dirty));
            visit(
                [&]<class Packet>(Packet const& dirty) {
                    constexpr auto reserved = Packet::reserved_mask();
                    auto const other = clean.packet.template as<Packet>();
                    good = good && dirty.reserved_bits_set() == reserved &&
                           (dirty.raw & ~reserved) == other.raw &&
                           other.reserved_bits_set() == decltype(reserved){};
                },
                lenient.packet);
        }
        return good;
    });
}

TEST_CASE("strict mode changes nothing for packets without reserved bits (PKT-003)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            for (auto const items : all_contexts) {
                good = good && (!sample.stands_in(items) ||
                                is_whole(decode(sample.bytes, {.block = items, .strict = true}),
                                         sample.id, sample.bytes));
            }
        }
        return good;
    });
}

TEST_CASE("the same bytes give the same packet in every context, except for BIP (PKT-006, "
          "PKT-203)") {
    for (unsigned byte = 0; byte < 256; ++byte) {
        test::random_numbers random{byte};
        auto bytes = hex("");
        bytes = bytes.and_then(static_cast<uint8_t>(byte));
        while (bytes.size() < 17) { bytes = bytes.and_then(static_cast<uint8_t>(random())); }
        auto const outside = decode(bytes);
        block const blocks[] = {block::items_of_4, block::items_of_8};
        for (auto const items : blocks) {
            auto const inside = decode(bytes, {.block = items});
            if (byte % 8 == 4) {
                unsigned const length = items == block::items_of_4 ? 5 : 9;
                CHECK(inside.length() == length);
                CHECK(inside.packet.is<bip>());
                CHECK(inside.packet.as<bip>().get<bip::id>() == byte / 8);
                CHECK(outside.packet.is<tnt_short>());
            } else {
                CHECK(inside.packet == outside.packet);
                CHECK(inside.error == outside.error);
                CHECK(inside.need == outside.need);
                CHECK(inside.broken == outside.broken);
            }
        }
    }
}

TEST_CASE("multi-byte fields are little-endian (PKT-001)") {
    CHECK_TWICE([](auto value) {
        auto const one = decode(value(hex("19 01 02 03 04 05 06 07")));
        return one.packet.raw() == wide_bits{0x0706'0504'0302'0119, 0} &&
               decode(value(hex("02 C3 88 01 02 03 04 05 06 07 08"))).packet.raw() ==
                   wide_bits{0x0504'0302'0188'C302, 0x08'0706};
    });
}

TEST_CASE("a packet may start at any address, after other packets (PKT-002)") {
    CHECK_TWICE([](auto value) {
        // MTC, TIP, PAD, CYC of two bytes, PSBEND.
        auto const bytes = value(hex("59 80 2D 12 34 00 07 02 02 23"));
        unsigned const lengths[] = {2, 3, 1, 2, 2};
        kind const kinds_seen[] = {kind::mtc, kind::tip, kind::pad, kind::cyc, kind::psbend};
        size_t at = 0;
        bool good = true;
        for (unsigned i = 0; i < 5; ++i) {
            auto const one = decode(byte_view{bytes}.from(at));
            good = good && one.length() == lengths[i] && one.packet.kind() == kinds_seen[i];
            at += one.length();
        }
        return good && at == bytes.size();
    });
}

// ------------------------------------------------------------------------------------ decode_as

TEST_CASE("decode_as returns the requested packet and its length") {
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<cbr>(value(hex("02 03 18 00 FF")));
        return one && one.length == 4 && one.packet == cbr{}.with(cbr::CoreBusRatio{24}) &&
               one.error == error::none && one.need == 0 && one.broken == rule::none;
    });
}

TEST_CASE("decode_as reports another packet as bad_opcode, complete or truncated") {
    CHECK_TWICE([](auto value) {
        auto const is_other = [](auto const& got) {
            return is_error(got, error::bad_opcode, rule::PKT_010);
        };
        return is_other(decode_as<tsc>(value(hex("59 80")))) &&
               is_other(decode_as<tsc>(value(hex("59")))) &&
               is_other(decode_as<cbr>(value(hex("02 73 00 00 00 00 00")))) &&
               is_other(decode_as<cbr>(value(hex("02 73")))) &&
               is_other(decode_as<mnt>(value(hex("02 A3")))) &&
               is_other(decode_as<tip>(value(hex("1D")))) &&
               is_other(decode_as<tip>(value(hex("3D 01")))) &&
               is_other(decode_as<tnt_short>(value(hex("00")))) &&
               is_other(decode_as<pad>(value(hex("04")))) &&
               is_other(decode_as<psb>(value(hex("02 23"))));
    });
}

TEST_CASE("decode_as distinguishes MODE.Exec and MODE.TSX (PKT-085)") {
    CHECK_TWICE([](auto value) {
        return decode_as<mode_exec>(value(hex("99 01"))).length == 2 &&
               decode_as<mode_tsx>(value(hex("99 21"))).length == 2 &&
               is_error(decode_as<mode_tsx>(value(hex("99 01"))), error::bad_opcode,
                        rule::PKT_010) &&
               is_error(decode_as<mode_exec>(value(hex("99 21"))), error::bad_opcode,
                        rule::PKT_010) &&
               is_error(decode_as<mode_exec>(value(hex("99"))), error::truncated, rule::PKT_255,
                        2) &&
               is_error(decode_as<mode_tsx>(value(hex("99"))), error::truncated, rule::PKT_255,
                        2) &&
               is_error(decode_as<mode_exec>(value(hex("99 03"))), error::reserved,
                        rule::PKT_090) &&
               is_error(decode_as<mode_tsx>(value(hex("99 23"))), error::reserved, rule::PKT_090) &&
               is_error(decode_as<mode_tsx>(value(hex("99 40"))), error::reserved, rule::PKT_089);
    });
}

TEST_CASE("decode_as reports truncated and wrong payloads of the requested packet (PKT-004, "
          "PKT-255)") {
    CHECK_TWICE([](auto value) {
        return is_error(decode_as<cbr>(value(hex("02 03 18"))), error::truncated, rule::PKT_255,
                        4) &&
               is_error(decode_as<psb>(value(hex("02 82 FF"))), error::truncated, rule::PKT_255,
                        16) &&
               is_error(decode_as<tip>(value(hex("AD"))), error::reserved, rule::PKT_052) &&
               is_error(decode_as<ptw>(value(hex("02 52"))), error::reserved, rule::PKT_173) &&
               is_error(decode_as<tnt_long>(value(hex("02 A3 01 00 00 00 00 00"))),
                        error::bad_packet, rule::PKT_037) &&
               is_error(decode_as<bip>(value(hex("04 01")), {.block = block::items_of_4}),
                        error::truncated, rule::PKT_255, 5);
    });
}

TEST_CASE("an incomplete opcode is truncated for every packet that it may begin (PKT-255)") {
    CHECK_TWICE([](auto value) {
        return is_error(decode_as<cbr>(value(hex("02"))), error::truncated, rule::PKT_255, 2) &&
               is_error(decode_as<mnt>(value(hex("02 C3"))), error::truncated, rule::PKT_255, 3) &&
               is_error(decode_as<tsc>(value(hex("05"))), error::bad_opcode, rule::PKT_015) &&
               is_error(decode_as<tsc>(value(hex("02 00"))), error::bad_opcode, rule::PKT_012);
    });
}

TEST_CASE("decode_as honours block and strict mode like decode (PKT-006)") {
    CHECK_TWICE([](auto value) {
        auto const bytes = value(hex("0C EF BE AD DE"));
        auto const dirty = value(hex("02 73 34 12 FF 56 00"));
        return decode_as<tnt_short>(bytes).length == 1 &&
               decode_as<bip>(bytes, {.block = block::items_of_4}).length == 5 &&
               is_error(decode_as<tnt_short>(bytes, {.block = block::items_of_4}),
                        error::bad_opcode, rule::PKT_010) &&
               is_error(decode_as<bip>(bytes), error::bad_opcode, rule::PKT_010) &&
               decode_as<tma>(dirty).length == 7 &&
               is_error(decode_as<tma>(dirty, {.strict = true}), error::bad_packet, rule::PKT_104);
    });
}

TEST_CASE("a decoder for a shorter list decodes only the packets of the list") {
    using few = type_list<pad, tip, mode_exec, mode_tsx, psb>;
    using without_tsx = type_list<mode_exec>;
    CHECK_TWICE([](auto value) {
        auto const strange = decode<without_tsx>(value(hex("99 20")));
        return decode<few>(value(hex("2D 12 34"))).packet.kind() == kind::tip &&
               decode<few>(value(hex("99 20"))).packet.kind() == kind::mode_tsx &&
               is_error(decode<few>(value(hex("59 80"))), error::bad_opcode, rule::PKT_015) &&
               is_error(decode<few>(value(hex("02 03"))), error::bad_opcode, rule::PKT_012) &&
               is_error(strange, error::reserved, rule::PKT_089);
    });
}

TEST_CASE("decode() calls a visitor with the packet as its own type, and not after an error") {
    CHECK_TWICE([](auto value) {
        byte_array<2> const bytes{{value(uint8_t{0x99}), 0x21}};
        unsigned calls = 0;
        auto const visitor = [&]<class Packet>(Packet const& packet, unsigned length) {
            bool is_right = false;
            if constexpr (same_as<Packet, mode_tsx>) {
                is_right = packet.template get<mode_tsx::InTX>() && length == 2;
            }
            calls += is_right ? 1 : 100;
        };
        auto const whole = packet::decode(bytes, {}, visitor);
        auto const part = packet::decode(byte_view{bytes}.first(1), {}, visitor);
        return whole && calls == 1 && !part && part.error == error::truncated && part.need == 2 &&
               part.broken == rule::PKT_255;
    });
}

TEST_CASE("broken_header() and broken_payload() give the rule, or none for packets without one") {
    CHECK_TWICE([](auto value) {
        return broken_header<tip>(wide_bits{value(uint64_t{0xAD}), 0}) == rule::PKT_052 &&
               broken_header<tip>(wide_bits{value(uint64_t{0x2D}), 0}) == rule::none &&
               broken_header<pad>(value(uint64_t{0})) == rule::none;
    });
    CHECK_TWICE([](auto value) {
        auto const reserved = tma::reserved_mask();
        return broken_payload<psb>(value(psb{}.raw), false) == rule::none &&
               broken_payload<psb>(wide_bits{psb{}.raw.low, 0}, value(false)) == rule::PKT_131 &&
               broken_payload<tma>(reserved, value(false)) == rule::none &&
               broken_payload<tma>(reserved, value(true)) == rule::PKT_104 &&
               broken_payload<pad>(0, value(true)) == rule::none;
    });
}
