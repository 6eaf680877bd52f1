// SPDX-License-Identifier: BSL-1.0
/// Instruction flow

#include <ptspec/flow.hpp>

#include <cstdint>

using namespace ptspec;

template <class Sink, class Code>
auto walk(Sink& to, Code& code, borrowed_bytes trace) {
    flow::block blocks[16];
    flow::block_cache cache{blocks};
    flow::walker walker{trace, code, cache};
    return walker.run(to);
}

namespace sink_with_wrong_instruction {
/// A walker passes a constant instruction.
// expect: the instruction of a sink is `void instruction(ptspec::flow::executed const&)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void instruction(flow::executed const&) {}
#else
    void instruction(flow::executed&) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_instruction

namespace sink_with_wrong_block {
/// A walker passes a block, not a pointer.
// expect: the block of a sink is `void block(ptspec::flow::executed_block const&)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void block(flow::executed_block const&) {}
#else
    void block(flow::executed_block*) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_block

namespace sink_with_wrong_edge {
/// A walker passes an edge, not two addresses.
// expect: the edge of a sink is `void edge(ptspec::flow::edge const&)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void edge(flow::edge const&) {}
#else
    void edge(std::uint64_t, std::uint64_t) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_edge

namespace sink_with_wrong_gap {
/// A walker passes a constant gap: with this signature lost trace would never be reported.
// expect: the gap of a sink is `void gap(ptspec::flow::gap const&)`
// also clang
struct sink {
#ifndef SHOULD_FAIL
    void gap(flow::gap const&) {}
#else
    void gap(flow::gap&) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_gap

namespace sink_with_wrong_start {
/// A walker passes the IP and the address space.
// expect: the start of a sink is `void start(uint64_t ip, uint32_t space)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void start(std::uint64_t, std::uint32_t) {}
#else
    void start(std::uint64_t) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_start

namespace sink_with_wrong_stop {
/// A function of the sink that is not for the walker has another name.
// expect: the stop of a sink is `void stop(ptspec::flow::stop const&)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void stop(flow::stop const&) {}
#else
    void stop() {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_stop

namespace sink_with_wrong_time {
/// A walker passes a time with its bounds, not a number.
// expect: the time of a sink is `void time(ptspec::trace::time const&)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void time(trace::time const&) {}
#else
    void time(std::uint64_t) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_time

namespace sink_with_wrong_event {
/// A walker passes events, not items.
// expect: the event of a sink is `void event(ptspec::trace::event const&)`
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void event(trace::event const&) {}
#else
    void event(trace::item const&) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_event

namespace sink_with_private_gap {
/// A private member is never called.
// expect: the gap of a sink is `void gap(ptspec::flow::gap const&)`
class sink {
#ifndef SHOULD_FAIL
public:
#endif
    void gap(flow::gap const&) {}

public:
    void edge(flow::edge const&) {}
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_private_gap

namespace sink_with_overloaded_gap {
/// None of the overloads takes a gap.
// expect: the gap of a sink is `void gap(ptspec::flow::gap const&)`
struct sink {
    void edge(flow::edge const&) {}
    void gap(std::uint64_t, std::uint64_t) {}
#ifndef SHOULD_FAIL
    void gap(flow::gap const&) {}
#else
    void gap(flow::gap_reason) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_overloaded_gap

namespace sink_with_constrained_gap {
/// The template does not take a gap.
// expect: the gap of a sink is `void gap(ptspec::flow::gap const&)`
struct sink {
    void edge(flow::edge const&) {}
    template <class Report>
#ifndef SHOULD_FAIL
        requires same_as<Report, flow::gap>
#else
        requires same_as<Report, flow::gap_reason>
#endif
    void gap(Report const&) {
    }
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_constrained_gap

namespace final_sink_with_wrong_gap {
/// In a final class, too.
// expect: the gap of a sink is `void gap(ptspec::flow::gap const&)`
struct sink final {
    void edge(flow::edge const&) {}
#ifndef SHOULD_FAIL
    void gap(flow::gap const&) {}
#else
    void gap(flow::gap&) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace final_sink_with_wrong_gap

namespace sink_without_gap {
/// The name is misspelt. A sink that needs no gaps says so.
// expect: a sink has `void gap(ptspec::flow::gap const&)`, which receives what is not known
// also clang
struct sink {
    void edge(flow::edge const&) {}
#ifndef SHOULD_FAIL
    void gap(flow::gap const&) {}
#else
    void gaps(flow::gap const&) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_without_gap

namespace sink_with_the_word_of_its_base {
/// `ignores_gaps` of a base class does not count: the derived class may have misspelt `gap`.
// expect: a sink has `void gap(ptspec::flow::gap const&)`, which receives what is not known
struct sink : flow::coverage {
    using flow::coverage::coverage;
#ifndef SHOULD_FAIL
    using ignores_gaps = sink;
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_the_word_of_its_base

namespace sink_of_nothing {
/// The names are those of another library.
// expect: a sink has at least one of instruction, block, edge, gap, start, stop, time and event
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    void edge(flow::edge const&) {}
#else
    void on_edge(flow::edge const&) {}
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_of_nothing

namespace sink_with_wrong_runs {
/// The table of runs is a pointer: nullptr where there is none.
// expect: a sink with `auto runs() -> ptspec::flow::run_table*` has also `auto index_of
struct sink : flow::coverage {
    using ignores_gaps = sink;
    using flow::coverage::coverage;
#ifdef SHOULD_FAIL
    auto runs() -> flow::run_table& { return *flow::coverage::runs(); }
#endif
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_wrong_runs

namespace sink_with_runs_without_not_counted {
/// An index may be that of an edge that does not count; the walker must recognize it.
// expect: a sink with `auto runs() -> ptspec::flow::run_table*` has also `auto index_of
struct sink {
    using ignores_gaps = sink;
#ifndef SHOULD_FAIL
    static constexpr std::uint32_t not_counted = ~std::uint32_t{0};
#endif
    void edge(flow::edge const&) {}
    auto runs() -> flow::run_table* { return nullptr; }
    auto index_of(flow::edge const&) -> std::uint32_t { return 0; }
    void count(std::uint32_t, std::uint64_t) {}
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_with_runs_without_not_counted

namespace sink_that_keeps_runs_without_result {
/// A sink may refuse to keep a run, so `keep_run` says whether it has.
// expect: a sink with `auto runs() -> ptspec::flow::run_table*` has also `auto index_of
struct sink {
    using ignores_gaps = sink;
    void edge(flow::edge const&) {}
    auto runs() -> flow::run_table* { return nullptr; }
    void begin_run() {}
#ifdef SHOULD_FAIL
    void keep_run(std::uint32_t) {}
#else
    auto keep_run(std::uint32_t) -> bool { return false; }
#endif
    void repeat_run(std::uint32_t) {}
};

auto walked(sink& to, flow::code_span code, borrowed_bytes trace) { return walk(to, code, trace); }
}  // namespace sink_that_keeps_runs_without_result

namespace sink_of_calls_with_wrong_function_at {
/// The start of a function is an address; 0 where there is none.
// expect: the function_at of a sink is `auto function_at(uint64_t) -> ptspec::flow::function`
struct sink {
    using ignores_gaps = sink;
    void call(flow::call const&) {}
    void returned(flow::call_return const&) {}
#ifndef SHOULD_FAIL
    auto function_at(std::uint64_t ip) -> flow::function { return {ip, ip, ip + 1}; }
#else
    auto function_at(std::uint64_t) -> std::uint64_t { return 0; }
#endif
};

auto calls_of(flow::frame (&frames)[64], sink& to) { return flow::call_stack{frames, to}; }
}  // namespace sink_of_calls_with_wrong_function_at

namespace sink_of_calls_without_gap {
/// Where trace is lost, the calls are uncertain: the sink takes gaps, or says that it needs none.
// expect: a sink has `void gap(ptspec::flow::gap const&)`, which receives what is not known
struct sink {
#ifndef SHOULD_FAIL
    using ignores_gaps = sink;
#endif
    void call(flow::call const&) {}
    void returned(flow::call_return const&) {}
};

auto calls_of(flow::frame (&frames)[64], sink& to) { return flow::call_stack{frames, to}; }
}  // namespace sink_of_calls_without_gap

namespace source_with_wrong_space_of {
/// A walker passes the place in the trace.
// expect: a source of code in several address spaces has `auto space_of(ptspec::flow::walk_state
struct source {
    static constexpr auto changes = flow::space_changes::at_paging;
    auto code(std::uint64_t, std::uint32_t) -> byte_view { return {}; }
#ifndef SHOULD_FAIL
    auto space_of(flow::walk_state const& walked) -> std::uint32_t {
        return walked.state.cr3 == 0x1000;
    }
#else
    auto space_of(std::uint64_t cr3) -> std::uint32_t { return cr3 == 0x1000; }
#endif
};

auto walked(flow::coverage& to, source& code, borrowed_bytes trace) {
    return walk(to, code, trace);
}
}  // namespace source_with_wrong_space_of

namespace source_with_wrong_needs_time_at {
/// A walker asks with an address and the number of its space.
// expect: the needs_time_at of a source is `auto needs_time_at(uint64_t, uint32_t) -> bool`
struct source {
    auto code(std::uint64_t, std::uint32_t) -> byte_view { return {}; }
#ifndef SHOULD_FAIL
    auto needs_time_at(std::uint64_t, std::uint32_t) -> bool { return true; }
#else
    auto needs_time_at(std::uint64_t) -> bool { return true; }
#endif
};

auto walked(flow::coverage& to, source& code, borrowed_bytes trace) {
    return walk(to, code, trace);
}
}  // namespace source_with_wrong_needs_time_at

namespace source_without_changes {
/// Without `changes` the walker would not know when to call `space_of`.
// expect: static constexpr auto changes = ptspec::flow::space_changes::at_paging
struct source {
#ifndef SHOULD_FAIL
    static constexpr auto changes = flow::space_changes::at_packets;
#endif
    auto code(std::uint64_t, std::uint32_t) -> byte_view { return {}; }
    auto space_of(flow::walk_state const& walked) -> std::uint32_t {
        return walked.when.tsc > 1'000'000;
    }
};

auto walked(flow::coverage& to, source& code, borrowed_bytes trace) {
    return walk(to, code, trace);
}
}  // namespace source_without_changes
