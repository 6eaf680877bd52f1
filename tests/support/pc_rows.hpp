// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/simulate/recording_port.hpp>

#include <support/csv.hpp>

#include <tools/common/pc_notation.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// The cases PC of programming.md, read from the page (notation.md, section 4).
namespace ptspec::test {

using pc_notation::without_comments;

struct pc_row {
    std::string id;
    std::string setup;
    std::vector<std::string> operation;
    std::vector<std::string> expected;
};

inline auto trimmed(std::string_view text) -> std::string {
    while (!text.empty() && text.front() == ' ') { text.remove_prefix(1); }
    while (!text.empty() && text.back() == ' ') { text.remove_suffix(1); }
    return std::string{text};
}

/// The items of a cell, without comments.
inline auto split_items(std::string_view cell) -> std::vector<std::string> {
    return pc_notation::split(without_comments(cell), ";");
}

/// All rows, in order.
inline auto read_pc_rows() -> std::vector<pc_row> {
    std::vector<pc_row> rows;
    std::string const page = read_text("tests/spec/programming.md");
    for (std::size_t at = page.find("\n| PC-"); at != std::string::npos;
         at = page.find("\n| PC-", at + 1)) {
        std::string_view line{page};
        line = line.substr(at + 1, page.find('\n', at + 1) - at - 1);
        std::vector<std::string> cells;
        for (std::size_t from = 1; from < line.size();) {
            std::size_t to = line.find('|', from);
            while (to != std::string_view::npos && line[to - 1] == '\\') {
                to = line.find('|', to + 1);
            }
            cells.push_back(trimmed(line.substr(from, to - from)));
            from = to + 1;
        }
        rows.push_back({cells.at(0), without_comments(cells.at(1)), split_items(cells.at(2)),
                        split_items(cells.at(3))});
    }
    return rows;
}
inline auto pc_row_of(std::string_view id) -> pc_row {
    for (auto& row : read_pc_rows()) {
        if (row.id == id) { return row; }
    }
    throw std::runtime_error{std::string{id} + " is not in programming.md"};
}

/// An item `WRMSR(idx,v)`, `RDMSR(idx)`, `RDMSR(idx)->v`, `[text]` or `name=v`.
struct pc_item {
    enum class kind { read, write, action, result };
    kind what = kind::action;
    std::uint32_t index = 0;
    bool has_value = false;  ///< false: any value
    std::uint64_t value = 0;
    bool faults = false;
    std::string text;  ///< an action, or the name of a result
};

inline auto hex_of(std::string const& text) -> std::uint64_t {
    return std::strtoull(text.c_str(), nullptr, 16);
}

inline auto pc_item_of(std::string const& text) -> pc_item {
    pc_item item;
    bool const is_write = text.rfind("WRMSR(", 0) == 0;
    if (is_write || text.rfind("RDMSR(", 0) == 0) {
        item.what = is_write ? pc_item::kind::write : pc_item::kind::read;
        std::size_t const close = text.find(')');
        std::string const inside = text.substr(6, close - 6);
        item.index = static_cast<std::uint32_t>(hex_of(inside));
        std::string const after = text.substr(close + 1);
        if (is_write) {
            std::string const value = inside.substr(inside.find(',') + 1);
            item.has_value = value != "..";
            item.value = hex_of(value);
            item.faults = after == "->#GP";
        } else if (after == "->Stopped=1") {
            item.has_value = true;
            item.value = 0x20;
        } else if (after.rfind("->", 0) == 0) {
            item.has_value = true;
            item.value = hex_of(after.substr(2));
        }
    } else if (text.front() == '[') {
        item.text = text.substr(1, text.size() - 2);
    } else {
        item.what = pc_item::kind::result;
        item.text = text.substr(0, text.find('='));
        item.value = hex_of(text.substr(text.find('=') + 1));
    }
    return item;
}

/// A port whose RDMSRs return the values that a row lists, each once and in order, and otherwise 0.
class scripted_port {
public:
    explicit scripted_port(pc_row const& row) {
        for (auto const& text : row.expected) {
            auto const item = pc_item_of(text);
            if (item.what == pc_item::kind::read) { reads_[item.index].push_back(item.value); }
            if (item.faults) { faulting_.push_back(item); }
        }
    }
    auto read(std::uint32_t index) noexcept -> port_value {
        auto& values = reads_[index];
        std::size_t const at = next_[index]++;
        return {true, at < values.size() ? values[at] : 0};
    }
    auto write(std::uint32_t index, std::uint64_t value) noexcept -> bool {
        bool const faults = !faulting_.empty() && faulting_.front().index == index &&
                            faulting_.front().value == value;
        if (faults) { faulting_.erase(faulting_.begin()); }
        return !faults;
    }
    void fence() noexcept {}

private:
    std::map<std::uint32_t, std::vector<std::uint64_t>> reads_;
    std::map<std::uint32_t, std::size_t> next_;
    std::vector<pc_item> faulting_;
};

/// The first difference between a log and the items of a row, or an empty text. Results are left
/// out.
template <class Port>
auto difference(Port const& log, pc_row const& row) -> std::string {
    std::vector<pc_item> wanted;
    std::vector<std::string> texts;
    for (auto const& text : row.expected) {
        auto item = pc_item_of(text);
        if (item.what == pc_item::kind::result) { continue; }
        wanted.push_back(item);
        texts.push_back(text);
    }
    std::size_t at = 0;
    for (simulate::logged_access const& got : log) {
        if (at == wanted.size()) { return "more than the expected accesses"; }
        auto const& item = wanted[at];
        using kind = simulate::logged_access::kind;
        bool same = false;
        switch (got.what) {
            case kind::read:
                same = item.what == pc_item::kind::read && item.index == got.index;
                break;
            case kind::write:
                same = item.what == pc_item::kind::write && item.index == got.index &&
                       item.faults == got.faulted && (!item.has_value || item.value == got.value);
                break;
            case kind::fence:
                same = item.what == pc_item::kind::action && item.text == "SFENCE";
                break;
            case kind::note:
                same = item.what == pc_item::kind::action &&
                       item.text == std::string_view{got.action.data(), got.action.size()};
                break;
        }
        if (!same) { return "item " + std::to_string(at + 1) + ", " + texts[at] + ", differs"; }
        ++at;
    }
    return at == wanted.size() ? "" : texts[at] + " is missing";
}

/// The value of a result `name=v` of a row.
inline auto expected_result(pc_row const& row, std::string_view name) -> std::uint64_t {
    for (auto const& text : row.expected) {
        auto const item = pc_item_of(text);
        if (item.what == pc_item::kind::result && item.text == name) { return item.value; }
    }
    throw std::runtime_error{row.id + " has no " + std::string{name}};
}

}  // namespace ptspec::test
