// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/sink.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

struct nothing {};
struct instructions {
    void instruction(flow::executed const&) {}
};
struct wrong_argument {
    void edge(int) {}
};
struct edges_and_gaps {
    void edge(flow::edge const&) {}
    void gap(flow::gap const&) {}
};

}  // namespace

TEST_CASE("a sink takes what it names") {
    static_assert(!flow::sink<nothing> && !flow::sink<wrong_argument>);
    static_assert(flow::sink<instructions> && flow::takes_instructions<instructions>);
    static_assert(!flow::takes_blocks<instructions> && !flow::takes_gaps<instructions>);
    static_assert(flow::takes_edges<edges_and_gaps> && flow::takes_gaps<edges_and_gaps>);
    CHECK_TWICE([](auto value) {
        return value(flow::gap{}).why == flow::gap_reason::none && !value(flow::edge{}).to;
    });
}
