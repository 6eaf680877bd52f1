// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>

#include <ptspec/trace/visitor.hpp>

using namespace ptspec;

namespace {

struct takes_tips {
    void operator()(packet::tip const&, trace::at) const {}
};
struct takes_numbers {
    void operator()(int) const {}
};
struct takes_items_only {
    void operator()(trace::item const&) const {}
};
struct takes_all {
    template <class Packet>
    auto operator()(Packet const&, trace::at) const -> bool {
        return true;
    }
};

}  // namespace

TEST_CASE("a visitor takes at least one type of packet") {
    static_assert(trace::packet_visitor<takes_tips>);
    static_assert(trace::packet_visitor<takes_all>);
    static_assert(!trace::packet_visitor<takes_numbers>);
    static_assert(!trace::packet_visitor<takes_items_only>);
    static_assert(trace::takes<takes_tips, packet::tip>);
    static_assert(!trace::takes<takes_tips, packet::fup>);
    static_assert(trace::packet_visitor<takes_tips, type_list<packet::pad, packet::tip>>);
    CHECK(!trace::packet_visitor<takes_tips, type_list<packet::pad>>);
}

TEST_CASE("a visitor that returns nothing goes on, one that returns false stops") {
    CHECK_TWICE([](auto value) {
        unsigned calls = 0;
        auto silent = [&](packet::tip const&, trace::at) { ++calls; };
        auto stops = [&](packet::tip const&, trace::at where) {
            return ++calls, where.offset != 7;
        };
        trace::at const here{value(uint64_t{7}), 0, 1};
        trace::at const there{value(uint64_t{8}), 0, 1};
        bool const results = trace::detail::call(silent, packet::tip{}, here) &&
                             !trace::detail::call(stops, packet::tip{}, here) &&
                             trace::detail::call(stops, packet::tip{}, there) &&
                             trace::detail::call(stops, packet::fup{}, here);
        return results && calls == 3;
    });
}
