// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/block.hpp>
#include <ptspec/flow/path_cache.hpp>
#include <ptspec/trace/event.hpp>

/// What a walker reports. A sink has a member function for each kind of report that it wants;
/// nothing else costs time.
namespace ptspec::flow {

/// An executed instruction.
struct executed {
    uint64_t ip = 0;
    uint32_t space = 0;
    uint8_t length = 0;  ///< in bytes
    instruction_class which = instruction_class::other;
    code_width width = code_width::bits_64;
};

/// Executed instructions that follow each other in memory. An event in between splits a block.
struct executed_block {
    uint64_t ip = 0;
    uint64_t last = 0;  ///< the address of the last instruction
    uint32_t space = 0;
    uint32_t size = 0;                                   ///< in bytes
    uint32_t count = 0;                                  ///< instructions
    instruction_class which = instruction_class::other;  ///< of the last one
    code_width width = code_width::bits_64;
};

/// A transfer of control: an executed branch, taken or not, or an event.
struct edge {
    /// The address of the branch; of an event, the address of the instruction that it interrupts.
    uint64_t from = 0;
    uint64_t to = 0;
    uint64_t after = 0;  ///< the address after the branch: where a CALL returns to
    uint32_t space = 0;
    instruction_class which = instruction_class::other;  ///< of the branch
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
    endless_loop,    ///< the code never reaches a branch, or the IP of an event
    no_target,       ///< a branch whose packet has no IP
    missing_trace,   ///< the file lacks bytes of the trace: reported by readers of files, no walker
};

/// Executed instructions that are not known.
struct gap {
    gap_reason why = gap_reason::none;
    rule broken = rule::none;
    bool has_from = false;
    bool has_to = false;   ///< false: tracing was off, or the trace ended, before an IP was known
    uint64_t from = 0;     ///< the first instruction that is not known
    uint64_t to = 0;       ///< the first one after it that is known
    uint64_t missing = 0;  ///< of missing code: a linear address
    uint64_t offset = 0;   ///< of the packet, in bytes from the start of the trace
};

template <class Sink>
concept takes_instructions = requires(Sink& to, executed const& one) { to.instruction(one); };
template <class Sink>
concept takes_blocks = requires(Sink& to, executed_block const& one) { to.block(one); };
template <class Sink>
concept takes_edges = requires(Sink& to, edge const& one) { to.edge(one); };
template <class Sink>
concept takes_gaps = requires(Sink& to, gap const& one) { to.gap(one); };
/// Tracing begins, or resumes after a gap, at this IP.
template <class Sink>
concept takes_starts = requires(Sink& to, uint64_t ip, uint32_t space) { to.start(ip, space); };
/// Tracing ends at a system call, fault or interrupt, not at the edge of an address filter. `ip` is
/// the instruction at which it resumes, unless a signal handler is called.
template <class Sink>
concept takes_stops = requires(Sink& to, uint64_t ip, uint32_t space) { to.stop(ip, space); };
/// The time of the packet whose branches or event are reported next.
template <class Sink>
concept takes_times = requires(Sink& to, trace::time const& when) { to.time(when); };
/// Events other than branches, at their IPs.
template <class Sink>
concept takes_events = requires(Sink& to, trace::event const& one) { to.event(one); };

template <class Sink>
concept takes_only_edges = takes_edges<Sink> && !takes_instructions<Sink> && !takes_blocks<Sink>;
/// A sink that counts edges, in any order. Instead of reporting the edges of branches that it
/// walked before, a walker may call `repeat(path)`. `paths()` is the cache of paths, or nullptr. It
/// may be shared by walkers of the same code with the same options, and by sinks whose `index_of`
/// agrees.
template <class Sink>
concept takes_paths = takes_only_edges<Sink> &&
                      requires(Sink& to, edge const& one, path const& known) {
                          { to.paths() } -> same_as<path_cache*>;
                          { to.index_of(one) } -> same_as<uint32_t>;
                          to.count(to.index_of(one));
                          to.repeat(known);
                      };

template <class Sink>
concept sink = takes_instructions<Sink> || takes_blocks<Sink> || takes_edges<Sink> ||
               takes_gaps<Sink> || takes_starts<Sink> || takes_stops<Sink> || takes_times<Sink> ||
               takes_events<Sink>;

}  // namespace ptspec::flow
