// SPDX-License-Identifier: BSL-1.0
#pragma once

// Address filters of the kernel, from the names of functions.

#include "../common/numbers.hpp"
#include "../common/traced/elf.hpp"
#include "../common/tool.hpp"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <climits>
#include <cstdlib>

namespace pt_trace {

/// The range of a filter, from FUNCTION of the program, FILE:FUNCTION, or the kernel addresses A-B,
/// both hexadecimal and inclusive. Throws if there is no such function.
inline auto filter_of(std::string const& wanted, std::string const& program) -> std::string {
    auto const dash = wanted.find('-');
    auto const is_hex = [](std::string const& digits) {
        return !digits.empty() &&
               digits.find_first_not_of("0123456789abcdefABCDEFx") == std::string::npos;
    };
    if (dash != std::string::npos && is_hex(wanted.substr(0, dash)) &&
        is_hex(wanted.substr(dash + 1))) {
        auto const first = std::stoull(wanted.substr(0, dash), nullptr, 16);
        auto const last = std::stoull(wanted.substr(dash + 1), nullptr, 16);
        if (last < first) { throw tool::failure{wanted + ": the last address is below the first"}; }
        return tool::hex(first) + "/" + tool::hex(last - first + 1);
    }
    auto const colon = wanted.rfind(':');
    auto const name = colon == std::string::npos ? wanted : wanted.substr(colon + 1);
    auto const file = colon == std::string::npos ? program : wanted.substr(0, colon);
    char path[PATH_MAX];
    if (::realpath(file.c_str(), path) == nullptr) {
        throw tool::failure{file + ": " + std::strerror(errno)};
    }
    std::ifstream in{path, std::ios::binary};
    std::vector<char> const bytes{std::istreambuf_iterator<char>{in}, {}};
    auto const elf = traced::elf_file::read(
        {reinterpret_cast<std::uint8_t const*>(bytes.data()), bytes.size()});
    if (!elf) { throw tool::failure{file + ": is no ELF file of x86"}; }
    for (auto const& symbol : elf->symbols()) {
        if (symbol.name != name || symbol.size == 0) { continue; }
        for (auto const& one : elf->segments()) {
            if (symbol.address - one.address >= one.bytes.size()) { continue; }
            return tool::hex(symbol.address - one.address + one.offset) + "/" +
                   tool::hex(symbol.size) + "@" + path;
        }
    }
    throw tool::failure{file + ": has no function " + name};
}

}  // namespace pt_trace
