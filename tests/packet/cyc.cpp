// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/cyc.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

namespace {

/// A CYC of `bytes` bytes, built bit by bit as in PKT-107 and PKT-108.
constexpr auto reference_cyc(uint64_t count, unsigned bytes) -> test::hex_bytes {
    auto out = hex("03");
    for (unsigned bit = 0; bit < 5; ++bit) {
        if ((count >> bit & 1) != 0) { out.bytes[0] |= static_cast<uint8_t>(1U << (3 + bit)); }
    }
    if (bytes > 1) { out.bytes[0] |= 4; }
    out.count = bytes;
    for (unsigned k = 1; k < bytes; ++k) {
        for (unsigned bit = 0; bit < 7; ++bit) {
            unsigned const from = 5 + 7 * (k - 1) + bit;
            if (from < 64 && (count >> from & 1) != 0) {
                out.bytes[k] |= static_cast<uint8_t>(1U << (1 + bit));
            }
        }
        if (k + 1 < bytes) { out.bytes[k] |= 1; }
    }
    return out;
}

/// The formula of PKT-109.
constexpr auto fewest_bytes(uint64_t count) -> unsigned {
    unsigned const powers[] = {5, 12, 19, 26, 33, 40, 47, 54, 61};
    unsigned bytes = 1;
    for (unsigned const power : powers) {
        if (count >= uint64_t{1} << power) { ++bytes; }
    }
    return bytes;
}

}  // namespace

TEST_CASE("exp_mask is bit 2 of the first byte and bit 0 of the next seven (PKT-107,108)") {
    CHECK_TWICE([](auto value) {
        uint64_t mask = uint64_t{value(1U)} << 2;
        for (unsigned byte = 1; byte < 8; ++byte) { mask |= uint64_t{1} << 8 * byte; }
        return cyc::exp_mask == mask;
    });
}

TEST_CASE("counts around every power of two that adds a byte (PKT-108, PKT-109, PKT-342)") {
    CHECK_TWICE([](auto value) {
        unsigned const powers[] = {5, 12, 19, 26, 33, 40, 47, 54, 61};
        bool good = true;
        for (unsigned i = 0; i < 9; ++i) {
            uint64_t const first = value(uint64_t{1}) << powers[i];
            uint64_t const counts[] = {first - 1, first, first + 1, first | first >> 1};
            for (uint64_t const count : counts) {
                unsigned const bytes = count < first ? i + 1 : i + 2;
                auto const packet = cyc::of(count);
                good = good && packet.length() == bytes && packet.value() == count &&
                       encode(packet) == reference_cyc(count, bytes) &&
                       decode_as<cyc>(reference_cyc(count, bytes)).packet.value() == count;
            }
        }
        return good;
    });
}

TEST_CASE("random counts of every size are encoded and decoded (PKT-107..109, PKT-342)") {
    CHECK_TWICE([](auto value) {
        test::random_numbers random{value(uint64_t{107})};
        bool good = true;
        for (unsigned width = 0; width < 64; ++width) {
            uint64_t const count = random() >> width;
            auto const bytes = reference_cyc(count, fewest_bytes(count));
            auto const one = decode_as<cyc>(bytes);
            good = good && encode(cyc::of(count)) == bytes && one && one.packet.value() == count &&
                   one.length == bytes.size() && one.packet.length() == bytes.size();
        }
        return good;
    });
}

TEST_CASE("forms longer than necessary are legal and keep their length (PKT-111)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bytes = 1; bytes <= 10; ++bytes) {
            auto const packet = cyc::of(value(uint64_t{21}), bytes);
            good = good && packet.length() == bytes && packet.value() == 21 &&
                   encode(packet) == reference_cyc(21, bytes) &&
                   decode(reference_cyc(21, bytes)).length() == bytes;
        }
        return good;
    });
}

TEST_CASE("a count gets more bytes than requested if it needs them, at most ten (PKT-109,110)") {
    CHECK_TWICE([](auto value) {
        return cyc::of(value(uint64_t{32}), 1).length() == 2 &&
               cyc::of(value(~uint64_t{0}), 1).length() == 10 &&
               cyc::of(value(uint64_t{0}), 11) == cyc::of(0, 10) &&
               cyc::of(value(uint64_t{0}), 0).length() == 1;
    });
}

TEST_CASE("a CYC with a count beyond 64 bits is not encoded (PKT-110)") {
    CHECK_TWICE([](auto value) {
        auto const most = cyc::of(value(~uint64_t{0}));
        bool good = encode(most) == hex("FF FF FF FF FF FF FF FF FF 0E");
        for (unsigned bit = 4; bit < 8; ++bit) {
            auto const more = cyc{most.raw | wide_bits{0, uint64_t{1} << (8 + bit)}};
            good = good && encode(more).broken == rule::PKT_110;
        }
        return good && encode(cyc{most.raw | wide_bits{0, 0x100}}).broken == rule::PKT_110;
    });
}
