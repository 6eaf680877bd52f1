// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/chunks.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <vector>

using namespace ptspec;
using packet::error;
using packet::kind;
using test::bytes;
using test::join;
using test::psb;
using trace::item_type;
using trace::item;
using trace::reader;

namespace {

/// All items of a trace.
template <class Reader>
auto items_of(Reader from) -> std::vector<item> {
    std::vector<item> all;
    while (all.empty() || all.back()) { all.push_back(from.next()); }
    return all;
}

auto same(item const& one, item const& two) -> bool {
    return one.what == two.what && one.error == two.error && one.length == two.length &&
           one.need == two.need && one.broken == two.broken && one.offset == two.offset &&
           one.ip == two.ip && one.skipped == two.skipped && one.packet == two.packet;
}

auto same(std::vector<item> const& one, std::vector<item> const& two) -> bool {
    return std::equal(one.begin(), one.end(), two.begin(), two.end(),
                      [](item const& a, item const& b) { return same(a, b); });
}

/// The same, read in chunks of one size. Each chunk is overwritten after the reader consumed it.
auto items_in_chunks(std::vector<std::uint8_t> const& in, std::size_t size,
                     trace::reader_options how) -> std::vector<item> {
    std::vector<item> all;
    reader from{how};
    auto const read = [&] {
        while (true) {
            auto const next = from.next();
            if (next.what == item_type::need_input) {
                REQUIRE(next.need >= 1);
                REQUIRE(next.need <= 16);
                break;
            }
            all.push_back(next);
            if (!next) { break; }
        }
    };
    for (std::size_t at = 0; at < in.size(); at += size) {
        auto const begin = in.begin() + static_cast<long>(at);
        std::vector<std::uint8_t> chunk(begin,
                                        begin + static_cast<long>(std::min(size, in.size() - at)));
        REQUIRE(from.feed(byte_view{chunk}));
        read();
        std::fill(chunk.begin(), chunk.end(), std::uint8_t{0x82});
    }
    from.finish();
    read();
    return all;
}

/// A visitor that records all items.
struct collector {
    std::vector<item>& all;
    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::packet_place where) const {
        all.push_back(trace::item_of({packet, where.length}, where));
    }
    void operator()(item const& other) const { all.push_back(other); }
};

constexpr auto is(item const& found, item_type what, uint64_t offset) -> bool {
    return found.what == what && found.offset == offset;
}

template <class Packet>
constexpr auto is_packet(item const& found, uint64_t offset, unsigned length) -> bool {
    return is(found, item_type::packet, offset) && found.packet.template is<Packet>() &&
           found.length == length && found.packet.length() == length;
}

constexpr trace::reader_options from_the_start{.sync = false};

}  // namespace

TEST_CASE("next() returns the packets with their offsets, then the end (PKT-002,256)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x02, 0x23, 0x16, 0x00)));
        reader r{byte_view{in}};
        return is_packet<packet::psb>(r.next(), 0, 16) && r.offset() == 16 &&
               is_packet<packet::psbend>(r.next(), 16, 2) &&
               is_packet<packet::tnt_short>(r.next(), 18, 1) &&
               is_packet<packet::pad>(r.next(), 19, 1) && is(r.next(), item_type::end, 20) &&
               is(r.next(), item_type::end, 20) && r.offset() == 20;
    });
}

TEST_CASE("an empty trace has only the end item, with and without sync (PKT-256)") {
    CHECK_TWICE(
        [](auto) { return is(reader{byte_view{}, from_the_start}.next(), item_type::end, 0); });
    CHECK_TWICE([](auto) {
        reader r{byte_view{}};
        return is(r.next(), item_type::end, 0) && is(r.next(), item_type::end, 0);
    });
}

TEST_CASE("reading starts at the first PSB and reports the skipped bytes (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x05, 0x02), psb, bytes(0x16)));
        reader r{byte_view{in}};
        auto const first = r.next();
        return is(first, item_type::synced, 2) && first.skipped == 2 && r.offset() == 2 &&
               is_packet<packet::psb>(r.next(), 2, 16) &&
               is_packet<packet::tnt_short>(r.next(), 18, 1);
    });
}

TEST_CASE("without a PSB all bytes are lost (PKT-254)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x16), byte_array<15>{psb[0]}));
        reader r{byte_view{in}};
        auto const first = r.next();
        return is(first, item_type::lost, 16) && first.skipped == 16 &&
               is(r.next(), item_type::end, 16);
    });
}

TEST_CASE("packets update the last IP, and PSB clears it (PKT-059,060)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x6D, 0x67, 0x45, 0x23, 0x01, 0x00, 0xFF),  // TIP
                                   bytes(0x3D, 0x11, 0x22),                          // FUP
                                   bytes(0x01),                                      // TIP.PGD
                                   bytes(0x16), psb, bytes(0x31, 0x00, 0x10)));      // TIP.PGE
        reader r{byte_view{in}, from_the_start};
        bool ok = r.next().ip == 0xFFFF'FF00'0123'4567;
        ok = ok && r.next().ip == 0xFFFF'FF00'0123'2211;
        ok = ok && r.next().ip == 0xFFFF'FF00'0123'2211 && r.next().ip == 0xFFFF'FF00'0123'2211;
        ok = ok && r.last_ip() == 0xFFFF'FF00'0123'2211;
        ok = ok && r.next().ip == 0 && r.last_ip() == 0;
        return ok && r.next().ip == 0x1000 && r.last_ip() == 0x1000;
    });
}

TEST_CASE("in an open block, bytes with low bits 100 are BIPs (PKT-203,205)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x0C), bytes(0x02, 0x63, 0x84),  // TNT, BBP of 4
                                   bytes(0x0C, 0x44, 0x33, 0x22, 0x11),   // BIP
                                   bytes(0x00, 0x02, 0x63, 0x01),         // PAD, BBP of 8
                                   bytes(0x0C, 1, 2, 3, 4, 5, 6, 7, 8),   // BIP
                                   bytes(0x02, 0x33, 0x0C)));             // BEP, TNT
        reader r{byte_view{in}, from_the_start};
        bool ok = is_packet<packet::tnt_short>(r.next(), 0, 1) && r.block() == packet::block::none;
        ok = ok && is_packet<packet::bbp>(r.next(), 1, 3) && r.block() == packet::block::items_of_4;
        ok = ok && is_packet<packet::bip>(r.next(), 4, 5) && is_packet<packet::pad>(r.next(), 9, 1);
        ok = ok && is_packet<packet::bbp>(r.next(), 10, 3) &&
             r.block() == packet::block::items_of_8;
        ok = ok && is_packet<packet::bip>(r.next(), 13, 9) &&
             is_packet<packet::bep>(r.next(), 22, 2);
        return ok && is_packet<packet::tnt_short>(r.next(), 24, 1) &&
               r.block() == packet::block::none;
    });
}

TEST_CASE(
    "damage has an offset, an error and a rule, and decoding resumes at the next PSB (PKT-254)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(
            join(psb, bytes(0x02, 0x63, 0x84, 0xAD, 0x00, 0x00), psb, bytes(0x0C)));
        reader r{byte_view{in}};
        bool ok = r.next().what == item_type::packet && r.next().what == item_type::packet;
        auto const damage = r.next();
        ok = ok && is(damage, item_type::damage, 19) && damage.error == error::reserved &&
             damage.broken == rule::PKT_052 && damage.length == 0;
        auto const resync = r.next();
        ok = ok && is(resync, item_type::resynced, 22) && resync.skipped == 3 && r.offset() == 22;
        ok = ok && is_packet<packet::psb>(r.next(), 22, 16);
        // The PSB closed the block (PKT-205,252).
        return ok && is_packet<packet::tnt_short>(r.next(), 38, 1);
    });
}

TEST_CASE("a PSB that begins inside the packet before the damage is found (PKT-250,252)") {
    // A TSC takes the first bytes of the PSB as payload; the bytes after it are no packet.
    auto const check = [](auto value, std::size_t swallowed) {
        byte_array<64> in{};
        std::size_t size = 0;
        auto const put = [&](auto const& part, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) { in.bytes[size++] = part[i]; }
        };
        put(psb, 16);
        put(bytes(0x19, 0, 0, 0, 0, 0, 0, 0), 8 - swallowed);
        put(psb, 16);
        put(byte_array<8>{}, 8);
        auto const seen = value(in);
        reader r{byte_view{seen}.first(size)};
        bool ok = r.next().what == item_type::packet && is_packet<packet::tsc>(r.next(), 16, 8);
        auto const damage = r.next();
        ok = ok && is(damage, item_type::damage, 24);
        auto const resync = r.next();
        ok = ok && is(resync, item_type::resynced, 24 - swallowed) &&
             resync.skipped == -static_cast<int64_t>(swallowed);
        return ok && is_packet<packet::psb>(r.next(), 24 - swallowed, 16) &&
               is_packet<packet::pad>(r.next(), 40 - swallowed, 1);
    };
    // An even number of bytes leaves a shorter pattern in the same phase, then other bytes follow.
    static_assert(check(test::known{}, 2));
    for (std::size_t const swallowed : {2U, 4U, 6U}) { CHECK(check(test::unknown{}, swallowed)); }
}

TEST_CASE("the search for a PSB steps back 15 bytes and no further (PKT-250)") {
    // Damage inside a PSB: the payload of MNT takes 8 bytes of it. 15 bytes back include its start.
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x02, 0xC3, 0x88), psb, byte_array<8>{}));
        reader r{byte_view{in}, from_the_start};
        bool const ok = is_packet<packet::mnt>(r.next(), 0, 11) &&
                        is(r.next(), item_type::damage, 11);
        auto const resync = r.next();
        return ok && is(resync, item_type::resynced, 3) && resync.skipped == -8;
    });
    // The PSB that was just decoded begins 16 bytes back and is not found again.
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x05)));
        reader r{byte_view{in}};
        bool const ok = is_packet<packet::psb>(r.next(), 0, 16) &&
                        is(r.next(), item_type::damage, 16);
        auto const lost = r.next();
        return ok && is(lost, item_type::lost, 17) && lost.skipped == 1 &&
               is(r.next(), item_type::end, 17);
    });
}

TEST_CASE("a trace that ends inside a packet is truncated damage, without a search (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x19, 0x01, 0x02)));
        reader r{byte_view{in}};
        bool const ok = r.next().what == item_type::packet;
        auto const cut = r.next();
        return ok && is(cut, item_type::damage, 16) && cut.error == error::truncated &&
               cut.need == 5 && cut.skipped == 3 && cut.broken == rule::PKT_255 &&
               is(r.next(), item_type::end, 19);
    });
}

TEST_CASE("a chunk that ends inside a packet gives need_input with the missing bytes (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const one = value(join(psb, bytes(0x19, 0x01)));
        auto const two = value(bytes(0x02, 0x03, 0x04, 0x05, 0x06, 0x07));
        reader r{};
        bool ok = r.feed(one);
        ok = ok && is_packet<packet::psb>(r.next(), 0, 16);
        auto const more = r.next();
        ok = ok && is(more, item_type::need_input, 16) && more.need == 6 && r.offset() == 16;
        ok = ok && r.next().what == item_type::need_input && r.feed(two) && !r.feed(two);
        auto const tsc = r.next();
        ok = ok && is_packet<packet::tsc>(tsc, 16, 8) &&
             tsc.packet.template as<packet::tsc>().template get<packet::tsc::TSC>() ==
                 0x07'0605'0403'0201;
        ok = ok && is(r.next(), item_type::need_input, 24);
        r.finish();
        return ok && !r.feed(two) && is(r.next(), item_type::end, 24);
    });
}

TEST_CASE(
    "a PSB at the end of a chunk is found after the next chunk does not extend its run (PKT-251)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(psb);
        auto const more = value(bytes(0x02, 0x82, 0x00));
        reader r{};
        bool ok = is(r.next(), item_type::need_input, 0) && r.feed(in) &&
                  is(r.next(), item_type::need_input, 16);
        reader ends = r;
        ends.finish();
        ok = ok && is_packet<packet::psb>(ends.next(), 0, 16) &&
             is(ends.next(), item_type::end, 16);
        ok = ok && r.feed(more);
        auto const synced = r.next();
        return ok && is(synced, item_type::synced, 2) && synced.skipped == 2 &&
               is_packet<packet::psb>(r.next(), 2, 16) && is_packet<packet::pad>(r.next(), 18, 1);
    });
}

TEST_CASE("in strict mode a set reserved bit of TMA is damage (PKT-104)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x02, 0x73, 0x00, 0x00, 0x01, 0x00, 0x00));
        auto const found = reader{byte_view{in}, {.sync = false, .strict = true}}.next();
        return is_packet<packet::tma>(reader{byte_view{in}, from_the_start}.next(), 0, 7) &&
               is(found, item_type::damage, 0) && found.error == error::bad_packet &&
               found.broken == rule::PKT_104;
    });
}

namespace {

/// A hook that counts its calls.
struct counting_hook {
    unsigned times = 0;
    unsigned* last = nullptr;

    constexpr auto operator()(byte_view) noexcept -> unsigned {
        *last = ++times;
        return 1;
    }
};

}  // namespace

TEST_CASE("a hook keeps its state between calls (PKT-253)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x05, 0x16, 0x05, 0x05));
        unsigned times = 0;
        reader<counting_hook> from{byte_view{in}, {.sync = false}, counting_hook{0, &times}};
        while (from.next()) {}
        return times == 3;
    });
}

TEST_CASE("a hook decodes opcodes that ptspec does not know (PKT-253)") {
    constexpr auto knows_05 = [](byte_view at) -> unsigned { return at[0] == 0x05 ? 3 : 0; };
    CHECK_TWICE([=](auto value) {
        auto const in = value(bytes(0x16, 0x05, 0xAA, 0xBB, 0x00, 0x09));
        reader r{byte_view{in}, from_the_start, knows_05};
        bool ok = is_packet<packet::tnt_short>(r.next(), 0, 1);
        auto const unknown = r.next();
        ok = ok && is(unknown, item_type::unknown, 1) && unknown.length == 3;
        ok = ok && is_packet<packet::pad>(r.next(), 4, 1);
        auto const damage = r.next();
        return ok && is(damage, item_type::damage, 5) && damage.error == error::bad_opcode &&
               damage.broken == rule::PKT_015;
    });
    // The packet of a hook may end at the end of the trace.
    CHECK_TWICE([=](auto value) {
        auto const in = value(bytes(0x05, 0xAA, 0xBB));
        reader r{byte_view{in}, from_the_start, knows_05};
        return is(r.next(), item_type::unknown, 0) && is(r.next(), item_type::end, 3);
    });
    // The packet of a hook may continue in the next chunk.
    CHECK_TWICE([=](auto value) {
        auto const one = value(bytes(0x05));
        auto const two = value(bytes(0xAA, 0xBB, 0x00));
        trace::reader<decltype(knows_05)> r{from_the_start, knows_05};
        bool ok = r.feed(one);
        auto const more = r.next();
        ok = ok && is(more, item_type::need_input, 0) && more.need == 2 && r.feed(two);
        auto const unknown = r.next();
        return ok && is(unknown, item_type::unknown, 0) && unknown.length == 3 &&
               is_packet<packet::pad>(r.next(), 3, 1);
    });
    // A length above 16 is ignored, and the hook is called only for bad_opcode.
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x05), psb));
        auto const says_17 = [](byte_view) -> unsigned { return 17; };
        auto const says_16 = [](byte_view at) -> unsigned { return at.size() == 16 ? 16 : 0; };
        auto const reserved = value(bytes(0xAD, 0x00));
        auto const says_1 = [](byte_view) -> unsigned { return 1; };
        return is(reader{byte_view{in}, from_the_start, says_17}.next(), item_type::damage, 0) &&
               is(reader{byte_view{in}, from_the_start, says_16}.next(), item_type::unknown, 0) &&
               is(reader{byte_view{reserved}, from_the_start, says_1}.next(), item_type::damage, 0);
    });
}

TEST_CASE(
    "for_each calls a visitor for the packet types that it accepts, until the end (PKT-256)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x16, 0x2D, 0x00, 0x10, 0x0B, 0x59, 0x07, 0x00)));
        unsigned tips = 0;
        uint64_t seen = 0;
        reader r{byte_view{in}};
        auto const why = r.for_each<packet::tip>(
            [&](packet::tip const& packet, trace::packet_place where) {
                ++tips;
                seen = where.offset * 100 + where.length * 10 + (packet.has_ip() ? 1U : 0U);
                return where.ip == 0x1000;
            });
        return why == item_type::end && tips == 1 && seen == 1731;
    });
}

TEST_CASE("for_each stops after the packet at which the visitor returns false, and can continue") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x16, 0x00, 0x0B), psb,
                                   bytes(0x16, 0x03, 0x59, 0x01, 0x02, 0x23, 0x07, 0x02, 0x00)));
        uint64_t offsets = 0;
        unsigned packets = 0;
        auto const visitor = [&](auto const&, trace::packet_place where) {
            offsets = offsets * 100 + where.offset;
            ++packets;
            return false;
        };
        reader r{byte_view{in}, from_the_start};
        for (unsigned i = 0; i < 10; ++i) {
            if (r.for_each<packet::all>(visitor) != item_type::packet) { return false; }
        }
        return r.for_each<packet::all>(visitor) == item_type::end && packets == 10 &&
               r.offset() == 28 && offsets == 1'02'03'19'20'21'23'25'27;
    });
}

TEST_CASE("next() continues in the block in which a visitor stopped (PKT-205)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x02, 0x63, 0x84, 0x0C, 1, 2, 3, 4),  // BBP, BIP
                                   byte_array<20>{}));
        auto const up_to_block = [](auto const& packet, trace::packet_place) {
            return packet.about.id != packet::kind::bbp;
        };
        reader r{byte_view{in}, from_the_start};
        bool const before = is_packet<packet::psb>(r.next(), 0, 16);
        bool const stopped = r.for_each<packet::all>(up_to_block) == item_type::packet &&
                             r.offset() == 19;
        return before && stopped && is_packet<packet::bip>(r.next(), 19, 5);
    });
}

TEST_CASE("scan counts each packet once, also in blocks and in lanes (PKT-205,250)") {
    // 40 times a PSB, 400 TNTs, a block of one BIP, and 600 PADs.
    std::vector<std::uint8_t> in;
    auto const add = [&](byte_view bytes) {
        in.insert(in.end(), bytes.data(), bytes.data() + bytes.size());
    };
    for (unsigned i = 0; i < 40; ++i) {
        add(psb);
        in.insert(in.end(), 400, 0x16);
        if (i % 2 == 0) { add(bytes(0x02, 0x63, 0x84, 0x0C, 4, 4, 4, 4, 0x02, 0x33)); }
        in.insert(in.end(), 600, 0x00);
    }
    for (unsigned const blocks : {20U, 0U}) {
        if (blocks == 0) {  // the same without blocks, so that the lanes count to the end
            auto const has_block = [&](size_t at) { return in[at] == 0x02 && in[at + 1] == 0x63; };
            for (size_t at = 0; at + 10 <= in.size(); ++at) {
                if (has_block(at)) { in.erase(in.begin() + long(at), in.begin() + long(at) + 10); }
            }
        }
        auto const sum = reader{byte_view{in}}.scan();
        CHECK(sum.of(packet::kind::psb) == 40);
        CHECK(sum.of(packet::kind::tnt_short) == 40 * 400);
        CHECK(sum.of(packet::kind::pad) == 40 * 600);
        CHECK(sum.of(packet::kind::bbp) == blocks);
        CHECK(sum.of(packet::kind::bip) == blocks);
        CHECK(sum.of(packet::kind::bep) == blocks);
        CHECK((sum.total() == 40 + 40 * 1000 + 3 * blocks && sum.errors == 0));
    }
}

TEST_CASE("for_each passes damage to a visitor that accepts items (PKT-254)") {
    struct visitor {
        unsigned packets = 0;
        unsigned others = 0;
        constexpr void operator()(packet::tnt_short const&, trace::packet_place) { ++packets; }
        constexpr void operator()(item const& other) {
            others = others * 10 + underlying(other.what);
        }
    };
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x00), psb, bytes(0x16, 0x05), psb, bytes(0x16, 0x05)));
        visitor seen;
        auto const why = reader{byte_view{in}}.for_each<packet::tnt_short, item>(seen);
        // synced, damage, resynced, damage, lost, end
        return why == item_type::end && seen.packets == 2 && seen.others == 234357;
    });
}

TEST_CASE("scan counts packets and bytes by kind, and reports packet boundaries") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x16, 0x2D, 0x00, 0x10, 0x0B, 0x0F, 0x02, 0x05), psb,
                                   bytes(0x00, 0x00, 0x19)));
        auto const sum = reader{byte_view{in}}.scan();
        uint64_t lengths = 0;
        uint64_t kinds_seen = 0;
        reader again{byte_view{in}};
        auto const same_sum = again.scan({}, [&](kind which, uint64_t offset, unsigned length) {
            lengths += length;
            kinds_seen = kinds_seen * 32 + underlying(which) + offset;
        });
        return sum.of(kind::psb) == 2 && sum.bytes[underlying(kind::psb)] == 32 &&
               sum.of(kind::tnt_short) == 1 && sum.of(kind::tip) == 1 &&
               sum.bytes[underlying(kind::tip)] == 3 && sum.of(kind::cyc) == 2 &&
               sum.bytes[underlying(kind::cyc)] == 3 && sum.of(kind::pad) == 2 &&
               sum.total() == 8 && sum.errors == 2 && sum.resyncs == 1 && same_sum == sum &&
               lengths == 41 && kinds_seen != 0;
    });
}

TEST_CASE("sync_first, sync_next and sync_previous move to PSBs (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(bytes(0x00), psb, bytes(0x16), psb, bytes(0x16), psb));
        reader r{byte_view{in}, from_the_start};
        bool ok = r.sync_next() && r.offset() == 1 && r.sync_next() && r.offset() == 18;
        ok = ok && is_packet<packet::psb>(r.next(), 18, 16) && r.offset() == 34;
        ok = ok && r.sync_next() && r.offset() == 35 && !r.sync_next() && r.offset() == 35;
        ok = ok && r.sync_previous() && r.offset() == 18 && r.sync_previous() && r.offset() == 1;
        ok = ok && !r.sync_previous() && r.offset() == 1;
        ok = ok && is_packet<packet::psb>(r.next(), 1, 16) && r.sync_previous() && r.offset() == 1;
        ok = ok && r.sync_next() && r.sync_next() && r.sync_first() && r.offset() == 1;
        ok = ok && is_packet<packet::psb>(r.next(), 1, 16);
        return ok && is_packet<packet::tnt_short>(r.next(), 17, 1) && r.sync_next() &&
               r.offset() == 35;
    });
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x16, 0x06));
        reader r{byte_view{in}, from_the_start};
        return !r.sync_first() && !r.sync_next() && !r.sync_previous() &&
               is_packet<packet::tnt_short>(r.next(), 0, 1);
    });
}

TEST_CASE("a reader whose packet straddles is before every PSB of the chunk (PKT-250)") {
    CHECK_TWICE([](auto value) {
        auto const one = value(bytes(0x16, 0x19, 0x00));
        auto const two = value(join(psb, bytes(0x00)));
        reader r{from_the_start};
        bool ok = r.feed(one) && is_packet<packet::tnt_short>(r.next(), 0, 1);
        ok = ok && is(r.next(), item_type::need_input, 1) && r.feed(two);
        ok = ok && !r.sync_previous() && r.offset() == 1;
        return ok && r.sync_next() && r.offset() == 3 && is_packet<packet::psb>(r.next(), 3, 16);
    });
}

TEST_CASE("after damage a PSB is resynced, also when sync_first found the first one (PKT-254)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x05), psb));
        reader r{byte_view{in}};
        return r.sync_first() && is_packet<packet::psb>(r.next(), 0, 16) &&
               is(r.next(), item_type::damage, 16) && is(r.next(), item_type::resynced, 17);
    });
}

TEST_CASE("an item or event that is no packet has none, not a PAD") {
    CHECK_TWICE([](auto value) {
        // The first PSB, damage, the next PSB, lost bytes, the end.
        auto const in = value(join(bytes(0x06), psb, bytes(0x05), psb, bytes(0x05, 0x00)));
        reader r{byte_view{in}};
        unsigned items = 0;
        for (bool goes_on = true; goes_on; ++items) {
            auto const one = r.next();
            auto const which = one.packet.kind();
            auto const expected = one.what == item_type::packet ? kind::psb : kind::none;
            if (which != expected || packet::name_of(kind::none) != "no packet") { return false; }
            goes_on = bool{one};
        }
        return items == 8;
    });
}

TEST_CASE("an item that is no packet has the unchanged last IP (PKT-060,252)") {
    struct visitor {
        uint64_t ips = 0;
        constexpr void operator()(packet::tip const&, trace::packet_place) {}
        constexpr void operator()(item const& other) { ips += other.ip; }
    };
    CHECK_TWICE([](auto value) {
        auto const in = value(
            join(bytes(0x4D, 0x67, 0x45, 0x23, 0x01, 0x05), psb, bytes(0x2D, 0x11, 0x22)));
        reader r{byte_view{in}, from_the_start};
        bool const before = r.next().ip == 0x0123'4567 && r.next().ip == 0x0123'4567 &&
                            r.next().ip == 0x0123'4567;
        bool const after = r.next().ip == 0 && r.next().ip == 0x2211 && r.next().ip == 0x2211;
        visitor seen;
        (void)reader{byte_view{in}, from_the_start}.for_each<packet::tip, item>(seen);
        return before && after && seen.ips == 2 * uint64_t{0x0123'4567} + 0x2211;
    });
}

TEST_CASE("for_each and next share the last IP and the block across chunks (PKT-059,205)") {
    CHECK_TWICE([](auto value) {
        auto const one = value(bytes(0x4D, 0x78, 0x56, 0x34, 0x12, 0x02, 0x63, 0x84));
        auto const two = value(bytes(0x0C, 1, 2, 3, 4, 0x3D, 0x11, 0x22));
        auto const ignore = [](auto const&, trace::packet_place) {};
        reader r{from_the_start};
        bool ok = r.feed(one) && r.for_each<packet::all>(ignore) == item_type::need_input;
        ok = ok && r.last_ip() == 0x1234'5678 && r.block() == packet::block::items_of_4;
        ok = ok && r.feed(two) && is_packet<packet::bip>(r.next(), 8, 5);
        return ok && r.next().ip == 0x1234'2211;
    });
}

TEST_CASE("a short chunk after a long one is not read past its end (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const all_long = value(byte_array<64>{});
        auto const tip = value(join(bytes(0x4D, 0x78, 0x56, 0x34, 0x12), byte_array<64>{}));
        reader r{from_the_start};
        bool ok = r.feed(all_long) && r.for_each<packet::all>([](auto const&, trace::packet_place) {
        }) == item_type::need_input;
        ok = ok && r.feed(byte_view{tip}.first(1)) && is(r.next(), item_type::need_input, 64);
        return ok && r.feed(byte_view{tip}.from(1)) && is_packet<packet::tip>(r.next(), 64, 5);
    });
}

TEST_CASE("a search that needs the next chunk asks for at least one byte (PKT-255)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(bytes(0x00, 0x02));
        reader r{};
        bool const fed = r.feed(in);
        auto const more = r.next();
        return fed && is(more, item_type::need_input, 2) && more.need == 1;
    });
}

TEST_CASE(
    "sync_previous clears the last IP and the block, also at the end of the trace (PKT-252)") {
    CHECK_TWICE([](auto value) {
        auto const in = value(join(psb, bytes(0x2D, 0x00, 0x10, 0x02, 0x63, 0x84)));
        reader r{byte_view{in}};
        while (r.next()) {}
        bool const open = r.block() == packet::block::items_of_4 && r.last_ip() == 0x1000;
        return open && r.sync_previous() && is_packet<packet::psb>(r.next(), 0, 16) &&
               r.block() == packet::block::none && r.last_ip() == 0 && r.next().ip == 0x1000;
    });
}

TEST_CASE("a copy of a reader continues independently (PKT-255)") {
    auto const in = test::random_stream(7, 500);
    reader r{from_the_start};
    byte_view const view{in};
    for (std::size_t at = 0; at < in.size(); at += 3) {
        REQUIRE(r.feed(view.from(at).first(3)));
        while (r.next()) {}
        auto copy = r;
        REQUIRE(copy.feed(view.from(at + 3)));
        copy.finish();
        auto original = r;
        REQUIRE(original.feed(view.from(at + 3)));
        original.finish();
        REQUIRE(same(items_of(copy), items_of(original)));
    }
}

TEST_CASE("chunks of any size give the items of the whole, also with damage and pattern runs "
          "(PKT-250..252)") {
    std::size_t items_seen = 0;
    for (std::uint32_t seed = 0; seed < 150; ++seed) {
        auto const in = test::random_stream(seed, 100 + seed % 400);
        for (bool const sync : {true, false}) {
            trace::reader_options const how{.sync = sync, .strict = seed % 2 == 0};
            auto const whole = items_of(reader{byte_view{in}, how});
            items_seen += whole.size();
            for (std::size_t const size : {1U, 2U, 3U, 5U, 7U, 15U, 16U, 17U, 33U, 64U}) {
                REQUIRE(same(items_in_chunks(in, size, how), whole));
            }
        }
    }
    CHECK(items_seen > 5000);
}

TEST_CASE(
    "next, for_each and scan give the same packets, and items cover every byte (PKT-005,254)") {
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        auto const in = test::random_stream(seed, 100 + seed % 900);
        trace::reader_options const how{.sync = seed % 3 == 0, .strict = seed % 2 == 0};
        auto const pulled = items_of(reader{byte_view{in}, how});
        std::vector<item> visited;
        (void)reader{byte_view{in}, how}.for_each(collector{visited});
        REQUIRE(same(pulled, visited));

        trace::packet_counts sum;
        int64_t accounted = 0;
        for (auto const& one : pulled) {
            if (one.what == item_type::packet) {
                sum.add(one.packet.kind(), one.length);
                accounted += one.length;
            } else {
                sum.add(one);
                accounted += one.skipped;
            }
        }
        REQUIRE(accounted == static_cast<int64_t>(in.size()));
        REQUIRE(reader{byte_view{in}, how}.scan() == sum);
    }
}

TEST_CASE("CFE and EVD of unknown types decode as packets (GEN-307)") {
    // CFE of type 1FH with IP and its FUP, EVD of type 3FH
    constexpr std::uint8_t bytes[] = {0x02, 0x13, 0x9F, 0x00, 0x3D, 0x34, 0x12, 0x02, 0x53, 0x3F,
                                      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x99, 0x01};
    trace::reader from{byte_view{bytes}, {.sync = false}};
    std::size_t count = 0;
    for (auto it = from.next(); it; it = from.next()) {
        CHECK(it.what == trace::item_type::packet);
        ++count;
    }
    CHECK(count == 4);
}

// The state of a reader between two packets. Packets of long chunks take the fast path, those of
// chunks below 16 bytes never do: the results must be the same.
namespace {

/// TNT, TIP with 48 bits, CYC, a block of one item, TIP with 16 bits, PADs.
constexpr auto mixed_packets = test::join(
    test::psb, bytes(0x16, 0x6D, 1, 2, 3, 4, 5, 6, 0x07, 0x02, 0x02, 0x63, 0x80, 0x04, 1, 2, 3, 4,
                     0x02, 0x33, 0x2D, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));

/// What a reader reports between two packets.
struct position {
    uint64_t offset;
    uint64_t last_ip;
    packet::block items;

    friend constexpr auto operator==(position const&, position const&) -> bool = default;
};

template <class Reader>
constexpr auto position_of(Reader const& which) -> position {
    return {which.offset(), which.last_ip(), which.block()};
}

/// The next item of a reader that is fed with chunks of `chunk` bytes.
template <class Reader>
constexpr auto next_in_chunks(Reader& in, size_t chunk, test::chunks& rest) -> trace::item {
    auto got = in.next();
    while (got.what == trace::item_type::need_input) {
        if (!rest.feed(in, chunk)) { return {}; }
        got = in.next();
    }
    return got;
}

}  // namespace

TEST_CASE("a new reader is at offset 0, without last IP and block (PKT-060)") {
    CHECK_TWICE([](auto value) {
        reader const whole{byte_view{mixed_packets}, value(trace::reader_options{})};
        reader const chunked{value(trace::reader_options{.sync = false})};
        position const none{0, 0, packet::block::none};
        return position_of(whole) == none && position_of(chunked) == none;
    });
}

TEST_CASE(
    "offset(), last_ip() and block() describe the state after each packet (PKT-059..061,205)") {
    CHECK_TWICE([](auto value) {
        reader in{byte_view{mixed_packets}, value(trace::reader_options{.sync = false})};
        constexpr auto none = packet::block::none;
        position const expected[] = {
            {16, 0, none},
            {17, 0, none},
            {24, 0x0605'0403'0201, none},
            {26, 0x0605'0403'0201, none},
            {29, 0x0605'0403'0201, packet::block::items_of_4},
            {34, 0x0605'0403'0201, packet::block::items_of_4},
            {36, 0x0605'0403'0201, none},
            {39, 0x0605'0403'1234, none},
            {40, 0x0605'0403'1234, none},
        };
        for (auto const& one : expected) {
            if (in.next().what != trace::item_type::packet || position_of(in) != one) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("offset(), last_ip() and block() do not depend on the chunk size (PKT-256)") {
    CHECK_TWICE([](auto value) {
        for (size_t const chunk : {size_t{1}, size_t{7}, size_t{15}, size_t{16}, size_t{40}}) {
            reader whole{byte_view{mixed_packets}, value(trace::reader_options{})};
            reader chunked{value(trace::reader_options{})};
            test::chunks rest{byte_view{mixed_packets}};
            while (true) {
                auto const one = whole.next();
                auto const two = next_in_chunks(chunked, chunk, rest);
                if (one.what != two.what || one.offset != two.offset || one.ip != two.ip ||
                    one.packet != two.packet || position_of(whole) != position_of(chunked)) {
                    return false;
                }
                if (!one) { break; }
            }
        }
        return true;
    });
}

TEST_CASE("after sync_next the next packet is the PSB at offset() (PKT-250)") {
    CHECK_TWICE([](auto value) {
        constexpr auto twice = test::join(mixed_packets, mixed_packets);
        reader in{byte_view{twice}, value(trace::reader_options{})};
        bool const found = in.sync_first() && in.offset() == 0 && in.sync_next() &&
                           in.offset() == mixed_packets.size();
        auto const got = in.next();
        return found && got.packet.template is<packet::psb>() &&
               got.offset == mixed_packets.size() && in.offset() == mixed_packets.size() + 16;
    });
}

TEST_CASE("after a scan in chunks the last IP is 0 (PKT-060)") {
    CHECK_TWICE([](auto value) {
        constexpr auto few = test::bytes(0x6D, 1, 2, 3, 4, 5, 6);  // too short for the fast path
        constexpr auto last = test::bytes(0x2D, 0x34, 0x12);
        reader in{value(trace::reader_options{.sync = false})};
        bool const fed = in.feed(mixed_packets);
        auto const first = in.scan();
        bool const more = in.feed(few);
        auto const sum = in.scan(first);
        bool const most = in.feed(last);
        auto const got = in.next();
        return fed && more && most && sum.of(packet::kind::tip) == 3 &&
               sum.of(packet::kind::bip) == 1 && got.packet.template is<packet::tip>() &&
               got.ip == 0x1234;
    });
}
