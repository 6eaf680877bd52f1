// SPDX-License-Identifier: BSL-1.0
#pragma once

// A chain of tables as text.

#include "words.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace topa_view {

/// Formats a chain in lines of up to 100 letters.
class text_drawing {
public:
    text_drawing(chain const& of, bool all) : of_{of} {
        for (std::size_t i = 0; i < of.tables.size(); ++i) {
            for (auto& one : rows_of(of, i, all)) {
                cells_.push_back(cells_of(one));
                rows_.push_back(std::move(one));
            }
        }
        measure();
    }

    auto draw(std::string const& reader) -> std::string {
        out_ = "ToPA chain at " + hex(of_.tables.front().address) + ", as " + reader +
               " reads it.\nIndexes, addresses and words are hexadecimal.";
        if (bars_ != 0) {
            out_ += " A # more in a bar is " + std::to_string(std::uint64_t{1} << bars_) +
                    " times the size.";
        }
        out_ += '\n';
        for (std::size_t i = 0; i < rows_.size(); ++i) { draw_row(rows_[i], cells_[i]); }
        out_ += '\n';
        section("chain", {chain_text(of_)});
        if (of_.now.known) { section("position", position_lines(of_)); }
        section("findings", {findings_text(of_)});
        return std::move(out_);
    }

private:
    enum column : std::uint8_t { index, address, word, target, size, flags, columns };
    using cells = std::array<std::string, columns>;

    static constexpr std::size_t widest = 100;
    static constexpr std::size_t margin = 2;

    [[nodiscard]] auto cells_of(row const& one) const -> cells {
        cells made;
        made[target] = target_text(of_, one);
        if (one.what == row::kind::folded) {
            made[index] = "..";
            made[size] = one.is_region() ? size_of(one.word) : "";
            made[flags] = joined(flags_of(one.word));
            return made;
        }
        made[index] = hex(one.at.second);
        made[address] = hex(address_of(of_, one.at));
        if (one.what == row::kind::unreadable) { return made; }
        made[word] = hex(one.word.raw);
        made[size] = one.is_region() ? size_of(one.word) : "";
        made[flags] = joined(flags_of(one.word));
        return made;
    }

    /// Computes the column widths, and how many doublings a # in a bar stands for so that lines
    /// fit.
    void measure() {
        cells const heads = head();
        std::size_t longest = 0;
        for (unsigned i = 0; i < columns; ++i) { widths_[i] = heads[i].size(); }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            for (unsigned j = 0; j < columns; ++j) {
                widths_[j] = std::max(widths_[j], cells_[i][j].size());
            }
            if (rows_[i].is_region()) { longest = std::max(longest, steps(rows_[i])); }
        }
        std::size_t used = margin;
        for (auto const width : widths_) { used += width + 2; }
        for (bars_ = 1; used + longest / bars_ + 1 > widest; bars_ *= 2) {
            if (bars_ == 8) {
                bars_ = 0;
                break;
            }
        }
    }
    static auto head() -> cells { return {"", "at", "word", "region or link", "size", "flags"}; }
    /// The number of doublings from the smallest region size.
    static auto steps(row const& one) -> std::size_t {
        return underlying(one.word.get<topa::entry::Size>());
    }

    void line(std::string_view mark, cells const& what, std::size_t bar = 0) {
        std::string made{mark};
        made.resize(margin, ' ');
        for (unsigned i = 0; i < columns; ++i) {
            std::string const blanks(widths_[i] - what[i].size(), ' ');
            bool const right = i == index || i == size;
            made += (right ? blanks + what[i] : what[i] + blanks) + "  ";
        }
        made.append(bar, '#');
        made.erase(made.find_last_not_of(' ') + 1);
        out_ += made + '\n';
    }
    /// Writes text below an entry, or beside the name of a section.
    void below(std::string_view mark, std::size_t indent, std::string_view what) {
        if (what.empty()) { return; }
        std::string begin{mark};
        begin.resize(indent, ' ');
        for (auto const& part : wrapped_text(what, widest - indent)) {
            out_ += begin + part + '\n';
            begin.assign(indent, ' ');
        }
    }
    void section(std::string_view name, std::vector<std::string> const& lines) {
        for (auto const& one : lines) {
            below(name, 10, one);
            name = "";
        }
    }

    void draw_row(row const& one, cells const& what) {
        if (one.at.second == 0) {
            out_ += "\ntable " + std::to_string(one.at.first) + " at " +
                    hex(of_.tables[one.at.first].address) + '\n';
            line("", head());
        }
        bool const has_bar = bars_ != 0 && one.is_region();
        line(one.current ? ">" : "", what, has_bar ? steps(one) / bars_ + 1 : 0);
        std::size_t const indent = margin + widths_[index] + 2;
        if (one.current) { below("", indent, fill_text(of_.now)); }
        if (one.what == row::kind::unreadable) { below("!", indent, unreadable_text(one)); }
        for (auto const& about : one.notes) {
            below(about.is_warning ? "?" : "!", indent, note_text(about));
        }
    }

    chain const& of_;
    std::vector<row> rows_;
    std::vector<cells> cells_;
    std::array<std::size_t, columns> widths_{};
    std::size_t bars_ = 0;  ///< doublings that each # after the first stands for; 0: no bars
    std::string out_;
};

}  // namespace topa_view
