// SPDX-License-Identifier: BSL-1.0
#pragma once

// Texts of the library, and numbers, as strings.

#include <ptspec/base/rule.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

namespace pt_suite {

using namespace ptspec;

inline auto string_of(text from) -> std::string { return {from.data(), from.size()}; }
inline auto string_of(rule from) -> std::string { return string_of(rule_id{from}.view()); }

/// `1F0H`.
inline auto hex(std::uint64_t value) -> std::string {
    char digits[20];
    std::snprintf(digits, sizeof digits, "%llXH", static_cast<unsigned long long>(value));
    return digits;
}

}  // namespace pt_suite
