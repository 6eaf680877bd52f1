// SPDX-License-Identifier: BSL-1.0
#pragma once

// The raw output of pt_record: traces of threads, and the code that they executed.

#include "../common/traced/binaries.hpp"
#include "../common/traced/function_ends.hpp"
#include "../common/traced/symbols.hpp"
#include "../common/recorded/raw_output.hpp"
#include "../common/recorded/walked_code.hpp"
#include "../common/reports/report.hpp"

#include <ptspec/flow/walk_options.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace pt_flow {

using namespace reports;

/// The processes of a recording. Threads may share it.
class recorded_processes {
public:
    recorded_processes(std::string const& directory, traced::binaries& files)
        : of_{directory}, files_{files} {}

    [[nodiscard]] auto files() const -> pt_record::raw_output const& { return of_; }
    auto code_of(std::uint64_t process) -> pt_record::code_pages const& {
        std::lock_guard const held{lock_};
        auto& found = code_[process];
        if (found == nullptr) {
            found = std::make_unique<pt_record::code_pages>(of_.code(process));
        }
        return *found;
    }
    [[nodiscard]] auto executes(std::string const& path) const -> bool {
        auto const& all = of_.threads();
        return std::any_of(all.begin(), all.end(),
                           [&](auto const& one) { return !ranges_of(one.process, path).empty(); });
    }
    /// The addresses at which a process executes a file: a path, or the end of one.
    [[nodiscard]] auto ranges_of(std::uint64_t process, std::string const& path,
                                 std::optional<std::uint32_t> /*image*/ = {}) const
        -> std::vector<flow::ip_range> {
        std::vector<flow::ip_range> made;
        for (auto const& one : of_.mappings(process)) {
            if (one.size != 0 && traced::is_path(one.path, path)) {
                made.push_back({one.start, one.start + (one.size - 1)});
            }
        }
        return made;
    }
    /// The file with code of a process.
    auto module_at(std::uint64_t process, std::uint64_t address, std::uint32_t /*image*/)
        -> std::optional<traced::module> {
        auto const all = of_.mappings(process);
        for (auto i = all.size(); i-- != 0;) {
            auto const& one = all[i];
            if (address - one.start >= one.size) { continue; }
            return traced::binaries::module_of(one.path, files_.find_named(one.path),
                                               {one.start, one.size, one.offset});
        }
        return std::nullopt;
    }
    auto names_of(std::uint64_t process, std::uint32_t /*image*/) -> traced::symbols const& {
        std::lock_guard const held{lock_};
        auto const [at, is_new] = names_.try_emplace(process);
        if (is_new) {
            std::set<std::pair<std::uint64_t, std::string>> known;
            for (auto const& one : of_.mappings(process)) {
                bool const is_first = known.emplace(one.start - one.offset, one.path).second;
                if (!is_first) { continue; }
                at->second.add_file(one.path, one.start, one.size, one.offset);
                files_.add_names(at->second, files_.find_named(one.path),
                                 {one.start, one.size, one.offset});
            }
            files_.add_map(at->second, process);
            at->second.sort();
        }
        return at->second;
    }

private:
    pt_record::raw_output of_;
    traced::binaries& files_;
    std::mutex lock_{};
    std::map<std::uint64_t, std::unique_ptr<pt_record::code_pages>> code_{};
    std::map<std::uint64_t, traced::symbols> names_{};
};

/// The code of a recorded thread.
class recorded_code : public pt_record::walked_code {
public:
    recorded_code(pt_record::code_pages const& of, thread_id which, byte_view trace)
        : walked_code{of, which.tid, trace}, thread_{which} {}

    [[nodiscard]] auto constant_thread() const -> thread_id const* { return &thread_; }
    [[nodiscard]] static auto changing_thread() -> thread_id const* { return nullptr; }
    [[nodiscard]] static auto is_one_thread() -> bool { return true; }
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        return ends.cut(walked_code::code(address, space), address, thread_);
    }

    traced::function_ends ends{};

private:
    thread_id thread_;
};

}  // namespace pt_flow
