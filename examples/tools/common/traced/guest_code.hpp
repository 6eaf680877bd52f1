// SPDX-License-Identifier: BSL-1.0
#pragma once

// The code of guests: of their kernel, and of files that MMAP records of guests name.

#include "address_spaces.hpp"
#include "binaries.hpp"
#include "kernel_code.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace traced {

/// All guests have the same kernel, as perf's --guestkallsyms has it. No record says which process
/// of a guest executes: a file is used if no other process has another one at its addresses.
class guest_code {
public:
    explicit guest_code(code_files const& where) : files_{where} {}

    /// The mapping of a kernel whose symbol is at an address: for vmlinux.
    void set_kernel(std::string const& symbol, std::uint64_t address) {
        if (address_) { return; }
        symbol_ = symbol;
        address_ = address;
    }
    void map(std::uint64_t address, mapped made) {
        if (mappings_.size() >= max_mappings) { return; }
        auto const end = address + made.size;
        auto const same = mappings_.find(address);
        if (same != mappings_.end() && same->second.is_same(made)) { return; }
        if (overlaps(mappings_, address, end)) {
            mappings_ = without(mappings_, address, end);
            tool::print_error(made.path +
                              ": another file is there in a guest: its code is missing");
            return;
        }
        mappings_[address] = std::move(made);
    }
    /// Reads the kernel and the names: after the last mapping.
    void finish() {
        auto const& of = files_.where();
        if (!of.kernel.empty()) { kernel_.read(of.kernel, symbol_, address_, kernel_names_); }
        if (!of.kallsyms.empty()) {
            auto const text = tool::read_all(of.kallsyms, std::size_t{1} << 28);
            kernel_names_.add_kallsyms({reinterpret_cast<char const*>(text.data()), text.size()});
        }
        kernel_names_.sort();
        for (auto const& [start, where] : mappings_) {
            files_.add_names(names_, files_.find_named(where.path),
                             {start, where.size, where.offset});
            names_.add_file(where.path, start, where.size, where.offset);
        }
        names_.set_kernel(kernel_names_);
        names_.sort();
    }
    [[nodiscard]] auto code(std::uint64_t address) -> byte_view {
        if (address >> 63 != 0) { return kernel_.at(address); }
        auto const [start, where] = mapping_in(mappings_, address);
        auto const* const from = where == nullptr ? nullptr
                                                  : files_.find(where->path, where->build_id);
        if (from == nullptr) { return {}; }
        auto const at = where->offset + (address - start);
        auto const bytes = from->bytes();
        if (at < where->offset || at >= bytes.size()) { return {}; }
        auto const rest = bytes.from(static_cast<std::size_t>(at));
        auto const left = where->size - (address - start);
        return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), left)));
    }
    [[nodiscard]] auto names() const -> symbols const& { return names_; }

private:
    static constexpr std::size_t max_mappings = std::size_t{1} << 16;

    binaries files_;
    std::string symbol_{};
    std::optional<std::uint64_t> address_{};
    kernel_copy kernel_{};
    symbols kernel_names_{};
    space_map mappings_{};
    symbols names_{};
};

}  // namespace traced
