// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code for pt_flow: files that are mapped at an address, and dumps of pages.

#include "../numbers.hpp"
#include "../tool.hpp"
#include "binaries.hpp"
#include "symbols.hpp"

#include <ptspec/flow.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace traced {

using namespace ptspec;

/// Code in one address space.
class images {
public:
    static constexpr std::size_t max_bytes = std::size_t{1} << 30;

    /// FILE@ADDRESS.
    void add_file(std::string const& option, std::string const& text) {
        auto const at = text.rfind('@');
        if (at == std::string::npos) { throw tool::failure{option + " takes FILE@ADDRESS"}; }
        auto const address = tool::parse_address(option, std::string_view{text}.substr(at + 1));
        auto const path = text.substr(0, at);
        files_.push_back(tool::read_all(path, max_bytes));
        add(address, files_.back());
        modules_.push_back({path, address, files_.back().size()});
    }
    /// FILE[@ADDRESS]: an ELF file. ADDRESS is that of the first byte of a PIE or shared object.
    void add_binary(std::string const& option, std::string const& text) {
        auto const at = text.rfind('@');
        auto const address = at == std::string::npos
                                 ? 0
                                 : tool::parse_address(option,
                                                       std::string_view{text}.substr(at + 1));
        auto const path = text.substr(0, at);
        files_.push_back(tool::read_all(path, max_bytes));
        auto const found = elf_file::read(byte_view{files_.back()});
        if (!found) { throw tool::failure{path + ": not an ELF file of x86"}; }
        auto const offset = found->is_relocatable() ? address : 0;
        for (auto const& one : found->segments()) {
            if (!one.is_executable) { continue; }
            add(one.address + offset, one.bytes);
        }
        auto const [first, end] = found->range();
        modules_.push_back({path, first + offset, end - first});
        names_.add(*found, offset);
        names_.add_code(*found, offset);
    }
    /// Pages of 4096 bytes one after the other, and a text file with the address of each: a line
    /// `0xADDRESS`, with ` unmapped` after it if the page is absent.
    void add_pages(std::string const& memory, std::string const& list) {
        files_.push_back(tool::read_all(memory, max_bytes));
        auto const& bytes = files_.back();
        auto const text = tool::read_all(list, max_bytes);
        std::string_view const lines{reinterpret_cast<char const*>(text.data()), text.size()};
        std::size_t page = 0;
        tool::for_each_line(lines, [&](std::string_view line) {
            if (line.empty()) { return; }
            auto const space = line.find(' ');
            auto const address = tool::parse_number(line.substr(0, space), any);
            if (!address || (page + 1) * page_size > bytes.size()) {
                throw tool::failure{list + ": line " + std::to_string(page + 1) +
                                    (address ? " has no page in " + memory : " is no address")};
            }
            if (space == std::string_view::npos) {
                add(*address, byte_view{bytes}.from(page * page_size).first(page_size));
                bool const continues = !modules_.empty() && modules_.back().path == memory &&
                                       *address == modules_.back().address + modules_.back().size;
                if (continues) {
                    modules_.back().size += page_size;
                } else {
                    modules_.push_back({memory, *address, page_size});
                }
            }
            ++page;
        });
    }
    /// All code, after the last `add_`.
    auto spans() -> flow::code_spans {
        names_.sort();
        std::sort(spans_.begin(), spans_.end(),
                  [](auto const& one, auto const& two) { return one.address < two.address; });
        for (std::size_t i = 1; i < spans_.size(); ++i) {
            if (spans_[i].address - spans_[i - 1].address < spans_[i - 1].bytes.view().size()) {
                throw tool::failure{"two images overlap"};
            }
        }
        return {spans_.data(), spans_.size()};
    }

    [[nodiscard]] auto names() const -> symbols const& { return names_; }
    /// The image with an address.
    [[nodiscard]] auto module_at(std::uint64_t address) const -> std::optional<module> {
        for (auto const& one : modules_) {
            if (address - one.address < one.size) { return one; }
        }
        return std::nullopt;
    }

private:
    static constexpr std::uint64_t any = ~std::uint64_t{0};
    static constexpr std::size_t page_size = flow::code_page_size;

    void add(std::uint64_t address, byte_view bytes) {
        if (!bytes.empty()) {
            spans_.push_back({borrowed_bytes{bytes.data(), bytes.size()}, address});
        }
    }

    std::vector<std::vector<std::uint8_t>> files_{};
    std::vector<flow::code_span> spans_{};
    std::vector<module> modules_{};
    symbols names_{};
};

}  // namespace traced
