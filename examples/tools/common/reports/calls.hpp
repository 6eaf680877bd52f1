// SPDX-License-Identifier: BSL-1.0
#pragma once

// The calls of the threads of a trace.

#include "../traced/symbols.hpp"
#include "report.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reports {

/// The stacks of a thread, but the one that executes.
inline constexpr std::size_t max_stacks = 255;

/// Takes the calls of one thread.
class call_printer {
public:
    explicit call_printer(traced::symbols const& names) : names_{names} {}
    call_printer(call_printer const&) = delete;
    auto operator=(call_printer const&) -> call_printer& = delete;
    virtual ~call_printer() = default;

    /// `count` is the number of instructions since the last report, all in the newest frame.
    virtual void executed(std::uint64_t ip, std::uint64_t count) = 0;
    virtual void call(flow::call const& one) = 0;
    virtual void returned(flow::call_return const& one) = 0;
    virtual void switched(flow::stack_switch const& one) = 0;
    virtual void gap(flow::gap const&) {}
    /// Writes the lines that are complete.
    virtual void flush() {}
    /// Writes what is not yet written, before lines of another thread. Calls stay open.
    virtual void pause() {}
    /// Whether `end` writes something.
    [[nodiscard]] virtual auto has_rest() const -> bool { return true; }
    /// Writes the rest.
    virtual void end() = 0;

    void update_names() { names_.forget(); }
    auto function_at(std::uint64_t ip) -> flow::function { return names_.range_at(ip); }
    auto stack_use_at(std::uint64_t ip) -> flow::stack_use { return names_.stack_use_at(ip); }

    bool is_shown = true;       ///< false outside of the times that are wanted
    std::uint64_t printed = 0;  ///< lines of calls or stacks

protected:
    traced::address_names names_;
};

/// Reports the calls of each thread. `Printer` prints those of one.
class calls_by_thread : public report {
public:
    using symbols_of_thread = std::function<traced::symbols const&(thread_id)>;

    /// `names(thread)` are the symbols of a thread, and `make(thread)` returns its printer.
    /// `has_titles`: a line before its calls names the thread. `prints_at_once`: it prints before
    /// the end.
    template <class Make>
    calls_by_thread(tool::output& to, wanted const& of, bool has_titles, bool prints_at_once,
                    flow::stack_choice choice, symbols_of_thread names, Make make)
        : to_{to},
          wants_{of},
          has_titles_{has_titles},
          prints_at_once_{prints_at_once},
          choice_{choice},
          names_of_{std::move(names)},
          make_{std::move(make)} {
        wants_.functions = true;
        wants_.events = choice == flow::stack_choice::by_ptwrite;
    }

    [[nodiscard]] auto wants() const -> wanted override { return wants_; }
    [[nodiscard]] auto symbols_of(thread_id which) const -> traced::symbols const* override {
        return &names_of_(which);
    }
    void update_names() override {
        for (auto& [thread, one] : all_) { one->printer->update_names(); }
    }
    void executed(std::uint64_t ip, std::uint64_t count) override {
        auto& calls = now();
        calls.stack.execute(ip);
        calls.printer->executed(ip, count);
    }
    void edge(flow::edge const& one) override {
        auto& calls = now();
        calls.stack.time(when_);
        calls.stack.edge(one);
    }
    void start(std::uint64_t ip, std::uint32_t space) override {
        auto& calls = now();
        calls.stack.time(when_);
        calls.stack.start(ip, space);
    }
    void stop(flow::stop const& one) override {
        auto& calls = now();
        calls.stack.time(when_);
        calls.stack.stop(one);
    }
    void written(std::uint64_t ip, std::uint64_t payload) override {
        now().stack.select(payload, ip);
    }
    void gap(flow::gap const& one) override { now().stack.gap(one); }
    void time(trace::time const& when) override {
        when_ = when;
        if (last_ != nullptr) { last_->printer->is_shown = is_shown; }
    }
    void thread(thread_id which) override {
        if (last_ != nullptr && last_->thread == which) { return; }
        if (last_ != nullptr) { last_->printer->pause(); }
        auto& calls = all_[{which.tid, which.is_guest}];
        if (calls != nullptr && !(calls->thread == which)) { end_of(*calls); }
        if (calls == nullptr || !(calls->thread == which)) {
            calls.reset(new thread_calls{which, make_(which), choice_});
        }
        if (prints_at_once_) { title(which); }
        last_ = calls.get();
        last_->printer->is_shown = is_shown;
    }
    void flush() override {
        if (last_ != nullptr) { last_->printer->flush(); }
    }
    void end() override {
        auto* const first = prints_at_once_ ? last_ : nullptr;  // its title is printed
        if (first != nullptr) { end_of(*first); }
        for (auto& [thread, one] : all_) {
            if (one.get() != first) { end_of(*one); }
        }
    }

private:
    struct thread_calls {
        thread_id thread;
        std::unique_ptr<call_printer> printer;
        flow::stack_choice choice;
        std::vector<flow::frame> frames = std::vector<flow::frame>(4096);
        std::vector<flow::stack> stacks = std::vector<flow::stack>(max_stacks);
        flow::call_stack<call_printer> stack{frames.data(), frames.size(), stacks.data(),
                                             stacks.size(), *printer,      choice};
    };

    auto now() -> thread_calls& {
        if (last_ == nullptr) { thread({no_process, no_process, 0}); }
        return *last_;
    }
    void end_of(thread_calls& one) {
        bool const is_other = !prints_at_once_ || (&one != last_ && one.printer->has_rest());
        if (is_other) { title(one.thread); }
        last_ = &one;
        one.printer->end();
        found.printed += one.printer->printed;
        dropped_stacks_ += one.stack.dropped_stacks();
    }
    void title(thread_id which) {
        if (!has_titles_) { return; }
        auto const number = [](std::uint32_t value) {
            return value == no_process ? std::string{"?"} : std::to_string(value);
        };
        to_.write("thread " + number(which.pid) + "/" + number(which.tid) +
                  (which.is_guest ? " guest\n" : "\n"));
    }

    tool::output& to_;
    wanted wants_;
    bool has_titles_;
    bool prints_at_once_;
    flow::stack_choice choice_;
    symbols_of_thread names_of_;
    std::function<std::unique_ptr<call_printer>(thread_id)> make_;
    std::map<std::pair<std::uint32_t, bool>, std::unique_ptr<thread_calls>> all_{};
    thread_calls* last_ = nullptr;
    trace::time when_{};
    std::uint64_t dropped_stacks_ = 0;
};

}  // namespace reports
