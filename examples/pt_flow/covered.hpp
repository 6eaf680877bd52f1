// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code coverage: a file in the format of drcov, and a bitmap of edges.

#include "../common/traced/images.hpp"
#include "report.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace pt_flow {

/// Counts edges.
class edge_counts : public report {
public:
    edge_counts(tool::output& to, std::size_t size) : to_{to}, counts_(size) {}

    [[nodiscard]] auto wants() const -> wanted override { return {.edges = true}; }
    void edge(flow::edge const& one) override {
        if (is_shown) { coverage_.edge(one); }
    }
    void end() override {
        to_.write({reinterpret_cast<char const*>(counts_.data()), counts_.size()});
    }

private:
    tool::output& to_;
    std::vector<std::uint8_t> counts_;
    flow::coverage coverage_{counts_.data(), counts_.size()};
};

/// The executed blocks. An event splits a block into two.
class covered_blocks : public report {
public:
    covered_blocks(tool::output& to, std::vector<traced::images::module> const& in)
        : to_{to}, modules_{in} {}

    [[nodiscard]] auto wants() const -> wanted override { return {.blocks = true}; }
    void block(flow::executed_block const& one) override {
        if (!is_shown) { return; }
        auto& size = sizes_[one.ip];
        size = std::max(size, one.size);
    }
    /// Writes lines of text, then an entry for each block: its offset in the module (4 bytes), its
    /// size (2 bytes), and the number of the module (2 bytes).
    void end() override {
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
        to_.write("DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\n");
        to_.write("Module Table: version 2, count " + std::to_string(modules_.size()) + "\n");
        to_.write("Columns: id, base, end, entry, path\n");
        for (std::size_t i = 0; i < modules_.size(); ++i) {
            auto const& one = modules_[i];
            to_.write(std::to_string(i) + ", " + tool::hex(one.address) + ", " +
                      tool::hex(one.address + one.size) + ", 0x0, " + one.path + "\n");
        }
        to_.write("BB Table: " + std::to_string(count) + " bbs\n");
        to_.write(entries);
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

    tool::output& to_;
    std::vector<traced::images::module> const& modules_;
    std::map<std::uint64_t, std::uint32_t> sizes_{};
};

}  // namespace pt_flow
