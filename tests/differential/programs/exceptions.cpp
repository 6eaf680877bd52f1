// SPDX-License-Identifier: BSL-1.0
// C++ exceptions through several frames with destructors, handlers that throw again, and virtual
// calls.

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

unsigned alive = 0;
unsigned destroyed = 0;

struct guard {
    guard() { ++alive; }
    guard(guard const&) = delete;
    auto operator=(guard const&) -> guard& = delete;
    ~guard() {
        --alive;
        ++destroyed;
    }
};

struct number_thrown {
    unsigned value;
};

[[gnu::noinline]] auto descend(unsigned depth, unsigned value) -> unsigned {
    guard const here;
    if (depth == 0) {
        if (value % 3 == 0) { throw number_thrown{value}; }
        if (value % 3 == 1) { throw std::runtime_error{std::to_string(value)}; }
        return value;
    }
    try {
        return descend(depth - 1, value) + 1;
    } catch (std::logic_error const&) { return 0; } catch (number_thrown& thrown) {
        if (depth % 4 != 0) { throw; }
        throw number_thrown{thrown.value + 1};
    }
}

struct base {
    virtual ~base() = default;
    virtual auto act(unsigned value) -> unsigned = 0;
};
struct first : base {
    auto act(unsigned value) -> unsigned override { return descend(3, value); }
};
struct second : base {
    auto act(unsigned value) -> unsigned override {
        try {
            return descend(9, value);
        } catch (...) { std::rethrow_exception(std::current_exception()); }
    }
};

}  // namespace

auto main() -> int {
    std::unique_ptr<base> const some[] = {std::make_unique<first>(), std::make_unique<second>()};
    unsigned numbers = 0;
    unsigned errors = 0;
    unsigned results = 0;
    bool good = true;
    constexpr unsigned rounds = 900;
    for (unsigned i = 0; i < rounds; ++i) {
        unsigned const depth = i % 2 == 0 ? 3 : 9;
        try {
            good = some[i % 2]->act(i) == i + depth && good;
            ++results;
        } catch (number_thrown const& thrown) {
            good = thrown.value == i + depth / 4 && good;
            ++numbers;
        } catch (std::exception const& error) {
            good = error.what() == std::to_string(i) && good;
            ++errors;
        }
        good = good && alive == 0;
    }
    good = good && numbers == rounds / 3 && errors == rounds / 3 && results == rounds / 3 &&
           destroyed == rounds / 2 * (4 + 10);
    std::puts(good ? "ok" : "wrong");
    return good ? 0 : 1;
}
