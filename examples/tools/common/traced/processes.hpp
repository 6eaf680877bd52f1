// SPDX-License-Identifier: BSL-1.0
#pragma once

// The processes of a perf.data file: the code in their address spaces, and the threads that CPUs
// executed, by time.

#include "../trace_file.hpp"
#include "binaries.hpp"
#include "symbols.hpp"

#include <ptspec/file/perf_data/build_ids.hpp>
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/flow/code.hpp>
#include <ptspec/flow/walk_options.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace traced {

using namespace ptspec;

/// A thread, and the number of exec calls of its process: `image` tells programs apart.
struct thread_id {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint32_t image = 0;

    friend auto operator==(thread_id, thread_id) -> bool = default;
};
inline auto thread_of(file::perf_data::thread_id which) -> thread_id {
    return {which.pid, which.tid, 0};
}
/// A process or thread that is not known.
inline constexpr std::uint32_t no_process = 0xFFFF'FFFF;

/// Bounds of a time, in nanoseconds.
struct time_range {
    std::uint64_t first = 0;
    std::uint64_t last = ~std::uint64_t{0};
};

class processes {
public:
    /// The space of a guest: it has no code.
    static constexpr std::uint32_t guest_space = 1;

    processes(file::perf_data::input const& of, binaries& files) : files_{files} {
        read_build_ids(of);
        read(of);
        kernel_.emplace(files.where(), kernel_symbol_, kernel_address_);
        for (auto& [cpu, all] : switches_) { settle(all); }
    }

    /// The process of a thread; `no_process`: unknown.
    [[nodiscard]] auto process_of(std::uint64_t tid) const -> std::uint32_t {
        auto const found = processes_.find(tid);
        return found == processes_.end() ? no_process : found->second;
    }
    /// The thread that a CPU executes; `no_process`: none, or it is not known in this range.
    [[nodiscard]] auto thread_on(std::uint32_t cpu, time_range when) const -> thread_id {
        auto const of = switches_.find(cpu);
        if (of == switches_.end()) { return none; }
        auto const& all = of->second;
        auto const* const first = last_before(all, when.first);
        auto const* const last = last_before(all, when.last);
        if (first != nullptr && first == last) { return first->thread; }
        // Before the first record, the thread that it switches out was running.
        if (last == nullptr) { return all.front().is_out ? all.front().who : none; }
        bool const is_next = last == (first == nullptr ? all.data() : first + 1);
        bool const is_known = is_next && last->is_out &&
                              (first == nullptr || first->thread == last->who);
        // Only the kernel executes after the switch: user code is that of the thread before it.
        return is_known && !kernel_->has_code() ? last->who : none;
    }
    /// The number of the address space of a process; 0: it is not known in this range. Where the
    /// code changes in the range, it is the code that all of it has.
    [[nodiscard]] auto space_of(std::uint32_t process, time_range when) -> std::uint32_t {
        auto const of = versions_.find(process);
        if (of == versions_.end()) { return 0; }
        auto const* first = last_before(of->second, when.first);
        auto const* const last = last_before(of->second, when.last);
        if (last == nullptr) { return 0; }
        std::lock_guard const held{lock_};
        if (first == last) { return space_until(last->space, when.last); }
        if (first == nullptr) { first = of->second.data(); }
        while (first != last && spaces_[first->space].empty()) { ++first; }
        auto const* end = last;
        while (first != end && end->has_ended) { --end; }
        if (first == end) { return space_until(end->space, when.last); }
        auto const [at, is_new] = common_.try_emplace({first, end});
        if (is_new) { at->second = common_space(first, end); }
        return at->second;
    }
    /// Whether the times of records can be compared with the TSC.
    [[nodiscard]] auto has_clock_of_trace() const -> bool { return !has_other_clock_; }
    /// The number of the program that a process executes.
    [[nodiscard]] auto image_of(std::uint32_t process, time_range when) const -> std::uint32_t {
        auto const of = versions_.find(process);
        if (of == versions_.end() || of->second.empty()) { return 0; }
        auto const* const last = last_before(of->second, when.last);
        return last == nullptr ? of->second.front().image : last->image;
    }
    /// Whether a process executes several programs.
    [[nodiscard]] auto has_images(std::uint32_t process) const -> bool {
        auto const of = versions_.find(process);
        if (of == versions_.end() || of->second.empty()) { return false; }
        return of->second.front().image != of->second.back().image;
    }
    /// Whether the code of a process changes with time.
    [[nodiscard]] auto changes(std::uint32_t process) const -> bool {
        auto const of = versions_.find(process);
        if (of == versions_.end()) { return false; }
        auto const& all = of->second;
        return std::count_if(all.begin(), all.end(),
                             [](auto const& one) { return !one.has_ended; }) > 1;
    }
    /// The bytes at an address, to the end of the mapping.
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        if (space == guest_space) { return {}; }
        if (address >> 63 != 0) { return kernel_->code(address); }
        std::lock_guard const held{lock_};
        auto const [of, visible] = space >= first_part ? parts_[space - first_part]
                                                       : part{space, every_mapping};
        auto const& all = spaces_[of];
        auto next = all.upper_bound(address);
        if (next == all.begin()) { return {}; }
        auto const& [start, where] = *--next;
        auto const offset = address - start;
        if (offset >= where.size || where.order > visible) { return {}; }
        auto const* const from = files_.find(where.path, where.build_id);
        if (from == nullptr) { return {}; }
        auto const bytes = from->bytes();
        auto const at = where.offset + offset;
        if (at < where.offset || at >= bytes.size()) { return {}; }
        auto const rest = bytes.from(static_cast<std::size_t>(at));
        return rest.first(
            static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), where.size - offset)));
    }
    [[nodiscard]] auto executes(std::string const& path) const -> bool {
        return std::any_of(versions_.begin(), versions_.end(),
                           [&](auto const& one) { return !ranges_of(one.first, path).empty(); });
    }
    /// The addresses at which a process executes a file: a path, or the end of one.
    [[nodiscard]] auto ranges_of(std::uint32_t process, std::string const& path,
                                 std::optional<std::uint32_t> image = {}) const
        -> std::vector<flow::ip_range> {
        std::lock_guard const held{lock_};
        std::vector<flow::ip_range> made;
        auto const of = versions_.find(process);
        for (std::size_t i = 0; of != versions_.end() && i < of->second.size(); ++i) {
            if (image && of->second[i].image != *image) { continue; }
            for (auto const& [start, where] : spaces_[of->second[i].space]) {
                if (where.size != 0 && is_path(where.path, path)) {
                    made.push_back({start, start + (where.size - 1)});
                }
            }
        }
        return made;
    }
    /// The file with code of a process.
    auto module_at(std::uint32_t process, std::uint64_t address, std::uint32_t image)
        -> std::optional<module> {
        std::lock_guard const held{lock_};
        auto const [start, where] = mapping_at(process, address, image);
        if (where == nullptr) { return std::nullopt; }
        auto const* const from = files_.find(where->path, where->build_id);
        return binaries::module_of(where->path, from, {start, where->size, where->offset});
    }
    /// The names of the functions of a process, including those of code that was unmapped later.
    auto names_of(std::uint32_t process, std::optional<std::uint32_t> image = {})
        -> symbols const& {
        std::lock_guard const held{lock_};
        auto const [at, is_new] = names_.try_emplace({process, image.value_or(every_image)});
        if (is_new) {
            std::set<std::pair<std::uint64_t, std::string>> known;
            auto const of = versions_.find(process);
            for (std::size_t i = 0; of != versions_.end() && i < of->second.size(); ++i) {
                if (image && of->second[i].image != *image) { continue; }
                for (auto const& [start, where] : spaces_[of->second[i].space]) {
                    bool const is_first = known.emplace(start - where.offset, where.path).second;
                    if (is_first && known.size() < max_named) {
                        auto const* const from = files_.find(where.path, where.build_id);
                        files_.add_names(at->second, from, {start, where.size, where.offset});
                        at->second.add_file(where.path, start, where.size, where.offset);
                    }
                }
            }
            files_.add_map(at->second, process);
            at->second.set_kernel(kernel_->names());
            at->second.sort();
        }
        return at->second;
    }

private:
    static constexpr std::size_t max_named = 4096;  ///< mappings

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
    using space_map = std::map<std::uint64_t, mapped>;
    struct version {
        std::uint64_t time;
        std::uint32_t space;
        std::uint32_t image;
        bool has_ended = false;  ///< the process: nothing executes
    };
    /// A space at a time when it had only the first mappings: up to this order.
    struct part {
        std::uint32_t space;
        std::uint32_t visible;
    };
    static constexpr std::uint32_t first_part = 0x8000'0000;  ///< the number of `parts_[0]`
    static constexpr std::uint32_t every_mapping = 0xFFFF'FFFF;

    struct switched {
        std::uint64_t time;
        thread_id thread;  ///< that runs from now on, if it is known
        thread_id who;     ///< that was switched in or out
        bool is_out;
    };
    static constexpr thread_id none{no_process, no_process, 0};

    /// Makes the thread unknown where the next record of the CPU is of another thread: records are
    /// missing between them.
    static void settle(std::vector<switched>& all) {
        tool::stable_sort(all,
                          [](auto const& one, auto const& two) { return one.time < two.time; });
        for (std::size_t i = 1; i < all.size(); ++i) {
            bool const agrees = all[i].who == all[i - 1].who || all[i].who.tid == no_process;
            if (!agrees && !all[i - 1].is_out) { all[i - 1].thread = none; }
        }
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

    /// The last mapping that contains an address, and where it begins.
    [[nodiscard]] auto mapping_at(std::uint32_t process, std::uint64_t address,
                                  std::optional<std::uint32_t> image = {}) const
        -> std::pair<std::uint64_t, mapped const*> {
        auto const of = versions_.find(process);
        for (auto i = of == versions_.end() ? 0 : of->second.size(); i-- != 0;) {
            if (image && of->second[i].image != *image) { continue; }
            auto const& all = spaces_[of->second[i].space];
            auto next = all.upper_bound(address);
            if (next == all.begin()) { continue; }
            auto const& [start, where] = *--next;
            if (address - start < where.size) { return {start, &where}; }
        }
        return {0, nullptr};
    }
    template <class Entry>
    static auto last_before(std::vector<Entry> const& all, std::uint64_t time) -> Entry const* {
        auto const next = std::upper_bound(
            all.begin(), all.end(), time,
            [](std::uint64_t value, Entry const& one) { return value < one.time; });
        return next == all.begin() ? nullptr : &*std::prev(next);
    }

    static auto string_of(byte_view from) -> std::string {
        return {reinterpret_cast<char const*>(from.data()), from.size()};
    }
    void read_build_ids(file::perf_data::input const& of) {
        auto all = file::perf_data::build_ids(of);
        while (auto const one = all.next()) {
            build_ids_[string_of(one.filename)] = hex_of(one.id());
        }
    }
    void read(file::perf_data::input const& of) {
        namespace perf_data = file::perf_data;
        has_other_clock_ = uses_other_clock(of);
        std::vector<perf_data::record> all;
        std::map<std::uint32_t, std::uint64_t> last_times;  // of the CPUs, in the order of the file
        std::vector<std::pair<std::uint32_t, std::uint64_t>> losses;
        auto from = perf_data::records(of);
        while (auto const one = from.next()) {
            all.push_back(one);
            if (perf_data::read_as<perf_data::lost_record>(one) ||
                perf_data::read_as<perf_data::lost_samples_record>(one)) {
                losses.push_back({one.id.cpu, last_times[one.id.cpu]});
            } else if (has_place(one)) {
                last_times[one.id.cpu] = one.id.time;
            }
        }
        // A file has one buffer of a CPU after the other.
        tool::stable_sort(
            all, [](auto const& one, auto const& two) { return one.id.time < two.id.time; });
        for (auto const& one : all) {
            auto const mode = one.misc & perf_data::misc_cpumode;
            bool const is_of_guest = mode == perf_data::misc_guest_kernel ||
                                     mode == perf_data::misc_guest_user;
            if (!is_of_guest) { take(one); }
        }
        // After lost records, the thread of the CPU is unknown until the next switch.
        for (auto const& [cpu, time] : losses) {
            switches_[cpu].push_back({time, none, none, true});
        }
    }
    /// Whether a record has a time and a CPU.
    static auto has_place(file::perf_data::record const& one) -> bool {
        using is = file::perf_data::sample_type;
        return one.id.has.get<is::TIME>() && one.id.has.get<is::CPU>();
    }
    static auto uses_other_clock(file::perf_data::input const& of) -> bool {
        auto events = file::perf_data::attrs_of(of);
        while (auto const one = events.next()) {
            if (one.flags.get<file::perf_data::attr_flags::use_clockid>()) { return true; }
        }
        return false;
    }
    void take(file::perf_data::record const& one) {
        namespace perf_data = file::perf_data;
        auto const time = one.id.time;
        if (auto const fork = perf_data::read_as<perf_data::fork_record>(one)) {
            processes_[fork->tid] = fork->pid;
            threads_[fork->pid].insert(fork->tid);
            if (fork->pid == fork->ppid) { return; }
            // A FORK that perf synthesized, for a process that runs already: MMAPs follow.
            auto const parent = versions_.find(fork->ppid);
            bool const has_code = (one.misc & perf_data::misc_fork_exec) == 0 &&
                                  parent != versions_.end();
            auto code = has_code ? spaces_[parent->second.back().space] : space_map{};
            if (has_code || versions_.contains(fork->pid)) {
                begin_version(fork->pid, time, std::move(code));
            }
        } else if (auto const exit = perf_data::read_as<perf_data::exit_record>(one)) {
            if (has_place(one)) {
                auto const which = thread_of(perf_data::thread_of(exit.value));
                switches_[one.id.cpu].push_back({time, none, which, true});
            }
            auto& threads = threads_[exit->pid];
            threads.erase(exit->tid);
            if (threads.empty()) {
                begin_version(exit->pid, time, {});
                versions_[exit->pid].back().has_ended = true;
            }
        } else if (auto const name = perf_data::read_as<perf_data::comm_record>(one)) {
            processes_[name->tid] = name->pid;
            threads_[name->pid].insert(name->tid);
            if (name->is_exec()) { begin_version(name->pid, time, {}, true); }
        } else if (auto const start = perf_data::read_as<perf_data::itrace_start_record>(one)) {
            processes_[start->tid] = start->pid;
            if (has_place(one)) {
                auto const which = thread_of(perf_data::thread_of(start.value));
                switches_[one.id.cpu].push_back({time, which, which, false});
            }
        } else if (auto const map = perf_data::read_as<perf_data::mmap2_record>(one)) {
            using is = perf_data::sample_type;
            add_mapping(map, time, one.id.has.get<is::TIME>());
        } else if (auto const change = perf_data::read_as<perf_data::switch_record>(one)) {
            auto const thread = thread_of(one.id.thread);
            if (!change->is_out()) { processes_[thread.tid] = thread.pid; }
            if (has_place(one)) {
                switches_[one.id.cpu].push_back(
                    {time, change->is_out() ? none : thread, thread, change->is_out()});
            }
        }
    }
    /// The maximum number of mappings in all versions together. Later versions have no code.
    static constexpr std::size_t max_copies = std::size_t{1} << 20;

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
    /// The mapping of a kernel: its name ends with that of a symbol, whose address is `pgoff`.
    void take_kernel(std::string const& path, std::uint64_t pgoff) {
        constexpr std::string_view kernel = "[kernel.kallsyms]";
        if (!path.starts_with(kernel) || kernel_address_) { return; }
        kernel_symbol_ = path.substr(kernel.size());
        kernel_address_ = pgoff;
    }
    /// `has_time` is false for records without times: then the code is not known if it changes.
    void add_mapping(file::perf_data::parsed<file::perf_data::mmap2_record> const& record,
                     std::uint64_t time, bool has_time) {
        auto const& one = record.value;
        std::uint32_t const process = one.pid;
        std::string const path = string_of(record.string());
        if (process == no_process) { return take_kernel(path, one.pgoff); }
        processes_.try_emplace(one.tid, process);
        threads_[process].insert(one.tid);
        if (one.len == 0) { return; }
        if (versions_[process].empty()) { begin_version(process, 0, {}); }
        auto const known = build_ids_.find(path);
        auto const own = one.id();
        auto const id = own.size() != 0             ? hex_of(own)
                        : known != build_ids_.end() ? known->second
                                                    : std::string{};
        mapped made{one.len, one.pgoff, path, id};
        auto const end = one.addr + one.len;
        auto const* now = &spaces_[versions_[process].back().space];
        auto const next = now->lower_bound(one.addr);
        bool overlaps = next != now->end() && next->first < end;
        if (next != now->begin()) {
            auto const& [start, before] = *std::prev(next);
            overlaps = overlaps || one.addr - start < before.size;
        }
        bool const is_code = !one.is_data() &&
                             (!one.is_mmap2() || (one.prot & file::perf_data::prot_exec) != 0);
        bool const is_same = next != now->end() && next->first == one.addr &&
                             next->second.is_same(made);
        if (is_code && is_same) { return; }
        if (overlaps) {
            auto rest = without(*now, one.addr, end);
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
        spaces_[space][one.addr] = made;
    }

    /// The mappings without those of a range of addresses.
    static auto without(space_map const& all, std::uint64_t first, std::uint64_t end) -> space_map {
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
                rest[end] = {last - end, where.offset + (end - start), where.path, where.build_id,
                             0};
            }
        }
        return rest;
    }

    binaries& files_;
    std::string kernel_symbol_{};
    std::optional<std::uint64_t> kernel_address_{};
    std::optional<kernel_code> kernel_{};
    std::map<std::string, std::string> build_ids_{};      ///< by path
    std::map<std::uint64_t, std::uint32_t> processes_{};  ///< by thread
    std::map<std::uint32_t, std::vector<version>> versions_{};
    std::map<std::uint32_t, std::set<std::uint32_t>> threads_{};  ///< that live, by process
    std::deque<space_map> spaces_{2};  ///< number 0, and `guest_space`, have no code
    std::map<std::uint32_t, std::vector<std::uint64_t>> added_{};  ///< times of mappings, by order
    std::vector<part> parts_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> part_numbers_{};
    std::map<std::pair<version const*, version const*>, std::uint32_t> common_{};
    mutable std::mutex lock_{};  ///< of spaces and names, after the constructor
    std::size_t copies_ = 0;
    bool is_full_ = false;
    bool has_other_clock_ = false;
    std::map<std::uint32_t, std::vector<switched>> switches_{};
    static constexpr std::uint32_t every_image = 0xFFFF'FFFF;
    std::map<std::pair<std::uint32_t, std::uint32_t>, symbols> names_{};  ///< by process and image
};

/// The code that a trace executed: that of a stream of a perf.data file, or of images.
class traced_code {
public:
    static constexpr auto changes = flow::space_changes::at_packets;

    explicit traced_code(flow::code_spans images) : images_{images} {}
    traced_code(processes& in, trace_file::stream const& of) : in_{&in}, of_{&of} {
        if (of.tid) { thread_ = {in.process_of(*of.tid), static_cast<std::uint32_t>(*of.tid), 0}; }
    }

    /// Whether the code depends on the times of packets.
    [[nodiscard]] auto needs_time() const -> bool {
        return in_ != nullptr && (!of_->tid || in_->changes(thread_.pid));
    }
    /// The thread of the stream; nullptr if it changes, and for a raw trace.
    [[nodiscard]] auto constant_thread() const -> thread_id const* {
        return in_ != nullptr && changing_thread() == nullptr ? &thread_ : nullptr;
    }
    /// Whether the stream is the whole trace of one thread.
    [[nodiscard]] auto is_one_thread() const -> bool {
        return in_ == nullptr || (of_->tid && !of_->cpu);
    }
    /// The executing thread of a stream with several, `no_process` where it is unknown; or nullptr.
    [[nodiscard]] auto changing_thread() const -> thread_id const* {
        bool const is_constant = in_ == nullptr || (of_->tid && !in_->has_images(thread_.pid));
        return is_constant ? nullptr : &thread_;
    }
    [[nodiscard]] auto space_of(flow::walk_place const& at) -> std::uint32_t {
        if (in_ == nullptr) { return 0; }
        if (at.state.non_root) { return processes::guest_space; }
        if (is_known_ && at.when == last_) { return space_; }
        is_known_ = true;
        last_ = at.when;
        space_ = space_at(range_of(at.when));
        return space_;
    }
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        return in_ == nullptr ? images_.code(address, space) : in_->code(address, space);
    }

private:
    [[nodiscard]] auto space_at(time_range when) -> std::uint32_t {
        if (!of_->tid && of_->cpu) { thread_ = in_->thread_on(*of_->cpu, when); }
        if (thread_.pid == no_process) { return 0; }
        thread_.image = in_->image_of(thread_.pid, when);
        return in_->space_of(thread_.pid, when);
    }
    [[nodiscard]] auto range_of(trace::time const& when) const -> time_range {
        auto const& to_ns = of_->how.to_ns;
        if (to_ns.mult == 0 || !in_->has_clock_of_trace()) { return {}; }
        if (!when.is_absolute() || when.is_guest) { return {}; }
        time_range made;
        made.first = to_ns.time_of(when.earliest);
        if (when.latest != trace::time::unbounded) { made.last = to_ns.time_of(when.latest); }
        return made;
    }

    processes* in_ = nullptr;
    trace_file::stream const* of_ = nullptr;
    flow::code_spans images_{};
    thread_id thread_{no_process, no_process, 0};
    bool is_known_ = false;  ///< `space_` at `last_`
    trace::time last_{};
    std::uint32_t space_ = 0;
};

}  // namespace traced
