// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "../numbers.hpp"
#include "elf.hpp"

#include <ptspec/flow/frame.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>
#include <vector>

namespace traced {

/// Names of functions, by address.
class symbols {
public:
    /// Adds the symbols of a file. Their addresses in memory are `offset` higher than in the file.
    void add(elf_file const& of, std::uint64_t offset) {
        for (auto const& one : of.symbols()) {
            all_.push_back({one.address + offset, one.size, tool::one_line(one.name)});
        }
    }
    /// Adds a text with a line `START SIZE NAME` for each function, in hexadecimal: the map of a
    /// JIT compiler. Other lines are ignored.
    void add_map(std::string_view text) {
        tool::for_each_line(text, [&](std::string_view line) {
            auto const start = take_hex(line);
            auto const size = take_hex(line);
            if (start && size && !line.empty()) {
                all_.push_back({*start, *size, tool::one_line(line)});
            }
        });
    }
    /// Adds a text with a line `ADDRESS TYPE NAME` for each symbol of a kernel, with a tab and the
    /// module after the name: /proc/kallsyms. Other lines, and other symbols than functions, are
    /// ignored.
    void add_kallsyms(std::string_view text) {
        tool::for_each_line(text, [&](std::string_view line) {
            auto const address = take_hex(line);
            constexpr std::string_view functions = "tTwW";
            bool const is_function = address && *address != 0 && line.size() > 2 &&
                                     line[1] == ' ' &&
                                     functions.find(line[0]) != std::string_view::npos;
            if (!is_function) { return; }
            line.remove_prefix(2);
            all_.push_back({*address, 0, tool::one_line(line.substr(0, line.find('\t')))});
        });
    }
    /// Adds a mapped file: `size` bytes from `offset` of it are at `start`.
    void add_file(std::string const& path, std::uint64_t start, std::uint64_t size,
                  std::uint64_t offset) {
        auto const name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
        files_.try_emplace(start, file{size, offset, tool::one_line(name)});
    }
    /// `libc.so.6+0x2d1730`: the place of an address in its file; empty: in none.
    [[nodiscard]] auto place_of(std::uint64_t address) const -> std::string {
        auto next = files_.upper_bound(address);
        if (next == files_.begin()) { return ""; }
        auto const& [start, where] = *--next;
        if (address - start >= where.size) { return ""; }
        return where.name + '+' + tool::hex(where.offset + (address - start));
    }
    /// Call this after the last symbol was added.
    void sort() {
        tool::stable_sort(
            all_, [](auto const& one, auto const& two) { return one.address < two.address; });
        find_cold_parts();
    }
    /// Sets the symbols of the kernel: of addresses in the upper half.
    void set_kernel(symbols const& of) { kernel_ = &of; }
    /// The function that contains an address, or nullptr. A function of unknown size ends at the
    /// next one.
    [[nodiscard]] auto at(std::uint64_t address) const -> elf_symbol const* {
        if (is_of_kernel(address)) { return kernel_->at(address); }
        auto next = first_after(address);
        if (next == all_.begin()) { return nullptr; }
        --next;
        bool const is_in = next->size == 0 || address - next->address < next->size;
        return is_in ? &*next : nullptr;
    }
    /// The function that contains an address, with the addresses up to its end. Between functions,
    /// the addresses up to the next one. The cold part of a function belongs to it.
    [[nodiscard]] auto function_at(std::uint64_t address) const -> flow::function {
        if (is_of_kernel(address)) { return kernel_->function_at(address); }
        auto const next = first_after(address);
        auto const end = next != all_.end()   ? next->address
                         : kernel_ != nullptr ? std::uint64_t{1} << 63
                                              : ~std::uint64_t{0};
        if (next == all_.begin()) { return {0, 0, end, false}; }
        auto const& found = next[-1];
        auto const after = found.address + found.size;
        if (found.size == 0 || address < after) {
            auto const cold = cold_parts_.find(found.address);
            return {cold == cold_parts_.end() ? found.address : cold->second, found.address,
                    found.size == 0 ? end : std::min(end, after)};
        }
        return {after, after, end, false};
    }

private:
    /// Takes a hexadecimal number and the blank after it.
    static auto take_hex(std::string_view& line) -> std::optional<std::uint64_t> {
        if (line.starts_with("0x")) { line.remove_prefix(2); }
        std::uint64_t value = 0;
        auto const* const end = line.data() + line.size();
        auto const [stop, error] = std::from_chars(line.data(), end, value, 16);
        if (error != std::errc{} || stop == end || *stop != ' ') { return std::nullopt; }
        line.remove_prefix(static_cast<std::size_t>(stop - line.data()) + 1);
        return value;
    }

    [[nodiscard]] auto is_of_kernel(std::uint64_t address) const -> bool {
        return kernel_ != nullptr && address >> 63 != 0;
    }
    [[nodiscard]] auto first_after(std::uint64_t address) const
        -> std::vector<elf_symbol>::const_iterator {
        return std::upper_bound(
            all_.begin(), all_.end(), address,
            [](std::uint64_t value, auto const& one) { return value < one.address; });
    }
    /// Compilers name the part of `f` that rarely executes `f.cold`. If several functions have the
    /// name, it is a part of the nearest.
    void find_cold_parts() {
        constexpr std::string_view suffix = ".cold";
        std::map<std::string_view, std::vector<elf_symbol const*>> parts;
        for (auto const& one : all_) {
            std::string_view const name{one.name};
            if (name.ends_with(suffix)) {
                parts[name.substr(0, name.size() - suffix.size())].push_back(&one);
            }
        }
        if (parts.empty()) { return; }
        std::map<std::uint64_t, std::uint64_t> distances;
        for (auto const& one : all_) {
            auto const found = parts.find(one.name);
            if (found == parts.end()) { continue; }
            for (auto const* const part : found->second) {
                auto const distance = one.address < part->address ? part->address - one.address
                                                                  : one.address - part->address;
                auto const [at, is_new] = distances.try_emplace(part->address, distance);
                if (!is_new && at->second <= distance) { continue; }
                at->second = distance;
                cold_parts_[part->address] = one.address;
            }
        }
    }

    struct file {
        std::uint64_t size;
        std::uint64_t offset;
        std::string name;
    };
    std::vector<elf_symbol> all_{};
    std::unordered_map<std::uint64_t, std::uint64_t> cold_parts_{};  ///< entries, by address
    std::map<std::uint64_t, file> files_{};
    symbols const* kernel_ = nullptr;
};

/// A cache of the names of addresses. It borrows the symbols.
class address_names {
public:
    explicit address_names(symbols const& of) : of_{of} {}

    /// `name`, `name+0xOFFSET`, `file+0xOFFSET`, or the address. It is valid until the next call.
    auto of(std::uint64_t address) -> std::string const& {
        if (kept_.size() > max_kept) { kept_.clear(); }
        auto const [kept, is_new] = kept_.try_emplace(address);
        if (is_new) { kept->second = made(address); }
        return kept->second;
    }
    /// The function that contains an address, or nullptr.
    [[nodiscard]] auto function_at(std::uint64_t address) const -> elf_symbol const* {
        return of_.at(address);
    }

private:
    static constexpr std::size_t max_kept = 65536;

    [[nodiscard]] auto made(std::uint64_t address) const -> std::string {
        auto const* const found = of_.at(address);
        if (found == nullptr) {
            auto place = of_.place_of(address);
            return place.empty() ? tool::hex(address) : place;
        }
        return address == found->address ? found->name
                                         : found->name + "+" + tool::hex(address - found->address);
    }

    symbols const& of_;
    std::unordered_map<std::uint64_t, std::string> kept_{};
};

/// A cache of the functions that contain addresses. It borrows the symbols.
class functions {
public:
    explicit functions(symbols const* of = nullptr) : of_{of} {}

    auto at(std::uint64_t address) -> flow::function { return find(address).where; }
    /// Whether the code at an address switches between stacks, by the names that C libraries,
    /// runtimes and libraries of fibers give it.
    auto switches_stacks(std::uint64_t address) -> bool { return find(address).switches_stacks; }

private:
    static constexpr unsigned bits = 10;
    static constexpr std::size_t count = std::size_t{1} << bits;
    struct entry {
        std::uint64_t address = 0;
        flow::function where{};
        bool switches_stacks = false;
    };

    auto find(std::uint64_t address) -> entry const& {
        auto& kept = kept_[(address ^ address >> bits) % count];
        if (kept.address != address || kept.where.end == 0) [[unlikely]] {
            kept = {address, of_->function_at(address), is_switch(address)};
        }
        return kept;
    }
    [[nodiscard]] auto is_switch(std::uint64_t address) const -> bool {
        constexpr std::string_view known[] = {
            "swapcontext",   "__swapcontext",     "setcontext",    "__setcontext",
            "jump_fcontext", "ontop_fcontext",    "coro_transfer", "runtime.gogo",
            "gogo",          "runtime.gogo.abi0", "runtime.mcall", "runtime.mcall.abi0",
        };
        auto const* const found = of_->at(address);
        return found != nullptr && std::ranges::find(known, found->name) != std::end(known);
    }

    symbols const* of_;
    std::vector<entry> kept_ = std::vector<entry>(count);
};

}  // namespace traced
