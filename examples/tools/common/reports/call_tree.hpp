// SPDX-License-Identifier: BSL-1.0
#pragma once

// The calls of a thread as a tree.

#include "../calls/frame_names.hpp"
#include "../clock_options.hpp"
#include "../event_names.hpp"
#include "calls.hpp"
#include "listing.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reports {

/// The maximum number of open frames of a stack. If there are more, the tree has no line for the
/// end of the oldest.
inline constexpr std::size_t max_frames = 65536;

/// How calls are printed.
struct call_format {
    bool has_times = false;  ///< print times, durations and cycles
    trace_file::conversion to_ns{};
    /// Print only functions at these addresses, if they are not empty.
    std::vector<flow::ip_range> only{};
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
        : call_printer{names}, to_{to}, how_{how} {}

    void executed(std::uint64_t, std::uint64_t count) override { now_->count += count; }
    void call(flow::call const& one) override {
        last_ = one.when;
        auto const& of = one.frame;
        bool const is_hidden = !is_wanted(of.to) || of.kind == flow::frame_kind::stopped;
        if (!is_hidden || of.kind == flow::frame_kind::stopped) { open_pending(); }
        auto& open = now_->open;
        if (open.size() == max_frames) { open.erase(open.begin(), open.begin() + 1024); }
        auto const depth = how_.only.empty() ? static_cast<std::int64_t>(open.size())
                                             : now_->shown_depth;
        open.push_back(
            {of.to, of.replaced, depth, now_->count, one.when, of.kind, of.why, !is_wanted(of.to)});
        if (open.back().is_hidden) { return; }
        ++now_->shown_depth;
        pending_ = open.back();
        is_pending_ = true;
    }
    void returned(flow::call_return const& one) override {
        last_ = one.when;
        for (auto left = one.frames; left != 0 && !now_->open.empty(); --left) { close(one.when); }
    }
    void switched(flow::stack_switch const& one) override {
        open_pending();
        now_ = &stacks_[one.entered];
        if (one.is_new) { *now_ = {}; }
        if (!is_shown) { return; }
        begin_line(one.when, nullptr);
        end_line(0, "/* stack ", std::to_string(one.entered), " */");
    }
    void gap(flow::gap const& one) override {
        open_pending();
        if (!is_shown) { return; }
        std::string text{"/* not known: "};
        text += events::name_of_gap(one.why);
        if (one.has_from) { text += " from " + names_.of(one.from); }
        if (one.has_to) { text += " to " + names_.of(one.to); }
        begin_line(last_, nullptr);
        end_line(how_.only.empty() ? static_cast<std::int64_t>(now_->open.size())
                                   : now_->shown_depth,
                 text + " */");
    }
    void flush() override { to_.flush(); }
    void pause() override {
        open_pending();
        to_.flush();
    }
    [[nodiscard]] auto has_rest() const -> bool override {
        return std::any_of(stacks_.begin(), stacks_.end(), [](auto const& one) {
            return std::any_of(one.second.open.begin(), one.second.open.end(),
                               [](auto const& of) { return !of.is_hidden; });
        });
    }
    /// Prints a line for each frame that has not returned, too.
    void end() override {
        is_at_end_ = true;
        close_all();
        auto const* const last = now_;
        for (auto& [number, one] : stacks_) {
            if (&one == last || one.open.empty()) { continue; }
            now_ = &one;
            if (is_shown) {
                begin_line(last_, nullptr);
                end_line(0, "/* stack ", std::to_string(number), " */");
            }
            close_all();
        }
        to_.flush();
    }

private:
    struct frame {
        std::uint64_t function;
        std::uint64_t replaced;  ///< the function whose tail call it is
        std::int64_t depth;      ///< outside of it
        std::uint64_t count;     ///< of instructions before it
        trace::time when;
        flow::frame_kind kind;
        flow::stop_reason why;
        bool is_hidden;
    };
    struct stack {
        std::vector<frame> open{};
        std::int64_t shown_depth = 0;  ///< of the frames that are not hidden
        std::uint64_t count = 0;       ///< instructions
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
            if (of != nullptr && of->when.is_absolute() && when.is_absolute() && !when.is_guest) {
                auto const& to_ns = how_.to_ns;
                to_.column(13, to_ns.is_known() ? to_ns.ns(when.tsc) - to_ns.ns(of->when.tsc)
                                                : when.tsc - of->when.tsc);
                to_.column(13, when.cycles - of->when.cycles);
            } else {
                to_.blank(26);
            }
        }
        of != nullptr ? to_.column(12, now_->count - of->count) : to_.blank(12);
        to_.text(" | ");
    }
    void indent(std::int64_t depth) {
        to_.blank(2 * static_cast<std::size_t>(std::clamp<std::int64_t>(depth, 0, 60)));
    }
    template <class... Parts>
    void end_line(std::int64_t depth, Parts const&... parts) {
        indent(depth);
        (to_.text(parts), ...);
        to_.end();
    }
    /// The name of a frame, with `after` if it is a function.
    void name(frame const& of, std::string_view after) {
        if (of.kind == flow::frame_kind::stopped) { return (void)to_.text(calls::name_of(of.why)); }
        to_.text(names_.of(of.function)).text(after);
    }
    /// How the frame began, if it was not called.
    void mark(frame const& of) {
        switch (of.kind) {
            case flow::frame_kind::event: to_.text(" /* event */"); break;
            case flow::frame_kind::tail_call:
                to_.text(" /* [tail of ").text(names_.of(of.replaced)).text("] */");
                break;
            case flow::frame_kind::unseen: to_.text(" /* call not traced */"); break;
            default: break;
        }
    }
    /// Prints the last call, which is no leaf.
    void open_pending() {
        if (!is_pending_) { return; }
        is_pending_ = false;
        if (!is_shown) { return; }
        ++printed;
        begin_line(pending_.when, nullptr);
        indent(pending_.depth);
        name(pending_, "()");
        to_.text(" {");
        mark(pending_);
        to_.end();
    }
    void close_all() {
        while (!now_->open.empty()) { close(last_); }
    }
    void close(trace::time const& when) {
        auto const last = now_->open.back();
        now_->open.pop_back();
        if (last.is_hidden) { return; }
        --now_->shown_depth;
        bool const is_leaf = is_pending_;
        if (is_shown) {
            ++printed;
            begin_line(when, &last);
            indent(last.depth);
            if (is_leaf) {
                name(last, "()");
                to_.text(";");
                mark(last);
                if (is_at_end_) { to_.text(" /* not returned */"); }
            } else {
                to_.text("} /* ");
                name(last, "");
                to_.text(is_at_end_ ? ", not returned */" : " */");
            }
            to_.end();
        }
        is_pending_ = false;
    }

    line_writer to_;
    call_format how_;
    std::map<std::uint32_t, stack> stacks_{{0, {}}};
    stack* now_ = &stacks_.begin()->second;
    frame pending_{};
    bool is_pending_ = false;  ///< the line of the last call is not printed
    bool is_at_end_ = false;
    trace::time last_{};  ///< of the last call or return
};

}  // namespace reports
