// SPDX-License-Identifier: BSL-1.0
#pragma once

// The calls of a trace: as a tree, and as the stacks of a flame graph.

#include "listing.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace pt_flow {

/// The maximum number of open frames. If there are more, the tree has no line for the end of the
/// oldest.
inline constexpr std::size_t most_frames = 65536;

/// Prints a line for each call and each return, in the order of execution:
///
///              | main() {
///           12 |   puts@plt();
///          345 | } /* main */
///
/// The number is that of the instructions of the call, including those of the functions it called.
class call_tree {
public:
    call_tree(tool::output& to, symbols const& names) : to_{to}, names_{names} {}

    void block(flow::executed_block const& one) { count_ += one.count; }
    void call(flow::call const& one) {
        open_pending();
        if (open_.size() == most_frames) { open_.erase(open_.begin(), open_.begin() + 1024); }
        open_.push_back({one.frame.to, one.depth, count_});
        is_pending_ = true;
        is_event_ = one.frame.kind == flow::frame_kind::event;
    }
    void returned(flow::call_return const& one) {
        if (one.frames == 0) {
            line({}, one.depth, "} /* a function that was called before the trace */");
            open_.clear();
            return;
        }
        auto left = static_cast<std::size_t>(one.frames);
        for (; left != 0 && !open_.empty(); --left) { close(); }
    }
    void gap(flow::gap const& one) {
        open_pending();
        std::string text{"/* not known: "};
        text += name_of(one.why);
        if (one.has_from) { text += " from " + names_.name_of(one.from); }
        if (one.has_to) { text += " to " + names_.name_of(one.to); }
        line({}, open_.empty() ? 0 : open_.back().depth, text + " */");
        ++gaps;
    }
    void end() { open_pending(); }

    std::uint64_t gaps = 0;

private:
    struct frame {
        std::uint64_t function;
        std::int64_t depth;
        std::uint64_t count;  ///< of instructions before it
    };

    void line(std::string const& number, std::int64_t depth, std::string_view text) {
        std::string made(number.size() < 12 ? 12 - number.size() : 0, ' ');
        made += number;
        made += " | ";
        made.append(2 * static_cast<std::size_t>(std::clamp<std::int64_t>(depth, 0, 60)), ' ');
        made += text;
        made += '\n';
        to_.write(made);
    }
    /// Prints the last call, which is no leaf.
    void open_pending() {
        if (!is_pending_) { return; }
        is_pending_ = false;
        auto const& last = open_.back();
        line({}, last.depth - 1,
             names_.name_of(last.function) + (is_event_ ? "() { /* event */" : "() {"));
    }
    void close() {
        auto const last = open_.back();
        auto const number = std::to_string(count_ - last.count);
        auto const name = names_.name_of(last.function);
        if (is_pending_) {
            line(number, last.depth - 1, name + (is_event_ ? "(); /* event */" : "();"));
        } else {
            line(number, last.depth - 1, "} /* " + name + " */");
        }
        is_pending_ = false;
        open_.pop_back();
    }

    tool::output& to_;
    symbols const& names_;
    std::vector<frame> open_{};
    std::uint64_t count_ = 0;
    bool is_pending_ = false;  ///< the line of the last call is not printed
    bool is_event_ = false;    ///< of that call
};

/// The report prints during the walk, not at its end.
template <class Report>
inline constexpr bool prints_at_once = false;
template <>
inline constexpr bool prints_at_once<call_tree> = true;

/// Counts the instructions in each stack of functions. The output is the input of flame graphs:
/// `a;b;c 12`.
class folded_stacks {
public:
    folded_stacks(tool::output& to, symbols const& names) : to_{to}, names_{names} {
        nodes_.emplace_back();
    }

    void block(flow::executed_block const& one) {
        if (now_ == 0) { now_ = child_of(0, one.ip); }
        nodes_[now_].count += one.count;
    }
    void call(flow::call const& one) {
        if (now_ == 0) { now_ = child_of(0, one.frame.from); }
        auto const child = beyond_ != 0 ? now_ : child_of(now_, one.frame.to);
        if (child == now_) { ++beyond_; }
        now_ = child;
    }
    void returned(flow::call_return const& one) {
        auto left = one.frames;
        for (; left != 0 && beyond_ != 0; --left) { --beyond_; }
        for (; left != 0 && now_ != 0; --left) { now_ = nodes_[now_].parent; }
        if (one.frames == 0) { now_ = beyond_ = 0; }
    }
    void gap(flow::gap const&) { ++gaps; }
    void end() {
        std::string stack;
        for (auto const& [function, child] : nodes_[0].children) { print(child, stack); }
    }

    std::uint64_t gaps = 0;

private:
    /// Beyond these limits, instructions are counted for the caller.
    static constexpr std::size_t most_nodes = std::size_t{1} << 20;
    static constexpr unsigned most_depth = 1024;

    struct node {
        std::uint64_t function = 0;
        std::size_t parent = 0;
        unsigned depth = 0;
        std::uint64_t count = 0;
        std::map<std::uint64_t, std::size_t> children{};
    };

    /// `stack` is that of the callers.
    void print(std::size_t at, std::string& stack) const {
        auto const& of = nodes_[at];
        auto const size = stack.size();
        auto const* const found = names_.at(of.function);
        stack += found == nullptr ? names_.name_of(of.function) : found->name;
        if (of.count != 0) { to_.write(stack + " " + std::to_string(of.count) + "\n"); }
        stack += ';';
        for (auto const& [function, child] : of.children) { print(child, stack); }
        stack.resize(size);
    }
    auto child_of(std::size_t parent, std::uint64_t address) -> std::size_t {
        auto const* const found = names_.at(address);
        auto const function = found == nullptr ? address : found->address;
        auto const known = nodes_[parent].children.find(function);
        if (known != nodes_[parent].children.end()) { return known->second; }
        auto const depth = nodes_[parent].depth + 1;
        if (nodes_.size() == most_nodes || depth > most_depth) { return parent; }
        nodes_.push_back({function, parent, depth, 0, {}});
        nodes_[parent].children.emplace(function, nodes_.size() - 1);
        return nodes_.size() - 1;
    }

    tool::output& to_;
    symbols const& names_;
    std::vector<node> nodes_{};
    std::size_t now_ = 0;
    std::uint64_t beyond_ = 0;  ///< calls that have no node
};

}  // namespace pt_flow
