// SPDX-License-Identifier: BSL-1.0
#pragma once

// Prints in another thread, so that what is printed does not hold up the recording.

#include "live_walk.hpp"
#include "../common/reports/forms.hpp"
#include "../common/tool.hpp"

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pt_trace {

/// Prints what a file that grows says. It holds no more of the file in memory than a few rounds:
/// where printing is slower than the program, it goes on after it.
class live_printer {
public:
    /// `path` is the name of the file, which has `begin` bytes, with its AUXTRACE_INFO record. `to`
    /// is where it prints.
    live_printer(std::string const& path, std::uint64_t begin,
                 reports::report_options const& wanted, std::string const& to)
        : path_{path},
          file_{::open(path.c_str(), O_RDONLY | O_CLOEXEC)},
          read_{begin},
          out_{tool::output::growing(to)},
          thread_{[this, wanted] { run(wanted); }} {}
    live_printer(live_printer const&) = delete;
    auto operator=(live_printer const&) -> live_printer& = delete;
    ~live_printer() {
        end(true);
        if (thread_.joinable()) { thread_.join(); }
        if (file_ >= 0) { (void)::close(file_); }
    }

    /// The file has grown to `end` bytes: a round, which was read from the TSC `begin` on.
    void publish(std::uint64_t end, std::uint64_t begin) {
        std::lock_guard const held{lock_};
        bool const is_idle = rounds_.size() > 2 && rounds_.back().end == end;
        if (!is_idle) { rounds_.push_back({end, begin}); }
        changed_.notify_one();
    }
    /// Prints the rest, unless `is_interrupted()`. Returns whether all that executed is known.
    template <class IsInterrupted>
    auto finish(IsInterrupted const& is_interrupted) -> bool {
        end(false);
        {
            std::unique_lock held{lock_};
            while (!changed_.wait_for(held, std::chrono::milliseconds{100},
                                      [&] { return has_ended_; })) {
                if (!is_interrupted() || is_dropped_) { continue; }
                is_dropped_ = true;
                tool::print_error("interrupted: not all of the recording is printed");
            }
        }
        thread_.join();
        if (error_) { std::rethrow_exception(error_); }
        out_.close();
        return is_complete_ && !is_dropped_;
    }

private:
    struct round {
        std::uint64_t end;    ///< in the file
        std::uint64_t begin;  ///< TSC
    };

    void end(bool is_dropped) {
        std::lock_guard const held{lock_};
        is_last_ = true;
        is_dropped_ = is_dropped_ || is_dropped;
        changed_.notify_one();
    }
    /// In the thread.
    void run(reports::report_options const& wanted) {
        try {
            auto const report = [&](traced::processes& of, trace_file::conversion const& to_ns) {
                return reports::report_of_threads(wanted, out_, to_ns, of);
            };
            traced::code_files const where{.is_running = true};
            live_walk walk{bytes(0, read_), reports::words_of(wanted), where, out_, report};
            for (;;) {
                std::unique_lock held{lock_};
                changed_.wait(held, [&] { return !rounds_.empty() || is_last_; });
                if (rounds_.empty() || is_dropped_) { break; }
                auto const next = rounds_.front();
                rounds_.pop_front();
                held.unlock();
                walk.add_round(bytes(read_, next.end), next.begin);
                read_ = next.end;
            }
            is_complete_ = walk.finish();
        } catch (...) { error_ = std::current_exception(); }
        std::lock_guard const held{lock_};
        has_ended_ = true;
        changed_.notify_one();
    }
    [[nodiscard]] auto bytes(std::uint64_t from, std::uint64_t end) const
        -> std::vector<std::uint8_t> {
        std::vector<std::uint8_t> made(static_cast<std::size_t>(end - from));
        for (std::size_t done = 0; done < made.size();) {
            auto const got = ::pread(file_, made.data() + done, made.size() - done,
                                     static_cast<::off_t>(from + done));
            if (got < 0 && errno == EINTR) { continue; }
            if (got <= 0) {
                throw tool::failure{path_ + ": " +
                                    (got < 0 ? std::strerror(errno) : "it was changed")};
            }
            done += static_cast<std::size_t>(got);
        }
        return made;
    }

    std::string path_;
    int file_;
    std::uint64_t read_;
    tool::output out_;
    std::mutex lock_{};  // of what follows
    std::condition_variable changed_{};
    std::deque<round> rounds_{};
    bool is_last_ = false;
    bool is_dropped_ = false;
    bool has_ended_ = false;
    bool is_complete_ = false;
    std::exception_ptr error_{};
    std::thread thread_;
};

}  // namespace pt_trace
