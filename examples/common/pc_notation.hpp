// SPDX-License-Identifier: BSL-1.0
#pragma once

// The rows of programming.md, section 17, in the notation of notation.md, section 4: the processor,
// and cells as items.

#include <ptspec/cpu/capabilities.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pc_notation {

using namespace ptspec;

/// Profile CAP-A of programming.md, section 17.
inline auto cap_a() -> cpu::capabilities {
    cpu::capabilities caps;
    caps.leaf_01_eax = {0x000B'06E0};
    caps.leaf_07_0_ebx = {1U << 25};
    caps.leaf_0d_1_eax = {1U << 3};
    caps.leaf_0d_1_ecx = {1U << 8};
    caps.leaf_0d_8_eax = {128};
    caps.leaf_0d_8_ecx = {1};
    caps.leaf_14_0_eax = {1};
    caps.leaf_14_0_ebx = {0x1FF};
    caps.leaf_14_0_ecx = {0x8000'0007};
    caps.leaf_14_1_eax = {0x0249'0002};
    caps.leaf_14_1_ebx = {0x003F'1FFF};
    caps.leaf_15_eax = {2};
    caps.leaf_15_ebx = {0xB0};
    caps.leaf_80000008_eax = {39 | 48 << 8};
    caps.vmx_misc = {1U << 14};
    return caps;
}

inline auto starts_with(std::string_view text, std::string_view with) -> bool {
    return text.substr(0, with.size()) == with;
}

/// A cell without comments, which are groups in parentheses after a blank.
inline auto without_comments(std::string_view cell) -> std::string {
    std::string out;
    for (std::size_t i = 0; i < cell.size();) {
        if (cell.substr(i, 2) != " (") {
            out += cell[i++];
            continue;
        }
        int depth = 0;
        for (++i; i < cell.size(); ++i) {
            depth += cell[i] == '(' ? 1 : cell[i] == ')' ? -1 : 0;
            if (depth == 0) { break; }
        }
        if (depth != 0) { throw std::runtime_error{"a comment without )"}; }
        ++i;
    }
    return out;
}

/// Items that are separated by any of some texts, trimmed.
inline auto split(std::string_view text, std::string_view separator) -> std::vector<std::string> {
    std::vector<std::string> items;
    for (std::size_t at = 0; at <= text.size();) {
        std::size_t const end = text.find(separator, at);
        std::string item{text.substr(at, end == std::string_view::npos ? end : end - at)};
        while (!item.empty() && item.front() == ' ') { item.erase(0, 1); }
        while (!item.empty() && item.back() == ' ') { item.pop_back(); }
        if (!item.empty()) { items.push_back(item); }
        if (end == std::string_view::npos) { break; }
        at = end + separator.size();
    }
    return items;
}

}  // namespace pc_notation
