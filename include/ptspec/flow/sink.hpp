// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/named_member.hpp>
#include <ptspec/flow/block.hpp>
#include <ptspec/flow/run_table.hpp>
#include <ptspec/trace/event.hpp>

/// What a walker reports. A sink has a member function for each kind of report that it wants;
/// nothing else costs time. A sink without `gap` says that it needs no gaps: `using ignores_gaps =
/// my_sink;` in `my_sink`, and again in a derived class. The same word exists for each report, for
/// sinks that pass reports on: `ignores_instructions`, `ignores_blocks`, ...
namespace ptspec::flow {

/// An executed instruction.
struct executed {
    uint64_t ip = 0;
    uint32_t space = 0;
    uint8_t length = 0;  ///< in bytes
    instruction_class kind = instruction_class::other;
    code_width width = code_width::bits_64;
};

/// Executed instructions that follow each other in memory. An event in between splits a block.
struct executed_block {
    uint64_t ip = 0;
    uint64_t last = 0;  ///< the address of the last instruction
    uint32_t space = 0;
    uint32_t size = 0;                                  ///< in bytes
    uint32_t count = 0;                                 ///< instructions
    instruction_class kind = instruction_class::other;  ///< of the last one
    code_width width = code_width::bits_64;
};

/// A transfer of control: an executed branch, taken or not, or an event.
struct edge {
    /// The address of the branch; of an event, the address of the instruction that it interrupts.
    uint64_t from = 0;
    uint64_t to = 0;
    uint64_t after = 0;  ///< the address after the branch: where a CALL returns to
    uint32_t space = 0;
    instruction_class kind = instruction_class::other;  ///< of the branch
    bool is_taken = true;
    bool is_asynchronous = false;  ///< an interrupt, exception or another event
};

/// Why it is not known what executed.
enum class gap_reason : uint8_t {
    none,
    overflow,        ///< packets were lost: OVF
    damage,          ///< the trace is damaged: `broken`
    missing_code,    ///< the source has no bytes at `missing`
    no_instruction,  ///< no processor executes the bytes at `from`
    wrong_turn,      ///< the code has no branch that fits the packet
    missing_call,    ///< a compressed RET, whose CALL executed in an earlier gap
    endless_loop,    ///< a loop, or 4096 blocks, without a packet or the IP of an event
    no_target,       ///< a branch whose packet has no IP
    no_tnt,          ///< a branch whose outcome no packet has: IA32_RTIT_CTL.DisTNT is 1
    no_branches,     ///< the trace has no branches at all: IA32_RTIT_CTL.BranchEn is 0
    missing_trace,   ///< the file lacks bytes of the trace: reported by readers of files, no walker
    no_time,         ///< the code at `missing` depends on a time that is not known
};
/// True for a gap with an address in `missing`.
[[nodiscard]] constexpr auto has_missing(gap_reason why) noexcept -> bool {
    return why == gap_reason::missing_code || why == gap_reason::no_time;
}

/// Executed instructions that are not known. Not a result: it does not convert to bool.
struct gap {
    gap_reason why = gap_reason::none;
    rule broken = rule::none;
    bool has_from = false;
    bool has_to = false;  ///< false: tracing was off, or the trace ended, before an IP was known
    /// `to` is in a TIP: it is the target of a branch in the gap.
    bool to_is_target = false;
    /// The first instruction that is not known; of `no_tnt` the branch, which was executed.
    uint64_t from = 0;
    uint64_t to = 0;       ///< the first one after it that is known
    uint64_t missing = 0;  ///< a linear address, if `has_missing(why)`
    /// Of the packet, in bytes from the start of the trace; with a table of runs, perhaps of a TNT
    /// before it.
    uint64_t offset = 0;
};

/// What ended tracing, as far as the trace says.
enum class stop_reason : uint8_t {
    unknown,      ///< a fault or interrupt, without event trace; or the edge of an address filter
    system_call,  ///< SYSCALL, SYSENTER, INT n
    fault,        ///< an exception: event trace has the vector
    interrupt,    ///< an interrupt, SMI or VM exit: by event trace
};

/// Tracing ends at a system call, fault or interrupt.
struct stop {
    uint64_t ip = 0;  ///< where it begins again, unless a signal handler is called
    uint32_t space = 0;
    stop_reason why = stop_reason::unknown;
    /// The thread may continue on another processor: set by readers of the trace of a processor.
    bool may_move = false;
};

namespace detail {

struct instruction_name {
    int instruction;
    template <class Type>
    static auto find() -> decltype(&Type::instruction);
    template <class Type>
    using ignored = typename Type::ignores_instructions;
};
struct block_name {
    int block;
    template <class Type>
    static auto find() -> decltype(&Type::block);
    template <class Type>
    using ignored = typename Type::ignores_blocks;
};
struct edge_name {
    int edge;
    template <class Type>
    static auto find() -> decltype(&Type::edge);
    template <class Type>
    using ignored = typename Type::ignores_edges;
};
struct gap_name {
    int gap;
    template <class Type>
    static auto find() -> decltype(&Type::gap);
    template <class Type>
    using ignored = typename Type::ignores_gaps;
};
struct start_name {
    int start;
    template <class Type>
    static auto find() -> decltype(&Type::start);
    template <class Type>
    using ignored = typename Type::ignores_starts;
};
struct stop_name {
    int stop;
    template <class Type>
    static auto find() -> decltype(&Type::stop);
    template <class Type>
    using ignored = typename Type::ignores_stops;
};
struct time_name {
    int time;
    template <class Type>
    static auto find() -> decltype(&Type::time);
    template <class Type>
    using ignored = typename Type::ignores_times;
};
struct event_name {
    int event;
    template <class Type>
    static auto find() -> decltype(&Type::event);
    template <class Type>
    using ignored = typename Type::ignores_events;
};
struct runs_name {
    int runs;
    template <class Type>
    static auto find() -> decltype(&Type::runs);
};

}  // namespace detail

template <class Sink>
concept takes_instructions = !ignores<Sink, detail::instruction_name> &&
                             requires(Sink& sink, executed const& one) { sink.instruction(one); };
template <class Sink>
concept takes_blocks = !ignores<Sink, detail::block_name> &&
                       requires(Sink& sink, executed_block const& one) { sink.block(one); };
template <class Sink>
concept takes_edges = !ignores<Sink, detail::edge_name> &&
                      requires(Sink& sink, flow::edge const& one) { sink.edge(one); };
template <class Sink>
concept takes_gaps = !ignores<Sink, detail::gap_name> &&
                     requires(Sink& sink, flow::gap const& one) { sink.gap(one); };
/// Tracing begins, or resumes after a gap, at this IP.
template <class Sink>
concept takes_starts = !ignores<Sink, detail::start_name> &&
                       requires(Sink& sink, uint64_t ip, uint32_t space) { sink.start(ip, space); };
/// Tracing ends without the next IP.
template <class Sink>
concept takes_stops = !ignores<Sink, detail::stop_name> &&
                      requires(Sink& sink, flow::stop const& one) { sink.stop(one); };
/// The time of the packet whose branches or event are reported next.
template <class Sink>
concept takes_times = !ignores<Sink, detail::time_name> &&
                      requires(Sink& sink, trace::time const& when) { sink.time(when); };
/// Events other than branches, at their IPs.
template <class Sink>
concept takes_events = !ignores<Sink, detail::event_name> &&
                       requires(Sink& sink, trace::event const& one) { sink.event(one); };

/// A sink that counts edges, in any order, each a number of times at once. `runs()` is the table of
/// runs, or nullptr: then a walker counts the branches of a known run without a walk, at the latest
/// when `run` returns. `not_counted` is the index of an edge that does not count. The table may be
/// shared by walkers of the same code with the same options, and by sinks whose `index_of` agrees.
/// A sink with `instruction`, `block` or `stop` does not use it: these reports need the walk.
template <class Sink>
concept counts_runs = requires(Sink& sink, edge const& one) {
    { sink.runs() } -> same_as<run_table*>;
    { sink.index_of(one) } -> same_as<uint32_t>;
    { Sink::not_counted } -> same_as<uint32_t const&>;
    sink.count(sink.index_of(one), uint64_t{});
} && (!takes_starts<Sink> || requires(Sink& sink) {
                          { sink.index_of_start(uint64_t{}, uint32_t{}) } -> same_as<uint32_t>;
                      });
/// A sink that repeats in order what was reported of a run. `begin_run()` comes before its first
/// report. `keep_run(i)` keeps all reports since then as those of run `i` of the table, in place of
/// what was kept there; it may change nothing and return false. `repeat_run(i)` stands for the same
/// reports. Without a table, `runs()` is nullptr. The table belongs to one such sink, and to
/// walkers of the same code with the same options.
///
/// A sink with `instruction` or `time`, or without `edge`, does not use it.
template <class Sink>
concept repeats_runs = requires(Sink& sink, uint32_t index) {
    { sink.runs() } -> same_as<run_table*>;
    { sink.keep_run(index) } -> same_as<bool>;
    sink.begin_run();
    sink.repeat_run(index);
};
template <class Sink>
concept has_runs = counts_runs<Sink> || repeats_runs<Sink>;
template <class Sink>
concept takes_runs = takes_edges<Sink> && !takes_instructions<Sink> &&
                     ((counts_runs<Sink> && !takes_blocks<Sink> && !takes_stops<Sink>) ||
                      (repeats_runs<Sink> && !takes_times<Sink>));

template <class Sink>
concept sink = takes_instructions<Sink> || takes_blocks<Sink> || takes_edges<Sink> ||
               takes_gaps<Sink> || takes_starts<Sink> || takes_stops<Sink> || takes_times<Sink> ||
               takes_events<Sink>;

namespace detail {

template <class Sink, class Name, bool IsTaken>
inline constexpr bool is_right = IsTaken || ignores<Sink, Name> || !has_member<Sink, Name>;

/// Stops the build for a member that has the name of a report and cannot be called with it, and for
/// a sink that neither takes gaps nor says that it ignores them.
template <class Sink>
struct sink_members {
    static_assert(is_right<Sink, instruction_name, takes_instructions<Sink>>,
                  "the instruction of a sink is `void instruction(ptspec::flow::executed const&)`");
    static_assert(is_right<Sink, block_name, takes_blocks<Sink>>,
                  "the block of a sink is `void block(ptspec::flow::executed_block const&)`");
    static_assert(is_right<Sink, edge_name, takes_edges<Sink>>,
                  "the edge of a sink is `void edge(ptspec::flow::edge const&)`");
    static_assert(is_right<Sink, gap_name, takes_gaps<Sink>>,
                  "the gap of a sink is `void gap(ptspec::flow::gap const&)`");
    static_assert(is_right<Sink, start_name, takes_starts<Sink>>,
                  "the start of a sink is `void start(uint64_t ip, uint32_t space)`");
    static_assert(is_right<Sink, stop_name, takes_stops<Sink>>,
                  "the stop of a sink is `void stop(ptspec::flow::stop const&)`");
    static_assert(is_right<Sink, time_name, takes_times<Sink>>,
                  "the time of a sink is `void time(ptspec::trace::time const&)`");
    static_assert(is_right<Sink, event_name, takes_events<Sink>>,
                  "the event of a sink is `void event(ptspec::trace::event const&)`");
    static_assert(has_runs<Sink> || !has_member<Sink, runs_name>,
                  "a sink with `auto runs() -> ptspec::flow::run_table*` has also `auto "
                  "index_of(ptspec::flow::edge const&) -> uint32_t`, `static constexpr uint32_t "
                  "not_counted`, `void count(uint32_t index, uint64_t times)` and, if it takes "
                  "starts, `auto index_of_start(uint64_t ip, uint32_t space) -> uint32_t`; or "
                  "`void begin_run()`, `auto keep_run(uint32_t index) -> bool` and `void "
                  "repeat_run(uint32_t index)`");
    static_assert(takes_gaps<Sink> || ignores<Sink, gap_name>,
                  "a sink has `void gap(ptspec::flow::gap const&)`, which receives what is not "
                  "known; if it needs none: `using ignores_gaps = SINK;`, where SINK is the class "
                  "itself");
};

}  // namespace detail

}  // namespace ptspec::flow
