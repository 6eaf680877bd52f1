// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/ports/perf_event/failure.hpp>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/// Starts a program that is to be traced from its first instruction on.
namespace ptspec::ports::perf_event {

/// A child process that waits before it executes its program. If it does not execute it before
/// this object is destroyed, it is killed.
class program {
public:
    program() noexcept = default;
    program(program const&) = delete;
    auto operator=(program const&) -> program& = delete;
    ~program() {
        if (thread_ > 0 && go_ >= 0) {
            (void)::kill(thread_, SIGKILL);
            (void)wait();
        }
        close(go_);
        close(result_);
    }

    /// Makes the process. `arguments` are those of execvp(3): the program, and a null pointer at
    /// the end.
    ///
    /// Errors: too_many_files, no_memory, other; no_program, if there is none.
    auto start(char* const* arguments) noexcept -> trace_result {
        if (arguments[0] == nullptr) { return {failure::no_program, ENOENT}; }
        int go[2] = {-1, -1}, result[2] = {-1, -1};
        bool const has_pipes = ::pipe2(go, O_CLOEXEC) == 0 && ::pipe2(result, O_CLOEXEC) == 0;
        thread_ = has_pipes ? ::fork() : -1;
        if (thread_ == 0) {
            close(go[1]);
            execute(arguments, go[0], result[1]);
        }
        int const error = thread_ < 0 ? errno : 0;
        close(go[0]);
        close(result[1]);
        go_ = go[1];
        result_ = result[0];
        return error == 0                           ? trace_result{}
               : error == EMFILE || error == ENFILE ? trace_result{failure::too_many_files, error}
               : error == ENOMEM                    ? trace_result{failure::no_memory, error}
                                                    : trace_result{failure::other, error};
    }
    /// Lets the process execute its program.
    ///
    /// Errors: no_program, with the errno of execvp(3).
    auto run() noexcept -> trace_result {
        char const byte = 0;
        bool const is_written = write_all(go_, &byte, 1);
        close(go_);
        int error = is_written ? 0 : EPIPE;
        ssize_t got = 0;
        do { got = ::read(result_, &error, sizeof error); } while (got < 0 && errno == EINTR);
        close(result_);
        return {error == 0 ? failure::none : failure::no_program, error};
    }
    [[nodiscard]] auto thread() const noexcept -> int { return thread_; }
    /// Waits for the end. Returns the status of waitpid(2); -1 if there is no process.
    auto wait() noexcept -> int {
        int status = 0;
        pid_t done = 0;
        do { done = ::waitpid(thread_, &status, 0); } while (done < 0 && errno == EINTR);
        return done < 0 ? -1 : status;
    }

private:
    [[noreturn]] static void execute(char* const* arguments, int go, int result) noexcept {
        char byte = 0;
        ssize_t got = 0;
        do { got = ::read(go, &byte, 1); } while (got < 0 && errno == EINTR);
        if (got == 1) {
            (void)::execvp(arguments[0], arguments);
            int const error = errno;
            (void)write_all(result, &error, sizeof error);
        }
        ::_exit(127);
    }
    /// A pipe takes so few bytes at once.
    static auto write_all(int to, void const* bytes, size_t count) noexcept -> bool {
        ssize_t done = 0;
        do { done = ::write(to, bytes, count); } while (done < 0 && errno == EINTR);
        return done == static_cast<ssize_t>(count);
    }
    static void close(int& file) noexcept {
        if (file >= 0) { (void)::close(file); }
        file = -1;
    }

    pid_t thread_ = -1;
    int go_ = -1;      ///< a byte in it lets the process continue
    int result_ = -1;  ///< the errno of execvp, or its end
};

}  // namespace ptspec::ports::perf_event
