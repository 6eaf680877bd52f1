// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/detail/count_loop.hpp>

#include <vector>

using namespace ptspec;
using packet::kind;
using trace::detail::count_top_bits;
using trace::detail::eight_bytes;
using trace::detail::count_loop;

namespace {

/// The reference: the packets that `packet::decode` reads up to `until`.
auto reference_counts(byte_view in, size_t from, size_t until) -> trace::packet_counts {
    trace::packet_counts sum;
    while (from < until) {
        auto const got = packet::decode(in.from(from));
        REQUIRE(got);
        sum.add(got.packet.kind(), got.length());
        from += got.length();
    }
    REQUIRE(from == until);
    return sum;
}

/// True when the fast path knows the length of this packet.
auto has_known_length(uint8_t const* at) -> bool {
    unsigned const first = *at;
    return (first % 2 == 0 && first != 2) ||
           (first % 4 == 3 ? trace::detail::length_of_cyc(load_le64(at)) != 0
                           : trace::detail::opcode_info_at<packet::all>(at, false).length != 0);
}

constexpr auto tops_by_byte(auto predicate) -> bool {
    for (unsigned byte = 0; byte < 256; ++byte) {
        for (unsigned lane = 0; lane < 8; ++lane) {
            for (uint64_t const around :
                 {uint64_t{0}, ~uint64_t{0}, uint64_t{0x0202'0202'0202'0202},
                  uint64_t{0x8001'7F80'0100'FF03}}) {
                uint64_t const hole = uint64_t{0xFF} << 8 * lane;
                uint64_t const word = (around & ~hole) | uint64_t{byte} << 8 * lane;
                if (!predicate(word, byte, uint64_t{0x80} << 8 * lane)) { return false; }
            }
        }
    }
    return true;
}

}  // namespace

TEST_CASE(
    "eight_bytes marks each zero byte, and each byte that is neither TNT nor PAD (PKT-010,030)") {
    CHECK_TWICE([](auto value) {
        return tops_by_byte([&](uint64_t word, unsigned byte, uint64_t top) {
            eight_bytes const one{value(word)};
            bool const other = (byte & 1) != 0 || byte == 2;
            return ((one.zeros() & top) != 0) == (byte == 0) &&
                   ((one.others() & top) != 0) == other &&
                   ((one.zeros() | one.others()) & ~eight_bytes::tops) == 0;
        });
    });
    CHECK_TWICE([](auto value) {
        return count_top_bits(value(uint64_t{0})) == 0 &&
               count_top_bits(value(uint64_t{0x8080'8080'8080'8080})) == 8 &&
               count_top_bits(value(uint64_t{0x8000'0080'0000'0000})) == 2;
    });
}

TEST_CASE("count_loop agrees with packet::decode up to where it stops (PKT-010,030,166)") {
    std::uint64_t packets = 0;
    for (std::uint32_t seed = 0; seed < 12'000; ++seed) {
        auto const bytes = test::random_stream(seed, 40 + seed % 200);
        byte_view const in{bytes.data(), bytes.size()};
        for (size_t const begin : {size_t{0}, size_t{seed % 31}}) {
            trace::packet_counts sum;
            size_t const end = count_loop<packet::all>(in, begin, false, sum);
            REQUIRE(sum == reference_counts(in, begin, end));
            // It stops only near the end, or at a packet that the fast path does not know.
            if (end + 24 <= in.size()) { REQUIRE(has_known_length(in.data() + end) == false); }
            packets += sum.total();
        }
    }
    CHECK(packets > 30'000);
}

TEST_CASE("count_loop counts runs of TNT and PAD of eight bytes and fewer (PKT-030,166)") {
    CHECK_TWICE([](auto value) {
        // 13 TNTs and 10 PADs, mixed, with a TIP of three bytes and a CYC between them.
        auto const in = value(test::join(
            test::bytes(0, 0, 4, 6, 0, 8, 4, 0, 0, 0x16, 0x2D, 1, 2, 0, 4, 4, 0x03, 4, 4, 4, 4, 0),
            test::bytes(4, 4, 0, 0, 0), byte_array<40>{}));
        trace::packet_counts sum;
        size_t const end = count_loop<packet::all>(in, 0, false, sum);
        auto const more = end - 27;
        return end > in.size() - 24 && sum.of(kind::tnt_short) == 13 &&
               sum.of(kind::pad) == 10 + more && sum.of(kind::tip) == 1 && sum.of(kind::cyc) == 1 &&
               sum.bytes[underlying(kind::tip)] == 3 &&
               sum.bytes[underlying(kind::pad)] == 10 + more &&
               sum.bytes[underlying(kind::tnt_short)] == 13 && sum.total() == 25 + more;
    });
}

TEST_CASE("count_loop stops 23 bytes before the end, and at an invalid packet") {
    CHECK_TWICE([](auto value) {
        auto const near = value(byte_array<23>{});
        auto const wide = value(byte_array<24>{});
        auto const wrong = value(test::join(test::bytes(0, 0x99, 0x03), byte_array<30>{}));
        trace::packet_counts none;
        trace::packet_counts some;
        trace::packet_counts one;
        return count_loop<packet::all>(near, 0, false, none) == 0 &&
               none == trace::packet_counts{} &&
               count_loop<packet::all>(wide, 0, false, some) == 8 && some.of(kind::pad) == 8 &&
               count_loop<packet::all>(wrong, 0, false, one) == 1 && one.total() == 1;
    });
}
