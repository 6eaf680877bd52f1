// SPDX-License-Identifier: BSL-1.0
#pragma once

// The threads that CPUs executed, by time.

#include "../tool.hpp"

#include <ptspec/file/perf_data/reader.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace traced {

using namespace ptspec;

/// A thread, and the number of exec calls of its process: `image` tells programs apart.
struct thread_id {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint32_t image = 0;
    bool is_guest = false;  ///< a guest that this thread runs

    friend auto operator==(thread_id, thread_id) -> bool = default;
};
inline auto thread_of(file::perf_data::thread_id which) -> thread_id {
    return {which.pid, which.tid, 0};
}
/// A process or thread that is not known.
inline constexpr std::uint32_t no_process = 0xFFFF'FFFF;
inline constexpr thread_id no_thread{no_process, no_process, 0};

/// The number of exec calls is not known.
inline constexpr std::uint32_t every_image = 0xFFFF'FFFF;

/// Bounds of a time, in nanoseconds.
struct time_range {
    std::uint64_t first = 0;
    std::uint64_t last = ~std::uint64_t{0};

    /// False if it is any time.
    [[nodiscard]] auto is_known() const -> bool { return first != 0 || last != ~std::uint64_t{0}; }
};

/// A thread that a CPU executes, and when.
struct thread_run {
    thread_id thread{};
    time_range when{};
};

/// The last entry that is not after a time; nullptr if all are.
template <class Entry>
auto last_before(std::vector<Entry> const& all, std::uint64_t time) -> Entry const* {
    auto const next = std::upper_bound(
        all.begin(), all.end(), time,
        [](std::uint64_t value, Entry const& one) { return value < one.time; });
    return next == all.begin() ? nullptr : &*std::prev(next);
}

/// What switched a CPU to another thread, or says which one it executes.
struct thread_switch {
    std::uint64_t time = 0;
    thread_id thread{};  ///< that runs from now on, if it is known
    thread_id who{};     ///< that was switched in or out
    bool is_out = false;
};

class cpu_threads {
public:
    /// Adds a switch, in the order of time. If it is of another thread than the one before it,
    /// records are missing between them: that one becomes unknown.
    void add(std::uint32_t cpu, thread_switch const& one) {
        auto& all = switches_[cpu];
        if (!all.empty()) {
            auto& before = all.back();
            bool const agrees = one.who == before.who || one.who.tid == no_process;
            if (!agrees && !before.is_out) { before.thread = no_thread; }
        }
        all.push_back(one);
    }
    /// Removes the switches before a time, if they are many.
    void forget_before(std::uint64_t time) {
        constexpr std::ptrdiff_t least = 4096;
        for (auto& [cpu, all] : switches_) {
            auto const* const last = last_before(all, time);
            if (last != nullptr && last - all.data() >= least) {
                all.erase(all.begin(), all.begin() + (last - all.data()));
            }
        }
    }
    [[nodiscard]] auto has_threads(std::uint32_t cpu) const -> bool {
        return switches_.contains(cpu);
    }
    /// The thread that a CPU executes in all of a time range; `no_process`: none, or several.
    [[nodiscard]] auto thread_on(std::uint32_t cpu, time_range when) const -> thread_id {
        auto const of = switches_.find(cpu);
        if (of == switches_.end()) { return no_thread; }
        auto const& all = of->second;
        auto const* const first = last_before(all, when.first);
        auto const* const last = last_before(all, when.last);
        if (first != nullptr && first == last) { return first->thread; }
        // Before the first record, the thread that it switches out was running.
        return last == nullptr && all.front().is_out ? all.front().who : no_thread;
    }
    /// The threads that a CPU executes in a time range, in order, each with its times.
    struct several {
        std::vector<thread_run> all{};
        bool is_known = false;  ///< false: records are missing, or there are more than the limit
    };
    /// `is_of_command`: the trace belongs to one command and begins with its first record.
    [[nodiscard]] auto threads_in(std::uint32_t cpu, time_range when, bool is_of_command) const
        -> several {
        constexpr std::ptrdiff_t most = 256;  // records
        several made;
        auto const of = switches_.find(cpu);
        if (of == switches_.end()) { return made; }
        auto const& all = of->second;
        auto const* const last = last_before(all, when.last);
        if (last == nullptr) { return made; }
        auto const* at = last_before(all, when.first);
        if (at == nullptr) {
            at = all.data();
            if (!at->is_out && !is_of_command) { return made; }
            if (at->is_out) { made.all.push_back({at->who, {when.first, at->time}}); }
        }
        if (last - at >= most) { return made; }
        for (; at <= last; ++at) {
            // Records were lost: the next record names another thread than this one.
            if ((at->is_out ? at->who : at->thread).pid == no_process) { return made; }
            if (at->thread.pid == no_process) { continue; }
            made.all.push_back({at->thread,
                                {std::max(at->time, when.first),
                                 at == last ? when.last : std::min(at[1].time, when.last)}});
        }
        made.is_known = true;
        return made;
    }

    /// The processes that a CPU executes, as far as records say so: sorted, each once.
    [[nodiscard]] auto processes_on(std::uint32_t cpu) const -> std::vector<std::uint32_t> {
        std::vector<std::uint32_t> made;
        auto const of = switches_.find(cpu);
        if (of == switches_.end()) { return made; }
        for (auto const& one : of->second) {
            for (auto const process : {one.thread.pid, one.who.pid}) {
                if (process != no_process) { made.push_back(process); }
            }
        }
        std::sort(made.begin(), made.end());
        made.erase(std::unique(made.begin(), made.end()), made.end());
        return made;
    }

private:
    std::map<std::uint32_t, std::vector<thread_switch>> switches_{};
};

}  // namespace traced
