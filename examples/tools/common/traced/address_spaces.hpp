// SPDX-License-Identifier: BSL-1.0
#pragma once

// The mappings of files into the address spaces of processes, by time.

#include "cpu_threads.hpp"
#include "../tool.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace traced {

/// A part of a file that is mapped with code.
struct mapped {
    std::uint64_t size;
    std::uint64_t offset;  ///< in the file
    std::string path;
    std::string build_id;     ///< in hexadecimal; empty: unknown
    std::uint32_t order = 0;  ///< of those that were added to their space; 0: at its begin

    [[nodiscard]] auto is_same(mapped const& other) const -> bool {
        return size == other.size && offset == other.offset && path == other.path &&
               build_id == other.build_id;
    }
};
/// The mappings of an address space, by their first address.
using space_map = std::map<std::uint64_t, mapped>;

/// A mapping, and where it begins; nullptr: there is none.
struct mapping {
    std::uint64_t start = 0;
    mapped const* what = nullptr;
};

/// The mapping that contains an address.
inline auto mapping_in(space_map const& all, std::uint64_t address) -> mapping {
    auto next = all.upper_bound(address);
    if (next == all.begin()) { return {}; }
    auto const& [start, where] = *--next;
    return address - start < where.size ? mapping{start, &where} : mapping{};
}

/// The mappings without those of a range of addresses.
inline auto without(space_map const& all, std::uint64_t first, std::uint64_t end) -> space_map {
    space_map rest;
    for (auto const& [start, where] : all) {
        auto const last = start + where.size;
        if (last <= first || start >= end) {
            rest[start] = where;
            continue;
        }
        if (start < first) {
            rest[start] = {first - start, where.offset, where.path, where.build_id, 0};
        }
        if (last > end) {
            rest[end] = {last - end, where.offset + (end - start), where.path, where.build_id, 0};
        }
    }
    return rest;
}

/// True if one of the mappings contains an address of a range.
inline auto overlaps(space_map const& all, std::uint64_t first, std::uint64_t end) -> bool {
    auto const next = all.lower_bound(first);
    if (next != all.end() && next->first < end) { return true; }
    if (next == all.begin()) { return false; }
    auto const& [start, before] = *std::prev(next);
    return first - start < before.size;
}

/// The versions of the code of each process. A version has an address space, by its number.
class address_spaces {
public:
    /// The space of a guest: `guest_code` has its code.
    static constexpr std::uint32_t guest_space = 1;

    struct version {
        std::uint64_t time;
        std::uint32_t space;
        std::uint32_t image;     ///< the number of exec calls
        bool has_ended = false;  ///< the process: nothing executes
    };
    /// The versions at the ends of a range of times; nullptr: before the first.
    struct version_range {
        version const* first = nullptr;
        version const* last = nullptr;
    };

    // ------------------------------------------------------------- changes, in the order of time

    /// A process begins. `copies`: with the code of its parent, unless that is unknown.
    void fork(std::uint32_t process, std::uint32_t parent, std::uint64_t time, bool copies) {
        auto const from = versions_.find(parent);
        bool const has_code = copies && from != versions_.end();
        auto code = has_code ? spaces_[from->second.back().space] : space_map{};
        if (has_code || versions_.contains(process)) {
            begin_version(process, time, std::move(code));
        }
    }
    void exec(std::uint32_t process, std::uint64_t time) { begin_version(process, time, {}, true); }
    void exit(std::uint32_t process, std::uint64_t time) {
        begin_version(process, time, {});
        versions_[process].back().has_ended = true;
    }
    /// Maps code, or what is no code, at an address. `has_time` is false for records without times:
    /// then the code is not known if it changes.
    void map(std::uint32_t process, std::uint64_t address, mapped made, bool is_code,
             std::uint64_t time, bool has_time) {
        if (versions_[process].empty()) { begin_version(process, 0, {}); }
        auto const end = address + made.size;
        auto const& now = spaces_[versions_[process].back().space];
        auto const same = now.find(address);
        if (is_code && same != now.end() && same->second.is_same(made)) { return; }
        if (overlaps(now, address, end)) {
            auto rest = without(now, address, end);
            begin_version(process, has_time ? time : 0, std::move(rest));
            if (!has_time) { return; }
        }
        // No code was at these addresses before: this needs no new version.
        if (!is_code) { return; }
        auto const space = versions_[process].back().space;
        if (has_time && time > versions_[process].back().time) {
            auto& times = added_[space];
            times.push_back(time);
            made.order = static_cast<std::uint32_t>(times.size());
        }
        spaces_[space][address] = std::move(made);
    }

    // ---------------------------------------------------------------------------- the versions

    [[nodiscard]] auto versions_in(std::uint32_t process, time_range when) const -> version_range {
        auto const* const all = versions_of(process);
        if (all == nullptr) { return {}; }
        version_range made{last_before(*all, when.first), last_before(*all, when.last)};
        if (made.first == nullptr && made.last != nullptr) { made.first = all->data(); }
        return made;
    }
    /// The number of the program that a process executes.
    [[nodiscard]] auto image_of(std::uint32_t process, time_range when) const -> std::uint32_t {
        auto const* const all = versions_of(process);
        if (all == nullptr) { return 0; }
        auto const* const last = last_before(*all, when.last);
        return last == nullptr ? all->front().image : last->image;
    }
    /// Whether a process executes several programs.
    [[nodiscard]] auto has_images(std::uint32_t process) const -> bool {
        auto const* const all = versions_of(process);
        return all != nullptr && all->front().image != all->back().image;
    }
    /// Whether the code of a process changes with time.
    [[nodiscard]] auto changes(std::uint32_t process) const -> bool {
        auto const* const all = versions_of(process);
        return all != nullptr && std::count_if(all->begin(), all->end(),
                                               [](auto const& one) { return !one.has_ended; }) > 1;
    }
    /// Calls `visit(process)` for each, until it returns true. Returns whether it did.
    template <class Visit>
    auto any_process(Visit&& visit) const -> bool {
        return std::any_of(versions_.begin(), versions_.end(),
                           [&](auto const& one) { return visit(one.first); });
    }
    /// Calls `visit(start, mapped)` for the mappings of all versions, or those of one image.
    template <class Visit>
    void each_mapping(std::uint32_t process, std::optional<std::uint32_t> image,
                      Visit&& visit) const {
        auto const* const all = versions_of(process);
        for (std::size_t i = 0; all != nullptr && i < all->size(); ++i) {
            if (image && (*all)[i].image != *image) { continue; }
            for (auto const& [start, where] : spaces_[(*all)[i].space]) { visit(start, where); }
        }
    }
    /// The last mapping that contains an address.
    [[nodiscard]] auto last_mapping_at(std::uint32_t process, std::uint64_t address,
                                       std::uint32_t image) const -> mapping {
        auto const* const all = versions_of(process);
        for (auto i = all == nullptr ? 0 : all->size(); i-- != 0;) {
            if ((*all)[i].image != image) { continue; }
            auto const found = mapping_in(spaces_[(*all)[i].space], address);
            if (found.what != nullptr) { return found; }
        }
        return {};
    }

    // ------------------------------------------------------------------------------- the spaces

    /// The number of the space of some versions, up to a time. Where the code changes, it is the
    /// code that all of them have.
    [[nodiscard]] auto space_of(version_range of, std::uint64_t until) -> std::uint32_t {
        auto const* first = of.first;
        auto const* end = of.last;
        if (first == end) { return space_until(end->space, until); }
        while (first != end && spaces_[first->space].empty()) { ++first; }
        while (first != end && end->has_ended) { --end; }
        if (first == end) { return space_until(end->space, until); }
        auto const [at, is_new] = common_.try_emplace({first, end});
        if (is_new) { at->second = common_space(first, end); }
        return at->second;
    }
    [[nodiscard]] auto mapping_at(std::uint32_t space, std::uint64_t address) const -> mapping {
        auto const [of, visible] = space >= first_part ? parts_[space - first_part]
                                                       : part{space, every_mapping};
        auto const found = mapping_in(spaces_[of], address);
        return found.what == nullptr || found.what->order > visible ? mapping{} : found;
    }

private:
    /// A space at a time when it had only the first mappings: up to this order.
    struct part {
        std::uint32_t space;
        std::uint32_t visible;
    };
    static constexpr std::uint32_t first_part = 0x8000'0000;  ///< the number of `parts_[0]`
    static constexpr std::uint32_t every_mapping = 0xFFFF'FFFF;
    /// The maximum number of mappings in all versions together. Later versions have no code.
    static constexpr std::size_t max_copies = std::size_t{1} << 20;

    /// nullptr for a process without versions.
    [[nodiscard]] auto versions_of(std::uint32_t process) const -> std::vector<version> const* {
        auto const of = versions_.find(process);
        return of == versions_.end() || of->second.empty() ? nullptr : &of->second;
    }
    void begin_version(std::uint32_t process, std::uint64_t time, space_map code,
                       bool is_exec = false) {
        copies_ += code.size();
        if (copies_ > max_copies) {
            if (!is_full_) { tool::print_error("too many mappings: later code is missing"); }
            is_full_ = true;
            code.clear();
        }
        auto& all = versions_[process];
        // Before exec, the process is a fork of perf, without mappings.
        bool const has_code = !all.empty() && !spaces_[all.back().space].empty();
        auto const image = (all.empty() ? 0 : all.back().image) + (is_exec && has_code ? 1 : 0);
        for (auto& [start, where] : code) { where.order = 0; }
        spaces_.push_back(std::move(code));
        all.push_back({time, static_cast<std::uint32_t>(spaces_.size() - 1), image});
    }
    /// The number of a space without the mappings that were added after a time.
    auto space_until(std::uint32_t space, std::uint64_t time) -> std::uint32_t {
        auto const added = added_.find(space);
        if (added == added_.end() || added->second.back() <= time) { return space; }
        auto const& times = added->second;
        auto const first = std::upper_bound(times.begin(), times.end(), time);
        auto const visible = static_cast<std::uint32_t>(first - times.begin());
        auto const [at, is_new] = part_numbers_.try_emplace(
            {space, visible}, first_part + static_cast<std::uint32_t>(parts_.size()));
        if (is_new) { parts_.push_back({space, visible}); }
        return at->second;
    }
    /// A space with the mappings that all versions from `first` to `last` have.
    auto common_space(version const* first, version const* last) -> std::uint32_t {
        constexpr std::ptrdiff_t max_versions = 256;
        if (last - first > max_versions) { return 0; }
        auto common = spaces_[first->space];
        for (auto const* at = first + 1; at <= last; ++at) {
            if (at->has_ended) { continue; }
            auto const& other = spaces_[at->space];
            std::erase_if(common, [&](auto const& one) {
                auto const found = other.find(one.first);
                return found == other.end() || !found->second.is_same(one.second);
            });
        }
        copies_ += common.size();
        if (copies_ > max_copies) { return 0; }
        spaces_.push_back(std::move(common));
        return static_cast<std::uint32_t>(spaces_.size() - 1);
    }

    std::map<std::uint32_t, std::vector<version>> versions_{};
    std::deque<space_map> spaces_{2};  ///< number 0, and `guest_space`, have no code
    std::map<std::uint32_t, std::vector<std::uint64_t>> added_{};  ///< times of mappings, by order
    std::vector<part> parts_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> part_numbers_{};
    std::map<std::pair<version const*, version const*>, std::uint32_t> common_{};
    std::size_t copies_ = 0;
    bool is_full_ = false;
};

}  // namespace traced
