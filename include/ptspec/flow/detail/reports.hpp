// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>

/// Reports blocks and their branches to a sink.
namespace ptspec::flow::detail {

/// Reports the first `count` instructions of a block, of `size` bytes.
template <class Sink>
constexpr void report(block const& of, unsigned count, unsigned size, unsigned last_length,
                      Sink& to) {
    bool const is_whole = count == of.count;
    if constexpr (takes_instructions<Sink>) {
        executed one{of.key.ip, of.key.space, 0, instruction_class::other, of.key.width};
        uint64_t lengths = of.lengths[0];
        for (unsigned i = 0; i < count; ++i) {
            if (i == 16) { lengths = of.lengths[1]; }
            one.length = lengths & 15;
            lengths >>= 4;
            if (i + 1 == count && is_whole) { one.which = of.which; }
            to.instruction(one);
            one.ip += one.length;
        }
    }
    if constexpr (takes_blocks<Sink>) {
        to.block(executed_block{.ip = of.key.ip,
                                .last = of.key.ip + size - last_length,
                                .space = of.key.space,
                                .size = size,
                                .count = count,
                                .which = is_whole ? of.which : instruction_class::other,
                                .width = of.key.width});
    }
}
template <class Sink>
constexpr void report(block const& of, Sink& to) {
    report(of, of.count, of.size, of.last_length, to);
}
/// Reports a branch at the end of a block.
template <class Sink>
constexpr void report_edge([[maybe_unused]] block const& of, [[maybe_unused]] uint64_t target,
                           [[maybe_unused]] bool is_taken, [[maybe_unused]] Sink& to) {
    if constexpr (takes_edges<Sink>) {
        to.edge(edge{.from = of.last(),
                     .to = target,
                     .after = of.end(),
                     .space = of.key.space,
                     .which = of.which,
                     .is_taken = is_taken});
    }
}

}  // namespace ptspec::flow::detail
