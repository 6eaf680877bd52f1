// SPDX-License-Identifier: BSL-1.0
#pragma once

// The names of the functions of bars.

#include "recorder.hpp"
#include "../../pt_flow/listing.hpp"
#include "../../pt_flow/processes.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace calls {

/// The files with code, by process and address.
class mapped_files {
public:
    explicit mapped_files(file::perf_data::input const& of) {
        namespace perf_data = file::perf_data;
        auto from = perf_data::records(of);
        while (auto const one = from.next()) {
            if (auto const map = perf_data::read_as<perf_data::mapping>(one)) {
                if (!map->is_data) { add(map.value); }
            } else if (auto const fork = perf_data::read_as<perf_data::fork_record>(one)) {
                if (fork->thread.pid != fork->parent.pid) {
                    parents_[fork->thread.pid] = fork->parent.pid;
                }
            }
        }
    }
    /// `libc.so.6+0x2d1730`, with an offset in the file; empty: no file is mapped there.
    [[nodiscard]] auto name_of(std::uint32_t process, std::uint64_t address) const -> std::string {
        constexpr unsigned most_parents = 16;
        for (unsigned i = 0; i < most_parents; ++i) {
            auto name = name_in(process, address);
            auto const parent = parents_.find(process);
            if (!name.empty() || parent == parents_.end()) { return name; }
            process = parent->second;
        }
        return "";
    }

private:
    struct mapped {
        std::uint64_t size;
        std::uint64_t offset;
        std::string name;
    };

    void add(file::perf_data::mapping const& one) {
        std::string_view path{reinterpret_cast<char const*>(one.filename.data()),
                              one.filename.size()};
        path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
        files_[one.thread.pid][one.addr] = {one.len, one.pgoff, std::string{path}};
    }
    [[nodiscard]] auto name_in(std::uint32_t process, std::uint64_t address) const -> std::string {
        auto const of = files_.find(process);
        if (of == files_.end()) { return ""; }
        auto next = of->second.upper_bound(address);
        if (next == of->second.begin()) { return ""; }
        auto const& [start, where] = *--next;
        if (address - start >= where.size || where.name.empty()) { return ""; }
        return where.name + '+' + tool::hex(where.offset + (address - start));
    }

    std::map<std::uint32_t, std::map<std::uint64_t, mapped>> files_{};
    std::map<std::uint32_t, std::uint32_t> parents_{};
};

/// A name of bounded length.
inline auto shortened(std::string name) -> std::string {
    constexpr std::size_t most = 120;
    return name.size() <= most ? name : name.substr(0, most - 3) + "...";
}

/// The name of a bar's function, or what a gap is. Functions without a symbol have the name
/// `other_name(address)`, or their address.
template <class OtherName>
auto name_of(bar const& one, pt_flow::symbols const& names, OtherName const& other_name)
    -> std::string {
    if (one.kind == bar_kind::gap) {
        if (one.function == missing_trace) { return "missing trace"; }
        return std::string{pt_flow::name_of(static_cast<flow::gap_reason>(one.function))};
    }
    if (auto const* const found = names.at(one.function)) { return shortened(found->name); }
    auto other = other_name(one.function);
    return other.empty() ? tool::hex(one.function) : shortened(std::move(other));
}

/// `PID/TID`; empty for a raw trace.
inline auto label_of(thread_id which) -> std::string {
    if (which == any_thread) { return ""; }
    auto const number = [](std::uint32_t value) {
        return value == pt_flow::no_process ? std::string{"?"} : std::to_string(value);
    };
    return number(which.pid) + '/' + number(which.tid);
}

}  // namespace calls
