// SPDX-License-Identifier: BSL-1.0
// Generators by coroutines of C++20, one of which reads another, and one throws.

#include <coroutine>
#include <exception>

#include "made.h"

namespace {

struct generator {
    struct promise_type {
        int value = 0;
        std::exception_ptr thrown{};
        auto get_return_object() -> generator {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        auto initial_suspend() -> std::suspend_always { return {}; }
        auto final_suspend() noexcept -> std::suspend_always { return {}; }
        auto yield_value(int v) -> std::suspend_always {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { thrown = std::current_exception(); }
    };
    generator(std::coroutine_handle<promise_type> h) : of{h} {}
    generator(generator const&) = delete;
    ~generator() { of.destroy(); }
    KEEP auto next() -> bool {
        of.resume();
        if (of.promise().thrown) { std::rethrow_exception(of.promise().thrown); }
        return !of.done();
    }
    auto value() -> int { return of.promise().value; }
    std::coroutine_handle<promise_type> of;
};

KEEP auto leaf(int a) -> int { return a + 1; }
auto numbers(int n) -> generator {
    for (int i = 0; i < n; ++i) { co_yield leaf(i); }
}
auto doubled(int n) -> generator {
    auto all = numbers(n);
    while (all.next()) { co_yield all.value() * 2; }
}
auto failing() -> generator {
    co_yield leaf(1);
    throw 5;
}

}  // namespace

auto main() -> int {
    int sum = 0;
    auto all = doubled(5);
    while (all.next()) { sum += all.value(); }
    auto bad = failing();
    try {
        while (bad.next()) { sum += leaf(bad.value()); }
    } catch (int thrown) { sum += leaf(thrown); }
    return EXPECT(sum == 30 + 3 + 6);
}
