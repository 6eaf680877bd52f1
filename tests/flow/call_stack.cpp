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

constexpr auto call_of(uint64_t from, uint64_t to) -> edge {
    return {.from = from, .to = to, .after = from + 5, .kind = instruction_class::direct_call};
}
constexpr auto ret_to(uint64_t to, instruction_class which = instruction_class::near_return)
    -> edge {
    return {.from = 0x9000, .to = to, .after = 0x9001, .kind = which};
}
constexpr auto interrupt(uint64_t at, uint64_t to) -> edge {
    return {.from = at, .to = to, .after = at, .is_asynchronous = true};
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

TEST_CASE("a handler that begins where tracing had ended elsewhere is called by an event") {
    CHECK_TWICE([](auto value) {
        frame storage[8];
        record to;
        flow::call_stack calls{storage, to};
        calls.edge(call_of(0x1000, 0x2000));
        calls.stop(0x2003, 1);
        calls.start(value(uint64_t{0x2003}), 1);  // a system call returned
        bool const is_same = to.calls == 1 && to.returns == 0;
        calls.stop(0x2008, 1);
        calls.start(value(uint64_t{0x5000}), 1);
        bool const is_event = to.calls == 2 && to.called.frame.kind == frame_kind::event &&
                              to.called.frame.from == 0x2008 && to.called.frame.to == 0x5000;
        calls.stop(0x5009, 1);
        calls.start(0x2008, 1);
        bool const has_returned = to.returns == 1 && to.left.frames == 1 && calls.depth() == 1;
        calls.stop(0x2010, 1);
        calls.start(0x6000, 2);  // another address space: exec
        calls.stop(0x6010, 2);
        calls.gap({});
        calls.start(0x7000, 2);
        return is_same && is_event && has_returned && to.calls == 2 && calls.depth() == 1;
    });
}

TEST_CASE("exceptions and longjmp leave the frames above the function that they enter") {
    /// Functions of 1000H bytes, except below 1000H.
    struct functions : record {
        using ignores_gaps = functions;

        constexpr auto function_of(uint64_t ip) const -> uint64_t { return ip & ~uint64_t{0xFFF}; }
    };
    CHECK_TWICE([](auto value) {
        constexpr auto jump_to = [](uint64_t to) {
            return edge{.from = 0x9000, .to = to, .kind = instruction_class::indirect_jump};
        };
        frame storage[8];
        functions to;
        flow::call_stack calls{storage, to};
        calls.edge(call_of(0x1000, 0x2000));
        calls.edge(call_of(0x2010, 0x3000));
        calls.edge(call_of(0x3010, 0x4000));
        calls.edge(jump_to(0x4100));  // within the function
        calls.edge(jump_to(0x800));   // to no function
        bool const stays = to.returns == 0;
        calls.edge(jump_to(value(uint64_t{0x2100})));
        bool const leaves = to.returns == 1 && to.left.frames == 2 && calls.depth() == 1;
        calls.edge(jump_to(0x5000));  // a tail call
        calls.edge(call_of(0x5010, 0x6000));
        calls.edge(ret_to(value(uint64_t{0x5500})));
        return stays && leaves && to.returns == 2 && to.left.frames == 1 && calls.depth() == 1;
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
