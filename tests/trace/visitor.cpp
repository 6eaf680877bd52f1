// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>

#include <ptspec/trace/visitor.hpp>

using namespace ptspec;

namespace {

struct takes_tips {
    void operator()(packet::tip const&, trace::packet_place) const {}
};
struct takes_numbers {
    void operator()(int) const {}
};
struct takes_items_only {
    void operator()(trace::item const&) const {}
};
struct takes_all {
    template <class Packet>
    auto operator()(Packet const&, trace::packet_place) const -> bool {
        return true;
    }
};

struct takes_everything : takes_all, takes_items_only {
    using takes_all::operator();
    using takes_items_only::operator();
};
struct takes_pad_runs {
    void pads(unsigned, trace::packet_place) const {}
};

}  // namespace

TEST_CASE("a visitor takes all packets and items, or exactly those that are named") {
    using packet::all;
    static_assert(!trace::packet_visitor<takes_tips>);
    static_assert(trace::packet_visitor<takes_tips, all, packet::tip>);
    static_assert(!trace::packet_visitor<takes_tips, all, packet::tip, packet::fup>);
    static_assert(!trace::packet_visitor<takes_tips, all, packet::tip, trace::item>);
    static_assert(!trace::packet_visitor<takes_tips, all, packet::fup>);
    static_assert(!trace::packet_visitor<takes_all>);  // not the items
    static_assert(trace::packet_visitor<takes_all, all, all>);
    static_assert(!trace::packet_visitor<takes_all, all, packet::tip>);
    static_assert(!trace::packet_visitor<takes_all, all, all, trace::item>);
    static_assert(!trace::packet_visitor<takes_numbers>);
    static_assert(!trace::packet_visitor<takes_items_only>);
    static_assert(trace::packet_visitor<takes_items_only, all, trace::item>);
    static_assert(trace::packet_visitor<takes_everything>);
    static_assert(trace::packet_visitor<takes_everything, all, all, trace::item>);
    static_assert(trace::packet_visitor<takes_pad_runs, all, packet::pad>);
    static_assert(trace::takes<takes_tips, packet::tip>);
    static_assert(!trace::takes<takes_tips, packet::fup>);
    static_assert(
        trace::packet_visitor<takes_tips, type_list<packet::pad, packet::tip>, packet::tip>);
    CHECK(!trace::packet_visitor<takes_tips, type_list<packet::pad>, packet::tip>);
}

TEST_CASE("a visitor that returns nothing continues, one that returns false stops") {
    CHECK_TWICE([](auto value) {
        unsigned calls = 0;
        auto silent = [&](packet::tip const&, trace::packet_place) { ++calls; };
        auto stops = [&](packet::tip const&, trace::packet_place where) {
            return ++calls, where.offset != 7;
        };
        trace::packet_place const here{value(uint64_t{7}), 0, 1};
        trace::packet_place const there{value(uint64_t{8}), 0, 1};
        bool const results = trace::detail::call(silent, packet::tip{}, here) &&
                             !trace::detail::call(stops, packet::tip{}, here) &&
                             trace::detail::call(stops, packet::tip{}, there) &&
                             trace::detail::call(stops, packet::fup{}, here);
        return results && calls == 3;
    });
}

namespace {

struct of_64_bytes {
    uint64_t sums[8];
};
struct of_65_bytes {
    char sums[65];
};
struct with_a_copy_of_its_own {
    with_a_copy_of_its_own() = default;
    with_a_copy_of_its_own(with_a_copy_of_its_own const&) {}
    auto operator=(with_a_copy_of_its_own const&) -> with_a_copy_of_its_own& = default;
};
struct with_a_reference {
    int& sum;
};

}  // namespace

TEST_CASE("a trivially copyable visitor of at most 64 bytes is passed by value") {
    using trace::detail::is_copied;
    static_assert(is_copied<takes_tips>);
    static_assert(is_copied<of_64_bytes>);
    static_assert(!is_copied<of_65_bytes>);
    static_assert(!is_copied<of_64_bytes const>);
    static_assert(!is_copied<with_a_copy_of_its_own>);
    static_assert(!is_copied<with_a_reference>);
    static_assert(same_as<trace::detail::copy_or_reference<of_64_bytes>, of_64_bytes>);
    CHECK(same_as<trace::detail::copy_or_reference<of_65_bytes>, of_65_bytes&>);
}
