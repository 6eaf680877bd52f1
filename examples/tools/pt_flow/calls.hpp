// SPDX-License-Identifier: BSL-1.0
#pragma once

// The calls of a trace: as a tree, and as the stacks of a flame graph.

#include "../common/clock_options.hpp"
#include "../common/event_names.hpp"
#include "../common/traced/symbols.hpp"
#include "listing.hpp"
#include "report.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace pt_flow {

/// The maximum number of open frames. If there are more, the tree has no line for the end of the
/// oldest.
inline constexpr std::size_t max_frames = 65536;

/// How calls are printed.
struct call_format {
    bool has_times = false;  ///< print times, durations and cycles
    trace_file::conversion to_ns{};
    /// Print only functions at these addresses, if they are not empty.
    std::vector<flow::ip_range> only{};
};

/// Takes the calls of one thread.
class call_printer {
public:
    call_printer() = default;
    call_printer(call_printer const&) = delete;
    auto operator=(call_printer const&) -> call_printer& = delete;
    virtual ~call_printer() = default;

    /// `count` is the number of instructions since the last report, the first at `ip`.
    virtual void executed(std::uint64_t ip, std::uint64_t count) = 0;
    virtual void call(flow::call const& one) = 0;
    virtual void returned(flow::call_return const& one) = 0;
    virtual void gap(flow::gap const&) {}
    /// The function that contains an address; 0: not known.
    virtual auto function_of(std::uint64_t ip) -> std::uint64_t = 0;
    /// Writes what is not yet written.
    virtual void end() = 0;

    bool is_shown = true;  ///< false outside of the times that are wanted
};

/// Prints a line for each call and each return, in the order of execution:
///
///              | main() {
///           12 |   puts@plt();
///          345 | } /* main */
///
/// The number is that of the instructions of the call, including those of the functions it called.
class call_tree : public call_printer {
public:
    call_tree(tool::output& to, traced::symbols const& names, call_format const& how)
        : to_{to}, names_{names}, how_{how} {}

    void executed(std::uint64_t, std::uint64_t count) override { count_ += count; }
    void call(flow::call const& one) override {
        bool const is_hidden = !is_wanted(one.frame.to);
        if (!is_hidden) { open_pending(); }
        if (open_.size() == max_frames) { open_.erase(open_.begin(), open_.begin() + 1024); }
        auto const depth = how_.only.empty() ? one.depth - 1 : shown_depth_;
        open_.push_back({one.frame.to, depth, count_, one.when, is_hidden});
        if (is_hidden) { return; }
        ++shown_depth_;
        pending_ = open_.back();
        is_pending_ = true;
        is_event_ = one.frame.kind == flow::frame_kind::event;
    }
    void returned(flow::call_return const& one) override {
        if (one.frames == 0 && open_.empty()) {
            open_pending();
            if (!is_shown || !how_.only.empty()) { return; }
            begin_line(one.when, nullptr);
            end_line(one.depth, "} /* a function that was called before the trace */");
            return;
        }
        auto left = std::max(one.frames, std::uint32_t{1});  // 0: the stack had no room for it
        for (; left != 0 && !open_.empty(); --left) { close(one.when); }
    }
    void gap(flow::gap const& one) override {
        open_pending();
        if (!is_shown) { return; }
        std::string text{"/* not known: "};
        text += events::name_of_gap(one.why);
        if (one.has_from) { text += " from " + names_.of(one.from); }
        if (one.has_to) { text += " to " + names_.of(one.to); }
        begin_line({}, nullptr);
        end_line(!how_.only.empty() ? shown_depth_
                 : open_.empty()    ? 0
                                    : open_.back().depth + 1,
                 text + " */");
    }
    auto function_of(std::uint64_t ip) -> std::uint64_t override { return names_.function_of(ip); }
    void end() override {
        open_pending();
        to_.flush();
    }

private:
    struct frame {
        std::uint64_t function;
        std::int64_t depth;   ///< outside of it
        std::uint64_t count;  ///< of instructions before it
        trace::time when;
        bool is_hidden;
    };

    [[nodiscard]] auto is_wanted(std::uint64_t function) const -> bool {
        return how_.only.empty() ||
               std::any_of(how_.only.begin(), how_.only.end(),
                           [&](auto const& one) { return one.contains(function); });
    }
    /// A time in seconds, if the frequency of the TSC is known, or in ticks.
    void time_column(trace::time const& when) {
        constexpr std::size_t width = 22;
        if (!when.is_absolute() || when.is_guest) { return (void)to_.blank(width); }
        if (!how_.to_ns.is_known()) { return (void)to_.column(width, when.tsc); }
        constexpr std::uint64_t second = 1'000'000'000;
        auto const ns = how_.to_ns.ns(when.tsc);
        to_.column(width - 10, ns / second).text(".");
        to_.text(std::string_view{std::to_string(second + ns % second)}.substr(1));
    }
    /// The columns before the bar. Those of a call that ends, `when`, have its duration, its cycles
    /// and its instructions.
    void begin_line(trace::time const& when, frame const* of) {
        if (how_.has_times) {
            bool const is_end = of != nullptr && !is_pending_;
            time_column(is_end || of == nullptr ? when : of->when);
            if (of != nullptr && of->when.is_absolute() && !when.is_guest) {
                auto const& to_ns = how_.to_ns;
                to_.column(13, to_ns.is_known() ? to_ns.ns(when.tsc) - to_ns.ns(of->when.tsc)
                                                : when.tsc - of->when.tsc);
            } else {
                to_.blank(13);
            }
            of != nullptr ? to_.column(13, when.cycles - of->when.cycles) : to_.blank(13);
        }
        of != nullptr ? to_.column(12, count_ - of->count) : to_.blank(12);
        to_.text(" | ");
    }
    template <class... Parts>
    void end_line(std::int64_t depth, Parts const&... parts) {
        to_.blank(2 * static_cast<std::size_t>(std::clamp<std::int64_t>(depth, 0, 60)));
        (to_.text(parts), ...);
        to_.end();
    }
    /// Prints the last call, which is no leaf.
    void open_pending() {
        if (!is_pending_) { return; }
        is_pending_ = false;
        if (!is_shown) { return; }
        begin_line(pending_.when, nullptr);
        end_line(pending_.depth, names_.of(pending_.function),
                 is_event_ ? "() { /* event */" : "() {");
    }
    void close(trace::time const& when) {
        auto const last = open_.back();
        open_.pop_back();
        if (last.is_hidden) { return; }
        --shown_depth_;
        bool const is_leaf = is_pending_;
        if (is_shown) {
            begin_line(when, &last);
            auto const& name = names_.of(last.function);
            if (is_leaf) {
                end_line(last.depth, name, is_event_ ? "(); /* event */" : "();");
            } else {
                end_line(last.depth, "} /* ", name, " */");
            }
        }
        is_pending_ = false;
    }

    line_writer to_;
    traced::address_names names_;
    call_format how_;
    std::vector<frame> open_{};
    std::int64_t shown_depth_ = 0;  ///< of the frames that are not hidden
    std::uint64_t count_ = 0;
    frame pending_{};
    bool is_pending_ = false;  ///< the line of the last call is not printed
    bool is_event_ = false;    ///< of that call
};

/// Counts the instructions in each stack of functions. The output is the input of flame graphs:
/// `a;b;c 12`.
class folded_stacks : public call_printer {
public:
    folded_stacks(tool::output& to, traced::symbols const& names) : to_{to}, names_{names} {
        nodes_.emplace_back();
    }

    void executed(std::uint64_t ip, std::uint64_t count) override {
        if (now_ == 0) { now_ = child_of(0, ip); }
        nodes_[now_].count += is_shown ? count : 0;
    }
    void call(flow::call const& one) override {
        if (now_ == 0) { now_ = child_of(0, one.frame.from); }
        auto const child = beyond_ != 0 ? now_ : child_of(now_, one.frame.to);
        if (child == now_) { ++beyond_; }
        now_ = child;
    }
    void returned(flow::call_return const& one) override {
        auto left = std::max(one.frames, std::uint32_t{1});  // 0: the stack had no room for it
        for (; left != 0 && beyond_ != 0; --left) { --beyond_; }
        for (; left != 0 && now_ != 0; --left) { now_ = nodes_[now_].parent; }
    }
    auto function_of(std::uint64_t ip) -> std::uint64_t override { return names_.function_of(ip); }
    void end() override {
        std::string stack;
        for (auto const& [function, child] : nodes_[0].children) { print(child, stack); }
    }

private:
    /// Beyond these limits, instructions are counted for the caller.
    static constexpr std::size_t max_nodes = std::size_t{1} << 20;
    static constexpr unsigned max_depth = 1024;

    struct node {
        std::uint64_t function = 0;
        std::size_t parent = 0;
        unsigned depth = 0;
        std::uint64_t count = 0;
        std::map<std::uint64_t, std::size_t> children{};
    };

    /// Prints the stacks from a node on. `stack` is that of its callers. In a name, `:` replaces
    /// the separator.
    void print(std::size_t at, std::string& stack) {
        auto const& of = nodes_[at];
        auto const size = stack.size();
        auto const* const found = names_.function_at(of.function);
        stack += found == nullptr ? names_.of(of.function) : found->name;
        std::replace(stack.begin() + static_cast<std::ptrdiff_t>(size), stack.end(), ';', ':');
        if (of.count != 0) { to_.write(stack + " " + std::to_string(of.count) + "\n"); }
        stack += ';';
        for (auto const& [function, child] : of.children) { print(child, stack); }
        stack.resize(size);
    }
    auto child_of(std::size_t parent, std::uint64_t address) -> std::size_t {
        auto const called = nodes_[parent].children.find(address);
        if (called != nodes_[parent].children.end()) { return called->second; }
        auto const* const found = names_.function_at(address);
        auto const function = found == nullptr ? address : found->address;
        auto const known = nodes_[parent].children.find(function);
        if (known != nodes_[parent].children.end()) { return known->second; }
        auto const depth = nodes_[parent].depth + 1;
        if (nodes_.size() == max_nodes || depth > max_depth) { return parent; }
        nodes_.push_back({function, parent, depth, 0, {}});
        nodes_[parent].children.emplace(function, nodes_.size() - 1);
        return nodes_.size() - 1;
    }

    tool::output& to_;
    traced::address_names names_;
    std::vector<node> nodes_{};
    std::size_t now_ = 0;
    std::uint64_t beyond_ = 0;  ///< calls that have no node
};

/// Reports the calls of each thread. `Printer` prints those of one.
class calls_by_thread : public report {
public:
    /// `make(thread)` returns the printer of a thread. `has_titles`: a line before its calls names
    /// the thread. `prints_at_once`: it prints before the end.
    template <class Make>
    calls_by_thread(tool::output& to, wanted const& of, bool has_titles, bool prints_at_once,
                    Make make)
        : to_{to},
          wants_{of},
          has_titles_{has_titles},
          prints_at_once_{prints_at_once},
          make_{std::move(make)} {}

    [[nodiscard]] auto wants() const -> wanted override { return wants_; }
    void executed(std::uint64_t ip, std::uint64_t count) override {
        now().printer->executed(ip, count);
    }
    void edge(flow::edge const& one) override {
        auto& calls = now();
        calls.stack.time(when_);
        calls.stack.edge(one);
    }
    void start(std::uint64_t ip, std::uint32_t space) override { now().stack.start(ip, space); }
    void stop(std::uint64_t ip, std::uint32_t space) override { now().stack.stop(ip, space); }
    void gap(flow::gap const& one) override { now().stack.gap(one); }
    void time(trace::time const& when) override {
        when_ = when;
        if (last_ != nullptr) { last_->printer->is_shown = is_shown; }
    }
    void thread(thread_id which) override {
        if (last_ != nullptr && last_->thread == which) { return; }
        if (prints_at_once_ && last_ != nullptr) { last_->printer->end(); }
        auto& found = all_[which.tid];
        if (found != nullptr && !(found->thread == which)) { end_of(*found); }
        if (found == nullptr || !(found->thread == which)) {
            found.reset(new thread_calls{which, make_(which)});
        }
        if (prints_at_once_) { title(which); }
        last_ = found.get();
        last_->printer->is_shown = is_shown;
    }
    void end() override {
        for (auto& [tid, one] : all_) { end_of(*one); }
    }

private:
    struct thread_calls {
        thread_id thread;
        std::unique_ptr<call_printer> printer;
        std::vector<flow::frame> frames = std::vector<flow::frame>(4096);
        flow::call_stack<call_printer> stack{frames.data(), frames.size(), *printer};
    };

    auto now() -> thread_calls& {
        if (last_ == nullptr) { thread({no_process, no_process, 0}); }
        return *last_;
    }
    void end_of(thread_calls& one) {
        if (!prints_at_once_) { title(one.thread); }
        one.printer->end();
    }
    void title(thread_id which) {
        if (!has_titles_) { return; }
        auto const number = [](std::uint32_t value) {
            return value == no_process ? std::string{"?"} : std::to_string(value);
        };
        to_.write("thread " + number(which.pid) + "/" + number(which.tid) + "\n");
    }

    tool::output& to_;
    wanted wants_;
    bool has_titles_;
    bool prints_at_once_;
    std::function<std::unique_ptr<call_printer>(thread_id)> make_;
    std::map<std::uint32_t, std::unique_ptr<thread_calls>> all_{};
    thread_calls* last_ = nullptr;
    trace::time when_{};
};

}  // namespace pt_flow
