// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reads the tables of the rule catalogue: CSV files (RFC 4180) with a header line.
namespace ptspec::test {

/// One row; cells are accessed by column name.
struct csv_row {
    std::string place;  ///< `path:line`, for messages
    std::map<std::string, std::string, std::less<>> cells;

    /// The cell of column `name`. A column that does not exist is an error.
    auto operator[](std::string_view name) const -> std::string const& {
        auto const found = cells.find(name);
        if (found == cells.end()) {
            throw std::runtime_error{place + ": there is no column " + std::string{name}};
        }
        return found->second;
    }
};

struct csv_table {
    std::vector<std::string> names;  ///< column names, in the order of the header line
    std::vector<csv_row> rows;
};

/// Splits a text into records and cells, and removes quotes. A line ends with LF or CR LF. `place`
/// becomes the place of the record read last.
class csv_scanner {
public:
    csv_scanner(std::string_view text, std::string path) : text_{text}, path_{std::move(path)} {}

    std::string place;

    [[nodiscard]] auto at_end() const -> bool { return at_ == text_.size(); }

    [[noreturn]] void fail(std::string const& what) const {
        throw std::runtime_error{path_ + ":" + std::to_string(line_) + ": " + what};
    }

    /// The cells of the next record. There must be one.
    auto record() -> std::vector<std::string> {
        place = path_ + ":" + std::to_string(line_);
        if (next_is("\n") || next_is("\r\n")) { fail("an empty line"); }
        std::vector<std::string> cells{cell()};
        while (accept(",")) { cells.push_back(cell()); }
        if (accept("\n") || accept("\r\n")) {
            ++line_;
        } else if (!at_end()) {
            fail("text after a closing quote");
        }
        return cells;
    }

private:
    [[nodiscard]] auto next_is(std::string_view what) const -> bool {
        return text_.substr(at_).starts_with(what);
    }
    auto accept(std::string_view what) -> bool {
        if (!next_is(what)) { return false; }
        at_ += what.size();
        return true;
    }

    auto cell() -> std::string { return accept("\"") ? quoted() : bare(); }

    auto bare() -> std::string {
        std::string value;
        for (; !at_end() && !next_is(",") && !next_is("\n") && !next_is("\r\n"); ++at_) {
            if (next_is("\"")) { fail("a quote inside a cell that is not quoted"); }
            value += printable(text_[at_]);
        }
        return value;
    }

    auto quoted() -> std::string {
        std::string value;
        for (;;) {
            if (at_end()) { fail("a quoted cell that does not end"); }
            if (accept("\"\"")) {
                value += '"';
            } else if (accept("\"")) {
                return value;
            } else if (accept("\n")) {
                value += '\n';
                ++line_;
            } else {
                value += printable(text_[at_++]);
            }
        }
    }

    auto printable(char letter) const -> char {
        if (static_cast<unsigned char>(letter) < 0x20) { fail("a control character"); }
        return letter;
    }

    std::string_view text_;
    std::string path_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
};

/// Parses a table. Every violation of the format is a std::runtime_error that names `path` and the
/// line: a row whose number of cells differs from the header line, a column name that is empty or
/// repeated, an empty line, misplaced quotes, control characters, a table without rows.
inline auto parse_csv(std::string_view text, std::string const& path) -> csv_table {
    csv_table parsed;
    csv_scanner scanner{text, path};
    if (scanner.at_end()) { scanner.fail("an empty file"); }
    parsed.names = scanner.record();
    for (auto const& name : parsed.names) {
        if (name.empty()) { scanner.fail("a column without a name"); }
        if (std::count(parsed.names.begin(), parsed.names.end(), name) != 1) {
            scanner.fail("two columns " + name);
        }
    }
    if (scanner.at_end()) { scanner.fail("a table without rows"); }
    while (!scanner.at_end()) {
        auto const cells = scanner.record();
        if (cells.size() != parsed.names.size()) {
            throw std::runtime_error{scanner.place + ": " + std::to_string(cells.size()) +
                                     " cells below " + std::to_string(parsed.names.size()) +
                                     " names"};
        }
        csv_row row{scanner.place, {}};
        for (std::size_t i = 0; i < cells.size(); ++i) {
            row.cells.emplace(parsed.names[i], cells[i]);
        }
        parsed.rows.push_back(std::move(row));
    }
    return parsed;
}

/// The text of a file, given by its path in the source tree.
inline auto read_text(std::string const& path) -> std::string {
    std::ifstream file{std::string{PTSPEC_ROOT "/"} + path, std::ios::binary};
    if (!file) { throw std::runtime_error{path + ": cannot be read"}; }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// The table in a file of the source tree: `read_csv("tests/spec/registers.csv")`.
inline auto read_csv(std::string const& path) -> csv_table {
    return parse_csv(read_text(path), path);
}

/// How many table rows of a page begin with an id of this prefix: `| RC-07 |` for `RC-`.
inline auto count_of_rows(std::string const& path, std::string const& prefix) -> std::size_t {
    auto const text = read_text(path);
    auto const begin = "\n| " + prefix;
    std::size_t count = 0;
    for (auto at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
        ++count;
    }
    return count;
}

}  // namespace ptspec::test
