// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/csv.hpp>
#include <support/skip.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

/// Files that are not part of the project: facts about processors, which PTSPEC_FACTS names (the
/// default is ../shared/facts beside the source tree), and recorded traces (PTSPEC_TRACES,
/// ../shared/traces). A test whose file is missing counts as skipped.
namespace ptspec::test {

inline auto folder_of(char const* variable, char const* otherwise) -> std::filesystem::path {
    char const* const named = std::getenv(variable);
    bool const has_name = named != nullptr && *named != 0;
    return has_name ? std::filesystem::path{named}
                    : std::filesystem::path{PTSPEC_ROOT} / ".." / "shared" / otherwise;
}

/// The folder of the facts, if it is there.
inline auto facts_folder() -> std::optional<std::filesystem::path> {
    auto const folder = folder_of("PTSPEC_FACTS", "facts");
    if (std::filesystem::is_directory(folder)) { return folder; }
    skip("facts about processors", "tables of dumps and logs");
    return std::nullopt;
}

/// The text of a file of facts.
inline auto facts_text(std::string const& name) -> std::optional<std::string> {
    auto const folder = facts_folder();
    if (!folder) { return std::nullopt; }
    std::ifstream file{*folder / name, std::ios::binary};
    if (!file) {
        skip("facts about processors", name);
        return std::nullopt;
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A table of facts.
inline auto facts_table(std::string const& name) -> std::optional<csv_table> {
    auto const text = facts_text(name);
    return text ? std::optional{parse_csv(*text, name)} : std::nullopt;
}

/// The bytes of a recorded trace, by the name of its file.
inline auto recorded_trace(std::string const& name) -> std::optional<std::vector<std::uint8_t>> {
    std::ifstream file{folder_of("PTSPEC_TRACES", "traces") / name, std::ios::binary};
    if (!file) {
        skip("recorded traces", name);
        return std::nullopt;
    }
    return std::vector<std::uint8_t>{std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace ptspec::test
