// SPDX-License-Identifier: BSL-1.0
#pragma once

// Scripts: where a tool reads its script from, and how the script is split into statements.

#include "tool.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tool {

/// The characters of a script, from a string or a file.
class script_text {
public:
    /// The text of the script itself.
    struct given {
        std::string text;
    };
    explicit script_text(given what) : text_{std::move(what.text)} {}
    explicit script_text(std::string const& path) : from_{std::in_place, path} {}

    /// The next byte, or EOF.
    auto get() -> int {
        if (from_) { return from_->get(); }
        return at_ == text_.size() ? EOF : static_cast<unsigned char>(text_[at_++]);
    }

private:
    std::string text_{};
    std::size_t at_ = 0;
    std::optional<input> from_{};
};

/// The script given on the command line: one or more `-e TEXT`, or a file.
class script_choice {
public:
    /// True when this argument belongs to the script.
    auto accept(command_line& line) -> bool {
        if (line.is("-e")) {
            text_.append(line.value()) += '\n';
            has_text_ = true;
        } else if (line.is_operand()) {
            if (path_) { throw failure{"takes one script, not also " + line.argument()}; }
            path_ = line.argument();
        } else {
            return false;
        }
        if (has_text_ && path_) {
            throw failure{"takes a script from -e or from a file, not also " + *path_};
        }
        return true;
    }

    [[nodiscard]] auto is_given() const -> bool { return has_text_ || path_; }

    /// Opens the given script, or standard input when none is given.
    [[nodiscard]] auto open() const -> script_text {
        if (has_text_) { return script_text{script_text::given{text_}}; }
        try {
            return script_text{path_.value_or("-")};
        } catch (unreadable const& why) {
            bool const is_text = path_ && path_->find_first_of(" =;\n") != std::string::npos;
            if (!is_text) { throw; }
            throw unreadable{std::string{why.what()} +
                             "; -e TEXT takes a script from the command line"};
        }
    }

private:
    std::string text_{};
    bool has_text_ = false;
    std::optional<std::string> path_{};
};

/// Where `#` begins a comment. A comment ends with the line.
enum class comments : std::uint8_t { anywhere, before_statements };

/// The statements of a script, separated by `;` and newlines, without comments and blank
/// statements. Only the current statement is in memory.
class script {
public:
    static constexpr std::size_t longest = 4096;

    /// `noun` is the word for a statement in messages.
    script(script_text& from, std::string_view noun, comments where)
        : from_{from}, noun_{noun}, where_{where} {}

    /// Reads the next statement; returns false at the end.
    auto next(std::string& statement) -> bool {
        statement.clear();
        bool blank = true;
        for (int letter = from_.get();; letter = from_.get()) {
            if (letter == '#' && (blank || where_ == comments::anywhere)) {
                letter = end_of_comment();
            }
            bool const ends = letter == ';' || letter == '\n' || letter == EOF;
            if (ends && !blank) { return true; }
            if (letter == EOF) { return false; }
            if (ends) { continue; }
            if (blank && std::string_view{" \t\r\v\f"}.find(static_cast<char>(letter)) !=
                             std::string_view::npos) {
                continue;
            }
            if (blank) { ++number_; }
            blank = false;
            if (letter == 0) { refuse("a NUL byte: this is no script"); }
            if (statement.size() == longest) {
                refuse("longer than " + std::to_string(longest) + " characters");
            }
            statement += static_cast<char>(letter);
        }
    }

    /// Throws a failure that names the statement that was read last.
    [[noreturn]] void refuse(std::string const& why) const {
        throw failure{std::string{noun_} + ' ' + std::to_string(number_) + ": " + why};
    }

private:
    auto end_of_comment() -> int {
        int letter = from_.get();
        while (letter != '\n' && letter != EOF) { letter = from_.get(); }
        return letter;
    }

    script_text& from_;
    std::string_view noun_;
    comments where_;
    std::uint64_t number_ = 0;
};

}  // namespace tool
