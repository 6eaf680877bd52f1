// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/crystal_edge.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::detail::crystal_edge;

TEST_CASE("an edge advances by MTCs: the example of PKT-305") {
    CHECK_TWICE([](auto value) {
        crystal_edge edge{value(250U), 3, 3};
        edge.start(0x10'0000, 0x1234, 0x50);
        edge.resolve_upper_bits(edge.ctc_of(0x47));
        bool const first = edge.base() == 0x0F'FFB0 && edge.advance(edge.ctc_of(0x47)) == 0 &&
                           edge.base() == 0x10'00FD;
        return first && edge.advance(edge.ctc_of(0x48)) == 1 && edge.base() == 0x10'0398 &&
               edge.advance(edge.ctc_of(0x4B)) == 3 && !edge.is_regular() && edge.error() == 1;
    });
}

TEST_CASE("a period of whole ticks needs no division") {
    CHECK_TWICE([](auto value) {
        crystal_edge edge{value(168U), 2, 3};
        edge.start(1'000'000, 0x7F8, 0);
        bool const is_same = edge.is_regular() && edge.period_ticks() == 672;
        return is_same && edge.advance_regular(0x00) == 1 && edge.base() == 1'000'672 &&
               edge.advance_regular(0x05) == 5 && edge.base() == 1'004'032;
    });
}

TEST_CASE("a crystal period of 512 ticks or more: FC has nine bits of its part (PKT-103)") {
    CHECK_TWICE([](auto value) {
        crystal_edge edge{value(1200U), 1, 0};
        edge.start(1'000'000, 5, 100);
        return edge.base() == 999'900 && edge.error() == 1024 && !edge.is_regular();
    });
}

TEST_CASE("the next MTC, and whether it is one that was sent (GEN-203,218)") {
    CHECK_TWICE([](auto value) {
        crystal_edge edge{value(2U), 1, 3};
        edge.start(1000, 0x0C, 0);
        crystal_edge long_periods{value(1U), 1, 12};
        long_periods.start(1000, 0x1FFF, 0);
        return edge.next_mtc(0) == 1008 && edge.next_mtc(2) == 1040 && edge.next_may_be(2) &&
               !edge.next_may_be(1) && long_periods.next_may_be(0xF2) &&
               !long_periods.next_may_be(0xF1) && long_periods.next_mtc(0) == 1001;
    });
}

TEST_CASE("without CPUID.15H no edge is known (PKT-301)") {
    CHECK_TWICE([](auto value) {
        return !crystal_edge{}.is_known() && !crystal_edge{value(84U), 0, 3}.is_known() &&
               !crystal_edge{value(0U), 2, 3}.is_known() && crystal_edge{84, 2, 3}.is_known();
    });
}
