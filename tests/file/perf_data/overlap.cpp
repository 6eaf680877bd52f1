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

constexpr auto is(new_bytes got, size_t begin, bool continues, size_t padding = 0) -> bool {
    return got.begin == begin && got.continues == continues && got.padding == padding;
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

TEST_CASE("a later TSC: nothing is common") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(timed(1), timed(5)));
        auto const two = value(join(bytes(0x06), untimed(3), timed(7), timed(9)));
        return is(find_new_bytes(one, two), 1 + 22, false);
    });
}

TEST_CASE("a PSB+ that another one interrupts has no TSC") {
    CHECK_TWICE([](auto value) {
        return is(find_new_bytes(value(timed(5)), value(join(psb, bytes(0x06), timed(7)))), 17,
                  false);
    });
}

TEST_CASE("TSC packets are compared although the counter wraps") {
    CHECK_TWICE([](auto value) {
        constexpr uint64_t top = (uint64_t{1} << 56) - 1;
        auto const one = value(join(timed(top - 1), timed(top)));
        auto const two = value(join(timed(top - 1), timed(3)));
        return is(find_new_bytes(one, two), 30, false) &&
               // All of it is before the end of the other.
               is(find_new_bytes(two, one), 60, false);
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
            join(bytes(0x06, 0x06), untimed(2), untimed(3), bytes(0x2D, 9), untimed(4)));
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
    CHECK(!find_new_bytes(ended, plain).continues);
}
