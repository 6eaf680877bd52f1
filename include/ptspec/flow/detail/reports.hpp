// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>

/// Reports blocks and their branches to a sink.
namespace ptspec::flow::detail {

/// Reports the first `count` instructions of a block, of `size` bytes.
template <class Sink>
constexpr void report(block const& passed, unsigned count, unsigned size, unsigned last_length,
                      Sink& sink) {
    bool const is_whole = count == passed.count;
    if constexpr (takes_instructions<Sink>) {
        executed one{passed.key.ip, passed.key.space, 0, instruction_class::other,
                     passed.key.width};
        uint64_t lengths = passed.lengths[0];
        for (unsigned i = 0; i < count; ++i) {
            if (i == 16) { lengths = passed.lengths[1]; }
            one.length = lengths & 15;
            lengths >>= 4;
            if (i + 1 == count && is_whole) { one.kind = passed.kind; }
            sink.instruction(one);
            one.ip += one.length;
        }
    }
    if constexpr (takes_blocks<Sink>) {
        sink.block(executed_block{.ip = passed.key.ip,
                                  .last = passed.key.ip + size - last_length,
                                  .space = passed.key.space,
                                  .size = size,
                                  .count = count,
                                  .kind = is_whole ? passed.kind : instruction_class::other,
                                  .width = passed.key.width});
    }
}
template <class Sink>
constexpr void report(block const& passed, Sink& sink) {
    report(passed, passed.count, passed.size, passed.last_length, sink);
}
/// Reports the instructions of a block before an IP. False if no instruction begins there.
template <class Sink>
constexpr auto report_before(block const& passed, uint64_t ip, Sink& sink) -> bool {
    if (ip - passed.key.ip >= passed.size) { return false; }
    unsigned const count = passed.count_before(ip);
    if (count == 0) { return false; }
    report(passed, count, static_cast<unsigned>(ip - passed.key.ip), passed.length_of(count - 1),
           sink);
    return true;
}
/// Reports a branch at the end of a block.
template <class Sink>
constexpr void report_edge([[maybe_unused]] block const& passed, [[maybe_unused]] uint64_t target,
                           [[maybe_unused]] bool is_taken, [[maybe_unused]] Sink& sink) {
    if constexpr (takes_edges<Sink>) {
        sink.edge(edge{.from = passed.last(),
                       .to = target,
                       .after = passed.end(),
                       .space = passed.key.space,
                       .kind = passed.kind,
                       .is_taken = is_taken});
    }
}
/// Reports that tracing ends at the branch of a block.
template <class Sink>
constexpr void report_stop([[maybe_unused]] block const& passed, [[maybe_unused]] Sink& sink) {
    if constexpr (takes_stops<Sink>) {
        bool const is_call = passed.kind == instruction_class::syscall ||
                             passed.kind == instruction_class::sysenter;
        sink.stop(stop{passed.end(), passed.key.space,
                       is_call ? stop_reason::system_call : stop_reason::unknown});
    }
}

}  // namespace ptspec::flow::detail
