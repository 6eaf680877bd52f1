// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/csv.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

/// Facts about processors from external sources. They are not part of the project: PTSPEC_FACTS
/// names their folder; the default is ../shared/facts beside the source tree.
namespace ptspec::test {

inline auto facts_folder() -> std::filesystem::path {
    char const* const named = std::getenv("PTSPEC_FACTS");
    bool const has_name = named != nullptr && *named != 0;
    return has_name ? std::filesystem::path{named}
                    : std::filesystem::path{PTSPEC_ROOT} / ".." / "shared" / "facts";
}

/// The text of a file of facts. When it is missing, the test prints that it skips what needs it.
inline auto facts_text(std::string const& name) -> std::optional<std::string> {
    auto const path = facts_folder() / name;
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        MESSAGE("skipped: no ", path.string(), "; PTSPEC_FACTS names the folder of the facts");
        return std::nullopt;
    }
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A table of facts; empty when the file is missing.
inline auto facts_table(std::string const& name) -> std::optional<csv_table> {
    auto const text = facts_text(name);
    return text ? std::optional{parse_csv(*text, name)} : std::nullopt;
}

}  // namespace ptspec::test
