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
    std::string build_id;      ///< in hexadecimal; empty: unknown
    std::uint32_t order = 0;   ///< of those that were added to their space; 0: at its begin
    bool is_disputed = false;  ///< other code at another time, or in another process: not known

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
            rest[start] = where;
            rest[start].size = first - start;
            rest[start].order = 0;
        }
        if (last > end) {
            rest[end] = where;
            rest[end].size = last - end;
            rest[end].offset += end - start;
            rest[end].order = 0;
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

/// The intersection of several spaces, for a time at which any of them may be active. An address
/// has code if all spaces that map it map the same bytes of a file; otherwise it is disputed.
class merged_spaces {
public:
    /// Adds a space. Returns false if there are too many parts: then the code is not known.
    auto add(space_map const& one) -> bool {
        for (auto const& [start, what] : one) {
            auto const same = all_.find(start);
            if (same == all_.end() || !same->second.is_same(what) || what.is_disputed) {
                add(start, what);
            }
            if (steps_ > max_steps) { return false; }
        }
        return true;
    }
    [[nodiscard]] auto all() -> space_map& { return all_; }

private:
    /// The limit of the work: each part that a mapping overlaps is one step.
    static constexpr std::size_t max_steps = std::size_t{1} << 22;

    struct part {
        std::uint64_t start;
        mapped what;

        [[nodiscard]] auto end() const -> std::uint64_t { return end_of(start, what); }
    };
    static auto end_of(std::uint64_t start, mapped const& what) -> std::uint64_t {
        return start + std::min(what.size, ~std::uint64_t{0} - start);
    }
    /// A part of a mapping.
    static auto cut(part const& of, std::uint64_t first, std::uint64_t end) -> part {
        auto made = of;
        made.start = first;
        made.what.size = end - first;
        made.what.offset += first - of.start;
        made.what.order = 0;
        return made;
    }
    void put(part const& one) {
        if (one.what.size != 0) { all_[one.start] = one.what; }
    }
    void add(std::uint64_t start, mapped const& what) {
        part const added{start, what};
        auto next = all_.upper_bound(start);
        if (next != all_.begin() &&
            end_of(std::prev(next)->first, std::prev(next)->second) > start) {
            --next;
        }
        std::vector<part> before;
        for (; next != all_.end() && next->first < added.end(); next = all_.erase(next)) {
            before.push_back({next->first, next->second});
        }
        steps_ += before.size() + 1;
        auto at = start;
        for (auto const& one : before) {
            auto const first = std::max(one.start, start);
            auto const end = std::min(one.end(), added.end());
            put(cut(one, one.start, first));
            put(cut(added, at, first));
            auto both = cut(one, first, end);
            bool const agrees = one.what.path == what.path && one.what.build_id == what.build_id &&
                                both.what.offset == cut(added, first, end).what.offset;
            both.what.is_disputed = one.what.is_disputed || what.is_disputed || !agrees;
            put(both);
            put(cut(one, end, one.end()));
            at = end;
        }
        put(cut(added, at, added.end()));
    }

    space_map all_{};
    std::size_t steps_ = 0;
};

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
        bool const is_known = is_code && same != now.end() && same->second.is_same(made);
        if (is_known && !(has_time && same->second.is_disputed)) { return; }
        if (overlaps(now, address, end)) {
            auto rest = without(now, address, end);
            begin_version(process, has_time ? time : 0, std::move(rest));
            made.is_disputed = !has_time;
        }
        // No code was at these addresses before: this needs no new version.
        if (!is_code) { return; }
        ++changes_[process];
        auto const space = versions_[process].back().space;
        if (has_time && time > versions_[process].back().time) {
            auto& times = added_[space];
            times.push_back(time);
            made.order = static_cast<std::uint32_t>(times.size());
        }
        spaces_[space][address] = std::move(made);
    }

    /// How often the code of a process has changed.
    [[nodiscard]] auto changes_of(std::uint32_t process) const -> std::uint64_t {
        auto const found = changes_.find(process);
        return found == changes_.end() ? 0 : found->second;
    }

    // ---------------------------------------------------------------------------- the versions

    [[nodiscard]] auto versions_in(std::uint32_t process, time_range when) const -> version_range {
        auto const* const all = versions_of(process);
        if (all == nullptr) { return {}; }
        version_range made{last_before(*all, when.first), last_before(*all, when.last)};
        bool const is_first = made.last != nullptr &&
                              (made.first == nullptr || made.first->time == 0);
        // Versions that records without times began have no order among the packets.
        if (is_first) { made.first = all->data(); }
        return made;
    }
    /// The number of the program that a process executes; `every_image`: one of several.
    [[nodiscard]] auto image_of(std::uint32_t process, time_range when) const -> std::uint32_t {
        auto const* const all = versions_of(process);
        if (all == nullptr) { return 0; }
        auto const [first, last] = versions_in(process, when);
        if (last == nullptr) { return all->front().image; }
        bool const is_any = first->time == 0 && !when.is_known() && has_images(process);
        return is_any ? every_image : last->image;
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
    /// Those with versions, sorted by number.
    [[nodiscard]] auto all_processes() const -> std::vector<std::uint32_t> {
        std::vector<std::uint32_t> made;
        for (auto const& [process, versions] : versions_) {
            if (!versions.empty()) { made.push_back(process); }
        }
        return made;
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
            for (auto const& [start, where] : spaces_[(*all)[i].space]) {
                if (!where.is_disputed) { visit(start, where); }
            }
        }
    }
    /// Calls `visit(start, mapped)` for the mappings of a space that are not disputed.
    template <class Visit>
    void each_mapping_of(std::uint32_t space, Visit&& visit) const {
        for (auto const& [start, where] : spaces_[space]) {
            if (!where.is_disputed) { visit(start, where); }
        }
    }
    /// The last mapping that contains an address.
    [[nodiscard]] auto last_mapping_at(std::uint32_t process, std::uint64_t address,
                                       std::uint32_t image) const -> mapping {
        auto const* const all = versions_of(process);
        for (auto i = all == nullptr ? 0 : all->size(); i-- != 0;) {
            if (image != every_image && (*all)[i].image != image) { continue; }
            auto const found = mapping_in(spaces_[(*all)[i].space], address);
            if (found.what != nullptr && !found.what->is_disputed) { return found; }
        }
        return {};
    }

    // ------------------------------------------------------------------------------- the spaces

    /// The number of the space of a range of versions, without the mappings after `until`. Of
    /// several versions it is the intersection: `merged_spaces`.
    [[nodiscard]] auto space_of(version_range of, std::uint64_t until) -> std::uint32_t {
        auto const* first = of.first;
        auto const* end = of.last;
        if (first == end) { return space_until(end->space, until); }
        while (first != end && spaces_[first->space].empty()) { ++first; }
        while (first != end && end->has_ended) { --end; }
        if (first == end) { return space_until(end->space, until); }
        auto const last = space_until(end->space, until);
        auto const [at, is_new] = common_.try_emplace({first->space, last});
        if (is_new) {
            merged_spaces all;
            bool const is_right = (end - first <= max_versions || is_all(first, end)) &&
                                  merge(all, first, end) && all.add(visible_of(last));
            at->second = is_right ? keep(all) : 0;
        }
        return at->second;
    }
    /// The number of the intersection of all versions of these processes, which are sorted.
    [[nodiscard]] auto space_of_any(std::vector<std::uint32_t> const& processes) -> std::uint32_t {
        auto const [at, is_new] = common_of_processes_.try_emplace(processes);
        if (!is_new) { return at->second; }
        merged_spaces all;
        bool is_right = true;
        for (auto const process : processes) {
            auto const* const versions = versions_of(process);
            if (versions == nullptr) { continue; }
            is_right = is_right && merge(all, versions->data(), &versions->back() + 1);
        }
        at->second = is_right ? keep(all) : 0;
        return at->second;
    }
    /// The number of the intersection of the spaces of these processes, each in its time range.
    [[nodiscard]] auto space_of_any(std::vector<thread_run> const& all_runs) -> std::uint32_t {
        std::vector<std::uint32_t> spaces;
        for (auto const& [thread, when] : all_runs) {
            auto const found = versions_in(thread.pid, when);
            auto const space = found.last == nullptr ? 0 : space_of(found, when.last);
            if (has_code(space)) { spaces.push_back(space); }
        }
        std::sort(spaces.begin(), spaces.end());
        spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
        if (spaces.size() <= 1) { return spaces.empty() ? 0 : spaces[0]; }
        auto const [at, is_new] = common_of_spaces_.try_emplace(spaces);
        if (!is_new) { return at->second; }
        merged_spaces all;
        bool is_right = copies_ <= max_copies;
        for (auto const space : spaces) { is_right = is_right && all.add(visible_of(space)); }
        at->second = is_right ? keep(all) : 0;
        return at->second;
    }
    [[nodiscard]] auto has_versions(std::uint32_t process) const -> bool {
        return versions_of(process) != nullptr;
    }
    /// Whether a process has code in a range of times.
    [[nodiscard]] auto has_code_in(std::uint32_t process, time_range when) const -> bool {
        auto const [first, last] = versions_in(process, when);
        if (last == nullptr) { return false; }
        auto const* const from = first == nullptr ? last : first;
        return std::any_of(from, last + 1,
                           [&](auto const& one) { return !spaces_[one.space].empty(); });
    }
    [[nodiscard]] auto mapping_at(std::uint32_t space, std::uint64_t address) const -> mapping {
        auto const [of, visible] = part_of(space);
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
    /// The maximum number of versions that are merged, unless they are all of a process.
    static constexpr std::ptrdiff_t max_versions = 256;

    [[nodiscard]] auto part_of(std::uint32_t space) const -> part {
        return space >= first_part ? parts_[space - first_part] : part{space, every_mapping};
    }
    [[nodiscard]] auto has_code(std::uint32_t space) const -> bool {
        return !spaces_[part_of(space).space].empty();
    }
    /// The mappings of a space, without those that were added later.
    [[nodiscard]] auto visible_of(std::uint32_t space) const -> space_map {
        auto const [of, visible] = part_of(space);
        auto made = spaces_[of];
        std::erase_if(made, [&](auto const& one) { return one.second.order > visible; });
        return made;
    }
    /// nullptr for a process without versions.
    [[nodiscard]] auto versions_of(std::uint32_t process) const -> std::vector<version> const* {
        auto const of = versions_.find(process);
        return of == versions_.end() || of->second.empty() ? nullptr : &of->second;
    }
    void begin_version(std::uint32_t process, std::uint64_t time, space_map code,
                       bool is_exec = false) {
        ++changes_[process];
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
    /// The number of a space without the mappings that were added after a time. Mappings that are
    /// added later do not change the space with this number.
    auto space_until(std::uint32_t space, std::uint64_t time) -> std::uint32_t {
        auto const added = added_.find(space);
        if (added == added_.end()) { return space; }
        auto const& times = added->second;
        auto const first = std::upper_bound(times.begin(), times.end(), time);
        auto const visible = static_cast<std::uint32_t>(first - times.begin());
        auto const [at, is_new] = part_numbers_.try_emplace(
            {space, visible}, first_part + static_cast<std::uint32_t>(parts_.size()));
        if (is_new) { parts_.push_back({space, visible}); }
        return at->second;
    }
    /// Adds the versions from `first` to the one before `end`.
    auto merge(merged_spaces& to, version const* first, version const* end) -> bool {
        return std::all_of(first, end, [&](auto const& one) { return to.add(spaces_[one.space]); });
    }
    [[nodiscard]] auto is_all(version const* first, version const* last) const -> bool {
        return std::any_of(versions_.begin(), versions_.end(), [&](auto const& one) {
            return first == one.second.data() && last == &one.second.back();
        });
    }
    /// Keeps a space. Returns its number; 0: there are too many.
    auto keep(merged_spaces& of) -> std::uint32_t {
        copies_ += of.all().size();
        if (copies_ > max_copies) { return 0; }
        spaces_.push_back(std::move(of.all()));
        return static_cast<std::uint32_t>(spaces_.size() - 1);
    }

    std::map<std::uint32_t, std::vector<version>> versions_{};
    std::deque<space_map> spaces_{2};  ///< number 0, and `guest_space`, have no code
    std::map<std::uint32_t, std::vector<std::uint64_t>> added_{};  ///< times of mappings, by order
    std::vector<part> parts_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> part_numbers_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> common_{};
    std::map<std::vector<std::uint32_t>, std::uint32_t> common_of_processes_{};
    std::map<std::vector<std::uint32_t>, std::uint32_t> common_of_spaces_{};
    std::map<std::uint32_t, std::uint64_t> changes_{};  ///< by process
    std::size_t copies_ = 0;
    bool is_full_ = false;
};

}  // namespace traced
