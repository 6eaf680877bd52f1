// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace tool {

/// Calls `make(worker, i)` for i from 0 to `count` - 1 in up to `jobs` threads, and `use(result)`
/// for the results in order, in this thread. `worker`, below `jobs`, is the number of the thread.
/// At most 2 results for each thread exist at a time. An exception of either function is rethrown
/// after all threads ended.
template <class Make, class Use>
void in_order(std::size_t count, unsigned jobs, Make const& make, Use const& use) {
    using result = std::invoke_result_t<Make const&, unsigned, std::size_t>;
    struct slot {
        std::optional<result> made{};
        std::exception_ptr error{};
        bool is_done = false;
    };
    std::mutex lock;
    std::condition_variable changed;
    std::deque<slot> slots(count);  // guarded by `lock`, like all below
    std::size_t started = 0;
    std::size_t used = 0;
    bool is_ended = false;
    auto const most = std::size_t{2} * jobs;

    auto const work = [&](unsigned worker) {
        std::unique_lock held{lock};
        for (;;) {
            changed.wait(held,
                         [&] { return is_ended || started == count || started - used < most; });
            if (is_ended || started == count) { return; }
            auto const number = started++;
            held.unlock();
            slot made;
            try {
                made.made.emplace(make(worker, number));
            } catch (...) { made.error = std::current_exception(); }
            made.is_done = true;
            held.lock();
            slots[number] = std::move(made);
            changed.notify_all();
        }
    };
    struct joining {
        std::vector<std::thread> threads{};
        std::mutex& lock;
        std::condition_variable& changed;
        bool& is_ended;

        ~joining() {
            {
                std::lock_guard const held{lock};
                is_ended = true;
            }
            changed.notify_all();
            for (auto& one : threads) { one.join(); }
        }
    } workers{{}, lock, changed, is_ended};
    for (unsigned i = 0; i < std::min<std::size_t>(jobs, count); ++i) {
        try {
            workers.threads.emplace_back(work, i);
        } catch (std::system_error const&) { break; }  // no more threads can be created
    }
    if (workers.threads.empty()) {
        for (std::size_t i = 0; i < count; ++i) {
            auto made = make(0U, i);
            use(made);
        }
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::unique_lock held{lock};
        changed.wait(held, [&] { return slots[i].is_done; });
        slot now = std::move(slots[i]);
        slots[i] = {};
        held.unlock();
        if (now.error) { std::rethrow_exception(now.error); }
        use(*now.made);
        held.lock();
        used = i + 1;
        changed.notify_all();
    }
}

}  // namespace tool
