// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/kind.hpp>

#include <support/check_twice.hpp>

#include <spec_tables.hpp>

#include <cstddef>

using namespace ptspec;
using namespace ptspec::packet;

namespace {

template <std::size_t... Numbers>
constexpr auto are_the_rows(index_list<Numbers...>) -> bool {
    return (
        (name_of_enumerator<static_cast<kind>(Numbers)>() == test::packet_rows[Numbers].cpp_name) &&
        ...);
}

}  // namespace

TEST_CASE("the kinds are exactly the rows of packets.csv, in the same order (PKT-007)") {
    constexpr auto count = test::packet_rows_count;
    static_assert(are_the_rows(make_index_list<count>{}));
    static_assert(name_of_enumerator<static_cast<kind>(count)>() == "");
}

TEST_CASE("the block context is the item size: 0, 4 or 8 (PKT-006, PKT-203)") {
    static_assert(underlying(block::none) == 0 && underlying(block::items_of_4) == 4 &&
                  underlying(block::items_of_8) == 8);
}

TEST_CASE("there are four errors, in the order of their checks except for truncated (PKT-004)") {
    static_assert(underlying(error::none) == 0 && underlying(error::truncated) == 1 &&
                  underlying(error::bad_opcode) == 2 && underlying(error::reserved) == 3 &&
                  underlying(error::bad_packet) == 4);
}

TEST_CASE("the defaults of a packet's facts are the most common values") {
    constexpr facts about{.id = kind::mtc, .name = "MTC"};
    static_assert(about.binds_to_ip == ip_binding::no && !about.in_psb_plus &&
                  about.cyc_eligible == cyc_rule::no && !about.keeps_block);
}
