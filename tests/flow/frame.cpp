// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/frame.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::function;

// Frames in a storage of stacks: tests/flow/call_stack.cpp.

TEST_CASE("a function contains its begin, and not its end") {
    CHECK_TWICE([](auto value) {
        function const one{.entry = 0x2000, .begin = value(uint64_t{0x1000}), .end = 0x1010};
        return one.contains(0x1000) && one.contains(0x100F) && !one.contains(0x1010) &&
               !one.contains(0xFFF) && !one.contains(0x2000);
    });
}

TEST_CASE("a function without addresses contains none") {
    CHECK_TWICE([](auto value) {
        return !function{}.contains(value(uint64_t{0})) &&
               !function{0, 0x1000, 0x1000}.contains(0x1000);
    });
}

TEST_CASE("a sink that has a report with another signature is found") {
    struct right {
        void call(flow::call const&) {}
        void returned(flow::call_return const&) {}
        auto function_at(uint64_t) -> function { return {}; }
        void switched(flow::stack_switch const&) {}
        auto stack_use_at(uint64_t) -> flow::stack_use { return {}; }
    };
    struct wrong {
        void call(flow::call const&) {}
        auto function_at(uint64_t) -> uint64_t { return 0; }
    };
    static_assert(flow::takes_calls<right> && flow::knows_functions<right>);
    static_assert(flow::takes_switches<right> && flow::knows_stack_use<right>);
    static_assert(!flow::takes_calls<wrong> && !flow::knows_functions<wrong>);
    static_assert(!flow::takes_switches<wrong> && !flow::knows_stack_use<wrong>);
    CHECK(sizeof(flow::detail::call_members<right>) != 0);
}
