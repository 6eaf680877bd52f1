// SPDX-License-Identifier: BSL-1.0
#pragma once

// A chain of tables as SVG elements, in a wide or in a narrow layout.

#include "canvas.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topa_view {

class svg_drawing : public canvas {
public:
    svg_drawing(chain const& of, std::vector<row> const& rows, bool narrow)
        : canvas{narrow ? 360U : 900U}, of_{of}, rows_{rows}, narrow_{narrow} {
        for (auto const& one : rows) { measure(one); }
    }

    void draw(std::string const& reader, std::size_t left_out) {
        y = 28;
        text_at(margin, y, "title", "ToPA chain at " + hex(of_.tables.front().address));
        y += 8;
        text_lines("", chain_text(of_));
        text_lines("quiet",
                   "As " + reader + " reads it. Indexes, addresses and words are hexadecimal.");
        if (of_.now.known) {
            std::string begin = "Position: ";
            for (auto const& line : position_lines(of_)) {
                text_lines("here", begin + line);
                begin.clear();
            }
        }
        text_lines(of_.findings == 0 ? "" : "bad", "Findings: " + findings_text(of_));
        draw_strip();
        for (auto const& one : rows_) { draw_row(one); }
        if (left_out != 0) {
            text_lines("quiet", count_of(left_out, "row") + " more, not drawn here");
        }
        draw_link(back_, right() + 12);
        y += 20;
    }

private:
    struct pending_link {
        std::size_t target;  ///< index of a table
        double from;
    };

    // -------------------------------------------------------------------------------- columns

    void measure(row const& one) {
        index_ = std::max(index_, hex(one.at.second).size());
        address_ = std::max(address_, hex(address_of(of_, one.at)).size());
        word_ = std::max(word_, hex(one.word.raw).size());
        target_ = std::max(target_, target_text(of_, one).size());
        if (one.is_region()) { max_doublings_ = std::max(max_doublings_, doublings_of(one)); }
    }
    /// Relative to 2 KB, so that the smallest region has a bar, too.
    static auto doublings_of(row const& one) -> unsigned {
        return underlying(one.word.get<topa::entry::Size>()) + 1U;
    }
    // The right end of the index column, after the mark of the current entry. Other columns follow.
    [[nodiscard]] auto index_end() const -> double { return margin + 16 + text_width(index_); }
    [[nodiscard]] auto begin() const -> double { return index_end() + 10; }
    /// The right end of all columns. Only links are drawn beyond it.
    [[nodiscard]] auto right() const -> double { return width() - margin - 16; }

    // The columns of the wide drawing.
    static constexpr double gap = 18;
    static constexpr double flags_room = 84;  ///< width of INT and STOP
    static constexpr std::size_t size_letters = 6;
    [[nodiscard]] auto word_at() const -> double { return begin() + text_width(address_) + gap; }
    [[nodiscard]] auto target_at() const -> double { return word_at() + text_width(word_) + gap; }
    [[nodiscard]] auto flags_at() const -> double {
        return target_at() + text_width(target_) + gap;
    }
    [[nodiscard]] auto size_end() const -> double {
        return flags_at() + flags_room + text_width(size_letters);
    }

    // -------------------------------------------------------------------------------- the strip

    /// Draws all regions side by side, to scale, with a minimum width.
    void draw_strip() {
        double const room = width() - 2 * margin;
        double regions = 0;
        double bytes = 0;
        for (auto const& one : rows_) {
            if (one.is_region()) {
                regions += 1;
                bytes += bytes_of(one);
            }
        }
        if (bytes == 0) { return; }
        double const least = std::min(4.0, room / regions / 2);
        double const scale = (room - regions * least) / bytes;
        bool filled{of_.now.from_start};
        double x = margin;
        y += 34;
        for (auto const& one : rows_) {
            if (!one.is_region()) { continue; }
            double const wide = least + scale * bytes_of(one);
            draw_part(one, x, wide, filled);
            filled = filled && !one.current;
            x += wide;
        }
        y += 20;
        bool const has_position{of_.now.from_start};
        text_lines("quiet",
                   std::string{"All regions, to scale but for the thinnest"} +
                       (has_position ? "; filled up to the position." : ".") +
                       " In the bars below each doubling of a region adds the same length.");
    }
    void draw_part(row const& one, double x, double wide, bool filled) {
        double const shown = wide > 3 ? wide - 1 : wide;
        raw("<g><title>" + escaped(row_title(one)) + "</title>");
        box(filled && !one.current ? "filled" : "region", x, y, shown, 18);
        if (one.current && of_.now.has_region()) {
            double const part = wide * filled_share();
            box("filled", x, y, std::min(part, shown), 18);
            path("here", x + part - 5, y - 9, "h10l-5 8z");
        }
        if (has_finding(one)) { box("bad", x, y + 15, shown, 3); }
        raw("</g>\n");
    }
    static auto has_finding(row const& one) -> bool {
        return std::any_of(one.notes.begin(), one.notes.end(),
                           [](note const& about) { return !about.is_warning; });
    }
    static auto bytes_of(row const& one) -> double {
        auto const bytes = topa::bytes_in(one.word.get<topa::entry::Size>());
        return static_cast<double>(bytes) * static_cast<double>(one.count);
    }
    /// The filled part of the current region, 0 to 1.
    [[nodiscard]] auto filled_share() const -> double {
        auto const offset = static_cast<double>(of_.now.loaded.where.offset);
        return std::min(1.0, offset / static_cast<double>(of_.now.size()));
    }

    // -------------------------------------------------------------------------------- rows

    [[nodiscard]] auto row_title(row const& one) const -> std::string {
        std::string made = "table " + std::to_string(one.at.first) + ", entry " +
                           hex(one.at.second) + ": " + target_text(of_, one);
        if (one.is_region()) { made += ", " + size_of(one.word); }
        for (auto const& flag : flags_of(one.word)) { made += ", " + flag; }
        for (auto const& about : one.notes) { made += "; " + note_text(about); }
        return made + (one.current ? "; the current entry" : "");
    }

    void draw_row(row const& one) {
        if (one.at.second == 0) { begin_table(one.at.first); }
        unsigned const top = y;
        bool const folded = one.what == row::kind::folded;
        unsigned const high = narrow_ && !folded ? 42 : 24;
        double const base = top + 16;
        raw("<g><title>" + escaped(row_title(one)) + "</title>");
        if (one.current) {
            box("wash", 4, top, right() - 2, high, 4);
            path("here", margin, base - 9, "v9l8 -4.5z");
        }
        text_at(index_end(), base, "quiet right", folded ? ".." : hex(one.at.second));
        narrow_ ? two_lines(one, base) : one_line(one, base);
        y = top + high;
        if (one.current) { add_note("here", fill_text(of_.now)); }
        if (one.what == row::kind::unreadable) { add_note("bad", unreadable_text(one)); }
        for (auto const& about : one.notes) {
            add_note(about.is_warning ? "warn" : "bad", note_text(about));
        }
        raw("</g>\n");
        if (one.what != row::kind::unreadable && !one.is_region()) { begin_link(one, top + 12); }
    }
    /// Draws lines of text below an entry, with a coloured bar at their left.
    void add_note(std::string_view kind, std::string const& what) {
        if (what.empty()) { return; }
        unsigned const top = y;
        y -= 2;
        text_lines(kind, what, begin() + 6, right());
        y += 6;
        box(kind, begin() - 2, top + 2, 3, y - top - 4);
    }

    /// Draws the cells of an entry in the wide layout.
    void one_line(row const& one, double base) {
        bool const is_entry = one.what == row::kind::entry;
        if (one.what != row::kind::folded) {
            text_at(begin(), base, "quiet", hex(address_of(of_, one.at)));
        }
        if (is_entry) { text_at(word_at(), base, "", hex(one.word.raw)); }
        text_at(target_at(), base, is_entry ? "" : "quiet", target_text(of_, one));
        draw_flags(one, flags_at(), base);
        if (!one.is_region()) { return; }
        text_at(size_end(), base, "right", size_of(one.word));
        draw_bar(one, size_end() + 10, base - 10, right() - size_end() - 14);
    }
    /// Draws the cells of an entry in the narrow layout.
    void two_lines(row const& one, double base) {
        double const end = right() - 4;
        double const flags_begin = end - flags_width(one);
        bool const is_entry = one.what == row::kind::entry;
        text_at(begin(), base, is_entry ? "" : "quiet", target_text(of_, one),
                flags_begin - begin() - 4);
        draw_flags(one, flags_begin, base);
        double const size_begin = end - text_width(size_letters);
        double const bar_begin = size_begin - 70;
        if (is_entry) {
            text_at(begin(), base + 18, "quiet",
                    hex(address_of(of_, one.at)) + ": " + hex(one.word.raw),
                    bar_begin - begin() - 8);
        }
        if (!one.is_region()) { return; }
        double const below = one.what == row::kind::folded ? base : base + 18;
        text_at(end, below, "right", size_of(one.word));
        draw_bar(one, bar_begin, below - 10, 64);
    }

    static auto flags_width(row const& one) -> double {
        double wide = 0;
        for (auto const& flag : flags_of(one.word)) { wide += text_width(flag.size()) + 12; }
        return wide;
    }
    void draw_flags(row const& one, double x, double base) {
        for (auto const& flag : flags_of(one.word)) {
            double const wide = text_width(flag.size()) + 8;
            box("pill", x, base - 11, wide, 14, 4);
            text_at(x + wide / 2, base - 0.5, "flag", flag);
            x += wide + 4;
        }
    }
    /// Draws a bar on a logarithmic scale: each doubling of the size adds the same length, and the
    /// longest bar fills the room.
    void draw_bar(row const& one, double x, double top, double room) {
        double const wide = room * doublings_of(one) / max_doublings_;
        box("region", x, top, wide, 12, 2);
        bool const filled = one.current && of_.now.has_region();
        if (filled) { box("filled", x, top, wide * filled_share(), 12, 2); }
    }

    void begin_table(std::size_t which) {
        y += 32;
        tops_.push_back(y - 5);
        text_at(margin, y, "table",
                "table " + std::to_string(which) + " at " + hex(of_.tables[which].address));
        draw_link(next_, right() + 6);
        if (!narrow_) {
            y += 20;
            text_at(begin(), y, "quiet", "at");
            text_at(word_at(), y, "quiet", "word");
            text_at(target_at(), y, "quiet", "region or link");
            text_at(flags_at(), y, "quiet", "flags");
            text_at(size_end(), y, "quiet right", "size");
        }
        y += 8;
        path("rule", margin, y, "H" + number(right()));
        raw("\n");
        y += 4;
    }

    // -------------------------------------------------------------------------------- links

    /// Begins a link: to the next table, or back to one above.
    void begin_link(row const& from, double at) {
        auto const target = of_.find({topa::follow_end(from.word).table, 0});
        if (!target) { return; }
        bool const back = target->first <= from.at.first;
        (back ? back_ : next_) = {target->first, at};
    }
    /// Draws a link from its entry to the name of the target table.
    void draw_link(std::optional<pending_link>& which, double lane) {
        if (!which || which->target >= tops_.size()) { return; }
        double const end = tops_[which->target];
        double const turn = end > which->from ? 4 : -4;
        path("link", right(), which->from,
             "H" + number(lane - 4) + "q4 0 4 " + number(turn) + "V" + number(end - turn) + "q0 " +
                 number(turn) + " -4 " + number(turn) + "H" + number(right() + 1));
        path("tip", right() - 5, end, "l7 -4v8z");
        raw("\n");
        which.reset();
    }

    chain const& of_;
    std::vector<row> const& rows_;
    bool narrow_;
    std::size_t index_ = 1;  ///< column widths in letters
    std::size_t address_ = 1;
    std::size_t word_ = 1;
    std::size_t target_ = 1;
    unsigned max_doublings_ = 1;
    std::vector<double> tops_{};  ///< y of each table's name, where links end
    std::optional<pending_link> next_{};
    std::optional<pending_link> back_{};
};

}  // namespace topa_view
