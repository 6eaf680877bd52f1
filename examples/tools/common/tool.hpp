// SPDX-License-Identifier: BSL-1.0
#pragma once

// What all tools share: the command line, files, standard output and the exit status.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tool {

/// The exit status for wrong usage, a rejected script, and files that cannot be read or written.
inline constexpr int failed = 2;

/// Ends the tool with status `failed` and this message.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
/// A file that cannot be read.
struct unreadable : failure {
    using failure::failure;
};

/// The name of the running tool, set by `run`.
inline std::string_view name{};

/// Makes a text fit on one line: control characters become `?`.
inline auto one_line(std::string_view text) -> std::string {
    std::string line{text};
    for (char& letter : line) {
        if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7F') { letter = '?'; }
    }
    return line;
}

/// The words of a text, between one or more separators.
inline auto words_of(std::string_view text, std::string_view separators = " ")
    -> std::vector<std::string_view> {
    std::vector<std::string_view> made;
    while (!text.empty()) {
        auto const end = std::min(text.find_first_of(separators), text.size());
        if (end != 0) { made.push_back(text.substr(0, end)); }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return made;
}

/// Calls `take(line)` for each line of a text.
template <class Take>
void for_each_line(std::string_view text, Take const& take) {
    while (!text.empty()) {
        auto const end = std::min(text.find('\n'), text.size());
        take(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

/// Sorts, and keeps the order of equal elements. clang 19 warns of what std::stable_sort of GCC 12
/// calls.
template <class Value, class Less>
void stable_sort(std::vector<Value>& all, Less const& less) {
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) { order[i] = i; }
    std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t two) {
        if (less(all[one], all[two])) { return true; }
        return !less(all[two], all[one]) && one < two;
    });
    std::vector<Value> sorted;
    sorted.reserve(all.size());
    for (auto const i : order) { sorted.push_back(std::move(all[i])); }
    all = std::move(sorted);
}

/// A text from a script, made safe for messages: printable, and of bounded length.
inline auto clipped(std::string_view text) -> std::string {
    constexpr std::size_t most = 60;
    std::string safe;
    for (char const letter : text.substr(0, most)) {
        safe += letter >= ' ' && letter <= '~' ? letter : '?';
    }
    return safe + (text.size() > most ? "..." : "");
}
inline auto quoted(std::string_view text) -> std::string { return "'" + clipped(text) + "'"; }

/// True while standard error shows a progress bar.
inline std::atomic<bool> shows_progress{false};
inline void clear_progress() {
    if (shows_progress.exchange(false)) { std::fputs("\r\033[K", stderr); }
}

/// Writes a line to standard error: the tool's name and a message.
inline void print_error(std::string_view message) {
    clear_progress();
    auto const line = one_line(std::string{name}.append(": ").append(message)) + '\n';
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

// ------------------------------------------------------------------------------------ files

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A file opened for reading; `-` is standard input. Every function throws `unreadable` on an
/// error.
class input {
public:
    explicit input(std::string const& path) : name_{path == "-" ? "standard input" : path} {
        if (path != "-") { owned_.reset(std::fopen(path.c_str(), "rb")); }
        from_ = path == "-" ? stdin : owned_.get();
        if (from_ == nullptr || ::fstat(::fileno(from_), &about_) != 0) { refuse(); }
        if (S_ISDIR(about_.st_mode)) { throw unreadable{name_ + ": Is a directory"}; }
    }

    /// The next byte, or EOF.
    auto get() -> int {
        int const byte = ::getc_unlocked(from_);
        if (byte == EOF) { check(); }
        return byte;
    }
    /// Reads up to `size` bytes. Returns fewer only at the end of the file.
    auto read(void* to, std::size_t size) -> std::size_t {
        std::size_t const count = std::fread(to, 1, size, from_);
        if (count < size) { check(); }
        return count;
    }
    /// Continues at this offset of a regular file.
    void seek(std::uint64_t offset) {
        if (::fseeko(from_, static_cast<::off_t>(offset), SEEK_SET) != 0) { refuse(); }
    }
    [[nodiscard]] auto at_end() const -> bool { return std::feof(from_) != 0; }
    /// The position in a regular file; 2^64 - 1 when there is none.
    [[nodiscard]] auto offset() const -> std::uint64_t {
        return static_cast<std::uint64_t>(::ftello(from_));
    }
    [[nodiscard]] auto descriptor() const -> int { return ::fileno(from_); }
    [[nodiscard]] auto name() const -> std::string const& { return name_; }
    /// The size of a regular file; 0 when the size is unknown.
    [[nodiscard]] auto size() const -> std::uint64_t {
        return S_ISREG(about_.st_mode) ? static_cast<std::uint64_t>(about_.st_size) : 0;
    }
    /// True when `path` is the same file: writing to it would change the input.
    [[nodiscard]] auto is(std::string const& path) const -> bool {
        struct stat other{};
        return S_ISREG(about_.st_mode) && ::stat(path.c_str(), &other) == 0 &&
               other.st_dev == about_.st_dev && other.st_ino == about_.st_ino;
    }

private:
    [[noreturn]] void refuse() const { throw unreadable{name_ + ": " + std::strerror(errno)}; }
    void check() const {
        if (std::ferror(from_) != 0) { refuse(); }
    }

    std::string name_;
    file owned_{nullptr, std::fclose};
    std::FILE* from_ = nullptr;
    struct stat about_{};
};

/// The bytes of a file; it throws if there are more than `most`.
inline auto read_all(std::string const& path, std::size_t most) -> std::vector<std::uint8_t> {
    input in{path};
    std::vector<std::uint8_t> all;
    std::uint8_t piece[65536];
    for (;;) {
        std::size_t const count = in.read(piece, sizeof piece);
        all.insert(all.end(), piece, piece + count);
        if (all.size() > most) {
            throw failure{path + ": more than " + std::to_string(most >> 20) + " MB"};
        }
        if (count < sizeof piece) { return all; }
    }
}

namespace detail {

/// The paths of files that are not complete. Where the program ends early, they are removed.
class unfinished_files {
public:
    void add(std::string const& path) {
        std::lock_guard const held{lock_};
        all_.insert(path);
    }
    /// Keeps a file, which is complete.
    void keep(std::string const& path) {
        std::lock_guard const held{lock_};
        all_.erase(path);
    }
    void remove(std::string const& path) {
        remove_file(path);
        keep(path);
    }
    /// Allocates nothing: memory may be exhausted.
    void remove_all() {
        if (!lock_.try_lock()) { return; }
        for (auto const& path : all_) { remove_file(path); }
        lock_.unlock();
    }

private:
    static void remove_file(std::string const& path) {
        if (::unlink(path.c_str()) != 0) { (void)!::truncate(path.c_str(), 0); }
    }

    std::mutex lock_{};
    std::set<std::string> all_{};
};
inline unfinished_files unfinished{};

/// Ends the program from any thread with status `failed`, and a message if it is not empty. It does
/// not throw, because a write may be called by a noexcept function, such as a walker.
[[noreturn]] inline void end_program(std::string const& message) {
    static std::mutex is_ending;
    is_ending.lock();  // for ever: the first message is the only one
    unfinished.remove_all();
    clear_progress();
    if (!message.empty()) {
        (void)std::fflush(stdout);
        print_error(message);
    }
    std::_Exit(failed);
}

}  // namespace detail

/// A file opened for writing; `-` is standard output. It has its name once `close` is called: until
/// then a regular file has the name PATH.PID.part, and without `close` it is removed.
///
/// Errors: the constructor throws `failure`. A failed write ends the program: without a message if
///         the reader of a pipe closed it. `try_write` and `try_close` return false, and errno.
class output {
public:
    explicit output(std::string const& path = "-") : name_{path == "-" ? "standard output" : path} {
        if (path == "-") {
            to_ = stdout;
            return;
        }
        owned_.reset(open(path));
        to_ = owned_.get();
        if (to_ == nullptr) { throw failure{error_text()}; }
    }
    output(output&& from) noexcept
        : name_{std::move(from.name_)},
          target_{std::move(from.target_)},
          path_{std::exchange(from.path_, {})},
          owned_{std::move(from.owned_)},
          to_{from.to_},
          keeps_error_{from.keeps_error_},
          error_{from.error_} {}
    auto operator=(output&& from) noexcept -> output& {
        std::swap(name_, from.name_);
        std::swap(target_, from.target_);
        std::swap(path_, from.path_);
        std::swap(owned_, from.owned_);
        std::swap(to_, from.to_);
        std::swap(keeps_error_, from.keeps_error_);
        std::swap(error_, from.error_);
        return *this;
    }
    ~output() {
        owned_.reset();
        if (!path_.empty()) { detail::unfinished.remove(path_); }
    }

    /// A file that has its name at once, for readers while it grows. A failed write does not end
    /// the program: `error` keeps its errno, and later writes do nothing.
    static auto growing(std::string const& path) -> output {
        auto made = path == "-" ? output{}
                                : output{file{std::fopen(path.c_str(), "wb"), std::fclose}, path};
        made.keeps_error_ = true;
        return made;
    }
    [[nodiscard]] auto error() const -> int { return error_; }
    /// A file that is deleted when it is closed.
    static auto temporary() -> output {
        return output{file{std::tmpfile(), std::fclose}, "temporary file"};
    }

    void write(std::string_view bytes) {
        if (error_ == 0) { require(try_write(bytes)); }
    }
    void flush() {
        if (error_ == 0) { require(std::fflush(to_) == 0); }
    }
    /// Call this after the last write: errors of buffered writes are reported only here.
    void close() { require(try_close()); }

    [[nodiscard]] auto try_write(std::string_view bytes) -> bool {
        return std::fwrite(bytes.data(), 1, bytes.size(), to_) == bytes.size();
    }
    /// Writes these bytes at the beginning of a regular file instead of the ones there.
    [[nodiscard]] auto try_rewrite_head(std::string_view bytes) -> bool {
        return ::fseeko(to_, 0, SEEK_SET) == 0 && try_write(bytes) && std::fflush(to_) == 0;
    }
    [[nodiscard]] auto try_close() -> bool {
        if (std::fflush(to_) != 0) { return false; }
        if (owned_ && std::fclose(owned_.release()) != 0) { return false; }
        if (path_.empty()) { return true; }
        if (path_ != target_ && ::rename(path_.c_str(), target_.c_str()) != 0) { return false; }
        detail::unfinished.keep(path_);
        path_.clear();
        return true;
    }
    /// The name of the file, and the error that was kept, or that errno has.
    [[nodiscard]] auto error_text() const -> std::string {
        return name_ + ": " + std::strerror(error_ != 0 ? error_ : errno);
    }

    /// The name of a regular file until it is complete.
    [[nodiscard]] auto path() const -> std::string const& { return path_; }

    /// Writes all bytes of a temporary file to another output.
    void copy_to(output& other) {
        flush();
        std::rewind(to_);
        std::vector<char> piece(std::size_t{1} << 16);
        while (auto const count = std::fread(piece.data(), 1, piece.size(), to_)) {
            other.write({piece.data(), count});
        }
        require(std::ferror(to_) == 0);
    }

    /// Skips `count` bytes, at least 1; they read as zeros. Returns false and skips nothing where
    /// the output cannot seek: a pipe, a file opened for appending, or a file with data after this
    /// position.
    [[nodiscard]] auto skip(std::uint64_t count) -> bool {
        constexpr char pad = 0;
        flush();
        struct stat about{};
        int const descriptor = ::fileno(to_);
        if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) ||
            (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0) {
            return false;
        }
        if (::ftello(to_) < about.st_size) { return false; }
        if (count >> 62 != 0) { throw failure{name_ + ": File too large"}; }
        require(::fseeko(to_, static_cast<::off_t>(count - 1), SEEK_CUR) == 0);
        write({&pad, 1});  // sets the file size even when nothing follows
        return true;
    }

private:
    output(file opened, std::string called) : name_{std::move(called)}, owned_{std::move(opened)} {
        to_ = owned_.get();
        if (to_ == nullptr) { throw failure{error_text()}; }
    }
    /// Opens a regular file under another name. Where that is not possible, as in a directory that
    /// cannot be written, it has its name at once. Returns nullptr, and errno.
    auto open(std::string const& path) -> std::FILE* {
        struct stat about{};
        bool const exists = ::stat(path.c_str(), &about) == 0;
        if (exists && !S_ISREG(about.st_mode)) { return std::fopen(path.c_str(), "wb"); }
        target_ = path;
        if (exists) {
            std::unique_ptr<char, void (*)(void*)> const real{::realpath(path.c_str(), nullptr),
                                                              std::free};
            if (real != nullptr) { target_ = real.get(); }  // a link stays one
        }
        bool const is_writable = !exists || ::access(path.c_str(), W_OK) == 0;
        path_ = target_ + "." + std::to_string(::getpid()) + ".part";
        constexpr int how = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
        int const descriptor = is_writable ? ::open(path_.c_str(), how, 0666) : -1;
        std::FILE* made = nullptr;
        if (descriptor >= 0) {
            if (exists) { (void)!::fchmod(descriptor, about.st_mode & 07777); }
            made = ::fdopen(descriptor, "wb");
        } else {
            path_ = target_;
            made = std::fopen(path.c_str(), "wb");
        }
        if (made == nullptr) {
            path_.clear();
            return nullptr;
        }
        detail::unfinished.add(path_);
        return made;
    }
    void require(bool is_done) {
        if (is_done) { return; }
        if (keeps_error_) {
            error_ = errno;
            return;
        }
        detail::end_program(errno == EPIPE ? std::string{} : error_text());
    }

    std::string name_;
    std::string target_{};  ///< of a regular file: its name when it is complete
    std::string path_{};    ///< its name now; empty once it is complete
    file owned_{nullptr, std::fclose};
    std::FILE* to_ = nullptr;
    bool keeps_error_ = false;
    int error_ = 0;  ///< errno of the first failed write, if it is kept
};

/// True when standard input is a terminal. A tool without arguments then prints its help.
inline auto is_terminal() -> bool { return ::isatty(STDIN_FILENO) == 1; }

/// Writes a text, such as that of `--help`, to standard output.
inline void print(std::string_view what) {
    output out;
    out.write(what);
    out.close();
}

// ------------------------------------------------------------------------------------ command line

/// The arguments, in order. After `--` no argument is an option.
class command_line {
public:
    command_line(int count, char** all) : next_{all + (count > 0 ? 1 : 0)}, end_{all + count} {}

    /// Advances to the next argument; returns false at the end.
    auto next() -> bool {
        if (next_ == end_) { return false; }
        current_ = *next_++;
        if (only_operands_ || current_ != "--") { return true; }
        only_operands_ = true;
        return next();
    }
    [[nodiscard]] auto argument() const -> std::string const& { return current_; }
    /// True when this argument is not an option: a file, `-` or a name.
    [[nodiscard]] auto is_operand() const -> bool {
        return only_operands_ || current_ == "-" || !current_.starts_with('-');
    }
    [[nodiscard]] auto is(std::string_view option) const -> bool {
        return !is_operand() && current_ == option;
    }
    [[nodiscard]] auto is_help() const -> bool { return is("--help") || is("-h"); }
    /// The argument of this option.
    auto value() -> std::string {
        if (next_ == end_) { throw failure{current_ + " needs an argument"}; }
        return *next_++;
    }
    /// This argument and all that follow it: the command line of another program.
    auto rest() -> std::vector<std::string> {
        std::vector<std::string> all{current_};
        all.insert(all.end(), next_, end_);
        next_ = end_;
        return all;
    }
    /// Rejects an unknown option.
    [[noreturn]] void refuse() const {
        throw failure{current_ + ": no such option; --help lists them"};
    }

private:
    char** next_;
    char** end_;
    std::string current_{};
    bool only_operands_ = false;
};

// ------------------------------------------------------------------------------------ the program

namespace detail {

/// Replaces each closed standard stream with a descriptor that fails on every access. Otherwise the
/// next opened file would get the number of that stream.
inline void reserve_standard_streams() {
    for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) == -1) {
            (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/// Ends the program when memory is exhausted. It does not throw, because an exception cannot leave
/// a noexcept function.
[[noreturn]] inline void out_of_memory() {
    constexpr std::string_view what = ": out of memory\n";
    unfinished.remove_all();
    (void)!::write(STDERR_FILENO, name.data(), name.size());
    (void)!::write(STDERR_FILENO, what.data(), what.size());
    std::_Exit(failed);
}

}  // namespace detail

/// The signals that a tool ignores, so that writes fail with an error instead: the reader of a pipe
/// closed it, or a file has reached its size limit. A program that a tool starts inherits this.
inline constexpr int ignored_signals[] = {SIGPIPE, SIGXFSZ};

inline void set_ignored_signals(void (*handler)(int)) {
    for (int const one : ignored_signals) { (void)std::signal(one, handler); }
}

/// Runs a tool: `body` takes the command line and returns the exit status. An exception becomes a
/// message and the status `failed`. `ignored_signals` are ignored.
inline auto run(std::string_view tool_name, int count, char** arguments, int (*body)(command_line&))
    -> int {
    name = tool_name;
    detail::reserve_standard_streams();
    std::set_new_handler(detail::out_of_memory);
    set_ignored_signals(SIG_IGN);
    try {
        command_line line{count, arguments};
        return body(line);
    } catch (std::bad_alloc const&) { detail::out_of_memory(); } catch (std::exception const& why) {
        (void)std::fflush(stdout);
        print_error(why.what());
        return failed;
    }
}

}  // namespace tool
