// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/packet_samples.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/detail/opcode_info.hpp>

using namespace ptspec;
using test::bytes;
using trace::detail::opcode_info;
using trace::detail::opcode_info_at;

namespace {

/// The opcode information from `packet::decode`; empty when there is no packet.
constexpr auto reference_info(byte_view in, bool strict) -> opcode_info {
    auto const got = packet::decode(in, {packet::block::none, strict});
    return got ? opcode_info{static_cast<uint8_t>(got.length()), got.packet.kind()} : opcode_info{};
}

constexpr auto gives(byte_view in, bool strict, unsigned length, packet::kind which) -> bool {
    auto const one = opcode_info_at<packet::all>(in.data(), strict);
    return one.length == length && (length == 0 || one.kind == which);
}

/// A packet followed by zeros.
template <std::size_t Size>
constexpr auto padded(byte_array<Size> const& in) -> byte_array<Size + 16> {
    return test::join(in, byte_array<16>{});
}

}  // namespace

TEST_CASE("opcode_info_at agrees with packet::decode, or has length 0 (PKT-010..016,090,131)") {
    std::uint64_t known = 0;
    std::uint64_t unknown[packet::kind_count] = {};
    for (unsigned two = 0; two < 0x10000; ++two) {
        for (unsigned variant = 0; variant < 4; ++variant) {
            byte_array<16> in{};
            in.bytes[0] = static_cast<uint8_t>(two);
            in.bytes[1] = static_cast<uint8_t>(two >> 8);
            for (unsigned i = 2; i < 16; ++i) {
                in.bytes[i] = variant == 0
                                  ? uint8_t{0}
                                  : static_cast<uint8_t>((two + variant) * i * 113 >> variant);
            }
            if (two == 0xC302) { in.bytes[2] = 0x88; }  // MNT
            for (bool const strict : {false, true}) {
                auto const one = opcode_info_at<packet::all>(in.bytes, strict);
                auto const plain = reference_info(in, strict);
                if (one.length == 0) {
                    unknown[underlying(plain.kind)] += plain.length;
                    continue;
                }
                REQUIRE(one.length == plain.length);
                REQUIRE(one.kind == plain.kind);
                ++known;
            }
        }
    }
    CHECK(known > 350'000);
    // The length is unknown only for rare packets and for CYC.
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        auto const which = static_cast<packet::kind>(i);
        using packet::kind;
        bool const seldom = which == kind::cyc || which == kind::bbp || which == kind::trig ||
                            which == kind::mnt;
        CHECK_MESSAGE((unknown[i] != 0) == seldom, i);
    }
}

TEST_CASE("the payload of TNT, TMA and PSB is checked (PKT-036,037,104,131)") {
    CHECK_TWICE([](auto value) {
        using packet::kind;
        auto const right = value(padded(bytes(0x02, 0xA3, 0x02, 0, 0, 0, 0, 0)));
        auto const high = value(padded(bytes(0x02, 0xA3, 0, 0, 0, 0, 0, 0x80)));
        auto const no_branch = value(padded(bytes(0x02, 0xA3, 0x01, 0, 0, 0, 0, 0)));
        auto const no_stop = value(padded(bytes(0x02, 0xA3, 0, 0, 0, 0, 0, 0)));
        return gives(right, false, 8, kind::tnt_long) && gives(high, false, 8, kind::tnt_long) &&
               gives(no_branch, false, 0, kind::pad) && gives(no_stop, false, 0, kind::pad);
    });
    CHECK_TWICE([](auto value) {
        auto const tma = value(padded(bytes(0x02, 0x73, 1, 2, 0x10, 3, 0)));
        return gives(tma, false, 7, packet::kind::tma) && gives(tma, true, 0, packet::kind::pad);
    });
    CHECK_TWICE([](auto value) {
        auto in = value(test::psb);
        bool const right = gives(in, true, 16, packet::kind::psb);
        in.bytes[15] ^= 1;
        return right && gives(in, false, 0, packet::kind::pad);
    });
}
