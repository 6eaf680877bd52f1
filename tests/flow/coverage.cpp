// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/coverage.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::coverage;
using flow::edge;

namespace {

constexpr edge one{.from = 0x40'1000, .to = 0x40'1020};
constexpr edge kernel{.from = 0xFFFF'FFFF'8100'0000, .to = 0x1000};

}  // namespace

TEST_CASE("the index of an edge, as documented") {
    CHECK_TWICE([](auto value) {
        uint8_t counts[65536 / 64] = {};  // the index needs no bytes
        coverage const large{counts, value(size_t{65536})};
        coverage const small{counts, value(size_t{8})};
        return large.index_of(one) == 0x3A72 && large.index_of(kernel) == 0xC78B &&
               small.index_of(one) == (0x3A72 & 7) && small.index_of(kernel) == (0xC78B & 7);
    });
}

TEST_CASE("a block counts where an edge leads to it and where tracing begins") {
    CHECK_TWICE([](auto value) {
        uint8_t counts[65536] = {};
        coverage blocks{counts, value(size_t{65536}), nullptr, {.blocks = true}};
        coverage edges{counts, 65536};
        // The upper half of 401020H * 9E3779B97F4A7C15H ends in A1C3H.
        blocks.edge(one);
        blocks.start(one.to, 0);
        edges.start(one.to, 0);
        return blocks.index_of(one) == 0xA1C3 && counts[0xA1C3] == 2;
    });
}

TEST_CASE("counts wrap, or stay at 255") {
    CHECK_TWICE([](auto value) {
        uint8_t wraps[8] = {};
        uint8_t stays[8] = {};
        coverage first{wraps, 8};
        coverage second{stays, 8, nullptr, {.saturates = true}};
        for (unsigned i = value(257U); i != 0; --i) {
            first.edge(one);
            second.edge(one);
        }
        auto const at = first.index_of(one);
        return wraps[at] == 1 && stays[at] == 255;
    });
}

TEST_CASE("which edges count") {
    CHECK_TWICE([](auto value) {
        auto const counts = [](flow::edge_filter const& filter, edge const& which,
                               bool blocks = false) {
            uint8_t bytes[8] = {};
            coverage to{bytes, 8, nullptr, {.blocks = blocks, .filter = filter}};
            to.edge(which);
            unsigned sum = 0;
            for (auto const byte : bytes) { sum += byte; }
            return sum == 1;
        };
        edge not_taken = value(one);
        not_taken.is_taken = false;
        edge event = one;
        event.is_asynchronous = true;
        edge elsewhere = one;
        elsewhere.space = 3;
        flow::edge_filter inside;
        inside.ranges[0] = {0x40'1000, 0x40'1020};
        inside.range_count = 1;
        flow::edge_filter part = inside;
        part.ranges[0].last = 0x40'101F;
        flow::edge_filter two = part;
        two.ranges[1] = {0x40'1020, 0x40'1020};
        two.range_count = 2;
        flow::edge_filter only_target;
        only_target.ranges[0] = {0x40'1020, 0x40'1020};
        only_target.range_count = 1;
        return counts({}, one) && counts({}, not_taken) && counts({}, event) &&
               !counts({.not_taken = false}, not_taken) && counts({.not_taken = false}, one) &&
               !counts({.events = false}, event) && counts(inside, one) &&
               !counts(inside, kernel) && !counts(part, one) && counts(two, one) &&
               counts({.has_space = true, .space = 3}, elsewhere) &&
               !counts({.has_space = true, .space = 3}, one) && !counts(only_target, one) &&
               counts(only_target, one, true) && !counts(part, one, true);
    });
}
