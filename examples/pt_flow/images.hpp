// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code for pt_flow: files that are mapped at an address, and dumps of pages.

#include "../common/numbers.hpp"
#include "../common/tool.hpp"

#include <ptspec/flow.hpp>

#include <algorithm>
#include <vector>

namespace pt_flow {

using namespace ptspec;

/// Code in one address space.
class images {
public:
    static constexpr std::size_t most_bytes = std::size_t{1} << 30;

    /// FILE@ADDRESS.
    void add_file(std::string const& option, std::string const& text) {
        auto const at = text.rfind('@');
        auto const address = at == std::string::npos
                                 ? std::nullopt
                                 : tool::parse_number(std::string_view{text}.substr(at + 1), any);
        if (!address) { throw tool::failure{option + " takes FILE@ADDRESS"}; }
        files_.push_back(tool::read_all(text.substr(0, at), most_bytes));
        add(*address, files_.back());
    }
    /// Pages of 4096 bytes one after the other, and a text file with the address of each: a line
    /// `0xADDRESS`, with ` unmapped` after it if the page is absent.
    void add_pages(std::string const& memory, std::string const& list) {
        files_.push_back(tool::read_all(memory, most_bytes));
        auto const& bytes = files_.back();
        auto const text = tool::read_all(list, most_bytes);
        std::string_view rest{reinterpret_cast<char const*>(text.data()), text.size()};
        std::size_t page = 0;
        while (!rest.empty()) {
            auto const end = std::min(rest.find('\n'), rest.size());
            auto const line = rest.substr(0, end);
            rest.remove_prefix(std::min(end + 1, rest.size()));
            if (line.empty()) { continue; }
            auto const space = line.find(' ');
            auto const address = tool::parse_number(line.substr(0, space), any);
            if (!address || (page + 1) * page_size > bytes.size()) {
                throw tool::failure{list + ": line " + std::to_string(page + 1) +
                                    (address ? " has no page in " + memory : " is no address")};
            }
            if (space == std::string_view::npos) {
                add(*address, byte_view{bytes}.from(page * page_size).first(page_size));
            }
            ++page;
        }
    }
    /// All code, after the last `add_`.
    auto spans() -> flow::code_spans {
        std::sort(spans_.begin(), spans_.end(),
                  [](auto const& one, auto const& two) { return one.address < two.address; });
        for (std::size_t i = 1; i < spans_.size(); ++i) {
            if (spans_[i].address - spans_[i - 1].address < spans_[i - 1].bytes.view().size()) {
                throw tool::failure{"two images overlap"};
            }
        }
        return {spans_.data(), spans_.size()};
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
};

}  // namespace pt_flow
