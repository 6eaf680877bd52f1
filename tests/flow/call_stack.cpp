// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/call_stack.hpp>

#include <support/check_twice.hpp>
#include <support/walked.hpp>

#include <ptspec/trace/clock.hpp>

#include <algorithm>
#include <random>
#include <vector>

using namespace ptspec;
using flow::edge;
using flow::frame;
using flow::frame_kind;
using x86::instruction_class;

namespace {

/// The last reports, and their numbers.
struct record {
    using ignores_gaps = record;

    flow::call called{};
    flow::call_return left{};
    unsigned calls = 0;
    unsigned returns = 0;

    constexpr void call(flow::call const& one) {
        called = one;
        ++calls;
    }
    constexpr void returned(flow::call_return const& one) {
        left = one;
        ++returns;
    }
};

/// Functions of 1000H bytes.
struct functions : record {
    using ignores_gaps = functions;

    flow::stack_switch change{};
    unsigned switches = 0;

    constexpr void switched(flow::stack_switch const& one) {
        change = one;
        ++switches;
    }
    constexpr auto function_at(uint64_t ip) const -> flow::function {
        uint64_t const begin = ip & ~uint64_t{0xFFF};
        return {begin, begin, begin + 0x1000};
    }
};

constexpr auto call_of(uint64_t from, uint64_t to) -> edge {
    return {.from = from, .to = to, .after = from + 5, .kind = instruction_class::direct_call};
}
constexpr auto ret_to(uint64_t to, instruction_class which = instruction_class::near_return)
    -> edge {
    return {.from = 0x9000, .to = to, .after = 0x9001, .kind = which};
}
constexpr auto jump_to(uint64_t to, uint64_t from = 0x9000) -> edge {
    return {.from = from, .to = to, .kind = instruction_class::indirect_jump};
}
constexpr auto interrupt(uint64_t at, uint64_t to) -> edge {
    return {.from = at, .to = to, .after = at, .is_asynchronous = true};
}
/// Takes a branch, and executes at its target.
template <class Calls>
constexpr void walk(Calls& calls, edge const& one) {
    calls.edge(one);
    calls.execute(one.to);
}
/// 1000H calls 2000H, which calls 3000H, which calls 4000H.
template <class Calls>
constexpr void call_three(Calls& calls) {
    for (uint64_t at = 0x1000; at < 0x4000; at += 0x1000) {
        calls.execute(at);
        calls.edge(call_of(at + 0x10, at + 0x1000));
    }
    calls.execute(0x4000);
}

}  // namespace

TEST_CASE("a call opens a frame, and the return to the address after it leaves it") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(value(call_of(0x1000, 0x2000)));
        bool const in = calls.depth() == 1 && to.called.depth == 1 && to.called.frame.to == 0x2000;
        calls.edge(call_of(0x2010, 0x3000));
        calls.edge(ret_to(0x2015));
        calls.edge(ret_to(value(uint64_t{0x1005})));
        return in && to.calls == 2 && to.returns == 2 && calls.depth() == 0 && calls.size() == 0 &&
               to.left.frames == 1 && to.left.from == 0x9000 && to.left.to == 0x1005;
    });
}

TEST_CASE("depth goes below the start") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(value(ret_to(0x100)));
        calls.edge(ret_to(0x200));
        return calls.depth() == -2 && to.left.frames == 0 && to.left.depth == -2;
    });
}

TEST_CASE("longjmp leaves several frames; a RET to no frame, and a call of the next, are jumps") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        for (uint64_t at = 0x1000; at <= 0x3000; at += 0x1000) {
            calls.edge(call_of(at, at + 0x1000));
        }
        calls.edge(value(ret_to(0x7777)));
        bool const jumps = to.returns == 0 && calls.depth() == 3;
        calls.edge(call_of(0x4000, 0x4005));
        calls.edge(ret_to(0x1005));
        return jumps && to.calls == 3 && to.left.frames == 3 && calls.depth() == 0;
    });
}

TEST_CASE("interrupts and system calls are frames, whose end may be elsewhere") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(call_of(0x1000, 0x2000));
        calls.edge(value(interrupt(0x2003, 0x8000)));
        bool const event = to.called.frame.kind == frame_kind::event;
        calls.edge(call_of(0x8000, 0x8100));
        calls.edge(ret_to(0x5555, instruction_class::iret));  // a handler that skips instructions
        bool const left = to.left.frames == 2 && calls.depth() == 1;
        calls.edge(
            {.from = 0x2010, .to = 0x8800, .after = 0x2012, .kind = instruction_class::syscall});
        bool const system = to.called.frame.kind == frame_kind::system_call && calls.depth() == 2;
        calls.edge(ret_to(0x2012, instruction_class::iret));  // not by SYSRET
        calls.edge(ret_to(0x1005));
        return event && left && system && calls.depth() == 0 && calls.size() == 0;
    });
}

TEST_CASE("frames are unsure after a gap; code that is filtered out returns where tracing starts") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(call_of(0x1000, 0x2000));
        calls.gap(value(flow::gap{.why = flow::gap_reason::overflow}));
        calls.edge(call_of(0x2000, 0x6000));  // outside of a filter
        bool const sure = !calls[0].is_unsure && calls[1].is_unsure;
        calls.start(0x2005, 0);
        bool const back = calls.depth() == 1 && to.left.from == 0 && to.left.frames == 1;
        calls.start(0x7000, 0);  // somewhere else
        return sure && back && calls.depth() == 1;
    });
}

TEST_CASE("the end of tracing is a frame, until it begins again") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(call_of(0x1000, 0x2000));
        calls.stop({.ip = 0x2003, .space = 1, .why = flow::stop_reason::system_call});
        bool const is_stopped = to.calls == 2 && to.called.frame.kind == frame_kind::stopped &&
                                to.called.frame.why == flow::stop_reason::system_call &&
                                to.called.depth == 2 && to.called.frame.after == 0x2003;
        calls.start(value(uint64_t{0x2003}), 1);  // a system call returned
        return is_stopped && to.calls == 2 && to.returns == 1 && calls.depth() == 1 &&
               to.left.frames == 1 && to.left.depth == 1;
    });
}

TEST_CASE("a handler that begins where tracing had ended elsewhere is called by an event") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(call_of(0x1000, 0x2000));
        calls.stop({0x2008, 1});
        calls.start(value(uint64_t{0x5000}), 1);
        bool const is_event = to.called.frame.kind == frame_kind::event && calls.depth() == 2 &&
                              to.called.frame.from == 0x2008 && to.called.frame.to == 0x5000;
        calls.stop({0x5009, 1});
        calls.start(0x2008, 1);
        bool const has_returned = to.left.frames == 1 && calls.depth() == 1;
        calls.stop({0x2010, 1});
        calls.start(0x200E, 1);  // a system call that is repeated
        bool const repeats = calls.depth() == 1;
        calls.stop({0x2010, 1});
        calls.start(0x6000, 2);  // another address space: exec
        calls.stop({.ip = 0x6010, .space = 2, .may_move = true});
        calls.start(0x6800, 2);  // perhaps on another processor in between
        calls.stop({0x6810, 2});
        calls.gap({});
        calls.start(0x7000, 2);
        return is_event && has_returned && repeats && calls.depth() == 1;
    });
}

TEST_CASE("exceptions and longjmp leave the frames above the function that they enter") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        call_three(calls);
        walk(calls, jump_to(0x4100));  // within the function
        bool const stays = to.returns == 0;
        walk(calls, jump_to(value(uint64_t{0x2100})));
        bool const leaves = to.returns == 1 && to.left.frames == 2 && calls.depth() == 1;
        walk(calls, call_of(0x2110, 0x6000));
        calls.edge(ret_to(value(uint64_t{0x2500})));
        return stays && leaves && to.returns == 2 && to.left.frames == 1 && calls.depth() == 1;
    });
}

TEST_CASE("a signal handler returns to the code that ends it, which is no new stack") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        flow::stack stacks[2];
        functions to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        calls.stop({0x1010, 1});
        calls.start(0x5000, 1);
        calls.execute(0x5000);
        walk(calls, ret_to(value(uint64_t{0x6000})));  // rt_sigreturn
        bool const is_handler = to.switches == 0 && calls.depth() == 1 &&
                                to.called.frame.kind == frame_kind::event &&
                                to.called.frame.to == 0x6000;
        calls.stop({0x6010, 1});
        calls.start(0x1010, 1);
        calls.execute(0x1010);
        return is_handler && calls.depth() == 0 && to.switches == 0;
    });
}

TEST_CASE("SYSRET to the begin of a function calls a signal handler, which SYSRET leaves") {
    CHECK_TWICE([](auto value) {
        constexpr auto syscall_at = [](uint64_t at) {
            return edge{
                .from = at, .to = 0x8000, .after = at + 2, .kind = instruction_class::syscall};
        };
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        calls.execute(0x1000);
        calls.edge(syscall_at(0x1010));
        calls.execute(0x8000);
        calls.edge(ret_to(value(uint64_t{0x5000}), instruction_class::sysret));
        calls.execute(0x5000);
        bool const is_handler = calls.depth() == 1 && to.called.frame.kind == frame_kind::event &&
                                to.called.frame.after == 0x1012;
        calls.edge(syscall_at(0x5010));
        calls.execute(0x8000);
        calls.edge(ret_to(0x5012, instruction_class::sysret));  // a system call of the handler
        bool const is_back = calls.depth() == 1 && to.left.frames == 1;
        calls.edge(syscall_at(0x5020));
        calls.execute(0x8000);
        calls.edge(ret_to(0x1012, instruction_class::sysret));  // rt_sigreturn
        return is_handler && is_back && to.left.frames == 2 && calls.depth() == 0;
    });
}

TEST_CASE("a jump into code without a symbol leaves no frame") {
    struct nameless : functions {
        using ignores_gaps = nameless;

        constexpr auto function_at(uint64_t ip) const -> flow::function {
            auto made = functions::function_at(ip);
            made.has_symbol = ip >> 12 != 2;
            return made;
        }
    };
    CHECK_TWICE([](auto value) {
        frame storage[8];
        nameless to;
        flow::call_stack calls{storage, to};
        call_three(calls);
        walk(calls, jump_to(value(uint64_t{0x2500})));  // another function in the same range
        return calls.depth() == 3 && to.called.frame.kind == frame_kind::tail_call &&
               calls[0].after == 0x3015;
    });
}

TEST_CASE("the function that executes at the start has a frame, and those that it returns to") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        calls.start(0x1010, 0);
        calls.execute(value(uint64_t{0x1010}));
        bool const is_root = to.calls == 1 && to.called.frame.kind == frame_kind::unseen &&
                             to.called.frame.to == 0x1010 && to.called.depth == 0;
        calls.edge(ret_to(0x2020));
        bool const is_left = to.returns == 1 && to.left.frames == 1 && calls.depth() == -1;
        calls.execute(0x2020);
        calls.execute(0x2030);
        return is_root && is_left && to.calls == 2 && to.called.depth == -1 &&
               to.called.frame.to == 0x2020 && calls.size() == 0;
    });
}

TEST_CASE("a jump to another function, and straight code into it, replace the frame") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        call_three(calls);
        calls.edge({.from = 0x4010, .to = 0x5000, .kind = instruction_class::direct_jump});
        bool const waits = to.calls == 4 && to.returns == 0;
        calls.execute(value(uint64_t{0x5000}));
        bool const is_tail = to.returns == 1 && to.left.is_tail_call && to.left.frames == 1 &&
                             to.called.frame.kind == frame_kind::tail_call &&
                             to.called.frame.replaced == 0x4000 && to.called.frame.from == 0x4010 &&
                             to.called.frame.to == 0x5000 && to.called.depth == 3;
        calls.execute(0x5FF0);
        calls.execute(0x6000);  // straight code
        bool const is_next = to.called.frame.replaced == 0x5000 && to.called.frame.to == 0x6000;
        walk(calls, ret_to(0x3015));
        return waits && is_tail && is_next && calls.depth() == 2 && to.calls == 6 &&
               to.returns == 3 && !to.left.is_tail_call;
    });
}

TEST_CASE("a tail call of the function at the start replaces it") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        calls.execute(value(uint64_t{0x1000}));
        walk(calls, {.from = 0x1010, .to = 0x5000, .kind = instruction_class::conditional});
        return to.calls == 2 && to.returns == 1 && to.called.depth == 0 && calls.size() == 0 &&
               to.called.frame.kind == frame_kind::tail_call && calls.depth() == 0;
    });
}

TEST_CASE("after a gap, the function that executes is entered, or one frame is added") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        call_three(calls);
        calls.gap({});
        calls.start(0x3050, 0);
        calls.execute(value(uint64_t{0x3050}));
        bool const is_back = calls.depth() == 2 && to.left.frames == 1;
        for (uint64_t at = 0x8000; at < 0xF000; at += 0x1000) {  // no frame of them is open
            calls.gap({});
            calls.start(at + 0x10, 0);
            calls.execute(at + 0x10);
            if (to.called.frame.kind != frame_kind::unseen || calls.depth() != 3) { return false; }
        }
        walk(calls, ret_to(0x2040));  // a call that was not traced
        return is_back && calls.depth() == 1 && calls.size() == 1;
    });
}

TEST_CASE("a retpoline is a tail call, and no new stack") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        flow::stack stacks[4];
        functions to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        walk(calls, call_of(0x1010, 0x2000));
        walk(calls, call_of(0x2000, 0x2020));  // into the middle of the thunk
        walk(calls, ret_to(value(uint64_t{0x7000})));
        bool const is_tail = calls.depth() == 1 && to.switches == 0 &&
                             to.called.frame.to == 0x7000 &&
                             to.called.frame.kind == frame_kind::tail_call;
        walk(calls, ret_to(0x1015));
        return is_tail && calls.depth() == 0 && to.switches == 0;
    });
}

TEST_CASE("a RET to the begin of a function begins a stack; one to a frame of it continues it") {
    CHECK_TWICE([](auto value) {
        frame storage[16];
        flow::stack stacks[4];
        functions to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        walk(calls, call_of(0x1010, 0x2000));          // resume(): switches
        walk(calls, ret_to(value(uint64_t{0x5000})));  // the fiber begins
        bool const is_new = to.switches == 1 && to.change.is_new && to.change.left == 0 &&
                            calls.depth() == 0 && to.called.frame.kind == frame_kind::unseen;
        walk(calls, call_of(0x5010, 0x6000));
        walk(calls, call_of(0x6010, 0x2000));  // yield
        walk(calls, ret_to(0x1015));
        bool const is_back = to.switches == 2 && !to.change.is_new && to.change.entered == 0 &&
                             calls.depth() == 0 && to.left.frames == 1;
        walk(calls, call_of(0x1020, 0x2000));
        walk(calls, ret_to(0x6015));
        bool const resumes = to.switches == 3 && calls.depth() == 1 && calls[0].after == 0x5015;
        walk(calls, ret_to(0x5015));
        return is_new && is_back && resumes && calls.depth() == 0 && to.switches == 3;
    });
}

namespace {

/// Function 2000H switches stacks, and the others keep theirs.
struct switching : functions {
    using ignores_gaps = switching;

    constexpr auto stack_use_at(uint64_t ip) const -> flow::stack_use {
        return ip >> 12 == 2 ? flow::stack_use::switches : flow::stack_use::keeps;
    }
};

}  // namespace

TEST_CASE("a jump out of code that switches stacks begins one; a jump to a frame continues it") {
    CHECK_TWICE([](auto value) {
        frame storage[16];
        flow::stack stacks[2];
        switching to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        walk(calls, call_of(0x1010, 0x2000));
        walk(calls, jump_to(0x5020, 0x2010));
        bool const is_new = to.switches == 1 && to.change.is_new;
        walk(calls, call_of(0x5030, 0x2000));
        walk(calls, jump_to(value(uint64_t{0x1015}), 0x2010));
        return is_new && to.switches == 2 && to.change.entered == 0 && calls.depth() == 0;
    });
}

namespace {

/// 1000H calls 2000H, which begins a stack: 5000H, which calls 6000H at `from`, which calls 2000H
/// at 6010H.
template <class Calls>
constexpr void begin_fiber(Calls& calls, uint64_t from) {
    walk(calls, call_of(0x1010, 0x2000));
    walk(calls, {.from = 0x2010, .to = 0x5000, .kind = instruction_class::near_return});
    walk(calls, call_of(from, 0x6000));
    walk(calls, call_of(0x6010, 0x2000));
}
/// 2000H returns to `to`, maybe on another stack.
template <class Calls>
constexpr void switch_to(Calls& calls, uint64_t to) {
    walk(calls, {.from = 0x2010, .to = to, .kind = instruction_class::near_return});
}

}  // namespace

TEST_CASE("a RET in code that keeps the stack is a jump: PUSH and RET") {
    CHECK_TWICE([](auto value) {
        frame storage[16];
        flow::stack stacks[2];
        switching to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        walk(calls, call_of(0x1010, 0x3000));
        walk(calls, {.from = 0x3010,
                     .to = value(uint64_t{0x4000}),
                     .kind = instruction_class::near_return});
        bool const is_tail = to.called.frame.kind == frame_kind::tail_call && calls.depth() == 1;
        walk(calls, {.from = 0x4010, .to = 0x3020, .kind = instruction_class::near_return});
        walk(calls, {.from = 0x3030, .to = 0x1015, .kind = instruction_class::near_return});
        return is_tail && to.switches == 0 && calls.depth() == 0;
    });
}

TEST_CASE("fibers that continue at the same address: a RET shows which one it was") {
    CHECK_TWICE([](auto value) {
        frame storage[32];
        flow::stack stacks[4];
        switching to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        for (uint64_t from : {0x5010U, 0x5020U, 0x5030U}) {
            begin_fiber(calls, from);
            switch_to(calls, 0x1015);
        }
        bool right = to.switches == 6 && calls.depth() == 0;
        // The second one continues. The first one was left first.
        walk(calls, call_of(0x1010, 0x2000));
        switch_to(calls, 0x6015);
        right = right && to.switches == 7 && to.change.entered == 1 && calls.size() == 1;
        walk(calls, {.from = 0x6020,
                     .to = value(uint64_t{0x5025}),
                     .kind = instruction_class::near_return});
        right = right && to.change.entered == 2 && calls.size() == 0 && calls.depth() == 0 &&
                to.left.frames == 2;
        // The first one is as it was. Now the third one was left first.
        walk(calls, call_of(0x5040, 0x2000));
        switch_to(calls, 0x6015);
        right = right && to.change.entered == 3 && calls.size() == 1;
        walk(calls, {.from = 0x6020, .to = 0x5015, .kind = instruction_class::near_return});
        return right && to.change.entered == 1 && calls.size() == 0;
    });
}

TEST_CASE("fibers that continue in the function that switches: longjmp, and a jump in it") {
    CHECK_TWICE([](auto value) {
        frame storage[32];
        flow::stack stacks[4];
        switching to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        begin_fiber(calls, 0x5010);
        walk(calls, jump_to(0x1020, 0x2010));  // not to the address after the call
        bool const is_back = to.switches == 2 && to.change.entered == 0 && calls.size() == 0;
        walk(calls, call_of(0x1030, 0x2000));
        walk(calls, jump_to(value(uint64_t{0x2080}), 0x2010));
        return is_back && to.switches == 3 && to.change.entered == 1 && calls.size() == 2 &&
               calls[0].after == 0x6015;
    });
}

TEST_CASE("a RET after a jump to where a stack continues switches no stack again") {
    CHECK_TWICE([](auto value) {
        frame storage[32];
        flow::stack stacks[4];
        switching to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        for (uint64_t from : {0x5010U, 0x5020U}) {
            begin_fiber(calls, from);
            switch_to(calls, 0x1015);
        }
        walk(calls, call_of(0x1010, 0x2000));
        walk(calls, jump_to(0x2080, 0x2010));
        bool const is_first = to.switches == 5 && to.change.entered == 1;
        walk(calls, {.from = 0x2090,
                     .to = value(uint64_t{0x6015}),
                     .kind = instruction_class::near_return});
        return is_first && to.switches == 5 && calls.size() == 1;
    });
}

TEST_CASE("a signal handler that changes where the code continues returns to its function") {
    CHECK_TWICE([](auto value) {
        frame storage[16];
        functions to;
        flow::call_stack calls{storage, to};
        call_three(calls);
        calls.stop({.ip = 0x4010, .why = flow::stop_reason::fault});
        calls.start(0x7000, 0);
        calls.execute(0x7000);
        bool const is_in = calls.depth() == 4 && to.called.frame.kind == frame_kind::event;
        walk(calls, ret_to(0x8000));
        calls.stop({.ip = 0x8010, .why = flow::stop_reason::system_call});
        calls.start(value(uint64_t{0x4018}), 0);
        calls.execute(0x4018);
        return is_in && calls.depth() == 3 && calls[0].to == 0x4000;
    });
}

TEST_CASE("the stack of the start is dropped last") {
    CHECK_TWICE([](auto value) {
        frame storage[32];
        flow::stack stacks[2];
        switching to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        walk(calls, call_of(0x1010, 0x2000));
        for (uint64_t target : {0x5000U, 0x6000U, 0x7000U}) {
            switch_to(calls, target);
            walk(calls, call_of(target + 0x10, 0x2000));
        }
        bool const is_dropped = calls.dropped_stacks() == 1;
        switch_to(calls, value(uint64_t{0x1015}));
        return is_dropped && to.change.entered == 0 && calls.depth() == 0;
    });
}

TEST_CASE("PTWRITE chooses the stack, and then no RET does") {
    CHECK_TWICE([](auto value) {
        frame storage[16];
        flow::stack stacks[2];
        functions to;
        flow::call_stack calls{storage, stacks, to, flow::stack_choice::by_ptwrite};
        calls.execute(0x1000);
        calls.select(7, 0x1000);
        walk(calls, call_of(0x1010, 0x2000));
        calls.select(value(uint64_t{8}), 0x2010);
        bool const is_new = to.switches == 1 && to.change.is_new && to.change.to == 0x2010;
        calls.execute(0x2010);
        walk(calls, ret_to(0x3000));
        calls.select(7, 0x3010);
        bool const is_back = to.switches == 2 && !to.change.is_new && calls.depth() == 1;
        walk(calls, ret_to(0x1015));
        calls.select(7, 0x1016);
        return is_new && is_back && to.switches == 2 && calls.depth() == 0;
    });
}

TEST_CASE("a full storage drops the stack that was left first, then the oldest frames") {
    CHECK_TWICE([](auto value) {
        frame storage[4];
        flow::stack stacks[2];
        functions to;
        flow::call_stack calls{storage, stacks, to};
        calls.execute(0x1000);
        walk(calls, call_of(0x1010, 0x2000));
        walk(calls, ret_to(0x5000));
        for (uint64_t at = 0x5000; at < 0xB000; at += 0x1000) {
            walk(calls, call_of(at + 0x10, at + 0x1000));
        }
        bool const is_full = calls.size() == 4 && calls.depth() == 6;
        walk(calls, ret_to(value(uint64_t{0x1015})));  // its frames are lost
        return is_full && to.switches == 2 && to.change.is_new && calls.dropped_stacks() == 1;
    });
}

TEST_CASE("random call trees: the depth is right, with storage for few frames") {
    std::mt19937_64 numbers{1};
    auto const roll = [&](std::uint64_t sides) { return numbers() % sides; };
    for (unsigned most = 1; most <= 70; most += 3) {
        std::vector<frame> storage(most);
        record to;
        flow::call_stack calls{storage.data(), storage.size(), to};
        // The true stack: return addresses that differ, and whether each is that of an event.
        std::vector<std::pair<std::uint64_t, bool>> open;
        std::int64_t start = 0;
        std::uint64_t next = 0x1'0000;
        for (unsigned i = 0; i < 3000; ++i) {
            next += 0x10;
            std::uint64_t const kind = roll(20);
            if (kind < 9 && open.size() < 200) {
                calls.edge(call_of(next, next + 0x1000'0000));
                open.emplace_back(next + 5, false);
            } else if (kind == 9) {
                calls.edge(interrupt(next, 0xF000'0000));
                open.emplace_back(next, true);
            } else if (kind == 10) {
                calls.edge({.from = next, .to = next + 64, .kind = instruction_class::direct_jump});
            } else if (open.empty()) {
                calls.edge(ret_to(next));
                --start;
            } else {
                auto const [to_ip, is_event] = open.back();
                open.pop_back();
                calls.edge(ret_to(to_ip, is_event ? instruction_class::iret
                                                  : instruction_class::near_return));
            }
            auto const depth = start + static_cast<std::int64_t>(open.size());
            CAPTURE(most);
            CAPTURE(i);
            REQUIRE(calls.depth() == depth);
            auto const known = std::min<std::size_t>(calls.size(), open.size());
            for (std::size_t k = 0; k < known; ++k) {
                REQUIRE(calls[k].after == open[open.size() - 1 - k].first);
            }
        }
    }
}

namespace {

/// Keeps the functions of the open frames, by reports alone.
struct kept_stacks {
    using ignores_gaps = kept_stacks;

    static constexpr unsigned bits = 20;  // of the size of a function
    std::vector<std::uint64_t> stacks[9]{};
    std::vector<std::uint64_t>* now = &stacks[0];

    void call(flow::call const& one) { now->push_back(one.frame.to >> bits); }
    void returned(flow::call_return const& one) {
        REQUIRE(one.frames <= now->size());
        now->resize(now->size() - one.frames);
    }
    void switched(flow::stack_switch const& one) {
        REQUIRE(&stacks[one.left] == now);
        now = &stacks[one.entered];
        if (one.is_new) { now->clear(); }
    }
    auto function_at(uint64_t ip) const -> flow::function {
        uint64_t const begin = ip >> bits << bits;
        return {begin, begin, begin + (uint64_t{1} << bits)};
    }
};

/// A thread with fibers, which knows its stacks: a fiber that does not execute has called `swap`.
struct made_fibers {
    static constexpr unsigned bits = kept_stacks::bits;
    static constexpr std::uint64_t swap = 40;
    struct open_frame {
        std::uint64_t function;
        std::uint64_t after;
    };
    struct fiber {
        std::uint64_t root = 1;
        std::int64_t depth = 0;
        std::vector<open_frame> open{};

        [[nodiscard]] auto function() const -> std::uint64_t {
            return open.empty() ? root : open.back().function;
        }
    };

    std::mt19937_64 numbers;
    std::vector<fiber> all{1};
    std::size_t now = 0;
    std::uint64_t next = 0x100;

    auto roll(std::uint64_t sides) -> std::uint64_t { return numbers() % sides; }
    /// An address in the function that executes, which no other instruction has.
    auto place() -> std::uint64_t { return (all[now].function() << bits) + (next += 0x10); }
    template <class Calls>
    void call(Calls& to, std::uint64_t function) {
        auto const one = call_of(place(), function << bits);
        all[now].open.push_back({function, one.after});
        ++all[now].depth;
        to.edge(one);
        to.execute(one.to);
    }
    template <class Calls>
    void branch(Calls& to, std::uint64_t target, instruction_class kind) {
        to.edge({.from = place(), .to = target, .kind = kind});
    }
    template <class Calls>
    void step(Calls& to) {
        auto const other_than = [&](std::uint64_t function) {
            auto const made = 1 + roll(30);
            return made == function ? made + 1 : made;
        };
        auto const kind = roll(20);
        if (kind < 8) {
            if (all[now].open.size() < 60) { call(to, 1 + roll(30)); }
        } else if (kind < 11) {
            using enum instruction_class;
            auto& of = all[now];
            auto const function = other_than(of.function());
            auto const target = function << bits;
            if (auto const how = roll(4); how != 3) {  // 3: the next instruction in memory
                branch(to, target, how == 0 ? direct_jump : how == 1 ? conditional : indirect_jump);
            }
            (of.open.empty() ? of.root : of.open.back().function) = function;
            to.execute(target);
        } else if (kind < 17) {
            auto& of = all[now];
            --of.depth;
            if (!of.open.empty()) {
                auto const after = of.open.back().after;
                branch(to, after, instruction_class::near_return);
                of.open.pop_back();
                to.execute(after);
            } else {
                auto const caller = other_than(of.root);
                auto const target = (caller << bits) + (next += 0x10);
                branch(to, target, instruction_class::near_return);
                of.root = caller;
                to.execute(target);
            }
        } else if (kind == 17 && all.size() < 8) {
            call(to, swap);
            auto const function = 1 + roll(30);
            branch(to, function << bits, instruction_class::near_return);
            now = all.size();
            all.push_back({.root = function});
            to.execute(function << bits);
        } else if (all.size() > 1) {
            auto const other = (now + 1 + roll(all.size() - 1)) % all.size();
            call(to, swap);
            auto const after = all[other].open.back().after;
            branch(to, after,
                   roll(2) == 0 ? instruction_class::near_return
                                : instruction_class::indirect_jump);
            now = other;
            all[now].open.pop_back();
            --all[now].depth;
            to.execute(after);
        }
    }
};

}  // namespace

TEST_CASE("random fibers with tail calls: frames, depth and reports are those of the stacks") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        made_fibers truth{.numbers = std::mt19937_64{seed}};
        std::vector<frame> storage(4096);
        std::vector<flow::stack> stacks(8);
        kept_stacks to;
        flow::call_stack calls{storage.data(), storage.size(), stacks.data(), stacks.size(), to};
        calls.execute(std::uint64_t{1} << kept_stacks::bits);
        for (unsigned i = 0; i < 5000; ++i) {
            truth.step(calls);
            CAPTURE(seed);
            CAPTURE(i);
            auto const& of = truth.all[truth.now];
            REQUIRE(calls.depth() == of.depth);
            REQUIRE(calls.size() == of.open.size());
            REQUIRE(to.now->size() == of.open.size() + 1);
            REQUIRE(to.now->front() == of.root);
            for (std::size_t k = 0; k < of.open.size(); ++k) {
                auto const& wanted = of.open[of.open.size() - 1 - k];
                REQUIRE(calls[k].after == wanted.after);
                REQUIRE((*to.now)[of.open.size() - k] == wanted.function);
            }
        }
        CHECK(truth.all.size() == 8);
        CHECK(calls.dropped_stacks() == 0);
    }
}

TEST_CASE("calls of a trace, with times") {
    // 1000: CALL 1008; JMP RAX; NOP; 1008: RET. A TSC of 80H before the TNT.
    auto const bytes = test::made_stream{"ON 1980000000000000 06", engine::model_kind::manual};
    test::made_code const code{"e803000000 ffe0 90 c3"};
    frame storage[8];
    record to;
    flow::call_stack calls{storage, to};
    flow::block blocks[8];
    flow::block_cache cache{blocks};
    flow::walker walker{borrowed_bytes{bytes.bytes, bytes.size},
                        code,
                        cache,
                        {},
                        trace::clock{trace::clock_options{}}};
    CHECK(walker.run(calls) == flow::walk_end::end);
    CHECK(to.calls == 1);
    CHECK(to.returns == 1);
    CHECK(to.called.frame.from == 0x1000);
    CHECK(to.left.to == 0x1005);
    CHECK(to.called.when.tsc == 0x80);
    CHECK(to.left.when.tsc == 0x80);
}
