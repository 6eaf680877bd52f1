// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/recording.hpp>

#include <tools/common/recorded/raw_output.hpp>

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
using failure = tool::failure;

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
    explicit recorded_directory(std::string const& path) : path_{path}, files_{path} {}

    [[nodiscard]] auto processes() const -> std::set<std::uint64_t> {
        std::set<std::uint64_t> made;
        for (auto const& one : files_.threads()) { made.insert(one.process); }
        return made;
    }
    /// The threads of a process; only `which`, if it is not empty.
    [[nodiscard]] auto threads(std::uint64_t process, std::string const& which) const
        -> std::vector<recorded_thread> {
        std::vector<recorded_thread> made;
        for (auto const& one : files_.threads()) {
            auto const name = std::to_string(one.process) + "." + std::to_string(one.tid);
            if (one.process != process || (!which.empty() && which != name)) { continue; }
            made.push_back({one.tid, files_.path_of(one, "pt"), files_.path_of(one, "log")});
        }
        return made;
    }
    /// The code of a process: what its parents executed before they forked, and its own.
    [[nodiscard]] auto code(std::uint64_t process) const -> std::vector<code_record> {
        return files_.code(process);
    }
    [[nodiscard]] auto settings() const -> decoder_settings {
        decoder_settings made;
        for (auto const& [key, value] : files_.settings()) {
            if (!set(made, key, value)) {
                throw failure{path_ + "/settings: `" + key + "=" + value + "`"};
            }
        }
        return made;
    }

private:
    std::string path_;
    pt_record::raw_output files_;

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
