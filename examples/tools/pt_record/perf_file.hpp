// SPDX-License-Identifier: BSL-1.0
#pragma once

// From a directory of raw output to a perf.data file.

#include "../common/recorded/recording.hpp"
#include "../common/perf_data_file.hpp"
#include "../common/tool.hpp"

#include <ptspec/file/perf_data/writer.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/stat.h>

namespace pt_record {

namespace perf_data = ptspec::file::perf_data;

/// A line of PID.events.
struct process_event {
    std::uint64_t time = 0;  ///< in nanoseconds
    std::uint32_t process = 0;
    std::size_t order = 0;             ///< among the lines that were read
    std::vector<std::string> words{};  ///< from the name of the event on; the last has the rest

    [[nodiscard]] auto is(std::string_view name) const -> bool { return words[0] == name; }
    [[nodiscard]] auto number(std::size_t word, int base = 10) const -> std::uint64_t {
        std::uint64_t value = 0;
        if (word < words.size()) {
            auto const& digits = words[word];
            (void)std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
        }
        return value;
    }
    [[nodiscard]] auto number_32(std::size_t word) const -> std::uint32_t {
        return static_cast<std::uint32_t>(number(word));
    }
};

/// The trace of a thread.
struct thread_file {
    std::string path{};
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
    std::uint64_t bytes = 0;  ///< without the zeros at the end
};

/// What a directory of raw output holds.
struct recorded {
    settings how{};
    std::vector<process_event> events{};  ///< in the order of time
    std::vector<thread_file> threads{};
    std::uint64_t bytes = 0;  ///< of all traces
};

namespace detail {

inline constexpr std::size_t longest_event = 8;  // words

inline auto parse_event(std::string const& line, std::uint32_t process, process_event& to) -> bool {
    std::size_t at = line.find(' ');
    if (at == std::string::npos) { return false; }
    auto const got = std::from_chars(line.data(), line.data() + at, to.time);
    if (got.ec != std::errc{} || got.ptr != line.data() + at) { return false; }
    to.process = process;
    while (at != std::string::npos) {
        std::size_t const first = at + 1;
        at = to.words.size() + 1 < longest_event ? line.find(' ', first) : std::string::npos;
        to.words.push_back(line.substr(first, at == std::string::npos ? at : at - first));
    }
    return !to.words[0].empty();
}
/// The size of a trace without the PADs at its end, which a process that was killed leaves.
inline auto size_without_pads(std::string const& path) -> std::uint64_t {
    std::ifstream in{path, std::ios::binary | std::ios::ate};
    auto const size = static_cast<std::uint64_t>(std::max<std::streamoff>(in.tellg(), 0));
    auto end = size;
    std::vector<char> piece(1 << 16);
    while (in && end != 0) {
        std::uint64_t const begin = (end - 1) / piece.size() * piece.size();
        auto const count = static_cast<std::size_t>(end - begin);
        in.seekg(static_cast<std::streamoff>(begin));
        in.read(piece.data(), static_cast<std::streamsize>(count));
        for (std::size_t i = count; in && i > 0; --i) {
            // The last packet may end in zeros.
            if (piece[i - 1] != 0) { return std::min(begin + i + 15, size); }
        }
        end = begin;
    }
    return 0;
}
/// Moves or adds events of forks: a thread may run before its parent writes the event of the fork,
/// and both may be killed before. The event gets a time before all times of the thread, which perf
/// rounds.
inline void order_forks(std::vector<process_event>& events) {
    constexpr std::uint64_t rounding = 1000;  // nanoseconds
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> starts;
    process_event const* first = nullptr;
    for (auto const& one : events) {
        if (!one.is("start")) { continue; }
        starts.try_emplace({one.process, one.number_32(1)}, one.time);
        if (first == nullptr || one.time < first->time) { first = &one; }
    }
    if (first == nullptr) { return; }
    std::pair<std::uint32_t, std::uint32_t> const root{first->process, first->number_32(1)};
    auto missing = starts;
    missing.erase(root);
    for (auto& one : events) {
        if (!one.is("fork")) { continue; }
        std::pair<std::uint32_t, std::uint32_t> const made{one.number_32(2), one.number_32(3)};
        auto const child = starts.find(made);
        if (child == starts.end()) { continue; }
        one.time = std::min(one.time, child->second - rounding);
        missing.erase(made);
    }
    for (auto const& [made, start] : missing) {
        auto const [process, thread] = made;
        std::uint32_t const by = process == thread ? root.first : process;
        events.push_back({.time = start - rounding,
                          .process = by,
                          .order = events.size(),
                          .words = {"fork", std::to_string(by), std::to_string(process),
                                    std::to_string(thread)}});
    }
}
/// A file is named PID.KIND or PID.TID.KIND.
inline auto numbers_of(std::string_view name, std::string_view kind, std::size_t count,
                       std::uint32_t* to) -> bool {
    if (!name.ends_with(kind)) { return false; }
    name.remove_suffix(kind.size());
    char const* at = name.data();
    char const* const end = at + name.size();
    for (std::size_t i = 0; i < count; ++i) {
        auto const got = std::from_chars(at, end, to[i]);
        if (got.ec != std::errc{}) { return false; }
        at = got.ptr;
        if (i + 1 == count) { break; }
        if (at == end || *at != '.') { return false; }
        ++at;
    }
    return at == end;
}

}  // namespace detail

/// Reads a directory of raw output. Throws if it cannot be read; a line that is no event is
/// ignored.
inline auto read_recorded(std::string const& directory) -> recorded {
    recorded found;
    if (!read_settings(found.how, (directory + "/settings").c_str())) {
        throw tool::failure{directory + "/settings: " + std::strerror(errno)};
    }
    for (auto const& one : std::filesystem::directory_iterator{directory}) {
        std::string const name = one.path().filename();
        std::uint32_t numbers[2] = {};
        if (detail::numbers_of(name, ".events", 1, numbers)) {
            std::ifstream in{one.path()};
            for (std::string line; std::getline(in, line);) {
                process_event made;
                if (detail::parse_event(line, numbers[0], made)) {
                    made.order = found.events.size();
                    found.events.push_back(std::move(made));
                }
            }
        } else if (detail::numbers_of(name, ".pt", 2, numbers)) {
            thread_file made{one.path(), numbers[0], numbers[1]};
            made.bytes = detail::size_without_pads(made.path);
            found.bytes += made.bytes;
            found.threads.push_back(std::move(made));
        }
    }
    detail::order_forks(found.events);
    std::ranges::sort(found.events, {},
                      [](process_event const& of) { return std::pair{of.time, of.order}; });
    std::ranges::sort(found.threads, {},
                      [](thread_file const& of) { return std::pair{of.process, of.thread}; });
    return found;
}

namespace detail {

/// The build id of a program or library; empty if there is none, or the file is another one.
inline auto build_id_of(std::string const& path, std::uint64_t inode) -> std::vector<std::uint8_t> {
    struct stat about{};
    std::ifstream in{path, std::ios::binary};
    if (!in || ::stat(path.c_str(), &about) != 0 || about.st_ino != inode) { return {}; }
    auto const read = [&](std::uint64_t at, std::size_t size) {
        std::vector<std::uint8_t> bytes(size);
        in.clear();
        in.seekg(static_cast<std::streamoff>(at));
        in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
        bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
        return bytes;
    };
    // Positions in an ELF header, a program header and a note of 64-bit programs.
    auto const head = read(0, 64);
    constexpr std::uint8_t magic[] = {0x7F, 'E', 'L', 'F', 2, 1};
    if (head.size() < 64 || !std::equal(std::begin(magic), std::end(magic), head.data())) {
        return {};
    }
    constexpr std::uint64_t max_notes = 1 << 16;
    unsigned const count = head[56] + head[57] * 256u;
    for (unsigned i = 0; i < count; ++i) {
        auto const part = read(load_le64(head.data() + 32) + 56u * i, 56);
        constexpr unsigned note = 4;
        if (part.size() < 56 || (load_le64(part.data()) & low_bits(32)) != note) { continue; }
        auto const notes = read(load_le64(part.data() + 8),
                                std::min(load_le64(part.data() + 32), max_notes));
        for (std::uint64_t at = 0; at + 16 <= notes.size();) {
            std::uint64_t const sizes = load_le64(notes.data() + at);
            std::uint64_t const name = ((sizes & low_bits(32)) + 3) / 4 * 4;
            std::uint64_t const size = sizes >> 32;
            std::uint64_t const type = load_le64(notes.data() + at + 8) & low_bits(32);
            std::uint64_t const value = at + 12 + name;
            if (value > notes.size() || size > notes.size() - value) { break; }
            constexpr unsigned gnu_build_id = 3;
            if (type == gnu_build_id && name == 4 &&
                std::memcmp(notes.data() + at + 12, "GNU", 4) == 0) {
                auto const first = notes.begin() + static_cast<std::ptrdiff_t>(value);
                return {first, first + static_cast<std::ptrdiff_t>(size)};
            }
            at = value + (size + 3) / 4 * 4;
        }
    }
    return {};
}

}  // namespace detail

/// Writes a perf.data file. An existing one becomes FILE.old when the new one is complete.
///
/// Names and mappings come first, then the traces, then the ends of the threads: without times,
/// perf decodes a trace with what it read before.
inline void write_perf_data(recorded const& from, std::string const& path) {
    std::string_view const program = from.how.program;
    std::uint64_t const begin = from.events.empty() ? 0 : from.events.front().time;
    auto clock = perf_data::time_conversion::of_frequency(tsc_mhz * 1'000'000);
    clock.zero = begin - clock.time_of(begin * tsc_mhz / 1000);  // exact then
    perf_data::session const session{
        .ctl = from.how.msrs.ctl, .caps = recording_processor(), .clock = clock};
    tool::perf_data_file out{session, path};
    std::uint32_t first = from.threads.empty() ? 0 : from.threads.front().process;
    if (!from.events.empty()) { first = from.events.front().process; }
    std::map<std::string, std::vector<std::uint8_t>> build_ids;
    text const name{program.data(), program.size()};
    out.write(perf_data::comm_record{.header = {.misc = perf_data::misc_comm_exec},
                                     .pid = first,
                                     .tid = first},
              name, begin != 0 ? begin - 1 : 0);
    for (auto const& one : from.events) {
        std::uint32_t const by = one.number_32(1);
        if (one.is("map") && one.words.size() == detail::longest_event) {
            auto const& device = one.words[5];
            std::size_t const colon = device.find(':');
            std::uint32_t major = 0;
            std::uint32_t minor = 0;
            char const* const end = device.data() + device.size();
            (void)std::from_chars(device.data(), end, major, 16);
            if (colon != std::string::npos) {
                (void)std::from_chars(device.data() + colon + 1, end, minor, 16);
            }
            auto const& code = one.words[7];
            std::size_t const length = std::min(
                {code.size(), code.find('\0'), perf_data::path_max - 1});
            perf_data::mmap2_record const mapping{
                .pid = one.process,
                .tid = by,
                .addr = one.number(2, 16),
                .len = one.number(3, 16),
                .pgoff = one.number(4, 16),
                .inode = {.dev_major = major, .dev_minor = minor, .ino = one.number(6)}};
            auto const [known, is_new] = build_ids.try_emplace(code);
            if (is_new) { known->second = detail::build_id_of(code, one.number(6)); }
            auto const& id = known->second;
            out.write(id.empty() ? mapping : perf_data::with_build_id(mapping, id),
                      text{code.data(), length}, one.time);
        } else if (one.is("fork") && one.words.size() >= 4) {
            out.write(perf_data::fork_record{.pid = one.number_32(2),
                                             .ppid = one.process,
                                             .tid = one.number_32(3),
                                             .ptid = by,
                                             .time = one.time});
        }
    }
    std::uint32_t index = 0;
    std::vector<char> piece(1 << 20);
    for (auto const& one : from.threads) {
        if (one.bytes == 0) { continue; }
        std::uint64_t const last = from.events.empty() ? 0 : from.events.back().time;
        out.write(perf_data::auxtrace_record{
            .size = one.bytes,
            .reference = std::max<std::uint64_t>(last * tsc_mhz / 1000, 1),
            .idx = index++,
            .tid = one.thread});
        tool::input in{one.path};
        for (std::uint64_t left = one.bytes; left != 0;) {
            auto const most = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
            std::size_t const count = in.read(piece.data(), most);
            if (count == 0) { throw tool::failure{one.path + ": the file became shorter"}; }
            out.append_trace({reinterpret_cast<std::uint8_t const*>(piece.data()), count});
            left -= count;
        }
    }
    for (auto const& one : from.events) {
        if (!one.is("exit")) { continue; }
        std::uint32_t const thread = one.number_32(1);
        out.write(perf_data::exit_record{.pid = one.process,
                                         .ppid = one.process,
                                         .tid = thread,
                                         .ptid = thread,
                                         .time = one.time});
    }
    out.finish();
}

}  // namespace pt_record
