// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "figure.hpp"

/// Labels that do not fit into their boxes. They are placed below the boxes, each connected to its
/// box by a leader line. Coordinates are in columns or in pixels.
namespace draw {

using namespace ptspec;

struct leader {
    piece which;
    unsigned at;     ///< where the line leaves its box
    unsigned reach;  ///< the length of bend, label and gap from there
    bool to_the_left;
    unsigned level;  ///< how far down the label is
};

/// The leaders of one line of boxes, from left to right.
class leader_list {
public:
    static constexpr unsigned most = 64;

    constexpr void add(piece which, unsigned at, unsigned reach) noexcept {
        leaders_[count_++] = {which, at, reach, false, 0};
    }
    [[nodiscard]] constexpr auto begin() const noexcept -> leader const* { return leaders_; }
    [[nodiscard]] constexpr auto end() const noexcept -> leader const* { return leaders_ + count_; }
    /// The number of levels in use.
    [[nodiscard]] constexpr auto levels() const noexcept -> unsigned { return levels_; }

    /// Assigns a side and a level to each label, so that no label overlaps a line or another label.
    ///
    /// Places the labels: to the left of their lines if there is room, else to the right. Left
    /// labels are placed from left to right and right labels from right to left, so a line never
    /// crosses a label that is already placed.
    constexpr void place(unsigned gap) noexcept {
        unsigned taken = 0;
        for (unsigned i = 0; i < count_; ++i) {
            auto& one = leaders_[i];
            one.to_the_left = one.at >= taken + one.reach;
            if (!one.to_the_left) { taken = one.at + gap; }
        }
        for (unsigned i = 0; i < count_; ++i) {
            if (leaders_[i].to_the_left) { place_label(i, gap); }
        }
        for (unsigned i = count_; i-- != 0;) {
            if (!leaders_[i].to_the_left) { place_label(i, gap); }
        }
    }

private:
    static constexpr auto first(leader const& one) noexcept -> unsigned {
        return one.to_the_left ? one.at - one.reach : one.at;
    }
    static constexpr auto last(leader const& one) noexcept -> unsigned {
        return one.to_the_left ? one.at : one.at + one.reach;
    }

    /// Places a label at the first free level: below all lines that it would cross, and not next to
    /// an overlapping label.
    constexpr void place_label(unsigned which, unsigned gap) noexcept {
        auto& one = leaders_[which];
        for (bool moved = true; moved;) {
            moved = false;
            for (unsigned i = 0; i < count_; ++i) {
                auto const& other = leaders_[i];
                bool const line_in_the_way = first(one) <= other.at && other.at <= last(one);
                bool const name_in_the_way = other.level == one.level &&
                                             first(one) < last(other) + gap &&
                                             first(other) < last(one) + gap;
                if (i != which && placed_[i] && other.level >= one.level &&
                    (line_in_the_way || name_in_the_way)) {
                    one.level = other.level + 1;
                    moved = true;
                }
            }
        }
        placed_[which] = true;
        if (one.level >= levels_) { levels_ = one.level + 1; }
    }

    leader leaders_[most]{};
    bool placed_[most]{};
    unsigned count_ = 0;
    unsigned levels_ = 0;
};

}  // namespace draw
