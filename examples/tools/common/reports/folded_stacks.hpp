// SPDX-License-Identifier: BSL-1.0
#pragma once

// The instructions of a thread by stack of functions.

#include "calls.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace reports {

/// Counts the instructions in each stack of functions. The output is the input of flame graphs:
/// `a;b;c 12`.
class folded_stacks : public call_printer {
public:
    folded_stacks(tool::output& to, traced::symbols const& names) : call_printer{names}, to_{to} {
        nodes_.emplace_back();
    }

    void executed(std::uint64_t ip, std::uint64_t count) override {
        if (now_ == 0) { now_ = child_of(0, ip); }  // without symbols
        nodes_[now_].count += is_shown ? count : 0;
    }
    void call(flow::call const& one) override {
        auto& path = now_path();
        if (path.size() == max_path) { path.erase(path.begin(), path.begin() + 1024); }
        path.push_back(now_);
        if (one.frame.kind == flow::frame_kind::stopped) { return; }
        now_ = child_of(now_, one.frame.to);
    }
    void returned(flow::call_return const& one) override {
        auto& path = now_path();
        for (auto left = one.frames; left != 0 && !path.empty(); --left) {
            now_ = path.back();
            path.pop_back();
        }
        if (one.frames == 0) { now_ = 0; }
    }
    void switched(flow::stack_switch const& one) override {
        stacks_[number_].now = now_;
        number_ = one.entered;
        path_ = nullptr;
        auto& entered = stacks_[number_];
        if (one.is_new) { entered = {}; }
        now_ = entered.now;
    }
    void end() override {
        std::string callers;
        for (auto const& [function, child] : nodes_[0].children) { print(child, callers); }
        if (leaves_out_) {
            tool::print_error("too many or too deep stacks: callers of some are left out");
        }
    }

private:
    static constexpr std::size_t max_nodes = std::size_t{1} << 20;
    static constexpr std::size_t max_path = std::size_t{1} << 20;
    static constexpr unsigned max_depth = 1024;

    struct node {
        std::uint64_t function = 0;
        std::size_t parent = 0;
        unsigned depth = 0;
        std::uint64_t count = 0;
        std::map<std::uint64_t, std::size_t> children{};
    };
    /// A child that was called.
    struct called {
        std::uint64_t address = 0;
        std::size_t parent = 0;
        std::size_t child = 0;
    };
    struct stack {
        std::size_t now = 0;              ///< the node of the newest frame
        std::vector<std::size_t> path{};  ///< those of its callers, the oldest first
    };

    auto now_path() -> std::vector<std::size_t>& {
        if (path_ == nullptr) { path_ = &stacks_[number_].path; }
        return *path_;
    }
    /// Prints the stacks from a node on. `callers` are the names of its callers. In a name, `:`
    /// replaces the separator.
    void print(std::size_t at, std::string& callers) {
        auto const& of = nodes_[at];
        auto const size = callers.size();
        auto const* const found = names_.range_at(of.function).symbol;
        callers += found == nullptr ? names_.of(of.function) : found->name;
        std::replace(callers.begin() + static_cast<std::ptrdiff_t>(size), callers.end(), ';', ':');
        if (of.count != 0) {
            ++printed;
            to_.write(callers + " " + std::to_string(of.count) + "\n");
        }
        callers += ';';
        for (auto const& [function, child] : of.children) { print(child, callers); }
        callers.resize(size);
    }
    /// Beyond `max_depth`, the callers next to the newest frame are left out; when there are too
    /// many stacks, all callers.
    auto child_of(std::size_t parent, std::uint64_t address) -> std::size_t {
        auto& kept = kept_[(address ^ parent << 4) % kept_.size()];
        if (kept.address != address || kept.parent != parent || kept.child == 0) {
            kept = {address, parent, find_child(parent, address)};
        }
        return kept.child;
    }
    auto find_child(std::size_t parent, std::uint64_t address) -> std::size_t {
        if (nodes_[parent].depth == max_depth) {
            leaves_out_ = true;
            parent = nodes_[parent].parent;
        }
        auto const& of = names_.range_at(address);
        auto const function = of.has_symbol ? of.entry : address;
        auto const known = nodes_[parent].children.find(function);
        if (known != nodes_[parent].children.end()) { return known->second; }
        if (nodes_.size() >= max_nodes && parent != 0) {
            leaves_out_ = true;
            return find_child(0, address);
        }
        nodes_.push_back({function, parent, nodes_[parent].depth + 1, 0, {}});
        nodes_[parent].children.emplace(function, nodes_.size() - 1);
        return nodes_.size() - 1;
    }

    tool::output& to_;
    std::vector<node> nodes_{};
    std::vector<called> kept_ = std::vector<called>(4096);
    std::size_t now_ = 0;
    std::map<std::uint32_t, stack> stacks_{};
    std::uint32_t number_ = 0;
    bool leaves_out_ = false;                   ///< callers, at a limit
    std::vector<std::size_t>* path_ = nullptr;  ///< of stack `number_`
};

}  // namespace reports
