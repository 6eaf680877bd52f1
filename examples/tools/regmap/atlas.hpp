// SPDX-License-Identifier: BSL-1.0
#pragma once

// All entries as one self-contained HTML page.

#include "entries.hpp"
#include "../common/draw/svg.hpp"

#include <ptspec/base/version.hpp>

namespace regmap {

/// The style of the page. Diagrams have their own style.
inline constexpr std::string_view page_style = R"(
:root {
    color-scheme: light dark;
    --paper: #fff; --ink: #1c2127; --quiet: #5b6570; --line: #d9dee4; --wash: #f5f7f9;
    --accent: #0b62c4;
    --ptspec-owned: #cfe3fa; --ptspec-reserved: #d5d9de; --ptspec-other: #eef0f2;
    --ptspec-fixed: #fbe7c2;
}
@media (prefers-color-scheme: dark) {
    :root {
        --paper: #12161b; --ink: #dfe5ec; --quiet: #98a3af; --line: #2c343d; --wash: #1a2027;
        --accent: #6cb0ff;
        --ptspec-owned: #1d3b5c; --ptspec-reserved: #343c45; --ptspec-other: #1f252c;
        --ptspec-fixed: #4a3a1a;
    }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 3.5rem; }
body {
    margin: 0; background: var(--paper); color: var(--ink);
    font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code, .mono {
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: .875em; overflow-wrap: anywhere;
}
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .25rem .75rem;)"
                                               R"( z-index: 2; }
.bar {
    position: sticky; top: 0; z-index: 1; display: flex; gap: 1.1rem; overflow-x: auto;
    padding: .6rem 1rem; background: var(--paper); border-bottom: 1px solid var(--line);
    white-space: nowrap; font-size: .9rem;
}
.side { display: none; }
main { padding: 0 1rem 4rem; max-width: 62rem; margin: 0 auto; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 1.5rem 0 .5rem; }
h2 { font-size: 1.35rem; margin: 3.5rem 0 .5rem; padding-bottom: .3rem;)"
                                               R"( border-bottom: 1px solid var(--line); }
h3 { font-size: 1.06rem; margin: 0; overflow-wrap: anywhere; }
h3 a { color: inherit; }
.lead, .place { color: var(--quiet); margin: .15rem 0 .9rem; }
.place { font-size: .875rem; }
article { margin: 2.4rem 0; }
.picture { overflow-x: auto; margin: 0 0 .9rem; padding-bottom: 2px; }
.picture svg { display: block; max-width: none; }
.bytes svg, .tall svg { max-width: 100%; height: auto; }
.wide { display: none; }
table {
    border-collapse: collapse; table-layout: fixed; width: 100%; max-width: 44.1rem;
    font-size: .875rem; line-height: 1.4;
}
th { text-align: left; font-weight: 600; color: var(--quiet); }
th, td {
    padding: .22rem .8rem .22rem 0; vertical-align: baseline;
    border-bottom: 1px solid var(--line); overflow-wrap: break-word;
}
th:nth-child(1) { width: 5.6rem; }
th:nth-child(2) { width: 37%; }
th.access { width: 7.4rem; }
th:last-child, td:last-child { padding-right: 0; }
td:first-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.quiet td { color: var(--quiet); }
.key { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; padding: 0; margin: 1rem 0 0;)"
                                               R"( list-style: none; font-size: .875rem; }
.key span {
    display: inline-block; width: 1.5rem; height: .95rem; margin-right: .45rem;
    border: 1px solid; vertical-align: -2px;
}
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); }
details ul { columns: 13rem; padding: 0; margin: .6rem 0; list-style: none; font-size: .875rem; }
details li { overflow-wrap: anywhere; break-inside: avoid; padding: .1rem 0; }
@media (max-width: 37rem) {
    table, thead, tbody { display: block; }
    tr {
        display: grid; grid-template-columns: 5.2rem 1fr 5.6rem; align-items: baseline;
        border-bottom: 1px solid var(--line);
    }
    th, td { border: 0; padding-right: .6rem; }
    .values { grid-column: 2 / -1; }
    th.values, .values:empty { display: none; }
    td.values { color: var(--quiet); padding-top: 0; }
}
@media (min-width: 50rem) { .wide { display: block; } .tall { display: none; } }
@media (min-width: 72rem) {
    body { display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
    html { scroll-padding-top: 1.5rem; }
    .bar, details { display: none; }
    .side {
        display: block; position: sticky; top: 0; height: 100vh; overflow-y: auto;
        padding: 1.4rem 1rem 2rem 1.5rem; border-right: 1px solid var(--line);
        background: var(--wash); font-size: .8rem;
    }
    .side b { display: block; margin: 1.1rem 0 .2rem; font-size: .85rem; }
    .side b:first-child { margin-top: 0; }
    .side ul { list-style: none; margin: 0; padding: 0; }
    .side li { overflow-wrap: anywhere; padding: .06rem 0; }
    main { padding: .5rem 3rem 5rem; margin: 0; }
}
@media print { .bar, .side, details { display: none; } article { break-inside: avoid; } }
)";

/// Puts a line-break opportunity after each underscore of a name.
inline auto breakable(std::string_view name) -> std::string {
    string_writer out;
    for (char const letter : name) {
        draw::escaped(text{&letter, 1}, out);
        if (letter == '_') { out("<wbr>"); }
    }
    return std::move(out.written);
}

inline auto escaped(std::string_view what) -> std::string {
    return printed([&](auto& out) { draw::escaped({what.data(), what.size()}, out); });
}

/// The URL fragment of an entry: `reg-ia32_rtit_ctl`.
inline auto anchor_of(entry const& one) -> std::string {
    auto name = one.cpp_name.substr(one.cpp_name.find("::") + 2);
    return name.replace(name.find("::"), 2, "-");
}

inline auto section_anchor(std::string const& section) -> std::string {
    std::string out;
    for (char const letter : section) {
        if (std::isalpha(static_cast<unsigned char>(letter)) != 0) {
            out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        } else if (!out.empty() && out.back() != '-') {
            out += '-';
        }
    }
    return out;
}

class atlas {
public:
    explicit atlas(std::vector<entry> const& entries) : entries_{entries} {
        for (auto const& one : entries) {
            if (std::find(sections_.begin(), sections_.end(), one.section) == sections_.end()) {
                sections_.push_back(one.section);
            }
        }
    }

    auto page() -> std::string {
        out_ = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<title>Intel Processor Trace: every word and packet</title>\n<style>";
        out_ += page_style;
        out_ += printed([](auto& out) { draw::svg_style(out); });
        out_ += "\n</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#top\">To the content</a>\n";
        bar();
        side();
        out_ += "<main id=\"top\">\n";
        header();
        for (auto const& section : sections_) { write_section(section); }
        out_ += "</main>\n</body>\n</html>\n";
        return std::move(out_);
    }

private:
    void bar() {
        out_ += "<nav class=\"bar\" aria-label=\"Sections\">\n";
        for (auto const& section : sections_) {
            out_ += "<a href=\"#" + section_anchor(section) + "\">" + escaped(section) + "</a>\n";
        }
        out_ += "</nav>\n";
    }
    void links(std::string const& section) {
        out_ += "<ul>\n";
        for (auto const& one : entries_) {
            if (one.section != section) { continue; }
            out_ += "<li><a href=\"#" + anchor_of(one) + "\">" + breakable(one.name) +
                    "</a></li>\n";
        }
        out_ += "</ul>\n";
    }
    void side() {
        out_ += "<nav class=\"side\" aria-label=\"Contents\">\n";
        for (auto const& section : sections_) {
            out_ += "<b>" + escaped(section) + "</b>\n";
            links(section);
        }
        out_ += "</nav>\n";
    }
    void header() {
        auto const packets = std::count_if(entries_.begin(), entries_.end(), [](auto const& one) {
            return one.section == "Packets";
        });
        out_ += "<h1>Intel Processor Trace: every word and packet</h1>\n<p class=\"lead\">" +
                decimal(entries_.size() - static_cast<std::size_t>(packets)) +
                " hardware words and " + decimal(static_cast<std::uint64_t>(packets)) +
                " packets, drawn from their declarations in ptspec " +
                std::to_string(version.major_version) + "." +
                std::to_string(version.minor_version) + "." +
                std::to_string(version.patch_version) + ".</p>\n<ul class=\"key\">\n";
        key("field", "read and written");
        key("owned", "read only, write ignored or reads 1");
        key("reserved", "reserved");
        key("other", "not of Intel PT");
        key("fixed", "opcode of a packet");
        out_ += "</ul>\n";
    }
    void key(std::string const& colour, std::string const& meaning) {
        out_ += "<li><span style=\"background:var(--ptspec-" + colour + ",transparent)\"></span>" +
                meaning + "</li>\n";
    }

    void write_section(std::string const& section) {
        auto const anchor = section_anchor(section);
        out_ += "<section aria-labelledby=\"" + anchor + "\">\n<h2 id=\"" + anchor + "\">" +
                escaped(section) +
                "</h2>\n<details>\n<summary>Contents of this section</summary>\n";
        links(section);
        out_ += "</details>\n";
        for (auto const& one : entries_) {
            if (one.section == section) { write_entry(one); }
        }
        out_ += "</section>\n";
    }

    void write_entry(entry const& one) {
        auto const anchor = anchor_of(one);
        out_ += "<article id=\"" + anchor + "\">\n<h3><a href=\"#" + anchor + "\">" +
                breakable(one.name) + "</a></h3>\n<p class=\"place\">" + escaped(one.place);
        for (auto const& [what, answer] : one.remarks) {
            out_ += " &middot; " + escaped(what) + ": " + escaped(answer);
        }
        out_ += " &middot; <code>" + breakable(one.cpp_name) + "</code></p>\n";
        if (draw::drawn_in_bytes(one.layout)) {
            picture(one, "bytes", 32);
        } else {
            // Rows of 32 bits on a wide screen, of 16 bits on a narrow one.
            picture(one, "wide", 32);
            picture(one, "tall", 16);
        }
        table(one);
        out_ += "</article>\n";
    }

    void picture(entry const& one, std::string const& kind, unsigned bits_per_line) {
        out_ += "<div class=\"picture " + kind + "\">";
        string_writer svg;
        draw::svg_diagram(one.layout, svg,
                          {.title = {one.name.data(), one.name.size()},
                           .bits_per_line = bits_per_line,
                           .standalone = false});
        out_ += svg.written;
        out_ += "</div>\n";
    }

    void table(entry const& one) {
        bool const access = !one.layout.is_packet;
        bool const values = std::any_of(one.rows.begin(), one.rows.end(),
                                        [](row const& row) { return !row.meaning.empty(); });
        out_ += "<table>\n<thead><tr><th scope=\"col\">";
        out_ += draw::drawn_in_bytes(one.layout) ? "byte.bit" : "bits";
        out_ += "</th><th scope=\"col\">field</th>";
        if (access) { out_ += "<th scope=\"col\" class=\"access\">access</th>"; }
        // This column exists even when it is empty, so that the columns of all tables are aligned.
        out_ += values ? "<th scope=\"col\" class=\"values\">values</th>"
                       : "<td class=\"values\"></td>";
        out_ += "</tr></thead>\n<tbody>\n";
        for (auto const& row : one.rows) {
            out_ += row.kind == row_kind::field ? "<tr>" : "<tr class=\"quiet\">";
            out_ += "<td>" + escaped(row.where) + "</td><td class=\"mono\">" + breakable(row.name) +
                    "</td>";
            if (access) { out_ += "<td>" + escaped(row.access) + "</td>"; }
            out_ += "<td class=\"values\">" + escaped(row.meaning) + "</td></tr>\n";
        }
        out_ += "</tbody>\n</table>\n";
    }

    std::vector<entry> const& entries_;
    std::vector<std::string> sections_;
    std::string out_;
};

}  // namespace regmap
