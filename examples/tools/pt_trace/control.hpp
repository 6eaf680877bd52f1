// SPDX-License-Identifier: BSL-1.0
#pragma once

// Commands of another program, through a FIFO, as `perf record --control` takes them.

#include "../common/tool.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace pt_trace {

/// `fifo:CTL[,ACK]`: a line `enable`, `disable` or `stop` in CTL; `ack` answers it in ACK.
class control {
public:
    /// Throws if a FIFO cannot be opened.
    explicit control(std::string const& words) {
        constexpr std::string_view prefix = "fifo:";
        if (!words.starts_with(prefix)) {
            throw tool::failure{tool::quoted(words) + ": no fifo:CTL[,ACK]"};
        }
        auto const comma = words.find(',');
        commands_ = open(words.substr(prefix.size(), comma - prefix.size()));
        if (comma != std::string::npos) { answers_ = open(words.substr(comma + 1)); }
    }
    control(control const&) = delete;
    auto operator=(control const&) -> control& = delete;
    ~control() {
        (void)::close(commands_);
        if (answers_ >= 0) { (void)::close(answers_); }
    }

    [[nodiscard]] auto descriptor() const -> int { return commands_; }
    /// The next command, or nothing.
    auto next() -> std::string {
        char piece[256];
        auto const got = ::read(commands_, piece, sizeof piece);
        if (got > 0) { pending_.append(piece, static_cast<std::size_t>(got)); }
        auto const end = pending_.find('\n');
        if (end == std::string::npos) { return {}; }
        auto const command = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return command;
    }
    void answer() const {
        constexpr std::string_view text = "ack\n";
        if (answers_ >= 0 && ::write(answers_, text.data(), text.size()) < 0) {
            tool::print_error(std::string{"--control: "} + std::strerror(errno));
        }
    }

private:
    static auto open(std::string const& path) -> int {
        // For reading and writing: neither the open nor the end of another program blocks.
        int const file = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (file < 0) { throw tool::failure{path + ": " + std::strerror(errno)}; }
        return file;
    }

    int commands_ = -1;
    int answers_ = -1;
    std::string pending_{};
};

}  // namespace pt_trace
