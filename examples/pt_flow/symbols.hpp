// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "../common/numbers.hpp"
#include "elf.hpp"

#include <unordered_map>

namespace pt_flow {

/// Names of functions, by address.
class symbols {
public:
    /// Adds the symbols of a file. Their addresses in memory are `offset` higher than in the file.
    void add(elf_file const& of, std::uint64_t offset) {
        for (auto const& one : of.symbols()) {
            all_.push_back({one.address + offset, one.size, one.name});
        }
        std::stable_sort(all_.begin(), all_.end(), [](auto const& one, auto const& two) {
            return one.address < two.address;
        });
    }
    /// The function that contains an address, or nullptr. A function of unknown size ends at the
    /// next one.
    [[nodiscard]] auto at(std::uint64_t address) const -> elf_symbol const* {
        auto next = std::upper_bound(
            all_.begin(), all_.end(), address,
            [](std::uint64_t value, auto const& one) { return value < one.address; });
        if (next == all_.begin()) { return nullptr; }
        --next;
        bool const is_in = next->size == 0 || address - next->address < next->size;
        return is_in ? &*next : nullptr;
    }
    /// `name`, `name+0xOFFSET`, or the address. The result is valid until the next call.
    [[nodiscard]] auto name_of(std::uint64_t address) const -> std::string const& {
        if (names_.size() > most_kept) { names_.clear(); }
        auto const [kept, is_new] = names_.try_emplace(address);
        if (is_new) { kept->second = made_name(address); }
        return kept->second;
    }

private:
    static constexpr std::size_t most_kept = 65536;

    [[nodiscard]] auto made_name(std::uint64_t address) const -> std::string {
        auto const* const found = at(address);
        if (found == nullptr) { return tool::hex(address); }
        return address == found->address ? found->name
                                         : found->name + "+" + tool::hex(address - found->address);
    }

    std::vector<elf_symbol> all_{};
    mutable std::unordered_map<std::uint64_t, std::string> names_{};
};

}  // namespace pt_flow
