// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "../numbers.hpp"
#include "elf.hpp"
#include "stack_use.hpp"

#include <ptspec/flow/frame.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

namespace traced {

/// The function that contains an address, with its symbol. Between functions, the addresses
/// without any: `entry` is then `begin`.
struct function_range : flow::function {
    elf_symbol const* symbol = nullptr;  ///< nullptr: no function is known here
};

/// Names of functions, by address.
class symbols {
public:
    /// Adds the symbols of a file. Their addresses in memory are `offset` higher than in the file.
    void add(elf_file const& of, std::uint64_t offset) {
        for (auto const& one : of.symbols()) {
            all_.push_back(one);
            auto& added = all_.back();
            added.address += offset;
            added.name = tool::one_line(one.name);
            if (added.part_of) { *added.part_of += offset; }
        }
    }
    /// Adds the code of a file, whose bytes it borrows.
    void add_code(elf_file const& of, std::uint64_t offset) {
        for (auto const& one : of.segments()) {
            if (!one.is_executable || one.bytes.empty()) { continue; }
            code_[one.address + offset] = {one.bytes, of.is_64_bit_code()};
        }
    }
    void add_function(elf_symbol const& one) { all_.push_back(one); }
    /// Adds a text with a line `START SIZE NAME` for each function, in hexadecimal: the map of a
    /// JIT compiler. Other lines are ignored.
    void add_map(std::string_view text) {
        tool::for_each_line(text, [&](std::string_view line) {
            auto const start = take_hex(line);
            auto const size = take_hex(line);
            if (start && size && !line.empty()) {
                all_.push_back({.address = *start, .size = *size, .name = tool::one_line(line)});
            }
        });
    }
    /// Adds a text with a line `ADDRESS TYPE NAME` for each symbol of a kernel, with a tab and the
    /// module after the name: /proc/kallsyms. Other lines, and other symbols than functions, are
    /// ignored.
    void add_kallsyms(std::string_view text) {
        std::vector<elf_symbol> made;
        std::map<std::string_view, std::uint32_t> modules;
        tool::for_each_line(text, [&](std::string_view line) {
            auto const address = take_hex(line);
            constexpr std::string_view functions = "tTwW";
            bool const is_function = address && *address != 0 && line.size() > 2 &&
                                     line[1] == ' ' &&
                                     functions.find(line[0]) != std::string_view::npos;
            if (!is_function) { return; }
            line.remove_prefix(2);
            auto const name = line.substr(0, line.find('\t'));
            auto const module = modules.try_emplace(line.substr(name.size()),
                                                    static_cast<std::uint32_t>(modules.size()) + 1);
            made.push_back({.address = *address,
                            .name = tool::one_line(name),
                            .has_size = false,
                            .unit = module.first->second});
        });
        // Kernels are not compiled with -hot-cold-split: a NAME.cold.N is always a part.
        find_parts(made, [](called_addresses&) {});
        all_.insert(all_.end(), std::make_move_iterator(made.begin()),
                    std::make_move_iterator(made.end()));
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
        find_ranges();
    }
    /// Sets the symbols of the kernel: of addresses in the upper half.
    void set_kernel(symbols const& of) { kernel_ = &of; }
    /// Sets the symbols of addresses that these do not contain.
    void set_others(symbols const& of) { others_ = &of; }
    /// The function that contains an address, or nullptr. A function of unknown size ends at the
    /// next one.
    [[nodiscard]] auto at(std::uint64_t address) const -> elf_symbol const* {
        return function_at(address).symbol;
    }
    /// The function that contains an address, and the range of addresses for which this is the
    /// answer: of a function that another one interrupts, the part around the address; between
    /// functions, the part without any. A label in a function of known size is a part of it.
    [[nodiscard]] auto function_at(std::uint64_t address) const -> function_range {
        bool const is_upper = address >> 63 != 0;
        if (kernel_ != nullptr && is_upper) {
            auto made = kernel_->function_at(address);
            set_begin(made, std::max(made.begin, std::uint64_t{1} << 63));
            return made;
        }
        auto const next = std::upper_bound(
            ranges_.begin(), ranges_.end(), address,
            [](std::uint64_t value, auto const& one) { return value < one.start; });
        function_range made{{.has_symbol = false}};
        made.end = next == ranges_.end() ? ~std::uint64_t{0} : next->start;
        if (kernel_ != nullptr) { made.end = std::min(made.end, std::uint64_t{1} << 63); }
        if (next != ranges_.begin()) {
            auto const& found = *std::prev(next);
            made.entry = made.begin = found.start;
            if (found.symbol != no_symbol) {
                made.symbol = &all_[found.symbol];
                made.entry = found.entry;
                made.has_symbol = true;
            }
        }
        if (made.symbol != nullptr || others_ == nullptr) { return made; }
        auto other = others_->function_at(address);
        set_begin(other, std::max(other.begin, made.begin));
        other.end = std::min(other.end, made.end);
        return other;
    }

    /// The code from an address on, up to another one or to the end of what is known.
    [[nodiscard]] auto code_at(std::uint64_t address, std::uint64_t end) const -> code_part {
        auto next = code_.upper_bound(address);
        if (next == code_.begin()) { return {}; }
        auto const& [start, found] = *--next;
        auto const at = address - start;
        if (at >= found.bytes.size()) { return {}; }
        auto const rest = found.bytes.from(static_cast<std::size_t>(at));
        auto const size = std::min<std::uint64_t>(rest.size(), end - address);
        return {address, rest.first(static_cast<std::size_t>(size)), found.is_64_bit};
    }

private:
    static void set_begin(function_range& of, std::uint64_t begin) {
        of.begin = begin;
        if (!of.has_symbol) { of.entry = begin; }
    }
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
    /// From `start` to the next range.
    struct range {
        std::uint64_t start;
        std::size_t symbol;
        std::uint64_t entry;
    };
    static constexpr std::size_t no_symbol = ~std::size_t{0};

    /// Makes ranges that do not overlap: where functions do, the one that begins last counts.
    void find_ranges() {
        struct open_function {
            std::size_t symbol;
            std::uint64_t end;
            std::uint64_t entry;
        };
        std::vector<open_function> open;
        ranges_.clear();
        auto const begin_range = [&](std::uint64_t start) {
            auto const what = open.empty() ? range{start, no_symbol, 0}
                                           : range{start, open.back().symbol, open.back().entry};
            if (!ranges_.empty() && ranges_.back().start == start) {
                ranges_.back() = what;
            } else if (ranges_.empty() || ranges_.back().symbol != what.symbol) {
                ranges_.push_back(what);
            }
        };
        // Ends those that end up to an address. Those below them that end earlier count no more.
        auto const end_up_to = [&](std::uint64_t address) {
            while (!open.empty() && open.back().end <= address) {
                auto const end = open.back().end;
                while (!open.empty() && open.back().end <= end) { open.pop_back(); }
                begin_range(end);
            }
        };
        auto const has_size = [&](std::size_t i) { return all_[i].has_size && all_[i].size != 0; };
        for (std::size_t i = 0; i < all_.size(); ++i) {
            auto const& one = all_[i];
            end_up_to(one.address);
            while (!open.empty() && !has_size(open.back().symbol)) { open.pop_back(); }
            auto const limit = ~std::uint64_t{0} - one.address;
            auto end = one.size == 0 ? ~std::uint64_t{0} : one.address + std::min(one.size, limit);
            auto entry = one.part_of.value_or(one.address);
            if (!open.empty() && !has_size(i)) {
                end = std::min(end, open.back().end);
                if (one.is_label) { entry = open.back().entry; }
            }
            open.push_back({i, end, entry});
            begin_range(one.address);
        }
        end_up_to(~std::uint64_t{0});
    }

    struct code {
        byte_view bytes{};
        bool is_64_bit = true;
    };

    std::vector<elf_symbol> all_{};
    std::map<std::uint64_t, code> code_{};
    std::vector<range> ranges_{};
    std::map<std::uint64_t, file> files_{};
    symbols const* kernel_ = nullptr;
    symbols const* others_ = nullptr;
};

/// A cache of the names of addresses. It borrows the symbols.
class address_names {
public:
    explicit address_names(symbols const& of) : of_{of} {}
    address_names(address_names const&) = delete;
    auto operator=(address_names const&) -> address_names& = delete;

    /// Call this after the symbols changed.
    void forget() {
        forget_names();
        std::fill(ranges_.begin(), ranges_.end(), function_range{});
        std::fill(uses_.begin(), uses_.end(), known_use{});
        last_ = ranges_.data();
    }
    /// `name`, `name+0xOFFSET`, `file+0xOFFSET`, or the address. It is valid until the next call.
    auto of(std::uint64_t address) -> std::string const& {
        auto& [of_last, name] = last_names_[address % last_names_.size()];
        if (of_last != address || name == nullptr) {
            if (kept_.size() > max_kept) { forget_names(); }
            auto const [kept, is_new] = kept_.try_emplace(address);
            if (is_new) { kept->second = made(address); }
            of_last = address;
            name = &kept->second;
        }
        return *name;
    }
    /// The function that contains an address, and the addresses for which it is the answer.
    auto range_at(std::uint64_t address) -> function_range const& {
        if (last_->contains(address)) { return *last_; }
        auto& kept = ranges_[address / 64 % ranges_.size()];
        if (!kept.contains(address)) { kept = of_.function_at(address); }
        last_ = &kept;
        return kept;
    }
    /// What the function with a branch at an address does with the stack pointer before it: by the
    /// names of C libraries, runtimes and libraries of fibers, or by its code.
    auto stack_use_at(std::uint64_t address) -> flow::stack_use {
        constexpr std::string_view known[] = {
            "swapcontext",   "__swapcontext",     "setcontext",    "__setcontext",
            "jump_fcontext", "ontop_fcontext",    "coro_transfer", "runtime.gogo",
            "gogo",          "runtime.gogo.abi0", "runtime.mcall", "runtime.mcall.abi0",
        };
        auto& kept = uses_[address % uses_.size()];
        if (kept.address == address) { return kept.use; }
        auto const& of = range_at(address);
        bool const is_known = of.symbol != nullptr &&
                              std::ranges::find(known, of.symbol->name) != std::end(known);
        kept = {address, is_known ? flow::stack_use::switches
                         : of.symbol == nullptr
                             ? flow::stack_use::unknown
                             : traced::stack_use_at(of_.code_at(of.begin, of.end), address)};
        return kept.use;
    }

private:
    static constexpr std::size_t max_kept = 65536;

    void forget_names() {
        kept_.clear();
        std::fill(last_names_.begin(), last_names_.end(), known_name{});
    }
    [[nodiscard]] auto made(std::uint64_t address) -> std::string {
        auto const* const found = range_at(address).symbol;
        if (found == nullptr) {
            auto place = of_.place_of(address);
            return place.empty() ? tool::hex(address) : place;
        }
        return address == found->address ? found->name
                                         : found->name + "+" + tool::hex(address - found->address);
    }

    struct known_name {
        std::uint64_t address = 0;
        std::string const* name = nullptr;
    };
    struct known_use {
        std::uint64_t address = 0;
        flow::stack_use use = flow::stack_use::unknown;
    };

    symbols const& of_;
    std::vector<known_use> uses_ = std::vector<known_use>(1024);
    std::unordered_map<std::uint64_t, std::string> kept_{};
    std::vector<known_name> last_names_ = std::vector<known_name>(2048);
    std::vector<function_range> ranges_ = std::vector<function_range>(1024);
    function_range const* last_ = ranges_.data();
};

}  // namespace traced
