// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/block_counts.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::block_count;
using flow::block_counts;
using flow::edge;

TEST_CASE("blocks are counted by address and address space") {
    CHECK_TWICE([](auto value) {
        block_count storage[16] = {};
        block_counts counts{storage};
        for (unsigned i = value(0U); i < 3; ++i) { counts.edge({.from = 1, .to = 0x1000}); }
        counts.edge({.from = 2, .to = 0x1000, .space = 7});
        counts.start(0x1000, 7);
        counts.start(0x2000, 0);
        return counts.size() == 3 && !counts.is_full() && counts.count_of(0x1000) == 3 &&
               counts.count_of(0x1000, 7) == 2 && counts.count_of(0x2000) == 1 &&
               counts.count_of(0x3000) == 0 && counts.count_of(0x2000, 7) == 0;
    });
}

TEST_CASE("a block of another address space at the same address has no entry in common") {
    CHECK_TWICE([](auto value) {
        block_count storage[1] = {};
        block_counts counts{storage};
        counts.start(0x1000, value(0U));
        counts.start(0x1000, 1);
        return counts.size() == 1 && counts.is_full() && counts.count_of(0x1000, 0) == 1 &&
               counts.count_of(0x1000, 1) == 0;
    });
}

TEST_CASE("a full table counts the blocks that it has, and says that it is full") {
    CHECK_TWICE([](auto value) {
        block_count storage[3] = {};
        block_counts counts{storage};
        for (uint64_t ip = value(uint64_t{1}); ip <= 5; ++ip) { counts.start(ip, 0); }
        bool good = counts.size() == 3 && counts.is_full() && counts.count_of(4) == 0;
        counts.start(2, 0);
        good = good && counts.count_of(2) == 2 && counts.count_of(1) == 1;
        unsigned sum = 0;
        for (auto const& one : storage) { sum += one.count; }
        return good && sum == 4;
    });
}

TEST_CASE("the work for a block is bounded, and its count stays at its maximum") {
    CHECK_TWICE([](auto value) {
        // All in one place: entries 0 to 63 are taken.
        block_count storage[256] = {};
        for (auto& one : storage) { one = {.ip = 1, .space = 0, .count = 0xFFFF'FFFF}; }
        block_counts counts{storage};
        counts.start(value(uint64_t{1}), 0);
        bool const stays = counts.count_of(1) == 0xFFFF'FFFF;
        counts.start(2, 0);
        return stays && counts.is_full();
    });
}

TEST_CASE("which blocks count, and how often at once") {
    CHECK_TWICE([](auto value) {
        block_count storage[16] = {};
        flow::edge_filter which{.not_taken = false, .events = false};
        which.ranges[0] = {0x1000, 0x1FFF};
        which.range_count = 1;
        block_counts counts{storage, nullptr, which};
        counts.edge({.from = 0x9000, .to = value(uint64_t{0x1000})});
        counts.edge({.from = 0x1000, .to = 0x2000});
        counts.edge({.from = 0x1000, .to = 0x1002, .is_taken = false});
        counts.edge({.from = 0x1000, .to = 0x1004, .is_asynchronous = true});
        counts.start(0x2000, 0);
        counts.count(counts.index_of({.from = 5, .to = 0x1000}), 2);
        bool const good = counts.size() == 1 && counts.count_of(0x1000) == 3;
        counts.count(counts.index_of({.from = 5, .to = 0x1000}), uint64_t{1} << 40);
        return good && counts.count_of(0x1000) == 0xFFFF'FFFF && counts.runs() == nullptr &&
               counts.index_of_start(0x2000, 0) == block_counts::not_counted &&
               counts.index_of({.from = 5, .to = 0x2000}) == block_counts::not_counted;
    });
}
