// SPDX-License-Identifier: BSL-1.0
#pragma once

// Symbols: which of several names an address has, and the parts of functions.
//
// Functions in several parts: a compiler places the part that rarely executes elsewhere, with a
// symbol of its own, and enters it by a jump.
//
//   NAME.cold        gcc, and LLVM (-fsplit-machine-functions)
//   NAME.cold.N      gcc before 9, and BOLT
//   NAME.__part.N    LLVM (-fbasic-block-sections), a part of basic blocks
//   NAME.eh          the same, exception handlers
//
// LLVM (-hot-cold-split) also names an outlined function NAME.cold.N: a CALL enters it, so it is no
// part. NAME.part.N, NAME.isra.N, NAME.constprop.N and NAME.lto_priv.N of gcc are functions, too.

#include "../tool.hpp"

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace traced {

using namespace ptspec;

struct elf_symbol {
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< 0: unknown
    std::string name{};
    bool is_weak = false;
    bool is_global = false;
    bool is_label = false;  ///< STT_NOTYPE, as assembler code without .type has
    bool has_size = true;   ///< else `size` is an upper limit
    /// The source file or module that defines it; of a global symbol 0.
    std::uint32_t unit = 0;
    /// The start of the function that this is a part of.
    std::optional<std::uint64_t> part_of{};
};

/// Sorts symbols by address, and keeps one of several for an address: a function, no label, of
/// known size, not weak, global, with fewer underscores, with the longest name. So the name is that
/// of a function and not that of the section or of the compilation unit that begins with it.
inline void choose_names(std::vector<elf_symbol>& all) {
    auto const underscores = [](elf_symbol const& one) {
        return std::min(one.name.find_first_not_of('_'), one.name.size());
    };
    auto const key = [&](elf_symbol const& one) {
        return std::tuple{one.address,    one.is_label,     !one.has_size,   one.is_weak,
                          !one.is_global, underscores(one), ~one.name.size()};
    };
    tool::stable_sort(all, [&](auto const& one, auto const& two) { return key(one) < key(two); });
    auto const end = std::unique(all.begin(), all.end(), [](auto const& one, auto const& two) {
        return one.address == two.address;
    });
    all.erase(end, all.end());
}

/// A name without the suffix of a part.
struct part_name {
    std::string_view function{};  ///< empty: it is no name of a part
    bool may_be_called = false;   ///< the name is also that of a function: NAME.cold.N

    explicit part_name(std::string_view name) {
        auto const digits = name.size() - (name.find_last_not_of("0123456789") + 1);
        bool const is_numbered = digits != 0 && digits < name.size() &&
                                 name[name.size() - digits - 1] == '.';
        auto const rest = is_numbered ? name.substr(0, name.size() - digits - 1) : name;
        auto const take = [&](std::string_view suffix) {
            bool const is_part = rest.size() > suffix.size() && rest.ends_with(suffix);
            if (is_part) { function = rest.substr(0, rest.size() - suffix.size()); }
            return is_part;
        };
        if (take(".cold")) {
            may_be_called = is_numbered;
        } else {
            (void)(is_numbered ? take(".__part") : take(".eh"));
        }
    }
};

/// The addresses that a CALL with a 32-bit displacement enters, of those that are asked for.
class called_addresses {
public:
    explicit called_addresses(std::vector<std::uint64_t> wanted) : wanted_{std::move(wanted)} {
        std::sort(wanted_.begin(), wanted_.end());
        is_called_.resize(wanted_.size());
    }
    /// Reads code. Each E8H counts as a CALL: bytes of another instruction that have the right
    /// displacement after them are improbable.
    void read(byte_view code, std::uint64_t address) {
        constexpr std::size_t size = 5;
        if (wanted_.empty()) { return; }
        for (std::size_t i = 0; i + size <= code.size(); ++i) {
            if (code[i] != 0xE8) { continue; }
            auto const to = address + i + size +
                            sign_extended(load_le(code.from(i + 1).first(4)), 32);
            auto const found = std::lower_bound(wanted_.begin(), wanted_.end(), to);
            if (found == wanted_.end() || *found != to) { continue; }
            is_called_[static_cast<std::size_t>(found - wanted_.begin())] = true;
        }
    }
    [[nodiscard]] auto contains(std::uint64_t address) const -> bool {
        auto const found = std::lower_bound(wanted_.begin(), wanted_.end(), address);
        return found != wanted_.end() && *found == address &&
               is_called_[static_cast<std::size_t>(found - wanted_.begin())];
    }

private:
    std::vector<std::uint64_t> wanted_;
    std::vector<bool> is_called_{};
};

/// Sets `part_of` of the symbols of one file. `read_code(called)` is called at most once; it gives
/// the code of the file to `called_addresses`. The function is of the same unit, or global: where
/// there are several of its name, it is not known.
template <class ReadCode>
void find_parts(std::vector<elf_symbol>& all, ReadCode&& read_code) {
    struct place {
        std::uint64_t address = 0;
        unsigned count = 0;  ///< of addresses: 0, 1, or 2 for more

        void add(std::uint64_t at) {
            if (count == 0 || address != at) { ++count; }
            count = std::min(count, 2U);
            address = at;
        }
    };
    std::map<std::string_view, std::map<std::uint32_t, place>> functions;  // by name and unit
    std::vector<std::uint64_t> doubtful;
    for (auto const& one : all) {
        part_name const of{one.name};
        if (of.function.empty()) { continue; }
        functions.try_emplace(of.function);
        if (of.may_be_called) { doubtful.push_back(one.address); }
    }
    if (functions.empty()) { return; }
    for (auto const& one : all) {
        std::string_view const name{one.name};
        auto const found = functions.find(name.substr(0, name.find('@')));  // NAME@@VERSION
        if (found == functions.end()) { continue; }
        found->second[one.unit].add(one.address);
    }
    called_addresses called{std::move(doubtful)};
    read_code(called);
    for (auto& one : all) {
        part_name const of{one.name};
        if (of.function.empty() || (of.may_be_called && called.contains(one.address))) { continue; }
        auto const& where = functions.find(of.function)->second;
        for (auto const unit : {one.unit, std::uint32_t{0}}) {
            auto const found = where.find(unit);
            bool const is_known = found != where.end() && found->second.count == 1;
            if (is_known && !one.part_of) { one.part_of = found->second.address; }
        }
    }
}

}  // namespace traced
