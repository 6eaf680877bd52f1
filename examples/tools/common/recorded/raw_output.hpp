// SPDX-License-Identifier: BSL-1.0
#pragma once

// Reads a directory of raw output.

#include "../numbers.hpp"
#include "../tool.hpp"
#include "journal.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pt_record {

/// The files of a directory of raw output. Every function throws `tool::failure` if a file cannot
/// be read, or if it is not as `recording.hpp` says.
class raw_output {
public:
    struct thread {
        std::uint64_t process;
        std::uint32_t tid;
    };
    /// Code of a file that was mapped.
    struct mapped {
        std::uint64_t start;
        std::uint64_t size;
        std::uint64_t offset;  ///< in the file
        std::string path;
    };

    /// True for a directory with the settings of a recording.
    static auto is_there(std::string const& path) -> bool {
        std::error_code ignored;
        return std::filesystem::is_directory(path, ignored) &&
               std::filesystem::is_regular_file(path + "/settings", ignored);
    }

    explicit raw_output(std::string path) : path_{std::move(path)} {
        std::error_code error;
        std::filesystem::directory_iterator const files{path_, error};
        if (error) { throw tool::unreadable{path_ + ": " + error.message()}; }
        for (auto const& file : files) {
            auto const name = file.path().filename().string();
            if (name.ends_with(".pt")) { add_trace(name); }
            if (name.ends_with(".events")) { add_events(name); }
        }
        if (threads_.empty()) { throw tool::failure{path_ + ": no PID.TID.pt"}; }
        std::sort(threads_.begin(), threads_.end(), [](auto const& one, auto const& two) {
            return std::pair{one.process, one.tid} < std::pair{two.process, two.tid};
        });
    }

    /// By process and thread.
    [[nodiscard]] auto threads() const -> std::vector<thread> const& { return threads_; }
    [[nodiscard]] auto path_of(thread const& of, std::string_view kind) const -> std::string {
        return in_here(std::to_string(of.process) + "." + std::to_string(of.tid))
            .append(".")
            .append(kind);
    }
    /// The settings, by their keys.
    [[nodiscard]] auto settings() const -> std::map<std::string, std::string> {
        std::map<std::string, std::string> made;
        auto const text = text_of(in_here("settings"));
        tool::for_each_line(text, [&](std::string_view line) {
            auto const equal = line.find('=');
            if (line.empty()) { return; }
            if (equal == std::string_view::npos) {
                throw tool::failure{in_here("settings") + ": " + tool::quoted(line)};
            }
            made[std::string{line.substr(0, equal)}] = line.substr(equal + 1);
        });
        return made;
    }
    /// The code of a process: what its parents executed before they forked, and its own.
    [[nodiscard]] auto code(std::uint64_t process) const -> std::vector<code_record> {
        auto const line = line_of(process);
        std::vector<code_record> all;
        for (auto i = line.size(); i-- != 0;) {
            auto const path = in_here(std::to_string(line[i]) + ".code");
            auto const bytes = tool::read_all(path, max_bytes);
            auto read = read_journal(ptspec::byte_view{bytes.data(), bytes.size()});
            if (read.left != 0) {
                tool::print_error(path + ": the last record is incomplete: " +
                                  std::to_string(read.left) + " bytes");
            }
            for (auto& record : read.all) {
                // A record without bytes with the child as address is the moment of the fork.
                if (i != 0 && record.bytes.empty() && record.address == line[i - 1]) { break; }
                all.push_back(std::move(record));
            }
        }
        return all;
    }
    /// The mappings of a process and of its parents, the latest last.
    [[nodiscard]] auto mappings(std::uint64_t process) const -> std::vector<mapped> {
        std::vector<mapped> made;
        auto const line = line_of(process);
        for (auto i = line.size(); i-- != 0;) {
            auto const of = mappings_.find(line[i]);
            if (of != mappings_.end()) {
                made.insert(made.end(), of->second.begin(), of->second.end());
            }
        }
        return made;
    }

private:
    static constexpr std::size_t max_bytes = std::size_t{1} << 32;  ///< of a file

    [[nodiscard]] auto in_here(std::string const& name) const -> std::string {
        return path_ + "/" + name;
    }
    static auto text_of(std::string const& path) -> std::string {
        auto const bytes = tool::read_all(path, max_bytes);
        return {bytes.begin(), bytes.end()};
    }
    /// A process, its parent, and so on.
    [[nodiscard]] auto line_of(std::uint64_t process) const -> std::vector<std::uint64_t> {
        std::vector<std::uint64_t> line{process};
        for (auto next = parents_.find(process); next != parents_.end();
             next = parents_.find(next->second)) {
            if (std::find(line.begin(), line.end(), next->second) != line.end()) { break; }
            line.push_back(next->second);
        }
        return line;
    }
    void add_trace(std::string const& name) {
        auto const dot = name.find('.');
        std::string_view const all{name};
        auto const process = tool::parse_number(all.substr(0, dot), 0xFFFF'FFFF);
        auto const rest = all.substr(dot + 1);
        auto const tid = rest.size() < 3
                             ? std::nullopt
                             : tool::parse_number(rest.substr(0, rest.size() - 3), 0xFFFF'FFFF);
        if (!process || !tid) { throw tool::failure{in_here(name) + ": not PID.TID.pt"}; }
        threads_.push_back({*process, static_cast<std::uint32_t>(*tid)});
    }
    /// Takes the parents from lines `TIME fork TID NEWPID NEWTID`, and mappings from lines
    /// `TIME map TID START SIZE OFFSET MAJ:MIN INODE PATH`.
    void add_events(std::string const& name) {
        auto const process = tool::parse_number(std::string_view{name}.substr(0, name.find('.')),
                                                0xFFFF'FFFF);
        if (!process) { throw tool::failure{in_here(name) + ": not PID.events"}; }
        auto const text = text_of(in_here(name));
        tool::for_each_line(text, [&](std::string_view line) {
            constexpr std::size_t before_path = 8;
            auto const words = tool::words_of(line);
            bool is_right = true;
            if (words.size() > 3 && words[1] == "fork") {
                auto const child = tool::parse_number(words[3], 0xFFFF'FFFF);
                is_right = child.has_value();
                if (child && *child != *process) { parents_[*child] = *process; }
            } else if (words.size() > before_path && words[1] == "map") {
                auto const start = hexadecimal(words[3]);
                auto const size = hexadecimal(words[4]);
                auto const offset = hexadecimal(words[5]);
                is_right = start && size && offset;
                auto const* const path = words[before_path].data();
                auto const length = static_cast<std::size_t>(line.data() + line.size() - path);
                if (is_right) {
                    mappings_[*process].push_back({*start, *size, *offset, {path, length}});
                }
            }
            if (!is_right) { throw tool::failure{in_here(name) + ": " + tool::quoted(line)}; }
        });
    }
    static auto hexadecimal(std::string_view digits) -> std::optional<std::uint64_t> {
        return tool::parse_number("0x" + std::string{digits}, ~std::uint64_t{0});
    }

    std::string path_;
    std::vector<thread> threads_{};
    std::map<std::uint64_t, std::uint64_t> parents_{};
    std::map<std::uint64_t, std::vector<mapped>> mappings_{};
};

}  // namespace pt_record
