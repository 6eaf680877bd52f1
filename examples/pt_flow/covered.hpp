// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code coverage: a file in the format of drcov, and a bitmap of edges.

#include "images.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace pt_flow {

/// Counts edges and gaps.
struct edge_and_gap_counts : flow::coverage {
    using flow::coverage::coverage;

    std::uint64_t gaps = 0;

    void gap(flow::gap const&) { ++gaps; }
};

/// The executed blocks. An event splits a block into two.
class covered_blocks {
public:
    explicit covered_blocks(std::vector<images::module> const& in) : modules_{in} {}

    std::uint64_t gaps = 0;

    void block(flow::executed_block const& one) {
        auto& size = sizes_[one.ip];
        size = std::max(size, one.size);
    }
    void gap(flow::gap const&) { ++gaps; }

    /// Writes lines of text, then an entry for each block: its offset in the module (4 bytes), its
    /// size (2 bytes), and the number of the module (2 bytes).
    void write(tool::output& to) const {
        std::string entries;
        std::size_t count = 0;
        for (auto const& [address, size] : sizes_) {
            auto const found = module_at(address);
            if (found == modules_.size()) { continue; }
            put(entries, address - modules_[found].address, 4);
            put(entries, std::min(size, 0xFFFFU), 2);
            put(entries, found, 2);
            ++count;
        }
        to.write("DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\n");
        to.write("Module Table: version 2, count " + std::to_string(modules_.size()) + "\n");
        to.write("Columns: id, base, end, entry, path\n");
        for (std::size_t i = 0; i < modules_.size(); ++i) {
            auto const& one = modules_[i];
            to.write(std::to_string(i) + ", " + tool::hex(one.address) + ", " +
                     tool::hex(one.address + one.size) + ", 0x0, " + one.path + "\n");
        }
        to.write("BB Table: " + std::to_string(count) + " bbs\n");
        to.write(entries);
    }

private:
    [[nodiscard]] auto module_at(std::uint64_t address) const -> std::size_t {
        auto const found = std::find_if(modules_.begin(), modules_.end(), [&](auto const& one) {
            return address - one.address < one.size;
        });
        return static_cast<std::size_t>(found - modules_.begin());
    }
    static void put(std::string& to, std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) { to += static_cast<char>(value >> 8 * i & 0xFF); }
    }

    std::vector<images::module> const& modules_;
    std::map<std::uint64_t, std::uint32_t> sizes_{};
};

}  // namespace pt_flow
