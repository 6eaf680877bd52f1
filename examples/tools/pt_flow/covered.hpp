// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code coverage: a file in the format of drcov, and a bitmap of edges.

#include "../common/traced/images.hpp"
#include "report.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

/// The executed blocks of all processes. An event splits a block into two.
class covered_blocks : public report {
public:
    using module_of = std::function<std::optional<traced::module>(thread_id, std::uint64_t)>;

    /// `modules(thread, address)` is the file with code.
    covered_blocks(tool::output& to, module_of modules) : to_{to}, module_of_{std::move(modules)} {}

    [[nodiscard]] auto wants() const -> wanted override { return {.blocks = true}; }
    void thread(thread_id which) override { process_ = {which.pid, which.image}; }
    void block(flow::executed_block const& one) override {
        if (!is_shown) { return; }
        auto& size = sizes_[{process_, one.ip}];
        size = std::max(size, one.size);
    }
    /// Writes lines of text, then an entry for each block: its offset in the module (4 bytes), its
    /// size (2 bytes), and the number of the module (2 bytes). Those of a file that several
    /// processes execute are one.
    void end() override {
        std::vector<traced::module> modules;
        std::map<std::string, std::size_t> numbers;
        std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t> blocks;
        for (auto const& [at, size] : sizes_) {
            auto const found = module_of_({at.first.first, 0, at.first.second}, at.second);
            if (!found) { continue; }
            auto const key = found->path +
                             (at.first.first == no_process ? tool::hex(found->address) : "");
            auto const [number, is_new] = numbers.try_emplace(key, modules.size());
            if (is_new) { modules.push_back(*found); }
            auto& kept = blocks[{number->second, at.second - found->address}];
            kept = std::max(kept, size);
        }
        to_.write("DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\n");
        to_.write("Module Table: version 2, count " + std::to_string(modules.size()) + "\n");
        to_.write("Columns: id, base, end, entry, path\n");
        for (std::size_t i = 0; i < modules.size(); ++i) {
            auto const& one = modules[i];
            to_.write(std::to_string(i) + ", " + tool::hex(one.address) + ", " +
                      tool::hex(one.address + one.size) + ", 0x0, " + tool::one_line(one.path) +
                      "\n");
        }
        to_.write("BB Table: " + std::to_string(blocks.size()) + " bbs\n");
        std::string entries;
        for (auto const& [at, size] : blocks) {
            put(entries, at.second, 4);
            put(entries, std::min(size, 0xFFFFU), 2);
            put(entries, at.first, 2);
        }
        to_.write(entries);
    }

private:
    static void put(std::string& to, std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) { to += static_cast<char>(value >> 8 * i & 0xFF); }
    }

    tool::output& to_;
    module_of module_of_;
    using process = std::pair<std::uint32_t, std::uint32_t>;  // and its program
    process process_{no_process, 0};
    std::map<std::pair<process, std::uint64_t>, std::uint32_t> sizes_{};
};

}  // namespace pt_flow
