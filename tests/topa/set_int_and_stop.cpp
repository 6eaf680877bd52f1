// SPDX-License-Identifier: BSL-1.0
#include <ptspec/topa/set_int_and_stop.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::topa;

namespace {

struct ring_of_four {
    entry entries[4] = {{0x10'0014}, {0x10'1000}, {0x10'2010}, {0x10'3044}};
    bool done = false;
};

constexpr auto ring_with(size_t unread, size_t wake_up) -> ring_of_four {
    ring_of_four ring;
    ring.done = set_int_and_stop(ring.entries, 4, {unread, wake_up});
    return ring;
}

constexpr auto is(ring_of_four const& ring, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
    -> bool {
    return ring.done && ring.entries[0].raw == a && ring.entries[1].raw == b &&
           ring.entries[2].raw == c && ring.entries[3].raw == d;
}

}  // namespace

TEST_CASE("a default int_and_stop has unread and wake_up at region 0") {
    CHECK_TWICE([](auto value) {
        ring_of_four ring;
        ring.done = set_int_and_stop(ring.entries, value(size_t{4}), {});
        return is(ring, 0x10'0004, 0x10'1000, 0x10'2000, 0x10'3054);
    });
}

TEST_CASE("STOP and INT are on the region before the unread bytes, INT on the wake-up region "
          "(OUT-094)") {
    CHECK_TWICE([](auto value) {
        return is(ring_with(value(size_t{3}), 1), 0x10'0000, 0x10'1004, 0x10'2014, 0x10'3040) &&
               is(ring_with(value(size_t{1}), 3), 0x10'0014, 0x10'1000, 0x10'2000, 0x10'3044) &&
               is(ring_with(value(size_t{2}), 1), 0x10'0000, 0x10'1014, 0x10'2000, 0x10'3040);
    });
}

TEST_CASE("the region before the first is the last (OUT-093, OUT-094)") {
    CHECK_TWICE([](auto value) {
        return is(ring_with(value(size_t{0}), 2), 0x10'0000, 0x10'1000, 0x10'2004, 0x10'3054);
    });
}

TEST_CASE("a single region has both INT and STOP (OUT-094)") {
    CHECK_TWICE([](auto value) {
        entry one[1] = {{value(uint64_t{0x80'0080})}};
        return set_int_and_stop(one, 1, {0, 0}) && one[0].raw == 0x80'0094;
    });
}

TEST_CASE("a number out of range changes nothing") {
    CHECK_TWICE([](auto value) {
        auto const unchanged = [](ring_of_four ring) {
            bool const refused = !ring.done;
            ring.done = true;
            return refused && is(ring, 0x10'0014, 0x10'1000, 0x10'2010, 0x10'3044);
        };
        return unchanged(ring_with(value(size_t{4}), 0)) &&
               unchanged(ring_with(0, value(size_t{4}))) && unchanged(ring_with(~size_t{0}, 0)) &&
               !set_int_and_stop(nullptr, 0, {});
    });
}
