// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/plain.hpp>
#include <ptspec/trace/writer_state.hpp>

#include <support/check_twice.hpp>

#include <random>

using namespace ptspec;
using packet::kind;
using trace::detail::kind_and_length;
using trace::detail::plain_row;

namespace {

/// The row of a packet that `decode` reads here, if it has one.
constexpr auto row_behind(uint64_t low) -> trace::detail::plain const& {
    return plain_row<packet::all>(low);
}

constexpr auto is_never_plain(kind which) -> bool {
    return which == kind::psb || which == kind::bbp || which == kind::bip || which == kind::trig;
}

/// The writer's state behind a packet.
auto state_behind(packet::any_packet const& which, bool has_last_ip) -> trace::writer_state {
    trace::writer_state now{.last_ip = 0x1234'5678'9ABC'DEF0, .has_last_ip = has_last_ip};
    packet::visit([&](auto const& one) { now.step_over(one, which.length()); }, which);
    return now;
}

}  // namespace

TEST_CASE("what is plain is a packet of its row, and is written as it stands (PKT-010..016,340)") {
    std::mt19937_64 random{5};
    unsigned long found[packet::kinds] = {};
    for (unsigned head = 0; head < 0x10000; ++head) {
        for (unsigned variant = 0; variant < 4; ++variant) {
            wide_bits const noise{variant == 0 ? 0 : random(), variant == 0 ? 0 : random()};
            auto const& row = row_behind(head);
            wide_bits const bits{((head | noise.low << 16) & ~row.fixed) | row.value,
                                 noise.high & row.free_high};
            if (row.length == 0 || (bits.low ^ head) % 0x10000 != 0 || bits.low < row.least) {
                continue;
            }
            auto const got = packet::decode(to_le(bits), {packet::block::none, true});
            REQUIRE(got);
            REQUIRE(got.packet.kind() == row.which);
            REQUIRE(got.length() == row.length);
            REQUIRE(got.packet.raw() == bits);
            REQUIRE(packet::encode(got.packet) == byte_view{to_le(bits)}.first(row.length));
            REQUIRE(trace::detail::wrong_bits(row, kind_and_length(got.packet.kind(), got.length()),
                                              bits.low, bits.high) == 0);
            auto const behind = state_behind(got.packet, variant % 2 == 0);
            REQUIRE(behind.last_ip == trace::detail::updated_ip(
                                          trace::detail::ip_update_of(row.form),
                                          bits.low >> 8 | bits.high << 56, 0x1234'5678'9ABC'DEF0));
            REQUIRE(behind.has_last_ip == (row.has_ip_behind(variant % 2 == 0) != 0));
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
        return tip.which == kind::tip && tip.length == 3 && tip.fixed == ~uint64_t{0xFF'FFE0} &&
               tip.value == 0x0D && tip.free_high == 0 && cbr.which == kind::cbr &&
               cbr.length == 4 && cbr.fixed == 0xFFFF'FFFF'FF00'FFFF && cbr.value == 0x0302 &&
               tsc.length == 8 && tsc.fixed == 0xFF && tsc.value == 0x19 && tsc.free_high == 0 &&
               row_behind(value(uint64_t{0x3202})).free_high == 0xFFFF;
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
                auto const wrong = wrong_byte<packet::all>(kind_and_length(which, 1), low, 0);
                if ((wrong == 0) != expected) { return false; }
            }
            unsigned const right = kind_and_length(got.packet.kind(), 1);
            unsigned const longer = kind_and_length(got.packet.kind(), 2);
            if (is_one && (wrong_byte<packet::all>(right, low | 0x100, 0) == 0 ||
                           wrong_byte<packet::all>(right, low, 1) == 0 ||
                           wrong_byte<packet::all>(longer, low, 0) == 0)) {
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

TEST_CASE(
    "every bit of a plain packet is looked at that may not be as it likes (PKT-013,036,037)") {
    CHECK_TWICE([](auto value) {
        auto const is_plain = [&](wide_bits bits, kind which, unsigned length) {
            uint64_t const low = value(bits.low);
            return trace::detail::wrong_bits(row_behind(low), kind_and_length(which, length), low,
                                             bits.high) == 0;
        };
        bool const mnt = is_plain({0x0123'4567'8988'C302, 0xAB'CDEF}, kind::mnt, 11) &&
                         !is_plain({0x0123'4567'8989'C302, 0xAB'CDEF}, kind::mnt, 11) &&
                         !is_plain({0x0123'4567'8988'C302, 0x1AB'CDEF}, kind::mnt, 11) &&
                         !is_plain({0x0123'4567'8988'C302, 0xAB'CDEF}, kind::mnt, 10) &&
                         !is_plain({0x0123'4567'8988'C302, 0xAB'CDEF}, kind::ptw, 11);
        bool const tnt = is_plain({0x2'A302, 0}, kind::tnt_long, 8) &&
                         !is_plain({0x1'A302, 0}, kind::tnt_long, 8) &&
                         !is_plain({0xA302, 0}, kind::tnt_long, 8) &&
                         !is_plain({0x2'A302, 1}, kind::tnt_long, 8);
        return mnt && tnt && is_plain({0xF302, 0}, kind::ovf, 2) &&
               !is_plain({0x1'F302, 0}, kind::ovf, 2);
    });
}
