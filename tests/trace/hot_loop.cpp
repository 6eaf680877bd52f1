// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/hot_loop.hpp>

#include <vector>

using namespace ptspec;
using test::bytes;
using trace::detail::hot_loop;
using trace::detail::hot_state;

namespace {

struct seen {
    packet::kind which;
    unsigned length;
    uint64_t offset;
    uint64_t ip;
    wide_bits raw;

    friend auto operator==(seen const&, seen const&) -> bool = default;
};

/// Writes down what the loop hands out.
struct collector {
    std::vector<seen>& all;

    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::at where) const {
        all.push_back({Packet::about.id, where.length, where.offset, where.ip,
                       packet::any_packet{packet, where.length}.raw()});
    }
};

/// The same from decode, one packet after the other.
auto plainly(byte_view in, uint64_t offset, bool strict, hot_state& now) -> std::vector<seen> {
    std::vector<seen> all;
    while (true) {
        auto const got = packet::decode(in.from(now.place), {now.items, strict});
        if (!got) { return all; }
        now.last_ip = packet::last_ip_behind(got.packet, now.last_ip);
        now.items = packet::block_behind(got.packet, now.items);
        all.push_back(
            {got.packet.kind(), got.length(), offset + now.place, now.last_ip, got.packet.raw()});
        now.place += got.length();
    }
}

constexpr packet::block contexts[] = {packet::block::none, packet::block::items_of_4,
                                      packet::block::items_of_8};

}  // namespace

TEST_CASE("the loop hands out what decode reads, behind every two bytes and in every block "
          "(PKT-010,203)") {
    uint64_t packets = 0;
    for (unsigned two = 0; two < 0x10000; ++two) {
        for (auto const items : contexts) {
            byte_array<20> in{};
            in.bytes[0] = static_cast<uint8_t>(two);
            in.bytes[1] = static_cast<uint8_t>(two >> 8);
            for (unsigned i = 2; i < 18; ++i) {
                in.bytes[i] = static_cast<uint8_t>(two * i * 37 >> 3);
            }
            for (std::size_t const size : {20U, 3U, 2U}) {
                auto const view = byte_view{in}.first(size);
                std::vector<seen> fast;
                collector collect{fast};
                auto const behind = hot_loop<packet::all>(
                    view, 1000, two % 2 == 0, {0, 0x1234'5678'9ABC'DEF0, items, true}, collect);
                hot_state now{0, 0x1234'5678'9ABC'DEF0, items, true};
                auto slow = plainly(view, 1000, two % 2 == 0, now);
                // A last single byte is left for more care.
                if (slow.size() == fast.size() + 1 && slow.back().offset == 1000 + size - 1) {
                    now.place -= 1;
                    slow.pop_back();
                }
                REQUIRE(fast == slow);
                REQUIRE(behind.place == now.place);
                REQUIRE(behind.last_ip == (fast.empty() ? 0x1234'5678'9ABC'DEF0 : fast.back().ip));
                REQUIRE(behind.go_on);
                packets += fast.size();
            }
        }
    }
    CHECK(packets > 1'000'000);
}

TEST_CASE("the loop stops behind the packet at which the visitor returns false") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x00, 0x03, 0x07, 0x02, 0x59, 0x01, 0x2D, 0x00, 0x10,
                                    0x02, 0x63, 0x80, 0x04, 1, 2, 3, 4, 0x00, 0x00));
        auto stop = [](auto const&, trace::at) { return false; };
        hot_state now;
        uint64_t places = 0;
        for (unsigned i = 0; i < 8; ++i) {
            now.go_on = true;
            now = hot_loop<packet::all>(in, 0, false, now, stop);
            if (now.go_on) { return false; }
            places = places * 100 + now.place;
        }
        return places == 1'02'03'05'07'10'13'18 && now.last_ip == 0x1000 &&
               now.items == packet::block::items_of_4;
    });
}

TEST_CASE("the loop leaves alone what it cannot read") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x05, 0x00));
        unsigned calls = 0;
        auto count = [&](auto const&, trace::at) { ++calls; };
        auto const behind = hot_loop<packet::all>(in, 0, false, {}, count);
        auto const nothing = hot_loop<packet::all>({}, 0, false, {}, count);
        return behind.place == 1 && behind.go_on && behind.last_ip == 0 && calls == 1 &&
               nothing.place == 0;
    });
}
