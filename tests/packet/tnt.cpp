// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/tnt.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

namespace {

/// True if the branches match the text of `T` and `N`, oldest first.
constexpr auto are(branches const& got, text oldest_first) -> bool {
    bool same = got.count == oldest_first.size();
    for (unsigned i = 0; same && i < got.count; ++i) {
        same = got.taken(i) == (oldest_first.characters[i] == 'T');
    }
    return same;
}

/// A TNT.long with these 48 bits after its opcode.
constexpr auto long_packet(uint64_t payload) -> test::hex_bytes {
    auto bytes = hex("02 A3 00 00 00 00 00 00");
    for (unsigned i = 0; i < 6; ++i) {
        bytes.bytes[2 + i] = static_cast<uint8_t>(payload >> (8 * i));
    }
    return bytes;
}

}  // namespace

TEST_CASE("all 126 bytes of TNT.short decode and encode, the oldest branch first (PKT-030..032, "
          "PKT-038)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        unsigned seen = 0;
        for (unsigned byte = 4; byte < 256; byte += 2) {
            unsigned stop = 7;
            while ((byte & 1U << stop) == 0) { --stop; }
            uint8_t const bytes[] = {value(static_cast<uint8_t>(byte))};
            auto const one = decode_as<tnt_short>(bytes);
            auto const got = one.packet.taken();
            good = good && one && one.length == 1 && got.count == stop - 1 && got.count >= 1 &&
                   got.count <= 6 && encode(tnt_short::of(got)) == byte_view{bytes};
            for (unsigned age = 0; age < got.count; ++age) {
                good = good && got.taken(age) == ((byte >> (stop - 1 - age) & 1) != 0);
            }
            ++seen;
        }
        return good && seen == 126;
    });
}

TEST_CASE("00 and 02 are not TNT.short (PKT-033)") {
    CHECK_TWICE([](auto value) {
        return test::is_error(decode_as<tnt_short>(value(hex("00"))), error::bad_opcode,
                              rule::PKT_010) &&
               test::is_error(decode_as<tnt_short>(value(hex("02"))), error::truncated,
                              rule::PKT_255, 2) &&
               tnt_short{}.taken() == branches{} && tnt_short{uint64_t{2}}.taken() == branches{};
    });
}

TEST_CASE("a TNT.short with no branch or more than 6 branches is refused (PKT-033, PKT-341)") {
    CHECK_TWICE([](auto value) {
        bool good = encode(tnt_short::of({value(0U), 0})).broken == rule::PKT_033 &&
                    encode(tnt_short{uint64_t{2}}).broken == rule::PKT_033;
        for (unsigned count = 1; count <= 6; ++count) {
            good = good && encode(tnt_short::of({value(count), 0})).length == 1;
        }
        for (unsigned count = 7; count < 70; ++count) {
            good = good && encode(tnt_short::of({value(count), 1})).broken == rule::PKT_033 &&
                   encode(tnt_short::of({value(count), ~uint64_t{0}})).broken == rule::PKT_033;
        }
        return good && encode(tnt_short::of({value(0xFFFF'FFFFU), 1})).broken == rule::PKT_033;
    });
}

TEST_CASE("bits above the count are not written (PKT-031)") {
    CHECK_TWICE([](auto value) {
        auto const all_ones = value(~uint64_t{0});
        return encode(tnt_short::of({2, all_ones})) == hex("0E") &&
               encode(tnt_long::of({2, all_ones})) == hex("02 A3 07 00 00 00 00 00");
    });
}

TEST_CASE("each of the 47 stop bits of TNT.long, with random branches, decodes and encodes "
          "(PKT-034, PKT-035)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        test::random_numbers random{value(uint64_t{34})};
        for (unsigned stop = 1; stop <= 47; ++stop) {
            uint64_t const below = random() >> (64 - stop);
            auto const bytes = long_packet(uint64_t{1} << stop | below);
            auto const one = decode_as<tnt_long>(bytes);
            auto const got = one.packet.taken();
            good = good && one && one.length == 8 && got.count == stop && got.bits == below &&
                   encode(tnt_long::of({stop, below})) == bytes;
            for (unsigned age = 0; age < stop; ++age) {
                unsigned const bit = stop - 1 - age;
                good = good && got.taken(age) == ((bytes.bytes[2 + bit / 8] >> (bit % 8) & 1) != 0);
            }
        }
        return good;
    });
}

TEST_CASE("a TNT.long with no branch or more than 47 branches is refused (PKT-036,037, PKT-341)") {
    CHECK_TWICE([](auto value) {
        auto const no_stop_bit = tnt_long{}.with(tnt_long::bits{0});
        auto const no_branch = tnt_long{}.with(tnt_long::bits{1});
        bool good = encode(tnt_long::of({value(0U), 0})).broken == rule::PKT_036 &&
                    encode(value(no_stop_bit)).broken == rule::PKT_036 &&
                    encode(value(no_branch)).broken == rule::PKT_037;
        for (unsigned count = 1; count <= 47; ++count) {
            good = good && encode(tnt_long::of({value(count), 0})).length == 8;
        }
        for (unsigned count = 48; count < 70; ++count) {
            good = good && encode(tnt_long::of({value(count), 1})).broken == rule::PKT_036 &&
                   encode(tnt_long::of({value(count), ~uint64_t{0}})).broken == rule::PKT_036;
        }
        return good;
    });
}

TEST_CASE("an older TNT a and a younger TNT b are concatenated as a << nb | b (PKT-039)") {
    CHECK_TWICE([](auto value) {
        auto const a = decode_as<tnt_short>(value(hex("16"))).packet.taken();
        auto const b = decode_as<tnt_short>(value(hex("54"))).packet.taken();
        return are({a.count + b.count, a.bits << b.count | b.bits}, "NTTNTNTN");
    });
}
