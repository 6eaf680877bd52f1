// SPDX-License-Identifier: BSL-1.0
#pragma once

// Drawing primitives for the picture of a chain. All coordinates are pixels.

#include "../common/draw/svg.hpp"
#include "words.hpp"

#include <cstdio>
#include <string>
#include <string_view>

namespace topa_view {

inline constexpr std::string_view svg_style = R"(
.topa{color-scheme:light dark;--paper:#fff;--ink:#1c2127;--quiet:#5b6570;--line:#d9dee4;
--region:#c3d9f3;--filled:#3f7fcb;--here:#0b62c4;--bad:#b3261e;--warn:#8a5a00;--wash:#edf4fc;
background:var(--paper)}
@media(prefers-color-scheme:dark){.topa{--paper:#12161b;--ink:#dfe5ec;--quiet:#98a3af;
--line:#2c343d;--region:#2d4868;--filled:#5b9bea;--here:#7cb8ff;--bad:#ff8a80;--warn:#e5b454;
--wash:#1a2430}}
.topa text{fill:var(--ink);white-space:pre;
font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.topa .title,.topa .said{
font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
.topa .title{font-size:19px;font-weight:600}
.topa .table{font-size:14px;font-weight:600}
.topa .quiet,.topa .tip{fill:var(--quiet)}
.topa .here{fill:var(--here)}
.topa .bad{fill:var(--bad)}
.topa .warn{fill:var(--warn)}
.topa .flag{font-size:10px;text-anchor:middle}
.topa .right{text-anchor:end}
.topa .region{fill:var(--region)}
.topa .filled{fill:var(--filled)}
.topa .wash{fill:var(--wash)}
.topa .rule{stroke:var(--line)}
.topa .pill{fill:none;stroke:var(--quiet)}
.topa .link{fill:none;stroke:var(--quiet);stroke-width:1.5}
)";

inline auto escaped(std::string_view what) -> std::string {
    std::string made;
    draw::escaped({what.data(), what.size()},
                  [&](text piece) { made.append(piece.data(), piece.size()); });
    return made;
}

/// Formats a number for SVG, with at most two decimals.
inline auto number(double value) -> std::string {
    char digits[32] = {};
    (void)std::snprintf(digits, sizeof(digits), "%.2f", value);
    std::string made = digits;
    made.erase(made.find_last_not_of('0') + 1);
    if (made.back() == '.') { made.pop_back(); }
    return made;
}

/// The width of letters of the 12-pixel monospace font.
inline auto text_width(std::size_t count) -> double { return 7.25 * static_cast<double>(count); }

class canvas {
public:
    explicit canvas(unsigned width) : width_{width} {}

    [[nodiscard]] auto width() const -> unsigned { return width_; }
    [[nodiscard]] auto height() const -> unsigned { return y; }
    [[nodiscard]] auto drawn() const -> std::string const& { return out_; }

protected:
    static constexpr unsigned margin = 14;
    unsigned y = 0;  ///< the bottom of the drawing so far

    void raw(std::string_view what) { out_ += what; }

    /// Draws a text. Where it is longer than `room`, it is squeezed to that width.
    void text_at(double x, double at, std::string_view kind, std::string_view what,
                 double room = 0) {
        out_ += "<text x=\"" + number(x) + "\" y=\"" + number(at) + "\"";
        if (!kind.empty()) { out_ += " class=\"" + std::string{kind} + "\""; }
        if (room > 0 && text_width(what.size()) > room) {
            out_ += " textLength=\"" + number(room) + "\" lengthAdjust=\"spacingAndGlyphs\"";
        }
        out_ += ">" + escaped(what) + "</text>";
    }
    void box(std::string_view kind, double x, double at, double wide, double high,
             double round = 0) {
        out_ += "<rect class=\"" + std::string{kind} + "\" x=\"" + number(x) + "\" y=\"" +
                number(at) + "\" width=\"" + number(wide) + "\" height=\"" + number(high) + "\"" +
                (round > 0 ? " rx=\"" + number(round) + "\"" : "") + "/>";
    }
    void path(std::string_view kind, double x, double at, std::string const& rest) {
        out_ += "<path class=\"" + std::string{kind} + "\" d=\"M" + number(x) + " " + number(at) +
                rest + "\"/>";
    }
    /// Draws lines of text below the drawing so far. `to` 0 means the full width.
    void text_lines(std::string_view kind, std::string_view what, double from = margin,
                    double to = 0) {
        double const wide = (to > 0 ? to : width_ - margin) - from;
        auto const room = static_cast<std::size_t>(wide / 7.2);
        for (auto const& line : wrapped_text(what, room)) {
            y += 18;
            text_at(from, y, kind.empty() ? "said" : "said " + std::string{kind}, line);
        }
    }

private:
    unsigned width_;
    std::string out_{};
};

}  // namespace topa_view
