// SPDX-License-Identifier: BSL-1.0
#pragma once

// A chain of tables as one self-contained SVG file. It holds a wide and a narrow drawing, and shows
// the one that fits the window.

#include "drawing.hpp"

#include <string>
#include <utility>
#include <vector>

namespace topa_view {

/// The SVG file of a chain.
inline auto svg_file_of(chain const& of, std::string const& reader, bool all) -> std::string {
    constexpr std::size_t max_rows = 2000;
    std::vector<row> rows;
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < of.tables.size(); ++i) {
        for (auto& one : rows_of(of, i, all)) {
            if (rows.size() == max_rows) {
                ++left_out;
            } else {
                rows.push_back(std::move(one));
            }
        }
    }
    svg_drawing wide{of, rows, false};
    svg_drawing narrow{of, rows, true};
    wide.draw(reader, left_out);
    narrow.draw(reader, left_out);

    auto const pixels = [](unsigned count) { return std::to_string(count); };
    std::string made = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topa\" role=\"img\"";
    made += " width=\"" + pixels(wide.width()) + "\" height=\"" + pixels(wide.height()) + "\">\n";
    made += "<title>ToPA chain at " + hex(of.tables.front().address) + "</title>\n";
    made += "<desc>" + escaped(chain_text(of)) + ". Findings: " + findings_text(of) + ".</desc>\n";
    made += "<style>";
    made += svg_style;
    made += "@media(max-width:" + pixels(wide.width() - 1) +
            "px){.wide{display:none}.topa{width:" + pixels(narrow.width()) +
            "px;height:" + pixels(narrow.height()) + "px}}\n";
    made += "@media(min-width:" + pixels(wide.width()) + "px){.narrow{display:none}}\n</style>\n";
    made += "<g class=\"wide\">\n" + wide.drawn() + "</g>\n";
    return made + "<g class=\"narrow\">\n" + narrow.drawn() + "</g>\n</svg>\n";
}

}  // namespace topa_view
