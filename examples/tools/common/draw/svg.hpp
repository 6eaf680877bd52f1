// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "leaders.hpp"

/// Draws the layout of a word or a packet as SVG, for web pages and documents.
namespace draw {

using namespace ptspec;

/// Options of an SVG drawing.
struct svg_drawing {
    text title{};                 ///< if empty, the name of the type
    unsigned bits_per_line = 32;  ///< for a word; at most 64
    bool standalone = true;       ///< a complete file; if false, the page must contain `svg_style`
};

/// Prints text with the special characters of HTML and XML escaped.
template <text_sink Sink>
constexpr void escaped(text plain, Sink&& sink) {
    size_t from = 0;
    for (size_t at = 0; at < plain.size(); ++at) {
        text entity;
        switch (plain.data()[at]) {
            case '&': entity = "&amp;"; break;
            case '<': entity = "&lt;"; break;
            case '>': entity = "&gt;"; break;
            case '"': entity = "&quot;"; break;
            case '\'': entity = "&#39;"; break;
            default: continue;
        }
        sink(text{plain.data() + from, at - from});
        sink(entity);
        from = at + 1;
    }
    sink(text{plain.data() + from, plain.size() - from});
}

/// Prints the style sheet of all drawings. Lines and text have the colour of the surrounding text.
/// A page may set the variables.
template <text_sink Sink>
constexpr void svg_style(Sink&& sink) {
    put(".ptspec text{fill:currentColor}"
        ".ptspec .number{font-size:10px;opacity:.75}"
        ".ptspec .quiet{opacity:.65}"
        ".ptspec rect{fill:var(--ptspec-field,transparent);stroke:currentColor}"
        ".ptspec .owned{fill:var(--ptspec-owned,#4a90d92e)}"
        ".ptspec .reserved{fill:var(--ptspec-reserved,#8080804d)}"
        ".ptspec .other{fill:var(--ptspec-other,#80808024);stroke-dasharray:3 2}"
        ".ptspec .fixed{fill:var(--ptspec-fixed,#e0a03038)}"
        ".ptspec path{fill:none;stroke:currentColor;opacity:.6}",
        sink);
}

namespace detail {

/// Writes the SVG elements. All numbers are pixels.
template <class Sink>
class svg_picture {
public:
    constexpr svg_picture(row_list const& of, svg_drawing how, Sink& sink)
        : of_{of},
          how_{how},
          sink_{sink},
          bit_{drawn_in_bytes(of) ? 44U : 22U},
          margin_{drawn_in_bytes(of) ? 6 * widest_byte_numbers(of) + 6 : 0} {}

    constexpr void draw() {
        open();
        if (drawn_in_bytes(of_)) { number_bits_of_a_byte(); }
        unsigned y = numbers_height;
        for_each_line(of_, how_.bits_per_line, [&](picture_line line) {
            if (drawn_in_bytes(of_)) {
                number_bytes(line, y + baseline);
            } else {
                for_each_piece(of_, line, [&](piece one) { number_bits(line, one, y - 4); });
            }
            for_each_piece(of_, line, [&](piece one) { draw_box(line, one, y); });
            for (auto const& one : leaders_of(line)) { draw_leader(one, y + box_height); }
            y += height_of(line) + gap();
        });
        put("</svg>", sink_);
    }

private:
    static constexpr unsigned box_height = 28;
    static constexpr unsigned baseline = 18;  ///< of the text in a box, from the top of the box
    static constexpr unsigned numbers_height = 13;
    static constexpr unsigned level_height = 17;

    // -------------------------------------------------------------------------------- places

    /// The width of text in a monospaced font of 12 pixels.
    static constexpr auto width_of(size_t letters) noexcept -> unsigned {
        return static_cast<unsigned>(letters * 29 + 3) / 4;
    }
    [[nodiscard]] constexpr auto place_in(picture_line line, piece one) const noexcept -> place {
        auto const here = place_of(one, line, bit_);
        return {here.left + margin_, here.right + margin_};
    }
    static constexpr auto fits(size_t letters, place here) noexcept -> bool {
        return width_of(letters) + 4 <= here.right - here.left;
    }
    /// The text in a box: the label, or only the name if the label does not fit, or nothing.
    [[nodiscard]] constexpr auto text_in(piece one, place here) const noexcept -> label_text {
        label_text full;
        label(one, full);
        if (fits(full.length, here)) { return full; }
        auto const& name = one.of->row.name;
        label_text short_one;
        if (fits(name.size(), here) || drawn_in_bytes(of_)) { short_one(name); }
        return short_one;
    }
    [[nodiscard]] constexpr auto leaders_of(picture_line line) const noexcept -> leader_list {
        leader_list leaders;
        for_each_piece(of_, line, [&](piece one) {
            auto const here = place_in(line, one);
            if (!one.named() || text_in(one, here).length != 0) { return; }
            label_text full;
            label(one, full);
            leaders.add(one, (here.left + here.right) / 2, width_of(full.length) + 14);
        });
        leaders.place(9);
        return leaders;
    }
    [[nodiscard]] constexpr auto height_of(picture_line line) const noexcept -> unsigned {
        unsigned const levels = leaders_of(line).levels();
        return box_height + levels * level_height + (levels != 0 ? 4 : 0);
    }
    /// The distance from the end of one line to the boxes of the next.
    [[nodiscard]] constexpr auto gap() const noexcept -> unsigned {
        return drawn_in_bytes(of_) ? 0 : numbers_height + 8;
    }

    // -------------------------------------------------------------------------------- elements

    /// Writes texts and numbers in order.
    template <class... Pieces>
    constexpr void write(Pieces... pieces) {
        (write_one(pieces), ...);
    }
    constexpr void write_one(char const* literal) {
        size_t length = 0;
        while (literal[length] != 0) { ++length; }
        sink_(text{literal, length});
    }
    constexpr void write_one(text piece) { escaped(piece, sink_); }
    constexpr void write_one(unsigned number) { decimal(number, sink_); }

    constexpr void open() {
        unsigned width = 0;
        unsigned height = 0;
        for_each_line(of_, how_.bits_per_line, [&](picture_line line) {
            unsigned const across = margin_ + line.columns * bit_ + 1;
            width = across > width ? across : width;
            for (auto const& one : leaders_of(line)) {
                unsigned const end = one.at + one.reach + 1;
                width = !one.to_the_left && end > width ? end : width;
            }
            height += (height == 0 ? numbers_height + 1 : gap()) + height_of(line);
        });
        text const title = how_.title.size() != 0 ? how_.title : of_.name;
        put("<svg ", sink_);
        if (how_.standalone) { put("xmlns=\"http://www.w3.org/2000/svg\" ", sink_); }
        write("class=\"ptspec\" role=\"img\" width=\"", width, "\" height=\"", height,
              "\" viewBox=\"-.5 -.5 ", width, " ", height,
              "\" text-anchor=\"middle\" font-size=\"12\" font-family=\"ui-monospace,"
              "SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace\"><title>",
              title, "</title>");
        if (how_.standalone) {
            put("<style>.ptspec{color:#1f2328;background:#fff}"
                "@media(prefers-color-scheme:dark){.ptspec{color:#e6edf3;background:#0d1117}}",
                sink_);
            svg_style(sink_);
            put("</style>", sink_);
        }
    }

    constexpr void number(unsigned x, unsigned y, char const* anchor, unsigned value) {
        write("<text class=\"number\" x=\"", x, "\" y=\"", y, "\"", anchor, ">", value, "</text>");
    }
    constexpr void number_bits(picture_line line, piece one, unsigned y) {
        auto const here = place_in(line, one);
        if (one.msb == one.lsb) {
            number((here.left + here.right) / 2, y, "", one.lsb);
        } else {
            number(here.left + 3, y, " text-anchor=\"start\"", one.msb);
            number(here.right - 3, y, " text-anchor=\"end\"", one.lsb);
        }
    }
    constexpr void number_bits_of_a_byte() {
        for (unsigned bit = 8; bit-- != 0;) {
            number(margin_ + (7 - bit) * bit_ + bit_ / 2, numbers_height - 4, "", bit);
        }
    }
    constexpr void number_bytes(picture_line line, unsigned y) {
        write("<text class=\"number\" x=\"", margin_ - 6, "\" y=\"", y, "\" text-anchor=\"end\">",
              line.lsb / 8);
        if (line.has_several_bytes()) { write("..", line.msb / 8); }
        put("</text>", sink_);
    }

    constexpr void draw_box(picture_line line, piece one, unsigned y) {
        auto const here = place_in(line, one);
        auto const& row = one.of->row;
        write("<g><title>", row.name, ", ");
        write_place(row);
        if (one.named() && !drawn_in_bytes(of_)) { write(", ", access_name(row.access)); }
        write("</title><rect class=\"", class_of(row), "\" x=\"", here.left, "\" y=\"", y,
              "\" width=\"", here.right - here.left, "\" height=\"", box_height, "\"/>");
        if (one.named()) {
            auto const name = text_in(one, here);
            if (name.length != 0) { text_at(here, y, name.written()); }
        } else if (row.kind == row_kind::fixed) {
            draw_fixed(line, one, y);
        } else if (fits(row.name.size(), here)) {
            text_at(here, y, row.name, " class=\"quiet\"");
        }
        put("</g>", sink_);
    }
    constexpr void write_place(row_info const& row) {
        if (drawn_in_bytes(of_)) {
            write(row.lsb / 8, ".", row.lsb % 8);
            if (row.msb != row.lsb) { write("..", row.msb / 8, ".", row.msb % 8); }
        } else {
            write(row.msb != row.lsb ? "bits " : "bit ", row.msb);
            if (row.msb != row.lsb) { write(":", row.lsb); }
        }
    }
    static constexpr auto class_of(row_info const& row) noexcept -> char const* {
        return row.kind == row_kind::reserved    ? "reserved"
               : row.kind == row_kind::other     ? "other"
               : row.kind == row_kind::fixed     ? "fixed"
               : row.access == row_access::plain ? "field"
                                                 : "field owned";
    }
    /// Writes text in the centre of a box, compressed if it is too long.
    constexpr void text_at(place here, unsigned y, text what, char const* more = "") {
        write("<text x=\"", (here.left + here.right) / 2, "\" y=\"", y + baseline, "\"", more);
        if (!fits(what.size(), here)) {
            write(" textLength=\"", here.right - here.left - 4,
                  "\" lengthAdjust=\"spacingAndGlyphs\"");
        }
        write(">", what, "</text>");
    }
    /// Draws the bits of a fixed row, or its bytes if it has several.
    constexpr void draw_fixed(picture_line line, piece one, unsigned y) {
        if (line.has_several_bytes()) {
            label_text bytes;
            fixed_bytes(one, bytes);
            text_at(place_in(line, one), y, bytes.written());
            return;
        }
        for (unsigned bit = one.msb + 1; bit-- != one.lsb;) {
            bool const set = (one.of->value >> (bit - one.of->row.lsb) & 1) != 0;
            text_at(place_in(line, {one.of, bit, bit}), y, set ? text{"1"} : text{"0"});
        }
    }

    constexpr void draw_leader(leader const& one, unsigned y) {
        label_text full;
        label(one.which, full);
        unsigned const down = one.level * level_height + 12;
        write("<path d=\"M", one.at, " ", y, "v", down, one.to_the_left ? "h-6" : "h6",
              "\"/><text x=\"", one.to_the_left ? one.at - 9 : one.at + 9, "\" y=\"", y + down + 4,
              one.to_the_left ? "\" text-anchor=\"end\">" : "\" text-anchor=\"start\">",
              full.written(), "</text>");
    }

    row_list const& of_;
    svg_drawing how_;
    Sink& sink_;
    unsigned bit_;
    unsigned margin_;
};

}  // namespace detail

/// Draws a layout as an <svg> element. It needs no other resource, uses the colour of the
/// surrounding text, and has a title for screen readers.
template <text_sink Sink>
constexpr void svg_diagram(row_list const& of, Sink&& sink, svg_drawing how = {}) {
    detail::svg_picture<bare_t<Sink>>{of, how, sink}.draw();
}

template <class Type, text_sink Sink>
constexpr void svg_diagram(Sink&& sink, svg_drawing how = {}) {
    svg_diagram(row_list_of<Type>(), sink, how);
}

}  // namespace draw
