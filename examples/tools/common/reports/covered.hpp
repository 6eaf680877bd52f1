// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code coverage: a file in the format of drcov, and a bitmap of edges.

#include "../traced/images.hpp"
#include "report.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reports {

/// What a walk for coverage counts beside it.
struct walk_counts {
    tool::walk_summary found{};
    std::uint64_t wrong_turns = 0;  ///< of the gaps, also of those that are not shown
    left_out others{};

    /// A gap that is shown.
    void gap(flow::gap const& one) {
        found.gap(one);
        wrong_turns += one.why == flow::gap_reason::wrong_turn ? 1 : 0;
    }
};

/// Counts of edges, a byte each, that a thread of the tool makes.
class edge_collector {
public:
    static constexpr bool takes_jumps = true;

    /// For a walker whose edges all count. `runs` is of its cache of blocks.
    struct sink : flow::coverage {
        walk_counts& all;

        void gap(flow::gap const& one) { all.gap(one); }
    };
    /// Takes the edges back that `sink` counted.
    struct undo_sink {
        using ignores_gaps = undo_sink;
        edge_collector& from;

        void edge(flow::edge const& one) { from.counts_[from.all_.index_of(one)] -= 1; }
    };

    explicit edge_collector(std::size_t size) : counts_(size) {}
    edge_collector(edge_collector const&) = delete;
    auto operator=(edge_collector const&) -> edge_collector& = delete;

    template <class Code>
    void begin(Code const&) {}
    auto sink_for(walk_counts& all, flow::run_table* runs) -> sink {
        return {{counts_.data(), counts_.size(), runs}, all};
    }
    void block(flow::executed_block const&) {}
    void edge(flow::edge const& one) { all_.edge(one); }
    /// `walk(sink)` walks again what was walked since `begin`.
    template <class Walk>
    void undo(Walk const& walk) {
        walk(undo_sink{*this});
    }
    void add(edge_collector const& more) {
        for (std::size_t i = 0; i < counts_.size(); ++i) { counts_[i] += more.counts_[i]; }
    }
    [[nodiscard]] auto counts() const -> std::vector<std::uint8_t> const& { return counts_; }

private:
    std::vector<std::uint8_t> counts_;
    flow::coverage all_{counts_.data(), counts_.size()};
};

/// The sizes of blocks by their first address: of several, the maximum.
class block_sizes {
public:
    struct entry {
        std::uint64_t ip = 0;
        std::uint32_t size = 0;  ///< 0: not executed
        bool is_used = false;
    };

    /// Returns the size of before. Inlined, since most blocks are known.
    auto raise(std::uint64_t ip, std::uint32_t size) -> std::uint32_t {
        auto& one = at(ip);
        auto const before = one.size;
        if (size > before) { one.size = size; }
        return before;
    }
    void set(std::uint64_t ip, std::uint32_t size) { at(ip).size = size; }
    [[nodiscard]] auto all() const -> std::vector<entry> const& { return entries_; }

private:
    auto at(std::uint64_t ip) -> entry& {
        for (auto i = ip * 0x9E37'79B9'7F4A'7C15 >> shift_;; i = (i + 1) & (entries_.size() - 1)) {
            auto& one = entries_[i];
            if (one.is_used && one.ip == ip) [[likely]] { return one; }
            if (!one.is_used) { return add(one, ip); }
        }
    }
    [[gnu::noinline]] auto add(entry& free, std::uint64_t ip) -> entry& {
        if (++used_ <= entries_.size() / 2) {
            free = {ip, 0, true};
            return free;
        }
        used_ = 0;
        auto const before = std::exchange(entries_, std::vector<entry>(entries_.size() * 2));
        --shift_;
        for (auto const& one : before) {
            if (one.is_used) { at(one.ip).size = one.size; }
        }
        return at(ip);
    }

    unsigned shift_ = 64 - 12;
    std::vector<entry> entries_ = std::vector<entry>(std::size_t{1} << 12);
    std::size_t used_ = 0;
};

/// The executed blocks of processes, that a thread of the tool collects.
class block_collector {
public:
    static constexpr bool takes_jumps = false;
    using process = std::pair<std::uint32_t, std::uint32_t>;  ///< and its program

    struct sink {
        block_collector& to;
        walk_counts& all;

        void block(flow::executed_block const& one) {
            all.found.executed(one.count, true);
            to.block(one);
        }
        void gap(flow::gap const& one) { all.gap(one); }
    };

    block_collector() = default;
    block_collector(block_collector const&) = delete;
    auto operator=(block_collector const&) -> block_collector& = delete;

    /// What follows is executed by the thread of `code`.
    template <class Code>
    void begin(Code const& code) {
        changes_.clear();
        thread_ = code.changing_thread();
        auto const* const constant = code.constant_thread();
        enter(constant == nullptr ? process{no_process, 0}
                                  : process{constant->pid, constant->image});
    }
    auto sink_for(walk_counts& all, flow::run_table*) -> sink { return {*this, all}; }
    void block(flow::executed_block const& one) {
        if (thread_ != nullptr && (thread_->pid != now_.first || thread_->image != now_.second)) {
            enter({thread_->pid, thread_->image});
        }
        auto const before = sizes_->raise(one.ip, one.size);
        if (before < one.size) { changes_.push_back({sizes_, one.ip, before}); }
    }
    void edge(flow::edge const&) {}
    /// Forgets the blocks since `begin`.
    template <class Walk>
    void undo(Walk const&) {
        while (!changes_.empty()) {
            auto const& last = changes_.back();
            last.of->set(last.ip, last.before);
            changes_.pop_back();
        }
    }
    void add(block_collector const& more) {
        for (auto const& [of, sizes] : more.all_) {
            for (auto const& one : sizes.all()) {
                if (one.size != 0) { (void)all_[of].raise(one.ip, one.size); }
            }
        }
    }
    [[nodiscard]] auto all() const -> std::map<process, block_sizes> const& { return all_; }

private:
    struct change {
        block_sizes* of;
        std::uint64_t ip;
        std::uint32_t before;
    };

    void enter(process which) {
        now_ = which;
        sizes_ = &all_[which];
    }

    std::map<process, block_sizes> all_{};
    process now_{};
    block_sizes* sizes_ = nullptr;       ///< of `now_`
    thread_id const* thread_ = nullptr;  ///< that executes, if it changes
    std::vector<change> changes_{};      ///< since `begin`
};

/// A report for which the order of execution does not matter: threads of the tool collect without
/// records.
class coverage_report : public report {
public:
    [[nodiscard]] auto wants() const -> wanted override { return {}; }
    /// How many threads may collect.
    [[nodiscard]] virtual auto max_jobs() const -> unsigned { return ~0U; }
    /// Adds another report of the same form.
    virtual void add(coverage_report& more) {
        found.add(more.found);
        others.add(more.others);
    }
};

/// Counts edges.
class edge_counts : public coverage_report {
public:
    edge_counts(tool::output& to, std::size_t size) : to_{to}, size_{size}, own_{size} {}

    /// The bitmaps of threads have 1 GB.
    [[nodiscard]] auto max_jobs() const -> unsigned override {
        constexpr std::size_t most = std::size_t{1} << 30;
        return static_cast<unsigned>(std::clamp<std::size_t>(most / size_, 1, 256));
    }
    [[nodiscard]] auto own() -> edge_collector& { return own_; }
    [[nodiscard]] auto is_empty() const -> bool {
        auto const is_zero = [](std::uint8_t one) { return one == 0; };
        return std::ranges::all_of(own_.counts(), is_zero);
    }
    [[nodiscard]] auto another() const -> std::unique_ptr<edge_collector> {
        return std::make_unique<edge_collector>(size_);
    }
    void add(coverage_report& more) override {
        coverage_report::add(more);
        own_.add(dynamic_cast<edge_counts&>(more).own_);
    }
    void end() override {
        if (!is_empty()) { ++found.printed; }
        auto const& counts = own_.counts();
        to_.write({reinterpret_cast<char const*>(counts.data()), counts.size()});
    }

private:
    tool::output& to_;
    std::size_t size_;
    edge_collector own_;
};

/// The executed blocks of all processes. An event splits a block into two.
class covered_blocks : public coverage_report {
public:
    using module_of = std::function<std::optional<traced::module>(thread_id, std::uint64_t)>;

    /// `modules(thread, address)` is the file with code.
    covered_blocks(tool::output& to, module_of modules) : to_{to}, module_of_{std::move(modules)} {}

    [[nodiscard]] auto own() -> block_collector& { return own_; }
    [[nodiscard]] auto another() const -> std::unique_ptr<block_collector> {
        return std::make_unique<block_collector>();
    }
    void add(coverage_report& more) override {
        coverage_report::add(more);
        own_.add(dynamic_cast<covered_blocks&>(more).own_);
    }
    /// Writes lines of text, then an entry for each block: its offset in the module (4 bytes), its
    /// size (2 bytes), and the number of the module (2 bytes). Those of a file that several
    /// processes execute are one.
    void end() override {
        std::vector<traced::module> modules;
        std::map<std::string, std::size_t> numbers;
        std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t> blocks;
        for (auto const& [of, sizes] : own_.all()) {
            for (auto const& [ip, size] : sorted(sizes)) {
                auto const file = module_of_({of.first, 0, of.second}, ip);
                if (!file) { continue; }
                auto const key = file->path +
                                 (of.first == no_process ? tool::hex(file->address) : "");
                auto const [number, is_new] = numbers.try_emplace(key, modules.size());
                if (is_new) { modules.push_back(*file); }
                auto& kept = blocks[{number->second, ip - file->address}];
                kept = std::max(kept, size);
            }
        }
        found.printed += blocks.size();
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

    using sized = std::pair<std::uint64_t, std::uint32_t>;
    static auto sorted(block_sizes const& from) -> std::vector<sized> {
        std::vector<sized> made;
        for (auto const& one : from.all()) {
            if (one.size != 0) { made.emplace_back(one.ip, one.size); }
        }
        std::sort(made.begin(), made.end());
        return made;
    }

    tool::output& to_;
    module_of module_of_;
    block_collector own_{};
};

}  // namespace reports
