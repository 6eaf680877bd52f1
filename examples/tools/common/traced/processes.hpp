// SPDX-License-Identifier: BSL-1.0
#pragma once

// The processes of a perf.data file: the code in their address spaces, and the threads that CPUs
// executed, by time.

#include "../place_filter.hpp"
#include "../trace_file.hpp"
#include "address_spaces.hpp"
#include "binaries.hpp"
#include "cpu_threads.hpp"
#include "function_ends.hpp"
#include "guest_code.hpp"
#include "kernel_code.hpp"
#include "record_order.hpp"
#include "symbols.hpp"
#include "tsc_times.hpp"

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/file/perf_data/build_ids.hpp>
#include <ptspec/file/perf_data/reader.hpp>
#include <ptspec/flow/code.hpp>
#include <ptspec/flow/walk_options.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace traced {

class processes {
public:
    static constexpr std::uint32_t guest_space = address_spaces::guest_space;

    processes(file::perf_data::input const& of, binaries& files)
        : files_{files}, guest_{files.where().of_guest()} {
        read_build_ids(of);
        read(of);
        kernel_.open(files.where(), of);
        guest_.finish();
    }

    /// Takes a record that the file did not have, in the order of time.
    void take(file::perf_data::record const& one) {
        namespace perf_data = file::perf_data;
        auto const mode = one.misc & perf_data::misc_cpumode;
        bool const is_of_guest = mode == perf_data::misc_guest_kernel ||
                                 mode == perf_data::misc_guest_user;
        is_of_guest ? take_of_guest(one) : take_of_host(one);
    }
    /// Updates the symbols that `names_of` returned, after more records. Returns whether some did
    /// change.
    auto update_names() -> bool {
        std::lock_guard const held{lock_};
        bool is_any = false;
        for (auto& [of, one] : names_) {
            if (of.first == no_process || one.changes == spaces_.changes_of(of.first)) { continue; }
            one.all = {};
            add_names(one, of.first,
                      of.second == every_image ? std::nullopt : std::optional{of.second});
            is_any = true;
        }
        return is_any;
    }
    /// Removes the switches of CPUs before a time.
    void forget_before(std::uint64_t time) { cpus_.forget_before(time); }

    /// The process of a thread; `no_process`: unknown.
    [[nodiscard]] auto process_of(std::uint64_t tid) const -> std::uint32_t {
        auto const found = processes_.find(tid);
        return found == processes_.end() ? no_process : found->second;
    }
    /// The thread that a CPU executes; `no_process`: none, or it is not known in this range.
    [[nodiscard]] auto thread_on(std::uint32_t cpu, time_range when) const -> thread_id {
        return cpus_.thread_on(cpu, when);
    }
    /// The threads that a CPU executes one after another in a time range, each with its times.
    /// Threads without code are left out. Empty if the records do not name all of them.
    [[nodiscard]] auto threads_in(std::uint32_t cpu, time_range when, bool is_of_command) const
        -> std::vector<thread_run> {
        auto found = cpus_.threads_in(cpu, when, is_of_command);
        if (!found.is_known) { return {}; }
        std::erase_if(found.all, [&](auto const& one) {
            return !spaces_.has_code_in(one.thread.pid, one.when);
        });
        return std::move(found.all);
    }
    /// Whether records say, at any time, that this process maps code.
    [[nodiscard]] auto names_code_of(std::uint32_t process) const -> bool {
        return spaces_.has_versions(process);
    }
    /// Whether a process has code in a range of times.
    [[nodiscard]] auto has_code(std::uint32_t process, time_range when) const -> bool {
        return spaces_.has_code_in(process, when);
    }
    /// All processes that have code in a range of times.
    [[nodiscard]] auto processes_in(time_range when) const -> std::vector<thread_run> {
        std::vector<thread_run> made;
        for (auto const one : spaces_.all_processes()) {
            if (has_code(one, when)) { made.push_back({{one, no_process, 0}, when}); }
        }
        return made;
    }
    /// Whether the code of the kernel is known.
    [[nodiscard]] auto has_kernel() const -> bool { return kernel_.has_code(); }
    /// Whether records say which threads a CPU executes.
    [[nodiscard]] auto has_threads(std::uint32_t cpu) const -> bool {
        return cpus_.has_threads(cpu);
    }
    /// The number of the address space of a process in a time range; 0: its code is not known. If
    /// its mappings change in the range, it has the code that is the same at all these times.
    [[nodiscard]] auto space_of(std::uint32_t process, time_range when) -> std::uint32_t {
        auto const found = spaces_.versions_in(process, when);
        std::lock_guard const held{lock_};
        return with_kernel(found.last == nullptr ? 0 : spaces_.space_of(found, when.last), when);
    }
    /// The number of an address space with the code that is the same in all these threads, each at
    /// its times.
    [[nodiscard]] auto space_of_any(std::vector<thread_run> const& all, time_range when)
        -> std::uint32_t {
        std::lock_guard const held{lock_};
        return with_kernel(spaces_.space_of_any(all), when);
    }
    /// The processes that a CPU may execute at an unknown time, sorted: the ones that its records
    /// name, or all processes if it has no records.
    [[nodiscard]] auto processes_on(std::uint32_t cpu) const -> std::vector<std::uint32_t> {
        return cpus_.has_threads(cpu) ? cpus_.processes_on(cpu) : spaces_.all_processes();
    }
    /// The number of an address space with the code that is the same in all these processes at all
    /// times.
    [[nodiscard]] auto space_of_any(std::vector<std::uint32_t> const& all) -> std::uint32_t {
        std::lock_guard const held{lock_};
        return spaces_.space_of_any(all);
    }
    /// Whether an address has no code because the process or the time is unknown.
    [[nodiscard]] auto needs_time_at(std::uint64_t address, std::uint32_t space) -> bool {
        if (space == guest_space || address >> 63 != 0) { return false; }
        auto const seen = view_of(space);
        std::lock_guard const held{lock_};
        auto const found = spaces_.mapping_at(seen.of_user, address);
        return found.what != nullptr && found.what->is_disputed;
    }
    /// Whether the times of records can be compared with the TSC.
    [[nodiscard]] auto has_clock_of_trace() const -> bool { return !has_other_clock_; }
    /// The number of the program that a process executes; `every_image`: one of several.
    [[nodiscard]] auto image_of(std::uint32_t process, time_range when) const -> std::uint32_t {
        auto const program = spaces_.image_of(process, when);
        return program == every_image ? every_image
                                      : program * kernel_.eras() + kernel_.era_at(when.last);
    }
    /// Whether a process executes several programs, or a name of the kernel depends on the time.
    [[nodiscard]] auto has_images(std::uint32_t process) const -> bool {
        return kernel_.eras() > 1 || spaces_.has_images(process);
    }
    /// Whether the code of a process, or of the kernel, changes with time.
    [[nodiscard]] auto changes(std::uint32_t process) const -> bool {
        return kernel_.changes() || spaces_.changes(process);
    }
    /// The bytes at an address, to the end of the mapping.
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        if (space == guest_space) {
            std::lock_guard const held{lock_};
            return guest_.code(address);
        }
        auto const seen = view_of(space);
        if (address >> 63 != 0) { return kernel_.code(address, seen.first, seen.last); }
        std::lock_guard const held{lock_};
        auto const [start, where] = spaces_.mapping_at(seen.of_user, address);
        if (where == nullptr || where->is_disputed) { return {}; }
        auto const offset = address - start;
        auto const* const from = files_.find(where->path, where->build_id);
        if (from == nullptr) { return {}; }
        auto const bytes = from->bytes();
        auto const at = where->offset + offset;
        if (at < where->offset || at >= bytes.size()) { return {}; }
        auto const rest = bytes.from(static_cast<std::size_t>(at));
        return rest.first(
            static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), where->size - offset)));
    }
    [[nodiscard]] auto executes(std::string const& path) -> bool {
        return spaces_.any_process(
            [&](std::uint32_t process) { return !ranges_of(process, path).empty(); });
    }
    /// The addresses at which a process executes a file: a path, or the end of one.
    [[nodiscard]] auto ranges_of(std::uint32_t process, std::string const& path,
                                 std::optional<std::uint32_t> image = {})
        -> std::vector<flow::ip_range> {
        std::lock_guard const held{lock_};
        std::vector<flow::ip_range> made;
        each_mapping(process, image, [&](std::uint64_t start, mapped const& where) {
            if (where.size != 0 && is_path(where.path, path)) {
                made.push_back({start, start + (where.size - 1)});
            }
        });
        return made;
    }
    /// Adds the places of a part of a file in all processes, each once.
    void add_places_of(std::string const& path, std::uint64_t offset, std::uint64_t size,
                       std::vector<flow::ip_range>& to) const {
        std::lock_guard const held{lock_};
        auto const add = [&](std::uint64_t start, mapped const& where) {
            auto const first = std::max(offset, where.offset);
            auto const end = std::min(offset + size, where.offset + where.size);
            if (!is_path(where.path, path) || first >= end) { return; }
            auto const at = start + (first - where.offset);
            flow::ip_range const range{at, at + (end - first - 1)};
            bool const is_known = std::any_of(to.begin(), to.end(), [&](auto const& one) {
                return one.first == range.first && one.last == range.last;
            });
            if (!is_known) { to.push_back(range); }
        };
        (void)spaces_.any_process([&](std::uint32_t process) {
            spaces_.each_mapping(process, {}, add);
            return false;
        });
    }
    /// The file with code of a process.
    auto module_at(std::uint32_t process, std::uint64_t address, std::uint32_t image)
        -> std::optional<module> {
        std::lock_guard const held{lock_};
        auto const [start,
                    where] = process == no_process
                                 ? spaces_.mapping_at(space_of_all(), address)
                                 : spaces_.last_mapping_at(process, address,
                                                           program_of(image).value_or(every_image));
        if (where == nullptr || where->is_disputed) { return std::nullopt; }
        auto const* const from = files_.find(where->path, where->build_id);
        return binaries::module_of(where->path, from, {start, where->size, where->offset});
    }
    /// Whether options say where the code of guests is.
    [[nodiscard]] auto has_guest_code() const -> bool { return files_.where().has_guest(); }
    [[nodiscard]] auto guest_names() const -> symbols const& { return guest_.names(); }
    /// The names of the functions of a process, including those of code that was unmapped later.
    /// Of `no_process`: of all code that is the same in all processes.
    auto names_of(std::uint32_t process, std::optional<std::uint32_t> image = {})
        -> symbols const& {
        std::lock_guard const held{lock_};
        auto const [at, is_new] = names_.try_emplace({process, image.value_or(every_image)});
        if (is_new) { add_names(at->second, process, image); }
        return at->second.all;
    }

private:
    static constexpr std::size_t max_named = 4096;  ///< mappings

    struct named {
        symbols all{};
        std::uint64_t changes = 0;  ///< of the process, up to these names
    };
    void add_names(named& to, std::uint32_t process, std::optional<std::uint32_t> image) {
        auto& names = to.all;
        to.changes = spaces_.changes_of(process);
        std::set<std::pair<std::uint64_t, std::string>> known;
        each_mapping(process, image, [&](std::uint64_t start, mapped const& where) {
            bool const is_first = known.emplace(start - where.offset, where.path).second;
            if (!is_first || known.size() >= max_named) { return; }
            auto const* const from = files_.find(where.path, where.build_id);
            files_.add_names(names, from, {start, where.size, where.offset});
            names.add_file(where.path, start, where.size, where.offset);
        });
        if (process != no_process) { files_.add_map(names, process); }
        names.set_kernel(kernel_.names(program_of(image) ? std::optional{*image % kernel_.eras()}
                                                         : std::nullopt));
        names.sort();
    }

    /// Calls `visit(start, mapped)` for the mappings of a process; of `no_process`, for those of
    /// code that is the same in all processes.
    template <class Visit>
    void each_mapping(std::uint32_t process, std::optional<std::uint32_t> image, Visit&& visit) {
        if (process == no_process) { return spaces_.each_mapping_of(space_of_all(), visit); }
        spaces_.each_mapping(process, program_of(image), visit);
    }
    auto space_of_all() -> std::uint32_t { return spaces_.space_of_any(spaces_.all_processes()); }

    /// What a thread can execute: a space of the user, and the code of the kernel in its epochs.
    struct view {
        std::uint32_t of_user = 0;
        std::uint32_t first = 0;
        std::uint32_t last = 0;

        friend auto operator<=>(view const&, view const&) = default;
    };
    /// The number of `views_[0]`. If the code of the kernel does not change, there are no views,
    /// and the numbers are those of the spaces.
    static constexpr std::uint32_t first_view = guest_space + 1;

    /// The number of a space of the user with the code of the kernel in a range of times.
    [[nodiscard]] auto with_kernel(std::uint32_t of_user, time_range when) -> std::uint32_t {
        if (!kernel_.changes()) { return of_user; }
        auto const [first, last] = kernel_.epochs_in(when);
        view const made{of_user, first, last};
        auto const [at, is_new] = view_numbers_.try_emplace(
            made, first_view + static_cast<std::uint32_t>(views_.size()));
        if (is_new) { views_.push_back(made); }
        return at->second;
    }
    [[nodiscard]] auto view_of(std::uint32_t space) const -> view {
        if (!kernel_.changes()) { return {space, kernel_.last_epoch(), kernel_.last_epoch()}; }
        if (space < first_view) { return {space, 0, kernel_.last_epoch()}; }
        std::lock_guard const held{lock_};
        return views_[space - first_view];
    }
    /// The number of exec calls in that of an image; none: any.
    [[nodiscard]] auto program_of(std::optional<std::uint32_t> image) const
        -> std::optional<std::uint32_t> {
        bool const is_any = image.value_or(every_image) == every_image;
        return is_any ? std::nullopt : std::optional{*image / kernel_.eras()};
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
        record_order all;
        auto from = perf_data::records(of);
        while (auto const one = from.next()) { all.add(one); }
        // A file has one buffer of a CPU after the other.
        all.take_up_to(~std::uint64_t{0}, [this](auto const& one) { take(one); });
    }
    static auto uses_other_clock(file::perf_data::input const& of) -> bool {
        auto events = file::perf_data::attrs_of(of);
        while (auto const one = events.next()) {
            if (one.flags.get<file::perf_data::attr_flags::use_clockid>()) { return true; }
        }
        return false;
    }
    void take_of_host(file::perf_data::record const& one) {
        namespace perf_data = file::perf_data;
        kernel_.take(one);
        auto const time = one.id.time;
        if (auto const fork = perf_data::read_as<perf_data::fork_record>(one)) {
            processes_[fork->tid] = fork->pid;
            threads_[fork->pid].insert(fork->tid);
            if (fork->pid == fork->ppid) { return; }
            // A FORK that perf synthesized, for a process that runs already: MMAPs follow.
            bool const copies = (one.misc & perf_data::misc_fork_exec) == 0;
            spaces_.fork(fork->pid, fork->ppid, time, copies);
        } else if (auto const exit = perf_data::read_as<perf_data::exit_record>(one)) {
            if (has_place(one)) {
                auto const which = thread_of(perf_data::thread_of(exit.value));
                cpus_.add(one.id.cpu, {time, no_thread, which, true});
            }
            auto& threads = threads_[exit->pid];
            threads.erase(exit->tid);
            // An EXIT without a time has no place among the mappings: they stay.
            bool const has_time = one.id.has.get<perf_data::sample_type::TIME>();
            if (threads.empty() && has_time) { spaces_.exit(exit->pid, time); }
        } else if (auto const name = perf_data::read_as<perf_data::comm_record>(one)) {
            processes_[name->tid] = name->pid;
            threads_[name->pid].insert(name->tid);
            if (name->is_exec()) { spaces_.exec(name->pid, time); }
        } else if (auto const start = perf_data::read_as<perf_data::itrace_start_record>(one)) {
            processes_[start->tid] = start->pid;
            if (has_place(one)) {
                auto const which = thread_of(perf_data::thread_of(start.value));
                cpus_.add(one.id.cpu, {time, which, which, false});
            }
        } else if (auto const map = perf_data::read_as<perf_data::mmap2_record>(one)) {
            using is = perf_data::sample_type;
            add_mapping(map, time, one.id.has.get<is::TIME>());
        } else if (auto const change = perf_data::read_as<perf_data::switch_record>(one)) {
            auto const thread = thread_of(one.id.thread);
            if (!change->is_out()) { processes_[thread.tid] = thread.pid; }
            if (has_place(one)) {
                bool const is_out = change->is_out();
                cpus_.add(one.id.cpu, {time, is_out ? no_thread : thread, thread, is_out});
            }
        } else if (is_loss(one)) {
            // The thread of the CPU is unknown until the next switch.
            cpus_.add(one.id.cpu, {time, no_thread, no_thread, true});
        }
    }
    /// A mapping in a guest; other records of guests say nothing of code.
    void take_of_guest(file::perf_data::record const& found) {
        auto const map = file::perf_data::read_as<file::perf_data::mmap2_record>(found);
        if (!map || !has_guest_code() || map->len == 0 || map->is_data()) { return; }
        constexpr std::string_view kernel = "[guest.kernel.kallsyms";
        std::string const path = string_of(map.string());
        if (path.starts_with(kernel)) {
            auto const end = path.find(']');
            return guest_.set_kernel(end == path.npos ? "" : path.substr(end + 1), map->pgoff);
        }
        bool const is_code = !map->is_mmap2() || (map->prot & file::perf_data::prot_exec) != 0;
        if (is_code) { guest_.map(map->addr, {map->len, map->pgoff, path, hex_of(map->id())}); }
    }
    void add_mapping(file::perf_data::parsed<file::perf_data::mmap2_record> const& record,
                     std::uint64_t time, bool has_time) {
        auto const& one = record.value;
        std::uint32_t const process = one.pid;
        std::string path = string_of(record.string());
        if (process == no_process) { return kernel_.map(path, one.addr, one.len, one.pgoff); }
        processes_.try_emplace(one.tid, process);
        threads_[process].insert(one.tid);
        if (one.len == 0) { return; }
        auto const known = build_ids_.find(path);
        auto const own = one.id();
        auto const id = own.size() != 0             ? hex_of(own)
                        : known != build_ids_.end() ? known->second
                                                    : std::string{};
        // Programs of 32 bits have another vDSO than this one.
        bool const is_other = files_.where().is_running && one.addr >> 32 == 0;
        if (is_other && path == "[vdso]") { path = "[vdso32]"; }
        bool const is_code = !one.is_data() &&
                             (!one.is_mmap2() || (one.prot & file::perf_data::prot_exec) != 0);
        spaces_.map(process, one.addr, {one.len, one.pgoff, path, id}, is_code, time, has_time);
    }

    binaries& files_;
    guest_code guest_;
    kernel_code kernel_{};
    std::map<std::string, std::string> build_ids_{};              ///< by path
    std::map<std::uint64_t, std::uint32_t> processes_{};          ///< by thread
    std::map<std::uint32_t, std::set<std::uint32_t>> threads_{};  ///< that live, by process
    bool has_other_clock_ = false;
    cpu_threads cpus_{};
    address_spaces spaces_{};
    std::vector<view> views_{};
    std::map<view, std::uint32_t> view_numbers_{};
    std::map<std::pair<std::uint32_t, std::uint32_t>, named> names_{};  ///< by process and image
    mutable std::mutex lock_{};  ///< of files, spaces and names, after the constructor
};

/// The code that a trace executed: that of a stream of a perf.data file, or of images.
class traced_code {
public:
    static constexpr auto changes = flow::space_changes::at_packets;

    explicit traced_code(flow::code_spans images) : images_{images} {}
    traced_code(processes& in, trace_file::stream const& of) : in_{&in}, of_{&of} {
        if (of.tid) { thread_ = {in.process_of(*of.tid), static_cast<std::uint32_t>(*of.tid), 0}; }
        is_of_cpu_ = of.cpu && (!of.tid || in.has_threads(*of.cpu));
        if (of.cpu) { candidates_ = in.processes_on(*of.cpu); }
    }

    /// Whether the code depends on the times of packets.
    [[nodiscard]] auto needs_time() const -> bool {
        if (in_ == nullptr) { return false; }
        return is_of_cpu_ || !of_->tid || (!is_any_thread() && in_->changes(thread_.pid));
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
        bool const is_constant = in_ == nullptr ||
                                 (of_->tid && !is_of_cpu_ && !is_any_thread() &&
                                  !in_->has_images(thread_.pid) && !in_->has_guest_code());
        return is_constant ? nullptr : &thread_;
    }
    /// Sets the upper bound of the times that follow, in ns of perf, for packets without one. By
    /// default it is the next TSC of the stream.
    void set_horizon(std::uint64_t time) { horizon_ = time; }
    /// Sets what is wanted. `place()` says whether a walk is there.
    void select(tool::place_filter const& places) { filter_ = places; }
    [[nodiscard]] auto place() const -> tool::walk_place const& { return place_; }
    [[nodiscard]] auto space_of(flow::walk_state const& walked) -> std::uint32_t {
        auto const& state = walked.state;
        bool const is_known = !walked.has_lost_packets && filter_.knows(state);
        bool const is_wanted = !filter_.is_on() || (is_known && filter_.takes(state));
        place_ = {is_wanted, is_known, state.has_cr3 && !walked.has_lost_packets, state.non_root};
        if (in_ == nullptr) { return 0; }
        thread_.is_guest = state.non_root && in_->has_guest_code();
        if (state.non_root) { return processes::guest_space; }
        if (is_known_ && walked.when == last_) { return space_; }
        is_known_ = true;
        last_ = walked.when;
        space_ = space_at(range_of(walked.when));
        return space_;
    }
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t space) -> byte_view {
        auto const bytes = in_ == nullptr ? images_.code(address, space)
                                          : in_->code(address, space);
        return ends.cut(bytes, address, thread_);
    }
    [[nodiscard]] auto needs_time_at(std::uint64_t address, std::uint32_t space) -> bool {
        return in_ != nullptr && in_->needs_time_at(address, space);
    }

    function_ends ends{};

private:
    /// Whether the trace is of several processes, and no record says which one executes.
    [[nodiscard]] auto is_any_thread() const -> bool {
        return !is_of_cpu_ && candidates_.size() > 1;
    }
    [[nodiscard]] auto space_at(time_range when) -> std::uint32_t {
        if (is_any_thread() || (is_of_cpu_ && !when.is_known() && candidates_.size() > 1)) {
            thread_ = no_thread;
            return in_->space_of_any(candidates_);
        }
        if (is_of_cpu_) {
            auto const found = in_->thread_on(*of_->cpu, when);
            if (found.pid == no_process && when.is_known()) {
                auto const any = in_->threads_in(*of_->cpu, when, of_->tid.has_value());
                if (!any.empty()) { return space_of_any(any, when); }
            }
            // A buffer with a thread id holds the trace of one command. If no record names the
            // current thread, as after the CPU was offline, the previous thread still executes; if
            // its process has ended, any process of the command may.
            bool const is_guest = thread_.is_guest;
            bool const is_named = !of_->tid || in_->names_code_of(found.pid);
            if (is_named) { thread_ = found; }
            thread_.is_guest = is_guest;
            if (!is_named && when.is_known() && !in_->has_code(thread_.pid, when)) {
                auto const any = in_->processes_in(when);
                if (!any.empty()) { return space_of_any(any, when); }
            }
            bool const is_only = !when.is_known() && candidates_.size() == 1;
            if (thread_.pid == no_process && is_only) { thread_.pid = candidates_[0]; }
        }
        thread_.image = in_->image_of(thread_.pid, when);
        return in_->space_of(thread_.pid, when);
    }
    [[nodiscard]] auto range_of(trace::time const& when) -> time_range {
        auto const& to_ns = of_->how.to_ns;
        if (to_ns.mult == 0 || !in_->has_clock_of_trace()) { return {}; }
        if (!when.is_absolute() || when.is_guest) { return {}; }
        time_range made;
        made.first = to_ns.time_of(when.earliest);
        if (when.latest == trace::time::unbounded && horizon_) {
            made.last = *horizon_;
            return made;
        }
        auto const latest = when.latest != trace::time::unbounded ? when.latest : latest_of(when);
        if (latest != trace::time::unbounded) { made.last = to_ns.time_of(latest); }
        return made;
    }
    /// The upper bound of a time, in TSC ticks, in a trace without MTC and CYC packets.
    [[nodiscard]] auto latest_of(trace::time const& when) -> std::uint64_t {
        if (tscs_ == nullptr) {
            tscs_ = std::make_shared<tsc_times const>(*of_);
            // A trace of user code stops at each system call and interrupt, so the thread and its
            // program cannot change before the next TIP.PGE. If each TIP.PGE follows a TSC, the
            // last TSC identifies the thread.
            auto const& how = of_->how;
            bool const is_user = how.ctl && !how.ctl->get<reg::ia32_rtit_ctl::OS>();
            auto const kind = engine::model_kind_of(how.model);
            is_at_earliest_ = is_user && how.has_model && tscs_->is_before_each_pge() &&
                              engine::options_of(kind).psb_before_pge;
        }
        return is_at_earliest_ ? when.earliest : tscs_->next_after(when.earliest);
    }
    /// The address space for a time range in which the CPU executes these threads. Sets `thread_`
    /// if all of them are one thread, and no kernel code that runs between them is known.
    [[nodiscard]] auto space_of_any(std::vector<thread_run> const& all, time_range when)
        -> std::uint32_t {
        bool const is_guest = thread_.is_guest;
        bool const is_one = !in_->has_kernel() &&
                            std::all_of(all.begin(), all.end(),
                                        [&](auto& one) { return one.thread == all[0].thread; });
        thread_ = is_one ? all[0].thread : no_thread;
        thread_.is_guest = is_guest;
        if (is_one) {
            thread_.image = in_->image_of(thread_.pid, {all[0].when.first, all.back().when.last});
        }
        return in_->space_of_any(all, when);
    }

    processes* in_ = nullptr;
    trace_file::stream const* of_ = nullptr;
    flow::code_spans images_{};
    tool::place_filter filter_{};
    tool::walk_place place_{};
    thread_id thread_{no_process, no_process, 0};
    /// The trace of a CPU. `perf record COMMAND` also names the command's thread in it, but the
    /// buffer has the trace of its children, too.
    bool is_of_cpu_ = false;
    std::vector<std::uint32_t> candidates_{};  ///< the processes that the CPU may execute
    std::optional<std::uint64_t> horizon_{};
    std::shared_ptr<tsc_times const> tscs_{};
    bool is_at_earliest_ = false;  ///< the lower bound of a time identifies the thread
    bool is_known_ = false;        ///< `space_` at `last_`
    trace::time last_{};
    std::uint32_t space_ = 0;
};

}  // namespace traced
