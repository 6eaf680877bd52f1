// SPDX-License-Identifier: BSL-1.0
#include <tools/common/draw/leaders.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>

#include <cstdint>

using namespace ptspec;

namespace {

constexpr draw::piece no_piece{nullptr, 0, 0};

struct side_and_level {
    bool to_the_left;
    unsigned level;
};

/// True if leaders at these positions get these sides and levels.
template <size_t Count>
constexpr auto are_placed(unsigned const (&at)[Count], unsigned const (&reach)[Count],
                          side_and_level const (&expected)[Count], unsigned levels,
                          unsigned gap = 2) -> bool {
    draw::leader_list list;
    for (size_t i = 0; i < Count; ++i) { list.add(no_piece, at[i], reach[i]); }
    list.place(gap);
    bool right = list.levels() == levels;
    size_t i = 0;
    for (auto const& one : list) {
        right = right && one.at == at[i] && one.reach == reach[i] &&
                one.to_the_left == expected[i].to_the_left && one.level == expected[i].level;
        ++i;
    }
    return right && i == Count;
}

constexpr auto left_end(draw::leader const& one) -> unsigned {
    return one.to_the_left ? one.at - one.reach : one.at;
}
constexpr auto right_end(draw::leader const& one) -> unsigned {
    return one.to_the_left ? one.at : one.at + one.reach;
}

/// True if no label overlaps another label or its line.
auto nothing_overlaps(draw::leader_list const& list) -> bool {
    for (auto const& one : list) {
        if (one.level >= list.levels()) { return false; }
        for (auto const& other : list) {
            if (&one == &other) { continue; }
            bool const crosses = left_end(one) <= other.at && other.at <= right_end(one);
            if (crosses && other.level >= one.level) { return false; }
            bool const beside = right_end(one) < left_end(other) ||
                                right_end(other) < left_end(one);
            if (one.level == other.level && !beside) { return false; }
        }
    }
    return true;
}

}  // namespace

TEST_CASE("without leaders there are no levels") {
    CHECK_TWICE([](auto value) {
        draw::leader_list list;
        list.place(value(2U));
        return list.levels() == 0 && list.begin() == list.end();
    });
}

TEST_CASE("a label goes to the left of its line if there is room") {
    CHECK_TWICE([](auto value) {
        return are_placed({value(10U)}, {10}, {{true, 0}}, 1) &&
               are_placed({value(9U)}, {10}, {{false, 0}}, 1);
    });
}

TEST_CASE("labels on the left descend from left to right") {
    CHECK_TWICE([](auto value) {
        return are_placed({value(20U), 23, 26}, {8, 8, 8}, {{true, 0}, {true, 1}, {true, 2}}, 3);
    });
    // A line that ends on the level where a label begins would touch it.
    CHECK_TWICE(
        [](auto value) { return are_placed({value(20U), 28}, {8, 8}, {{true, 0}, {true, 1}}, 2); });
}

TEST_CASE("labels with a gap between them share a level") {
    CHECK_TWICE([](auto value) {
        return are_placed({20, 30}, {8, 8}, {{true, 0}, {true, 0}}, 1, value(2U)) &&
               are_placed({20, 30}, {8, 8}, {{true, 0}, {true, 1}}, 2, value(3U));
    });
    CHECK_TWICE([](auto value) {
        // The third label goes back to the top level, beside the first.
        return are_placed({20, 23, value(40U)}, {8, 8, 8}, {{true, 0}, {true, 1}, {true, 0}}, 2);
    });
}

TEST_CASE("a label that is moved down also avoids the labels on its new level") {
    CHECK_TWICE([](auto value) {
        return are_placed({20, 23, 40, value(43U)}, {8, 8, 8, 19},
                          {{true, 0}, {true, 1}, {true, 0}, {true, 2}}, 3) &&
               are_placed({20, 23, 40, value(43U)}, {8, 8, 8, 18},
                          {{true, 0}, {true, 1}, {true, 0}, {true, 1}}, 2);
    });
}

TEST_CASE("labels on the right share a level with labels on the left") {
    CHECK_TWICE([](auto value) {
        return are_placed({1, value(20U)}, {5, 12}, {{false, 0}, {true, 0}}, 1) &&
               are_placed({1, value(20U)}, {6, 12}, {{false, 1}, {true, 0}}, 2);
    });
}

TEST_CASE("a line of 64 bits can have 64 leaders") {
    CHECK_TWICE([](auto value) {
        draw::leader_list list;
        for (unsigned i = 0; i < 64; ++i) { list.add(no_piece, 3 * i + 1, value(2U)); }
        list.place(2);
        return list.end() - list.begin() == 64 && list.levels() == 2;
    });
}

TEST_CASE("labels on the right descend from right to left") {
    CHECK_TWICE([](auto value) {
        return are_placed({1, 4, value(7U)}, {9, 9, 9}, {{false, 2}, {false, 1}, {false, 0}}, 3);
    });
}

TEST_CASE("a label on the left does not cross the line of a label on the right") {
    CHECK_TWICE([](auto value) {
        return are_placed({2, value(14U)}, {8, 10}, {{false, 1}, {true, 0}}, 2) &&
               are_placed({2, value(13U)}, {8, 10}, {{false, 0}, {false, 0}}, 1);
    });
}

TEST_CASE("a label on the right goes below the lines that it would cross") {
    CHECK_TWICE([](auto value) {
        return are_placed({2, value(14U)}, {12, 8}, {{false, 1}, {true, 0}}, 2) &&
               are_placed({2, value(14U)}, {11, 8}, {{false, 1}, {true, 0}}, 2) &&
               are_placed({2, value(40U), 43}, {41, 8, 8}, {{false, 2}, {true, 0}, {true, 1}}, 3);
    });
}

TEST_CASE("no label overlaps a line or another label") {
    test::random_numbers random{};
    auto const next = [&](unsigned below) { return static_cast<unsigned>(random.below(below)); };
    for (unsigned trial = 0; trial < 2000; ++trial) {
        draw::leader_list list;
        unsigned at = 1 + next(10);
        for (unsigned left = 1 + next(32); left != 0; --left) {
            list.add(no_piece, at, 4 + next(30));
            at += 3 + 3 * (next(4) == 0 ? next(5) : 0);
        }
        list.place(2);
        REQUIRE(nothing_overlaps(list));
    }
}
