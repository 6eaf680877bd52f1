// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>

#include <ptspec/trace/item.hpp>

using namespace ptspec;
using trace::item_type;

TEST_CASE("an item is false at the end of the trace or of a chunk, and true otherwise") {
    CHECK_TWICE([](auto value) {
        auto const is = [&](item_type what) { return bool{trace::item{.what = value(what)}}; };
        return is(item_type::packet) && is(item_type::unknown) && is(item_type::synced) &&
               is(item_type::damage) && is(item_type::resynced) && is(item_type::lost) &&
               !is(item_type::need_input) && !is(item_type::end);
    });
    CHECK_TWICE([](auto value) {
        auto const nothing = value(trace::item{});
        return nothing.what == item_type::end && nothing.length == 0 && nothing.need == 0 &&
               nothing.offset == 0 && nothing.ip == 0 && nothing.skipped == 0 &&
               nothing.broken == rule::none && nothing.error == packet::error::none &&
               nothing.packet.kind() == packet::kind::none;
    });
}

TEST_CASE("item_of() and place() are the reverse of each other") {
    CHECK_TWICE([](auto value) {
        trace::packet_place const place{value(uint64_t{0x123}), value(~uint64_t{0}), 2};
        auto const one = trace::item_of({packet::ovf{}, place.length}, place);
        return one.what == item_type::packet && one.length == 2 && one.offset == 0x123 &&
               one.ip == ~uint64_t{0} && one.packet.is<packet::ovf>() && one.packet.length() == 2 &&
               one.place().offset == 0x123 && one.place().ip == ~uint64_t{0} &&
               one.place().length == 2;
    });
}

TEST_CASE("by default reading starts at the first PSB and ignores reserved bits (PKT-003)") {
    CHECK_TWICE([](auto value) {
        auto const how = value(trace::reader_options{});
        return how.sync && !how.strict;
    });
}

TEST_CASE("a hook takes bytes and returns the length of the packet (PKT-253)") {
    static_assert(trace::opcode_hook<trace::no_hook>);
    auto const knows = [](byte_view in) -> unsigned { return in.size() > 1 ? 2 : 0; };
    static_assert(trace::opcode_hook<decltype(knows)>);
    auto const other = [](int) -> unsigned { return 0; };
    static_assert(!trace::opcode_hook<decltype(other)>);
    CHECK_TWICE([](auto value) {
        auto const in = value(byte_array<2>{{0x05, 0x05}});
        return trace::no_hook{}(in) == 0;
    });
}
