// SPDX-License-Identifier: BSL-1.0
// Coroutines of C++20 that wait for each other, and continue each other by tail calls.

#include <coroutine>
#include <exception>

#include "made.h"

namespace {

struct task {
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;
    struct final_step {
        auto await_ready() noexcept -> bool { return false; }
        auto await_suspend(handle of) noexcept -> std::coroutine_handle<>;
        void await_resume() noexcept {}
    };
    struct promise_type {
        int value = 0;
        std::coroutine_handle<> waits = std::noop_coroutine();
        auto get_return_object() -> task { return {handle::from_promise(*this)}; }
        auto initial_suspend() -> std::suspend_always { return {}; }
        auto final_suspend() noexcept -> final_step { return {}; }
        void return_value(int v) { value = v; }
        void unhandled_exception() { std::terminate(); }
    };
    task(handle h) : of{h} {}
    task(task const&) = delete;
    ~task() { of.destroy(); }
    auto await_ready() -> bool { return false; }
    auto await_suspend(std::coroutine_handle<> by) -> std::coroutine_handle<> {
        of.promise().waits = by;
        return of;
    }
    auto await_resume() -> int { return of.promise().value; }
    handle of;
};
auto task::final_step::await_suspend(handle one) noexcept -> std::coroutine_handle<> {
    return one.promise().waits;
}

std::coroutine_handle<> stopped;
struct stop {
    auto await_ready() -> bool { return false; }
    void await_suspend(std::coroutine_handle<> by) { stopped = by; }
    void await_resume() {}
};

KEEP auto leaf(int a) -> int { return a + 1; }
auto inner(int a) -> task {
    int sum = leaf(a);
    co_await stop{};
    sum += leaf(a);
    co_return sum;
}
auto middle(int a) -> task {
    int sum = 0;
    for (int i = 0; i < 3; ++i) { sum += co_await inner(a + i); }
    co_return leaf(sum);
}
auto outer(int a) -> task {
    int const one = co_await middle(a);
    int const two = co_await middle(a + 1);
    co_return leaf(one + two);
}

}  // namespace

auto main() -> int {
    auto const all = outer(1);
    all.of.resume();
    while (!all.of.done()) { stopped.resume(); }
    return EXPECT(all.of.promise().value == 2 * (2 + 3 + 4) + 1 + 2 * (3 + 4 + 5) + 1 + 1);
}
