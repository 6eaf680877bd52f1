// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/plain.hpp>

#include <support/check_twice.hpp>

#include <random>

using namespace ptspec;
using packet::kind;
using trace::detail::plain_row;

namespace {

/// The row of a packet that `decode` reads here, if it has one.
constexpr auto row_behind(uint64_t low) -> trace::detail::plain const& {
    return plain_row<packet::all>(low);
}

constexpr auto is_never_plain(kind which) -> bool {
    return which == kind::psb || which == kind::ovf || which == kind::tnt_long ||
           which == kind::mnt || which == kind::bbp || which == kind::bip || which == kind::trig;
}

}  // namespace

TEST_CASE("what is plain is a packet of its row, and is written as it stands (PKT-010..016,340)") {
    std::mt19937_64 random{5};
    unsigned long found[packet::kinds] = {};
    for (unsigned head = 0; head < 0x10000; ++head) {
        for (unsigned variant = 0; variant < 4; ++variant) {
            wide_bits const noise{variant == 0 ? 0 : random(), variant == 0 ? 0 : random()};
            auto const& row = row_behind(head);
            wide_bits const bits{(head | noise.low << 16) & ~row.zero_low,
                                 noise.high & row.free_high};
            if (row.length == 0 || (head & row.zero_low) != 0) { continue; }
            auto const got = packet::decode(to_le(bits), {packet::block::none, true});
            REQUIRE(got);
            REQUIRE(got.packet.kind() == row.which);
            REQUIRE(got.length() == row.length);
            REQUIRE(got.packet.raw() == bits);
            REQUIRE(packet::encode(got.packet) == byte_view{to_le(bits)}.first(row.length));
            REQUIRE(packet::last_ip_behind(got.packet, 0x1234'5678'9ABC'DEF0) ==
                    trace::detail::updated_ip(trace::detail::ip_update_of(row.form),
                                              bits.low >> 8 | bits.high << 56,
                                              0x1234'5678'9ABC'DEF0));
            ++found[underlying(row.which)];
        }
    }
    for (uint8_t i = 0; i < packet::kinds; ++i) {
        CAPTURE(int{i});
        CHECK((found[i] == 0) == is_never_plain(static_cast<kind>(i)));
    }
}

TEST_CASE("reserved bits, and bits behind the packet, have to be 0 (PKT-340,346)") {
    CHECK_TWICE([](auto value) {
        auto const& tip = row_behind(value(uint64_t{0x2D}));  // IPBytes 1
        auto const& cbr = row_behind(value(uint64_t{0x0302}));
        auto const& tsc = row_behind(value(uint64_t{0x19}));
        return tip.which == kind::tip && tip.length == 3 && tip.zero_low == ~uint64_t{0xFF'FFFF} &&
               tip.free_high == 0 && cbr.which == kind::cbr && cbr.length == 4 &&
               cbr.zero_low == 0xFFFF'FFFF'FF00'0000 && tsc.length == 8 && tsc.zero_low == 0 &&
               tsc.free_high == 0 && row_behind(value(uint64_t{0x3202})).free_high == 0xFFFF;
    });
}

TEST_CASE("a packet of one byte is plain where it is all of a packet of that kind (PKT-010,340)") {
    CHECK_TWICE([](auto value) {
        using trace::detail::wrong_byte;
        for (unsigned byte = 0; byte < 256; ++byte) {
            uint64_t const low = value(uint64_t{byte});
            auto const got = packet::decode(to_le({byte, 0}));
            bool const is_one = got && got.length() == 1;
            for (unsigned i = 0; i < packet::kinds; ++i) {
                auto const which = static_cast<kind>(i);
                bool const expected = is_one && got.packet.kind() == which;
                if ((wrong_byte<packet::all>(which, low, 0) == 0) != expected) { return false; }
            }
            if (is_one && (wrong_byte<packet::all>(got.packet.kind(), low | 0x100, 0) == 0 ||
                           wrong_byte<packet::all>(got.packet.kind(), low, 1) == 0)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a CYC of two to seven bytes is plain where its bytes announce each other (PKT-110)") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](uint64_t low, unsigned length) {
            return trace::detail::is_plain_cyc(packet::any_packet{
                packet::detail::known_packet{{value(low), 0}, length, kind::cyc}});
        };
        bool const right = is(0x0207, 2) && is(0x02'0107, 3) && is(0x02'0101'0101'0107, 7);
        bool const too_long = is(0x0201'0101'0101'0107, 8);
        bool const wrong = is(0x0207, 3) || is(0x0207, 1) || is(0x01'0207, 2) || is(0x0205, 2) ||
                           trace::detail::is_plain_cyc(packet::any_packet{
                               packet::detail::known_packet{{0x0207, 1}, 2, kind::cyc}}) ||
                           trace::detail::is_plain_cyc(packet::any_packet{
                               packet::detail::known_packet{{0x0207, 0}, 2, kind::tsc}});
        return right && !too_long && !wrong;
    });
}
