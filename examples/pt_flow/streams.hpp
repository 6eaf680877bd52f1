// SPDX-License-Identifier: BSL-1.0
#pragma once

// Walks the streams of a perf.data file.

#include "calls.hpp"
#include "processes.hpp"

#include <ptspec/flow.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/no_clock.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace pt_flow {

/// Walks a stream: the trace between two gaps is one walk.
template <class Clock, class Sink>
void walk_stream(trace_file::stream const& of, traced_code& code, flow::block_cache& cache,
                 flow::walk_options const& how, Clock clock, Sink& to) {
    std::optional<flow::walker<traced_code, Clock>> walk;
    walk.emplace(code, cache, how, clock);
    bool is_fed = false;
    std::uint64_t end = 0;
    auto const end_walk = [&] {
        if (!is_fed) { return; }
        walk->finish();
        (void)walk->run(to);
        clock = walk->clock();
        if constexpr (!std::is_empty_v<Clock>) { clock.lose(); }
        walk.emplace(code, cache, how, clock);
        is_fed = false;
    };
    trace_file::for_each_piece(
        of,
        [&](byte_view bytes) {
            is_fed = walk->feed(borrowed_bytes{bytes.data(), bytes.size()});
            end += bytes.size();
            (void)walk->run(to);
        },
        [&](trace_file::gap const&) {
            end_walk();
            if constexpr (requires { to.walk_offset; }) { to.walk_offset = end; }
        },
        [](trace_file::partial const&) {});
    end_walk();
}
/// The same, with a clock only if the code depends on times: a clock doubles the time of a walk.
template <class Sink>
void walk_stream(trace_file::stream const& of, traced_code& code, flow::block_cache& cache,
                 flow::walk_options const& how, Sink& to) {
    if (code.needs_time()) {
        walk_stream(of, code, cache, how, trace::clock{trace_file::clock_of(of, {}, {})}, to);
    } else {
        walk_stream(of, code, cache, how, trace::no_clock{}, to);
    }
}

/// Reports the calls of each thread.
template <class Report>
class calls_by_thread {
public:
    calls_by_thread(tool::output& to, processes& in, traced_code const& code)
        : to_{to}, in_{in}, code_{code} {}

    std::uint64_t gaps = 0;

    void block(flow::executed_block const& one) { now().stack.block(one); }
    void edge(flow::edge const& one) { now().stack.edge(one); }
    void start(std::uint64_t ip, std::uint32_t space) { now().stack.start(ip, space); }
    void gap(flow::gap const& one) {
        ++gaps;
        now().stack.gap(one);
    }
    void end() {
        for (auto& [thread, one] : all_) {
            title(one->thread);
            one->report.end();
        }
    }

private:
    struct thread_calls {
        file::perf_data::thread_id thread;
        Report report;
        std::vector<flow::frame> frames = std::vector<flow::frame>(4096);
        flow::call_stack<Report> stack{frames.data(), frames.size(), report};
    };

    auto now() -> thread_calls& {
        auto const& thread = code_.thread();
        if (last_ != nullptr && last_->thread.tid == thread.tid && last_->thread.pid == thread.pid)
            [[likely]] {
            return *last_;
        }
        return change_to(thread);
    }
    [[gnu::noinline]] auto change_to(file::perf_data::thread_id thread) -> thread_calls& {
        auto& found = all_[thread.tid];
        if (found == nullptr || !(found->thread == thread)) {
            found.reset(new thread_calls{thread, Report{to_, in_.names_of(thread.pid)}});
        }
        if constexpr (prints_at_once<Report>) {
            if (last_ != nullptr) { last_->report.end(); }
            title(thread);
        }
        last_ = found.get();
        return *last_;
    }
    void title(file::perf_data::thread_id thread) {
        if (thread == titled_) { return; }
        titled_ = thread;
        auto const number = [](std::uint32_t value) {
            return value == processes::no_process ? std::string{"?"} : std::to_string(value);
        };
        to_.write("thread " + number(thread.pid) + "/" + number(thread.tid) + "\n");
    }

    tool::output& to_;
    processes& in_;
    traced_code const& code_;
    std::map<std::uint32_t, std::unique_ptr<thread_calls>> all_{};
    thread_calls* last_ = nullptr;
    file::perf_data::thread_id titled_{0, 0};
};

}  // namespace pt_flow
