// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "../numbers.hpp"
#include "elf.hpp"

#include <charconv>
#include <map>
#include <unordered_map>

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
    }
    /// Sets the symbols of the kernel: of addresses in the upper half.
    void set_kernel(symbols const& of) { kernel_ = &of; }
    /// The function that contains an address, or nullptr. A function of unknown size ends at the
    /// next one.
    [[nodiscard]] auto at(std::uint64_t address) const -> elf_symbol const* {
        if (kernel_ != nullptr && address >> 63 != 0) { return kernel_->at(address); }
        auto next = std::upper_bound(
            all_.begin(), all_.end(), address,
            [](std::uint64_t value, auto const& one) { return value < one.address; });
        if (next == all_.begin()) { return nullptr; }
        --next;
        bool const is_in = next->size == 0 || address - next->address < next->size;
        return is_in ? &*next : nullptr;
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

    struct file {
        std::uint64_t size;
        std::uint64_t offset;
        std::string name;
    };
    std::vector<elf_symbol> all_{};
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
    /// The address of the function that contains an address; 0: not known.
    auto function_of(std::uint64_t address) -> std::uint64_t {
        if (functions_.size() > max_kept) { functions_.clear(); }
        auto const [kept, is_new] = functions_.try_emplace(address);
        if (is_new) {
            auto const* const found = of_.at(address);
            kept->second = found == nullptr ? 0 : found->address;
        }
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
    std::unordered_map<std::uint64_t, std::uint64_t> functions_{};
};

}  // namespace traced
