// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/detail/decode_loop.hpp>

#include <vector>

using namespace ptspec;
using test::bytes;
using trace::detail::decode_loop;
using trace::detail::loop_state;
using trace::detail::quick_decode;

namespace {

struct seen {
    packet::kind which;
    unsigned length;
    uint64_t offset;
    uint64_t ip;
    wide_bits raw;

    friend auto operator==(seen const&, seen const&) -> bool = default;
};

/// A visitor that records packets.
struct collector {
    std::vector<seen>& all;

    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::packet_place where) const {
        all.push_back({Packet::about.id, where.length, where.offset, where.ip,
                       packet::any_packet{packet, where.length}.raw()});
    }
};

/// The reference: the packets that `packet::decode` reads.
auto reference_packets(byte_view in, uint64_t offset, bool strict, loop_state& now)
    -> std::vector<seen> {
    std::vector<seen> all;
    while (true) {
        auto const got = packet::decode(in.from(now.place), {now.items, strict});
        if (!got) { return all; }
        now.last_ip = packet::last_ip_after(got.packet, now.last_ip);
        now.items = packet::block_after(got.packet, now.items);
        all.push_back(
            {got.packet.kind(), got.length(), offset + now.place, now.last_ip, got.packet.raw()});
        now.place += got.length();
    }
}

/// Counts PADs in runs, and all other packets.
struct pad_counter {
    unsigned others = 0;
    unsigned count = 0;
    uint64_t next = 0;
    bool in_order = true;

    constexpr void record(uint64_t offset, unsigned bytes) {
        in_order = in_order && offset == next;
        next = offset + bytes;
    }
    constexpr void pads(unsigned run, trace::packet_place where) {
        in_order = in_order && run != 0 && run == where.length;
        count += run;
        record(where.offset, where.length);
    }
    constexpr void operator()(auto const&, trace::packet_place where) {
        ++others;
        record(where.offset, where.length);
    }
};

constexpr packet::block contexts[] = {packet::block::none, packet::block::items_of_4,
                                      packet::block::items_of_8};

}  // namespace

TEST_CASE("decode_loop agrees with packet::decode for any first two bytes, in every block "
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
                auto const after = decode_loop<packet::all>(
                    view, 1000, two % 2 == 0, {0, 0x1234'5678'9ABC'DEF0, items, true}, collect);
                loop_state now{0, 0x1234'5678'9ABC'DEF0, items, true};
                auto const slow = reference_packets(view, 1000, two % 2 == 0, now);
                REQUIRE(fast == slow);
                REQUIRE(after.place == now.place);
                REQUIRE(after.last_ip == (fast.empty() ? 0x1234'5678'9ABC'DEF0 : fast.back().ip));
                REQUIRE(after.keep_going);
                packets += fast.size();
            }
        }
    }
    CHECK(packets > 1'000'000);
}

TEST_CASE("decode_loop stops after the packet at which the visitor returns false") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x00, 0x03, 0x07, 0x02, 0x59, 0x01, 0x2D, 0x00, 0x10,
                                    0x02, 0x63, 0x80, 0x04, 1, 2, 3, 4, 0x00, 0x00));
        auto stop = [](auto const&, trace::packet_place) { return false; };
        loop_state now;
        uint64_t places = 0;
        for (unsigned i = 0; i < 8; ++i) {
            now.keep_going = true;
            now = decode_loop<packet::all>(in, 0, false, now, stop);
            if (now.keep_going) { return false; }
            places = places * 100 + now.place;
        }
        return places == 1'02'03'05'07'10'13'18 && now.last_ip == 0x1000 &&
               now.items == packet::block::items_of_4;
    });
}

TEST_CASE("decode_loop stops before an invalid packet") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x05, 0x00));
        unsigned calls = 0;
        auto count = [&](auto const&, trace::packet_place) { ++calls; };
        auto const after = decode_loop<packet::all>(in, 0, false, {}, count);
        auto const nothing = decode_loop<packet::all>({}, 0, false, {}, count);
        return after.place == 1 && after.keep_going && after.last_ip == 0 && calls == 1 &&
               nothing.place == 0;
    });
}

TEST_CASE("is_tnt and is_cyc agree with classify_first (PKT-010,030,107,166)") {
    CHECK_TWICE([](auto value) {
        for (unsigned first = 0; first < 256; ++first) {
            using namespace trace::detail;
            unsigned const byte = value(first);
            auto const opcode = packet::classify_first<packet::all>(static_cast<uint8_t>(first));
            bool const is_packet = opcode.what == packet::opcode_byte::meaning::packet;
            bool const cyc = is_packet && opcode.id == packet::kind::cyc;
            bool const tnt = is_packet && opcode.id == packet::kind::tnt_short;
            if (is_cyc(byte) != cyc || is_tnt(byte) != tnt) { return false; }
        }
        return true;
    });
}

TEST_CASE("quick_decode agrees with packet::decode, or returns length 0 (PKT-010,050..062)") {
    std::uint64_t known = 0;
    std::uint64_t right = 0;
    for (unsigned two = 0; two < 0x10000; ++two) {
        unsigned const first = two & 0xFF;
        if ((first % 2 == 0 && first != 2) || first % 4 == 3) { continue; }  // PAD, TNT, CYC
        for (unsigned variant = 0; variant < 4; ++variant) {
            byte_array<16> in{};
            in.bytes[0] = static_cast<uint8_t>(first);
            in.bytes[1] = static_cast<uint8_t>(two >> 8);
            for (unsigned i = 2; i < 16; ++i) {
                in.bytes[i] = static_cast<uint8_t>((two + variant * 977) * i * 113 >> variant);
            }
            uint64_t const last_ip = 0xFEDC'BA98'7654'3210 >> variant;
            bool const strict = variant % 2 == 0;
            auto const got = quick_decode<packet::all>(in.data(), last_ip, strict);
            auto const plain = packet::decode(in, {packet::block::none, strict});
            right += plain ? 1 : 0;
            if (got.length == 0) { continue; }
            REQUIRE(plain);
            REQUIRE((packet::any_packet{got.kind, got.bits, got.length}) == plain.packet);
            REQUIRE(got.ip == packet::last_ip_after(plain.packet, last_ip));
            REQUIRE(packet::block_after(plain.packet, packet::block::none) == packet::block::none);
            ++known;
        }
    }
    // All but TRIG and BBP.
    CHECK(known > right * 95 / 100);
}

TEST_CASE("quick_decode of a PSB clears the last IP (PKT-061)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(test::psb);
        auto const got = quick_decode<packet::all>(in.bytes, value(uint64_t{0x1234}), true);
        return got.length == 16 && got.ip == 0;
    });
}

TEST_CASE("a visitor that accepts runs of PADs gets each PAD once (PKT-166)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0, 0, 0, 0x1A, 0, 0x02, 0x23, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
        pad_counter all;
        auto const after = decode_loop<packet::all>(in, 0, false, {}, all);
        return after.place == 30 && all.in_order && all.next == 30 && all.others == 3 &&
               all.count == 26;
    });
    CHECK_TWICE([](auto value) {
        using trace::detail::leading_pads;
        for (size_t place = 0; place < 16; ++place) {
            for (unsigned count = 1; count < 8; ++count) {
                for (uint64_t const byte : {0x01U, 0x80U, 0xFFU}) {
                    unsigned const ends = 8 - static_cast<unsigned>(place % 8);
                    unsigned const wanted = count < ends ? count : ends;
                    uint64_t const bytes = value(byte << 8 * count);
                    if (leading_pads(bytes, place) != wanted) { return false; }
                }
            }
            if (leading_pads(value(uint64_t{0}), place) != 8 - place % 8) { return false; }
        }
        return true;
    });
}

TEST_CASE("quick_decode_cyc gives the length of a CYC of up to seven bytes (PKT-107,111)") {
    CHECK_TWICE([](auto value) {
        using trace::detail::quick_decode_cyc;
        auto const length = [&](uint64_t image) {
            return quick_decode_cyc(value(image), 0).length;
        };
        return length(0x03) == 1 && length(0xFFFF'FFFF'FFFF'FF03) == 1 && length(0x07) == 2 &&
               length(0x0107) == 3 && length(0x01'0107) == 4 && length(0x0101'0107) == 5 &&
               length(0x01'0101'0107) == 6 && length(0x0101'0101'0107) == 7 &&
               length(0x01'0101'0101'0107) == 0 && length(0x0101'0101'0101'0107) == 0;
    });
}

namespace {

/// Sums up the offsets of packets, up to the packet at `last`.
template <std::size_t More>
struct place_counter {
    uint64_t last;
    uint64_t sum = 0;
    char more[More] = {};

    constexpr auto operator()(auto const&, trace::packet_place where) -> bool {
        sum += where.offset + 1;
        return where.offset != last;
    }
};

}  // namespace

TEST_CASE("decode_loop updates the caller's visitor, whether it is copied or not") {
    CHECK_TWICE([](auto value) {
        // A TIP, PADs, and at the end a TSC, which needs packet::decode.
        auto const in = value(test::join(bytes(0x2D, 0x00, 0x10), byte_array<20>{},
                                         bytes(0x19, 1, 2, 3, 4, 5, 6, 7)));
        uint64_t const places = 1 + 20 * 27 / 2 + 24;  // 1, 4..23, 24
        auto const gives = [&](auto visitor, uint64_t end, uint64_t sum, bool keep_going) {
            auto const after = decode_loop<packet::all>(in, 0, false, {}, visitor);
            return after.place == end && after.keep_going == keep_going && visitor.sum == sum;
        };
        return gives(place_counter<1>{99}, 31, places, true) &&
               gives(place_counter<100>{99}, 31, places, true) &&
               gives(place_counter<1>{23}, 31, places, false) &&
               gives(place_counter<100>{23}, 31, places, false) &&
               gives(place_counter<1>{4}, 5, 1 + 4 + 5, false) &&
               gives(place_counter<100>{4}, 5, 1 + 4 + 5, false);
    });
}

namespace {

/// Skips the next packets if they have these bytes.
struct skipping_visitor {
    byte_view expected;
    uint64_t last_ip;
    std::vector<uint64_t> tips{};
    std::vector<size_t> rooms{};
    std::vector<uint64_t> last_ips{};
    unsigned branches = 0;

    void operator()(packet::tip const&, trace::packet_place where) { tips.push_back(where.ip); }
    void operator()(packet::tnt_short const& which, trace::packet_place) {
        branches += which.taken().count;
    }
    auto skip(uint8_t const* next, size_t room, uint64_t, uint64_t last) -> trace::skipped_packets {
        rooms.push_back(room);
        last_ips.push_back(last);
        for (size_t i = 0; i < expected.size(); ++i) {
            if (next[i] != expected[i]) { return {}; }
        }
        return {expected.size(), last_ip};
    }
};

}  // namespace

TEST_CASE("packets that a visitor skips are not decoded, and LastIP is what it returns") {
    // TIP 1122H; TNT and TIP 3344H, which are skipped; TIP 6655H, of two bytes; TNT; PADs.
    std::vector<uint8_t> in{0x2D, 0x22, 0x11, 0x0E, 0x2D, 0x44, 0x33, 0x2D, 0x55, 0x66, 0x1E};
    in.resize(in.size() + 32);
    auto const known = bytes(0x0E, 0x2D, 0x44, 0x33);
    skipping_visitor visitor{byte_view{known}, 0xAAAA'0000'3344};
    auto const after = decode_loop<packet::all>(byte_view{in}, 0, false, {}, visitor);
    CHECK(visitor.tips == std::vector<uint64_t>{0x1122, 0xAAAA'0000'6655});
    CHECK(visitor.branches == 3);
    CHECK(visitor.rooms ==
          std::vector<size_t>{in.size() - 15, in.size() - 15 - 3, in.size() - 15 - 10});
    CHECK(visitor.last_ips == std::vector<uint64_t>{0, 0x1122, 0xAAAA'0000'6655});
    CHECK(after.place == in.size());
    CHECK(after.last_ip == 0xAAAA'0000'6655);
}

TEST_CASE("a visitor template is called with packet types only") {
    CHECK_TWICE([](auto value) {
        auto const in = value(byte_array<40>{});
        uint64_t ids = 0;
        auto any = [&](auto const& packet, trace::packet_place) {
            ids += underlying(packet.about.id) + 1;
        };
        (void)decode_loop<packet::all>(in, 0, false, {}, any);
        return ids == 40 * (underlying(packet::kind::pad) + 1);
    });
}
