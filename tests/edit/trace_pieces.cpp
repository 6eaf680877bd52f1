// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/trace_pieces.hpp>

#include <support/made_trace.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

using namespace ptspec;
using namespace std::string_view_literals;

namespace {

/// Kinds and offsets of the items of a trace.
struct seen {
    std::vector<std::uint64_t> items;

    void add(trace::item const& got) {
        items.push_back(got.offset << 16 | static_cast<std::uint64_t>(got.packet.kind()) << 4 |
                        static_cast<std::uint64_t>(got.what));
    }
};

constexpr auto packets =
    "t pip0:1000 psb tsc:1 cbr pip0:71000 m64 fup6:401000 end t tip2:1103 x:c9 t t psb tsc:7 end "
    "ptw:5 fup6:401000 t x:0000 cfe:81 vmcs:5000 x:025d"sv;

}  // namespace

TEST_CASE(
    "a reader of parts finds the items of the whole, and counts the bytes of none (PKT-250..255)") {
    test::made_trace const made{packets};
    seen whole;
    trace::reader from{made.view()};
    std::uint64_t skipped = 0;
    for (auto it = from.next(); it; it = from.next()) {
        if (it.what == trace::item_type::lost) { continue; }
        if (it.skipped > 0) { skipped += static_cast<std::uint64_t>(it.skipped); }
        whole.add(it);
    }
    std::mt19937_64 random{3};
    for (unsigned run = 0; run < 2000; ++run) {
        edit::detail::part_reader<packet::all> parts;
        seen got;
        std::uint64_t sum = 0;
        std::vector<std::uint8_t> bytes(made.bytes, made.bytes + made.size);
        for (std::size_t begin = 0, end = 0; end != made.size;) {
            end = std::min(made.size, end + random() % (1 + random() % 60));
            byte_window const window[] = {{bytes.data() + begin, end - begin}};
            edit::detail::piece_bytes part{window, parts.begin()};
            REQUIRE(parts.begin() == begin);
            parts.read(part, end == made.size, [&](trace::item const& one) { got.add(one); });
            sum += parts.skipped();
            begin = end - parts.kept_back();
        }
        CAPTURE(run);
        REQUIRE(got.items == whole.items);
        REQUIRE(sum == skipped);
    }
}

TEST_CASE("bytes outside of the pieces are not written (PRG-129)") {
    std::uint8_t bytes[20];
    for (auto& byte : bytes) { byte = 0xA5; }
    byte_window const pieces[] = {{bytes + 10, 3}, {bytes + 5, 0}, {bytes + 2, 3}};
    edit::detail::piece_bytes part{pieces, 100};
    std::uint8_t const from[] = {1, 2, 3, 4, 5, 6};
    part.write(98, byte_view{from, 6});  // 98 and 99 are in no piece
    part.pad(104, 106);
    std::uint8_t const wanted[] = {0xA5, 0xA5, 6, 0,    0,    0xA5, 0xA5, 0xA5, 0xA5, 0xA5,
                                   3,    4,    5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5};
    bool same = true;
    for (std::size_t i = 0; i < 20; ++i) {
        bool const is_pad = i == 3 || i == 4;
        same = same && bytes[i] == (is_pad ? 0 : wanted[i]);
    }
    CHECK(part.size() == 6);
    CHECK(part.end() == 106);
    CHECK(same);
}
