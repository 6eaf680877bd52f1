// SPDX-License-Identifier: BSL-1.0
#pragma once

// A file with the check that runs and the MSRs before it, for the next start after a hang.

#include "../common/numbers.hpp"
#include "../common/tool.hpp"

#include <ptspec/access/pt_msrs.hpp>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pt_suite {

using namespace ptspec;

/// Why nothing can be asked: the exit status 3.
struct not_asked : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct msr_value {
    std::uint32_t index = 0;
    std::uint64_t value = 0;

    friend auto operator==(msr_value const&, msr_value const&) -> bool = default;
};

/// What a journal says.
struct journal_entry {
    std::string boot{};  ///< the id of the boot of Linux; empty: unknown
    unsigned cpu = 0;
    std::vector<std::string> ended_early{};  ///< checks of earlier starts that did not end
    std::string check{};                     ///< the check that runs; empty: none
    std::vector<msr_value> msrs{};           ///< before it

    friend auto operator==(journal_entry const&, journal_entry const&) -> bool = default;
};

namespace detail {

inline constexpr std::string_view journal_head = "pt_suite journal 1";
inline constexpr std::string_view journal_end = "end";

inline auto is_name(std::string_view word) -> bool {
    return !word.empty() && word.size() <= 100 &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == word.npos;
}
inline auto number_in(std::string_view word, int base) -> std::optional<std::uint64_t> {
    std::uint64_t number = 0;
    auto const* const end = word.data() + word.size();
    auto const [stop, error] = std::from_chars(word.data(), end, number, base);
    if (error != std::errc{} || stop != end) { return std::nullopt; }
    return number;
}
/// Adds a line to an entry. False if it is none of a journal.
inline auto add_line(journal_entry& to, std::string_view line) -> bool {
    auto const words = tool::words_of(line);
    if (words.size() != 2) { return false; }
    if (words[0] == "boot") {
        to.boot = words[1];
        return is_name(words[1]);
    }
    if (words[0] == "cpu") {
        auto const cpu = number_in(words[1], 10);
        to.cpu = static_cast<unsigned>(cpu.value_or(0));
        return cpu && *cpu <= 0xFFFF;
    }
    if (words[0] == "early") {
        to.ended_early.emplace_back(words[1]);
        return is_name(words[1]);
    }
    if (words[0] == "check") {
        to.check = words[1];
        return is_name(words[1]);
    }
    auto const index = number_in(words[0], 16);
    auto const value = number_in(words[1], 16);
    if (!index || !value || *index > UINT32_MAX) { return false; }
    msr_value const one{static_cast<std::uint32_t>(*index), *value};
    // These values are written to a processor.
    bool const enables = one.index == access::ia32_rtit_ctl::address && (one.value & 1) != 0;
    to.msrs.push_back(one);
    return access::is_pt_msr(one.index) && !enables;
}

}  // namespace detail

inline auto text_of(journal_entry const& from) -> std::string {
    std::string made{detail::journal_head};
    made += '\n';
    if (!from.boot.empty()) { made += "boot " + from.boot + '\n'; }
    for (auto const& one : from.ended_early) { made += "early " + one + '\n'; }
    if (!from.check.empty()) {
        made += "cpu " + std::to_string(from.cpu) + "\ncheck " + from.check + '\n';
        for (auto const& one : from.msrs) {
            made += tool::hex(one.index).substr(2) + ' ' + tool::hex(one.value).substr(2) + '\n';
        }
    }
    return made.append(detail::journal_end) + '\n';
}
/// The entry of a text that has its last line. A text that was cut says nothing: its check had not
/// begun.
///
/// Errors: throws `tool::failure` if it is not the text of a journal.
inline auto entry_of(std::string_view text, std::string const& path)
    -> std::optional<journal_entry> {
    journal_entry made;
    unsigned number = 0;
    bool has_ended = false;
    auto const refuse = [&] {
        throw tool::failure{path + ": line " + std::to_string(number) +
                            ": not a journal of pt_suite"};
    };
    if (text.empty() || text.back() != '\n') { return std::nullopt; }
    tool::for_each_line(text, [&](std::string_view line) {
        ++number;
        if (has_ended || (number == 1 && line != detail::journal_head)) { refuse(); }
        if (number == 1) { return; }
        has_ended = line == detail::journal_end;
        if (!has_ended && !detail::add_line(made, line)) { refuse(); }
    });
    if (!has_ended) { return std::nullopt; }
    return made;
}

/// The file. It is locked, so that a second start does not take a running check for one that hung.
class journal {
public:
    static constexpr std::size_t max_bytes = std::size_t{1} << 20;

    /// Opens the file, or makes it.
    ///
    /// Errors: throws `tool::failure`: it cannot be opened, another user can write it, or it is no
    ///         journal; `not_asked`: another process has it.
    explicit journal(std::string path) : path_{std::move(path)} {
        for (bool is_there = false; !is_there;) {
            close();
            constexpr int how = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
            file_ = ::open(path_.c_str(), how, 0600);
            if (file_ < 0) {
                throw tool::failure{path_ + ": " + std::strerror(errno) +
                                    "; --journal FILE names another"};
            }
            lock();
            // Another process may have removed it before it was locked.
            struct stat now{};
            is_there = ::stat(path_.c_str(), &now) == 0 && now.st_ino == about_.st_ino &&
                       now.st_dev == about_.st_dev;
        }
        bool const is_mine = S_ISREG(about_.st_mode) && about_.st_uid == ::geteuid() &&
                             (about_.st_mode & 022) == 0;
        if (!is_mine) {
            close();
            throw tool::failure{path_ +
                                ": another user can write it; --journal FILE names another"};
        }
        try {
            read();
        } catch (...) {
            close();
            throw;
        }
    }
    journal(journal const&) = delete;
    auto operator=(journal const&) -> journal& = delete;
    ~journal() { close(); }

    [[nodiscard]] auto path() const -> std::string const& { return path_; }
    /// What the last start left.
    [[nodiscard]] auto found() const -> std::optional<journal_entry> const& { return found_; }

    /// Writes an entry, and waits until it is stored. False, and errno, if it is not.
    [[nodiscard]] auto write(journal_entry const& entry) -> bool {
        auto const text = text_of(entry);
        if (text == written_) { return true; }
        written_.clear();
        if (::ftruncate(file_, 0) != 0) { return false; }
        auto const done = ::pwrite(file_, text.data(), text.size(), 0);
        if (done != static_cast<ssize_t>(text.size())) {
            if (done >= 0) { errno = ENOSPC; }
            return false;
        }
        if (::fsync(file_) != 0 || !store_name()) { return false; }
        written_ = text;
        return true;
    }
    /// Says that no check runs. What it says of earlier starts stays.
    [[nodiscard]] auto clear(journal_entry entry) -> bool {
        entry.check.clear();
        entry.msrs.clear();
        if (!entry.ended_early.empty()) { return write(entry); }
        written_.clear();
        return ::ftruncate(file_, 0) == 0;
    }
    /// Removes the file: all checks have ended.
    void remove() { (void)::unlink(path_.c_str()); }

private:
    void lock() {
        if (::fstat(file_, &about_) == 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0) { return; }
        int const error = errno;
        close();
        if (error == EWOULDBLOCK) { throw not_asked{path_ + ": another pt_suite uses it"}; }
        throw tool::failure{path_ + ": " + std::strerror(error)};
    }
    void close() {
        if (file_ >= 0) { (void)::close(file_); }
        file_ = -1;
    }
    void read() {
        std::string text(max_bytes + 1, '\0');
        auto const count = ::pread(file_, text.data(), text.size(), 0);
        if (count < 0) { throw tool::failure{path_ + ": " + std::strerror(errno)}; }
        text.resize(static_cast<std::size_t>(count));
        if (text.size() > max_bytes) { throw tool::failure{path_ + ": more than 1 MB"}; }
        found_ = entry_of(text, path_);
    }
    /// Stores the name of a new file, once.
    auto store_name() -> bool {
        if (has_name_) { return true; }
        auto const slash = path_.rfind('/');
        auto const folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
        int const opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (opened < 0) { return false; }
        has_name_ = ::fsync(opened) == 0;
        (void)::close(opened);
        return has_name_;
    }

    std::string path_;
    int file_ = -1;
    struct stat about_{};
    bool has_name_ = false;
    std::optional<journal_entry> found_{};
    std::string written_{};  ///< what the file has
};

}  // namespace pt_suite
