// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "leaders.hpp"

/// Draws the layout of a word or a packet in text characters, like the manual's figures.
namespace draw {

using namespace ptspec;

/// Options of a diagram.
struct drawing {
    bool unicode = false;         ///< box-drawing characters (U+2500 and up) in UTF-8; else + - |
    unsigned bits_per_line = 32;  ///< for a word; at most 64
};

namespace detail {

/// One line of characters. Each cell stores the directions of the lines that leave it, so junctions
/// follow from all lines drawn there.
template <unsigned Most = 200>
class character_line {
public:
    static constexpr unsigned up = 1, down = 2, left = 4, right = 8;

    constexpr void put(unsigned at, text what) noexcept {
        for (char const letter : what) { put(at++, letter); }
    }
    constexpr void fill(unsigned from, unsigned to, char with) noexcept {
        while (from < to) { put(from++, with); }
    }
    /// Centres text between two borders, truncated to the space between them.
    constexpr void centre(place borders, text what) noexcept {
        size_t const room = borders.right - borders.left - 1;
        size_t const shown = what.size() < room ? what.size() : room;
        put(borders.left + 1 + static_cast<unsigned>(room - shown) / 2, {what.data(), shown});
    }
    /// Draws a line segment. Existing text stays.
    constexpr void draw(unsigned at, unsigned directions) noexcept {
        if (at < Most && cells_[at] <= ' ') {
            auto const before = is_drawn(cells_[at]) ? static_cast<unsigned char>(cells_[at]) : 0U;
            put(at, static_cast<char>(before | directions));
        }
    }
    /// Draws a line from the centre of `from` to the centre of `to`.
    constexpr void draw_across(unsigned from, unsigned to) noexcept {
        draw(from, right);
        for (unsigned at = from + 1; at < to; ++at) { draw(at, left | right); }
        draw(to, left);
    }

    /// Passes the line to the sink and clears it.
    template <class Sink>
    constexpr void end_line(drawing how, Sink& sink) {
        unsigned from = 0;
        for (unsigned at = 0; at < used_; ++at) {
            if (!is_drawn(cells_[at])) { continue; }
            auto const directions = unsigned{static_cast<unsigned char>(cells_[at])};
            if (how.unicode) {
                sink(text{cells_ + from, at - from});
                char const glyph[] = {'\xE2', '\x94', last_byte_of_glyph(directions)};
                sink(text{glyph, 3});
                from = at + 1;
            } else {
                cells_[at] = directions == (up | down)      ? '|'
                             : directions == (left | right) ? '-'
                                                            : '+';
            }
        }
        sink(text{cells_ + from, used_ - from});
        print::put("\n", sink);
        *this = {};
    }

private:
    static constexpr auto is_drawn(char cell) noexcept -> bool { return cell > 0 && cell < 16; }
    static constexpr auto last_byte_of_glyph(unsigned directions) noexcept -> char {
        return "\x80\x82\x82\x82\x80\x98\x90\xA4\x80\x94\x8C\x9C\x80\xB4\xAC\xBC"[directions];
    }

    constexpr void put(unsigned at, char letter) noexcept {
        if (at >= Most) { return; }
        while (used_ <= at) { cells_[used_++] = ' '; }
        cells_[at] = letter;
    }

    char cells_[Most]{};
    unsigned used_ = 0;
};

/// Draws a diagram line by line.
template <class Sink>
class character_picture {
public:
    constexpr character_picture(row_list const& of, drawing how, Sink& sink)
        : of_{of}, how_{how}, sink_{sink} {}

    constexpr void draw() {
        bool first = true;
        for_each_line(of_, how_.bits_per_line, [&](picture_line line) {
            if (drawn_in_bytes(of_)) {
                draw_bytes(line, first);
            } else {
                draw_bits(line, first);
            }
            first = false;
        });
        if (drawn_in_bytes(of_)) { end_line(); }
    }

private:
    using line_type = character_line<>;

    /// Draws a line of a word: bit numbers, boxes, and below them the names that do not fit.
    constexpr void draw_bits(picture_line line, bool first) {
        if (!first) { end_line(); }
        leader_list leaders;
        for_each_piece(of_, line, [&](piece one) { number(line, one); });
        end_line();
        draw_borders(line, line_type::down);
        end_line();
        draw_boxes(line, leaders);
        draw_borders(line, line_type::up);
        leaders.place(2);
        for (auto const& one : leaders) { out_.draw(one.at, line_type::down); }
        end_line();
        for (unsigned level = 0; level < leaders.levels(); ++level) {
            for (auto const& one : leaders) { draw_leader(one, level); }
            end_line();
        }
    }

    /// Draws bytes of a packet. The border above is shared with the bytes before.
    constexpr void draw_bytes(picture_line line, bool first) {
        if (first) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                out_.put(margin() + (7 - bit) * width_of_a_bit() + 4, text{&"01234567"[bit], 1});
            }
            end_line();
        }
        draw_borders(line, line_type::down);
        end_line();
        label_text bytes;
        decimal(line.lsb / 8, bytes);
        if (line.has_several_bytes()) {
            put("..", bytes);
            decimal(line.msb / 8, bytes);
        }
        out_.put(margin() - 1 - static_cast<unsigned>(bytes.length), bytes.written());
        leader_list none;
        draw_boxes(line, none);
        draw_borders(line, line_type::up);
    }

    constexpr void number(picture_line line, piece one) {
        auto const here = place_of(one, line);
        if (one.msb != one.lsb) {
            label_text msb;
            decimal(one.msb, msb);
            out_.put(here.left + 1, msb.written());
        }
        label_text lsb;
        decimal(one.lsb, lsb);
        out_.put(here.right - static_cast<unsigned>(lsb.length), lsb.written());
    }

    constexpr void draw_borders(picture_line line, unsigned direction) {
        for_each_piece(of_, line, [&](piece one) {
            auto const here = place_of(one, line);
            out_.draw_across(here.left, here.right);
            out_.draw(here.left, direction);
            out_.draw(here.right, direction);
        });
    }

    constexpr void draw_boxes(picture_line line, leader_list& leaders) {
        for_each_piece(of_, line, [&](piece one) {
            auto const here = place_of(one, line);
            out_.draw(here.left, line_type::up | line_type::down);
            out_.draw(here.right, line_type::up | line_type::down);
            if (one.named()) {
                draw_name(here, one, leaders);
            } else if (one.of->row.kind == row_kind::fixed) {
                draw_fixed(here, line, one);
            } else {
                bool const reserved = one.of->row.kind == row_kind::reserved;
                out_.fill(here.left + 1, here.right, reserved ? '/' : '.');
                text const name = reserved ? text{" reserved "} : text{" other "};
                if (name.size() < here.right - here.left) { out_.centre(here, name); }
            }
        });
        end_line();
    }

    constexpr void draw_name(place here, piece one, leader_list& leaders) {
        label_text full;
        label(one, full);
        auto const room = here.right - here.left - 1;
        if (full.length <= room) {
            out_.centre(here, full.written());
        } else if (one.of->row.name.size() <= room || drawn_in_bytes(of_)) {
            out_.centre(here, one.of->row.name);
        } else {
            leaders.add(one, (here.left + here.right) / 2, static_cast<unsigned>(full.length) + 3);
        }
    }

    /// Draws the bits of a fixed row, or its bytes if it has several.
    constexpr void draw_fixed(place here, picture_line line, piece one) {
        if (line.has_several_bytes()) {
            label_text bytes;
            fixed_bytes(one, bytes);
            out_.centre(here, bytes.written());
            return;
        }
        for (unsigned bit = one.lsb; bit <= one.msb; ++bit) {
            auto const bit_place = place_of({one.of, bit, bit}, line);
            bool const set = (one.of->value >> (bit - one.of->row.lsb) & 1) != 0;
            out_.centre(bit_place, set ? text{"1"} : text{"0"});
        }
    }

    constexpr void draw_leader(leader const& one, unsigned level) {
        if (level > one.level) { return; }
        if (level < one.level) {
            out_.draw(one.at, line_type::up | line_type::down);
            return;
        }
        label_text full;
        label(one.which, full);
        out_.draw(one.at, line_type::up);
        if (one.to_the_left) {
            out_.draw_across(one.at - 1, one.at);
            out_.draw(one.at - 1, line_type::left);
            out_.put(one.at - one.reach + 1, full.written());
        } else {
            out_.draw_across(one.at, one.at + 1);
            out_.draw(one.at + 1, line_type::right);
            out_.put(one.at + 3, full.written());
        }
    }

    /// In columns, including the left border.
    [[nodiscard]] constexpr auto width_of_a_bit() const noexcept -> unsigned {
        return drawn_in_bytes(of_) ? 9 : 3;
    }
    [[nodiscard]] constexpr auto margin() const noexcept -> unsigned {
        return drawn_in_bytes(of_) ? widest_byte_numbers(of_) + 1 : 0;
    }
    [[nodiscard]] constexpr auto place_of(piece one, picture_line line) const noexcept -> place {
        auto const here = draw::place_of(one, line, width_of_a_bit());
        return {here.left + margin(), here.right + margin()};
    }
    constexpr void end_line() { out_.end_line(how_, sink_); }

    row_list const& of_;
    drawing how_;
    Sink& sink_;
    line_type out_{};
};

}  // namespace detail

/// Draws a layout: a word in lines of 32 bits, at most 100 columns wide; a packet byte by byte.
template <text_sink Sink>
constexpr void diagram(row_list const& of, Sink&& sink, drawing how = {}) {
    detail::character_picture<bare_t<Sink>>{of, how, sink}.draw();
}

template <class Type, text_sink Sink>
constexpr void diagram(Sink&& sink, drawing how = {}) {
    diagram(row_list_of<Type>(), sink, how);
}

}  // namespace draw
