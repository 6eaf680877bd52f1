// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/recording.hpp>

#include <ptspec/engine/model_kind.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The files of a recording.
namespace differential::recording {

/// Why a file cannot be used.
struct failure {
    std::string text;
};

inline auto read_file(std::string const& path) -> std::vector<std::uint8_t> {
    std::error_code error;
    bool const is_file = std::filesystem::is_regular_file(path, error);
    std::ifstream file{path, std::ios::binary};
    if (!is_file || !file) { throw failure{path + ": cannot be read"}; }
    std::vector<std::uint8_t> all(static_cast<std::size_t>(std::filesystem::file_size(path)));
    file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size()));
    all.resize(static_cast<std::size_t>(file.gcount()));
    return all;
}

/// A decimal number, or a hexadecimal one with 0x.
inline auto parse_number(std::string_view text, int base = 10) -> std::optional<std::uint64_t> {
    if (text.starts_with("0x")) {
        text.remove_prefix(2);
        base = 16;
    }
    std::uint64_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) { return std::nullopt; }
    return value;
}

inline auto size_without_padding(std::vector<std::uint8_t> const& trace) -> std::size_t {
    auto size = trace.size();
    while (size != 0 && trace[size - 1] == 0) { --size; }
    return size;
}

/// The log of a thread: `instructions N hash H`.
inline auto read_log(std::string const& path) -> instruction_log {
    auto const bytes = read_file(path);
    std::istringstream in{std::string{bytes.begin(), bytes.end()}};
    std::string names[2];
    std::string values[2];
    in >> names[0] >> values[0] >> names[1] >> values[1];
    auto const count = parse_number(values[0]);
    auto const hash = parse_number(values[1], 16);
    if (!in || names[0] != "instructions" || names[1] != "hash" || !count || !hash) {
        throw failure{path + ": not `instructions N hash H`"};
    }
    return {*count, *hash};
}

struct recorded_thread {
    std::uint32_t thread;
    std::string trace;
    std::string log;
};

class recorded_directory {
public:
    explicit recorded_directory(std::string path) : path_{std::move(path)} {
        std::error_code error;
        std::filesystem::directory_iterator const files{path_, error};
        if (error) { throw failure{path_ + ": " + error.message()}; }
        for (auto const& file : files) {
            auto const name = file.path().filename().string();
            if (name.ends_with(".pt")) { add_trace(name); }
            if (name.ends_with(".events")) { add_events(name); }
        }
        if (threads_.empty()) { throw failure{path_ + ": no PID.TID.pt"}; }
    }

    [[nodiscard]] auto processes() const -> std::set<std::uint64_t> {
        std::set<std::uint64_t> made;
        for (auto const& [process, thread] : threads_) { made.insert(process); }
        return made;
    }
    /// The threads of a process; only `which`, if it is not empty.
    [[nodiscard]] auto threads(std::uint64_t process, std::string const& which) const
        -> std::vector<recorded_thread> {
        std::vector<recorded_thread> made;
        for (auto const& [of, thread] : threads_) {
            auto const name = std::to_string(of) + "." + std::to_string(thread);
            if (of != process || (!which.empty() && which != name)) { continue; }
            made.push_back({thread, in_here(name + ".pt"), in_here(name + ".log")});
        }
        return made;
    }
    /// The code of a process: what its parents executed before they forked, and its own.
    [[nodiscard]] auto code(std::uint64_t process) const -> std::vector<code_record> {
        std::vector<std::uint64_t> line{process};
        for (auto next = parents_.find(process); next != parents_.end();
             next = parents_.find(next->second)) {
            if (std::find(line.begin(), line.end(), next->second) != line.end()) { break; }
            line.push_back(next->second);
        }
        std::vector<code_record> all;
        for (auto i = line.size(); i-- != 0;) {
            auto const path = in_here(std::to_string(line[i]) + ".code");
            auto read = read_records(read_file(path));
            if (read.left != 0) {
                std::printf("%s: the last record is incomplete: %zu bytes\n", path.c_str(),
                            read.left);
            }
            for (auto& record : read.all) {
                // A record without bytes with the child as address is the moment of the fork.
                if (i != 0 && record.bytes.empty() && record.address == line[i - 1]) { break; }
                all.push_back(std::move(record));
            }
        }
        return all;
    }
    [[nodiscard]] auto settings() const -> decoder_settings {
        auto const path = in_here("settings");
        auto const bytes = read_file(path);
        std::istringstream in{std::string{bytes.begin(), bytes.end()}};
        decoder_settings made;
        for (std::string line; std::getline(in, line);) {
            auto const equal = line.find('=');
            if (line.empty()) { continue; }
            if (equal == std::string::npos ||
                !set(made, line.substr(0, equal), line.substr(equal + 1))) {
                throw failure{path + ": `" + line + "`"};
            }
        }
        return made;
    }

private:
    std::string path_;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> threads_{};
    std::map<std::uint64_t, std::uint64_t> parents_{};

    [[nodiscard]] auto in_here(std::string const& name) const -> std::string {
        return path_ + "/" + name;
    }
    void add_trace(std::string const& name) {
        auto const dot = name.find('.');
        std::string_view const all{name};
        auto const process = parse_number(all.substr(0, dot));
        auto const rest = all.substr(dot + 1);
        auto const thread = rest.size() < 3 ? std::nullopt
                                            : parse_number(rest.substr(0, rest.size() - 3));
        if (!process || !thread || *thread > 0xFFFF'FFFF) {
            throw failure{in_here(name) + ": not PID.TID.pt"};
        }
        threads_.emplace_back(*process, static_cast<std::uint32_t>(*thread));
        std::sort(threads_.begin(), threads_.end());
    }
    /// Takes the parents from lines `TIME fork TID NEWPID NEWTID`.
    void add_events(std::string const& name) {
        auto const parent = parse_number(name.substr(0, name.find('.')));
        if (!parent) { throw failure{in_here(name) + ": not PID.events"}; }
        auto const bytes = read_file(in_here(name));
        std::istringstream in{std::string{bytes.begin(), bytes.end()}};
        for (std::string line; std::getline(in, line);) {
            std::istringstream words{line};
            std::string time;
            std::string what;
            std::string thread;
            std::string child;
            words >> time >> what >> thread >> child;
            if (what != "fork") { continue; }
            auto const number = parse_number(child);
            if (!number) { throw failure{in_here(name) + ": `" + line + "`"}; }
            if (*number != *parent) { parents_[*number] = *parent; }
        }
    }
    /// Sets what the decoder needs, and ignores other keys. Returns false if the value is wrong.
    static auto set(decoder_settings& made, std::string const& key, std::string const& value)
        -> bool {
        if (key == "kind") {
            for (auto const& of : ptspec::engine::model_kinds) {
                if (value != std::string_view{of.name.data(), of.name.size()}) { continue; }
                made.psb_of_enable_has_fup = of.options.psb_of_enable_has_fup ||
                                             of.options.psb_before_pge;
                return true;
            }
            return false;
        }
        auto const number = parse_number(value);
        auto const put = [&](auto& to, std::uint64_t most) {
            if (!number || *number > most) { return false; }
            to = static_cast<std::remove_reference_t<decltype(to)>>(*number);
            return true;
        };
        if (key == "mtc_freq") { return put(made.mtc_freq, 15); }
        if (key == "nominal") { return put(made.nominal, 255); }
        if (key == "ratio_numerator") { return put(made.ratio_numerator, 0xFFFF'FFFF); }
        if (key == "ratio_denominator") { return put(made.ratio_denominator, 0xFFFF'FFFF); }
        if (key == "cpu_model") { return put(made.cpu.model, 0xFF); }
        if (key == "cpu_stepping") { return put(made.cpu.stepping, 0xF); }
        if (key == "cpu_family") {
            made.cpu.vendor = pcv_intel;
            return put(made.cpu.family, 0xFFFF);
        }
        return true;
    }
};

}  // namespace differential::recording
