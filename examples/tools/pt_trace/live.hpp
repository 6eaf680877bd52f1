// SPDX-License-Identifier: BSL-1.0
#pragma once

// Prints in a thread of its own, so that the recording does not wait for what is printed.

#include "live_walk.hpp"
#include "../common/reports/forms.hpp"
#include "../common/tool.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace pt_trace {

/// Prints what a growing perf.data file says. It reads the file round by round, so that its memory
/// does not grow when printing is slower than the program.
class live_printer {
public:
    /// `path` is the file. Its first `begin` bytes include the AUXTRACE_INFO record. `to` is the
    /// file that is printed to.
    live_printer(std::string const& path, std::uint64_t begin,
                 reports::report_options const& wanted, std::string const& to)
        : file_{path},
          read_{begin},
          out_{tool::output::growing(to)},
          thread_{[this, wanted] { run(wanted); }} {}
    live_printer(live_printer const&) = delete;
    auto operator=(live_printer const&) -> live_printer& = delete;
    ~live_printer() {
        stop(false);
        if (thread_.joinable()) { thread_.join(); }
    }

    /// A round ends: the file has `end` bytes. `begin` is the TSC when its reading began.
    void publish(std::uint64_t end, std::uint64_t begin) {
        std::lock_guard const held{lock_};
        bool const is_idle = rounds_.size() > 2 && rounds_.back().end == end;
        if (!is_idle) { rounds_.push_back({end, begin}); }
        changed_.notify_one();
    }
    /// Prints the rest, up to `is_interrupted()`. Returns false if what executed is not all known,
    /// or not all printed. A reader that closes a pipe ends the printing without a message.
    template <class IsInterrupted>
    auto finish(IsInterrupted const& is_interrupted) -> bool {
        stop(true);
        {
            std::unique_lock held{lock_};
            while (!changed_.wait_for(held, std::chrono::milliseconds{100},
                                      [&] { return has_ended_; })) {
                if (!is_interrupted() || !prints_rest_) { continue; }
                prints_rest_ = false;
                tool::print_error("interrupted: not all of the recording is printed");
            }
        }
        thread_.join();
        if (error_) { std::rethrow_exception(error_); }
        if (out_.error() == EPIPE) { return true; }
        if (out_.error() == 0) { out_.close(); }
        if (out_.error() != 0) { tool::print_error(out_.error_text()); }
        return is_complete_ && out_.error() == 0;
    }

private:
    struct round {
        std::uint64_t end;    ///< in the file
        std::uint64_t begin;  ///< TSC
    };

    /// There are no more rounds.
    void stop(bool prints_rest) {
        std::lock_guard const held{lock_};
        is_stopped_ = true;
        prints_rest_ = prints_rest_ && prints_rest;
        changed_.notify_one();
    }
    /// The function of the thread.
    void run(reports::report_options const& wanted) {
        try {
            is_complete_ = print(wanted);
        } catch (...) { error_ = std::current_exception(); }
        std::lock_guard const held{lock_};
        has_ended_ = true;
        changed_.notify_one();
    }
    auto print(reports::report_options const& wanted) -> bool {
        auto const report = [&](traced::processes& of, trace_file::conversion const& to_ns) {
            return reports::report_of_threads(wanted, out_, to_ns, of);
        };
        traced::code_files const where{.is_running = true};
        live_walk walk{next_bytes(read_), reports::name_of(wanted), where, out_, report};
        while (out_.error() == 0) {
            std::unique_lock held{lock_};
            changed_.wait(held, [&] { return !rounds_.empty() || is_stopped_; });
            if (!prints_rest_) { return false; }
            if (rounds_.empty()) { return walk.finish(); }
            auto const next = rounds_.front();
            rounds_.pop_front();
            held.unlock();
            walk.add_round(next_bytes(next.end - read_), next.begin);
            read_ = next.end;
        }
        return false;
    }
    auto next_bytes(std::uint64_t count) -> std::vector<std::uint8_t> {
        std::vector<std::uint8_t> made(static_cast<std::size_t>(count));
        if (file_.read(made.data(), made.size()) != made.size()) {
            throw tool::unreadable{file_.name() + ": the file was changed"};
        }
        return made;
    }

    tool::input file_;
    std::uint64_t read_;  ///< bytes of the file
    tool::output out_;
    bool is_complete_ = false;
    std::exception_ptr error_{};
    std::mutex lock_{};  // of what follows
    std::condition_variable changed_{};
    std::deque<round> rounds_{};
    bool is_stopped_ = false;
    bool prints_rest_ = true;
    bool has_ended_ = false;
    std::thread thread_;
};

}  // namespace pt_trace
