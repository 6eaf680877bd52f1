// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/packet_errata.hpp>

#include <doctest/doctest.h>
#include <support/chunks.hpp>
#include <support/made_stream.hpp>

#include <cstdio>
#include <string>

using namespace ptspec;
using cpu::quirk;
using test::made_stream;

namespace {

/// The items of a stream that comes in chunks of `size` bytes: offset, kind, length.
auto items_of(char const* text, cpu::quirk_set quirks, size_t size) -> std::string {
    made_stream const whole{text, engine::model_kind::manual};
    trace::reader<> from{trace::reader_options{.sync = false}};
    trace::packet_errata errata{quirks};
    std::string found;
    test::chunks rest{whole.view()};
    while (true) {
        auto const got = errata.next(from);
        if (got.what == trace::item_type::end) { return found; }
        if (got.what == trace::item_type::need_input) {
            if (!rest.feed(from, size)) { return "feed"; }
            continue;
        }
        char const* const name = got.what == trace::item_type::damage   ? "damage"
                                 : got.packet.is<packet::ovf>()         ? "ovf"
                                 : got.packet.is<packet::cyc>()         ? "cyc"
                                 : got.packet.is<packet::tma>()         ? "tma"
                                 : got.packet.is<packet::tnt_short>()   ? "tnt"
                                 : got.what == trace::item_type::packet ? "other"
                                                                        : "?";
        char room[40];
        (void)std::snprintf(room, sizeof room, "%x%s%u ", static_cast<unsigned>(got.offset), name,
                            unsigned{got.length});
        found += room;
    }
}
void check_items(char const* text, cpu::quirk_set quirks, std::string const& expected) {
    for (size_t size = 1; size <= 40; ++size) {
        CAPTURE(size);
        CHECK(items_of(text, quirks, size) == expected);
    }
}

}  // namespace

TEST_CASE("SKD007: an OVF after the first byte of a CYC") {
    check_items("06 0702f3 06", cpu::quirks(quirk::skd007), "0tnt1 2ovf2 4tnt1 ");
    check_items("06 0702f3 06", {}, "0tnt1 1cyc2 3cyc1 4tnt1 ");
    // Not an OVF.
    check_items("0702 06", cpu::quirks(quirk::skd007), "0cyc2 2tnt1 ");
    check_items("0702", cpu::quirks(quirk::skd007), "0cyc2 ");
    check_items("0702 f702", cpu::quirks(quirk::skd007), "0cyc2 2cyc2 ");
    check_items("0704 f3", cpu::quirks(quirk::skd007), "0cyc2 2cyc1 ");
    check_items("0702f3 0702f3", cpu::quirks(quirk::skd007), "1ovf2 4ovf2 ");
}

TEST_CASE("SKZ84: a byte after a TMA with set reserved bits") {
    check_items("0273000001f0ff 05 06", cpu::quirks(quirk::skz84), "0tma7 8tnt1 ");
    check_items("02730000000002 06 06", cpu::quirks(quirk::skz84), "0tma7 8tnt1 ");
    check_items("02730000000000 06 06", cpu::quirks(quirk::skz84), "0tma7 7tnt1 8tnt1 ");
    check_items("02730000000002 06 06", {}, "0tma7 7tnt1 8tnt1 ");
    check_items("02730000000002", cpu::quirks(quirk::skz84), "0tma7 ");
}

TEST_CASE("only processors with such errata need corrections") {
    CHECK(!trace::packet_errata{}.is_needed());
    CHECK(!trace::packet_errata{cpu::quirks(quirk::skd010, quirk::apl12)}.is_needed());
    CHECK(trace::packet_errata{cpu::quirks(quirk::skd007)}.is_needed());
    CHECK(trace::packet_errata{cpu::quirks(quirk::skd007)}.needs_next());
    CHECK(trace::packet_errata{cpu::quirks(quirk::skz84)}.is_needed());
    CHECK(!trace::packet_errata{cpu::quirks(quirk::skz84)}.needs_next());
}
