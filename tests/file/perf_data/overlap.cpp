// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/overlap.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <vector>

using namespace ptspec;
using file::perf_data::find_new_bytes;
using file::perf_data::new_bytes;
using test::bytes;
using test::join;
using test::psb;

namespace {

constexpr auto psbend = bytes(0x02, 0x23);

/// PSB+ with a TSC, and packets.
constexpr auto timed(uint64_t tsc) {
    return join(psb, bytes(0x19), test::number<7>(tsc), psbend, bytes(0x04, 0x59, 0x11, 0x06));
}
/// PSB+ without, and a TIP.
constexpr auto untimed(unsigned ip) { return join(psb, psbend, bytes(0x2D, ip, ip, 0x06)); }

constexpr auto is(new_bytes got, size_t begin, bool continues, size_t dropped = 0) -> bool {
    return got.begin == begin && got.continues == continues && got.dropped == dropped;
}

}  // namespace

TEST_CASE("snapshots with a TSC in both: the new bytes follow the rest of the old ones") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(timed(1), timed(5), bytes(0x06, 0x2D)));
        auto const two = value(join(timed(5), bytes(0x06, 0x2D, 0x77, 0x77), timed(9)));
        return is(find_new_bytes(one, two), 30 + 2, true);
    });
}

TEST_CASE("PADs after the old bytes are not old bytes") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(timed(5), bytes(0x06, 0x2D, 0, 0, 0, 0, 0, 0)));
        auto const two = value(join(timed(5), bytes(0x06, 0x2D, 0x77, 0x77), timed(9)));
        auto const nine = value(join(timed(5), bytes(0x06, 0x2D), test::u64(0), bytes(0)));
        auto const seven = value(join(timed(5), bytes(0x06, 0x2D), bytes(0, 0, 0, 0, 0, 0, 0)));
        auto const other = value(join(timed(5), bytes(0x06, 0x2D), bytes(0, 0, 0, 9, 0, 0, 0)));
        return is(find_new_bytes(one, two), 30 + 2, true, 6) &&
               is(find_new_bytes(seven, two), 30 + 2, true, 7) &&
               is(find_new_bytes(other, two), 34, false) &&
               // More zeros than padding are bytes of the trace, so this is another one.
               is(find_new_bytes(nine, two), 34, false);
    });
}

TEST_CASE("nothing is common: the new bytes begin at the first PSB, whatever its TSC is") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(timed(1), timed(5)));
        auto const later = value(join(bytes(0x06), untimed(3), timed(7), timed(9)));
        auto const lower = value(join(bytes(0x06), timed(2), timed(4), timed(3)));
        auto const cut = value(join(psb, bytes(0x06), timed(7)));
        return is(find_new_bytes(one, later), 1, false) &&
               is(find_new_bytes(one, lower), 1, false) && is(find_new_bytes(one, cut), 0, false);
    });
}

TEST_CASE("TSCs of a guest are lower than those before: the bytes decide") {
    CHECK_TWICE([](auto value) {
        constexpr uint64_t top = (uint64_t{1} << 56) - 1;
        auto const one = value(join(timed(900), timed(7), timed(top)));
        auto const two = value(join(timed(7), timed(top), timed(3), timed(2)));
        return is(find_new_bytes(one, two), 60, true) &&
               // Equal TSCs of other bytes.
               is(find_new_bytes(one, value(join(bytes(0x06), timed(7), timed(8)))), 1, false);
    });
}

TEST_CASE("a snapshot that begins before the one before it, or ends before its end") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(bytes(0x06), timed(5), bytes(0x2D)));
        auto const whole = value(join(timed(1), bytes(0x06, 0x06), timed(5), bytes(0x2D, 1, 2)));
        auto const inside = value(join(timed(5), bytes(0x2D, 0, 0, 0)));
        return is(find_new_bytes(one, whole), 63, true) &&
               is(find_new_bytes(whole, one), 32, true) &&
               is(find_new_bytes(whole, inside), 34, true);
    });
}

TEST_CASE("a PSB that the end of the snapshot before it cuts is found by the bytes before it") {
    CHECK_TWICE([](auto value) {
        auto const before = bytes(0x2D, 1, 2, 0x2D, 3, 4, 0x2D, 5, 6);
        auto const half = bytes(0x02, 0x82, 0x02, 0x82);
        auto const one = value(join(timed(1), before, half));
        return is(find_new_bytes(one, value(join(before, timed(5)))), 9 + 4, true) &&
               is(find_new_bytes(value(join(timed(1), before, half, bytes(0, 0, 0))),
                                 value(join(before, timed(5)))),
                  9 + 4, true, 3) &&
               // Too few bytes: it can be another PSB. The half is dropped, so it is not twice.
               is(find_new_bytes(one, value(timed(5))), 0, false, 4) &&
               is(find_new_bytes(value(join(timed(1), psb, bytes(0x19))), value(timed(5))), 0,
                  false, 17) &&
               // Two bytes can be the end of another packet.
               is(find_new_bytes(value(join(timed(1), before, bytes(0x02, 0x82))), value(timed(5))),
                  0, false) &&
               // Other bytes are before it.
               is(find_new_bytes(one, value(join(bytes(7, 8, 9, 7, 8, 9, 7, 8, 9), timed(5)))), 9,
                  false);
    });
}

TEST_CASE("a snapshot that differs after the last PSB of the one before it: the PSB is old") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(timed(1), timed(5), bytes(0x2D, 0x11, 0x22, 0x33, 6, 6, 6, 6)));
        auto const two = value(
            join(timed(1), timed(5), bytes(0x2D, 0x99, 0x22, 0x33, 6, 6, 6, 6), timed(9)));
        return is(find_new_bytes(one, two), 68, false) &&
               is(find_new_bytes(one, byte_view{two}.first(68)), 68, false);
    });
}

TEST_CASE("a TSC that the end of the snapshot cuts does not count") {
    CHECK_TWICE([](auto value) {
        auto const whole = join(timed(5), timed(0x1122'3344'5566));
        auto const cut = join(timed(5), psb, bytes(0x19, 0x66, 0x55, 0x44, 0, 0, 0, 0));
        auto const longer = join(whole, timed(0x1122'3344'5577));
        return is(find_new_bytes(value(cut), value(longer)), 30 + 16 + 4, true, 4);
    });
}

TEST_CASE("without a TSC: the content is compared") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(untimed(1), untimed(2), untimed(3), bytes(0x2D)));
        auto const two = value(
            join(bytes(0x01, 0x06), untimed(2), untimed(3), bytes(0x2D, 9), untimed(4)));
        auto const other = value(join(untimed(7), untimed(8)));
        auto const padded = value(join(untimed(1), untimed(2), bytes(0x2D, 0, 0, 0)));
        return is(find_new_bytes(one, two), 2 + 44 + 1, true) &&
               is(find_new_bytes(one, other), 0, false) &&
               is(find_new_bytes(padded, value(join(untimed(2), bytes(0x2D, 5)))), 23, true, 3);
    });
}

TEST_CASE("snapshots without a PSB") {
    CHECK_TWICE([](auto value) {
        auto const none = value(bytes(0x06, 0x2D, 0x11, 0x22));
        auto const some = value(join(bytes(0x06), timed(1)));
        return is(find_new_bytes(some, none), 4, false) &&
               is(find_new_bytes(none, some), 1, false) && is(find_new_bytes({}, some), 1, false) &&
               is(find_new_bytes(some, {}), 0, false);
    });
}

TEST_CASE("the same snapshot again has nothing new") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(timed(1), timed(5)));
        auto const two = value(join(untimed(1), untimed(2)));
        return is(find_new_bytes(one, one), 60, true) && is(find_new_bytes(two, two), 44, true);
    });
}

TEST_CASE("snapshots made for quadratic searches take linear time") {
    std::vector<std::uint8_t> equal;
    for (unsigned i = 0; i < 60'000; ++i) {
        auto const part = timed(7);
        equal.insert(equal.end(), part.data(), part.data() + part.size());
    }
    auto other = equal;
    other.insert(other.end(), 9, 0x99);
    CHECK(find_new_bytes(other, equal).begin == equal.size());
    std::vector<std::uint8_t> plain;
    for (unsigned i = 0; i < 60'000; ++i) {
        auto const part = untimed(7);
        plain.insert(plain.end(), part.data(), part.data() + part.size());
    }
    auto ended = plain;
    ended.insert(ended.end(), 9, 0x99);
    CHECK(find_new_bytes(ended, plain).begin == plain.size());
    // Equal up to the last bytes, so that each place is compared in vain.
    auto changed = plain;
    changed.insert(changed.end(), 9, 0x77);
    CHECK(!find_new_bytes(ended, changed).continues);
}
