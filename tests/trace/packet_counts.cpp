// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>

#include <ptspec/trace/packet_counts.hpp>

#include <initializer_list>

using namespace ptspec;
using packet::kind;
using trace::item_type;

TEST_CASE("add() counts packets by kind, and unknown packets, errors and resyncs separately") {
    CHECK_TWICE([](auto value) {
        trace::packet_counts sum;
        sum.add(value(kind::tip), 3);
        sum.add(value(kind::tip), 7);
        sum.add(value(kind::trig), 5);
        return sum.of(kind::tip) == 2 && sum.bytes[3] == 10 && sum.of(kind::trig) == 1 &&
               sum.bytes[31] == 5 && sum.of(kind::pad) == 0 && sum.total() == 3;
    });
    CHECK_TWICE([](auto value) {
        trace::packet_counts sum;
        for (item_type const what : {item_type::unknown, item_type::damage, item_type::damage,
                                     item_type::damage, item_type::resynced, item_type::resynced,
                                     item_type::synced, item_type::lost, item_type::end}) {
            sum.add(trace::item{.what = value(what), .length = 4});
        }
        return sum.unknown == 1 && sum.unknown_bytes == 4 && sum.errors == 3 && sum.resyncs == 2 &&
               sum.total() == 1;
    });
}

TEST_CASE("what is no packet is not counted as one") {
    CHECK_TWICE([](auto value) {
        trace::packet_counts sum;
        sum.add(value(kind::none), 1);
        return sum == trace::packet_counts{} && sum.of(value(kind::none)) == 0;
    });
}

TEST_CASE("packet_counts are equal when all counts are equal") {
    CHECK_TWICE([](auto value) {
        trace::packet_counts one;
        one.add(value(kind::psb), 16);
        return one == one && !(one == trace::packet_counts{});
    });
}

TEST_CASE("the counting visitor counts packets and damage, and reports boundaries") {
    CHECK_TWICE([](auto value) {
        trace::packet_counts sum;
        uint64_t seen = 0;
        auto boundary = [&](kind which, uint64_t offset, unsigned length) {
            seen = seen * 1000 + underlying(which) * 100U + offset * 10 + length;
        };
        trace::detail::counter<decltype(boundary)> const count{sum, boundary};
        count(packet::tip{}, trace::packet_place{value(uint64_t{4}), 0, 3});
        count(trace::item{.what = item_type::damage});
        return seen == 343 && sum.of(kind::tip) == 1 && sum.bytes[3] == 3 && sum.errors == 1;
    });
}

TEST_CASE("operator+= adds the counts of two parts") {
    CHECK_TWICE([](auto value) {
        trace::packet_counts one;
        one.add(kind::tip, value(3U));
        one.unknown = 2;
        one.errors = 5;
        trace::packet_counts two;
        two.add(kind::tip, value(7U), 10);
        two.add(kind::pad, 1U);
        two.unknown = 1;
        two.unknown_bytes = 4;
        two.errors = 1;
        two.resyncs = value(uint64_t{9});
        one += two;
        return one.of(kind::tip) == 11 && one.bytes[underlying(kind::tip)] == 73 &&
               one.of(kind::pad) == 1 && one.unknown == 3 && one.unknown_bytes == 4 &&
               one.errors == 6 && one.resyncs == 9 && one.total() == 15;
    });
}
