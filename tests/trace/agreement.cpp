// SPDX-License-Identifier: BSL-1.0
// Compares each fast path of reading and writing with the slow path, which uses only
// `packet::decode` and `packet::encode`, on 1 000 000 random packets. Environment:
// PTSPEC_AGREEMENT, the number of packets; PTSPEC_AGREEMENT_FIRST, the seed of the first trace.
#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/write/writer.hpp>

#include <doctest/doctest.h>
#include <support/how_many.hpp>

#include <random>
#include <string>
#include <vector>

using namespace ptspec;

namespace {

/// A packet as `packet::decode` reads it.
struct expected {
    packet::any_packet packet;
    uint64_t offset;
    uint64_t ip;
    packet::block items;  ///< before it

    auto is(packet::any_packet const& which, uint64_t where, uint64_t last_ip) const -> bool {
        return packet == which && offset == where && ip == last_ip;
    }
};

/// Random packets, and what `packet::decode` reads. Depending on the seed, most packets are PAD,
/// TNT, CYC and TIP, as in real traces, or all kinds are equally likely; reserved bits are 0 or
/// random.
struct random_trace {
    std::mt19937_64 random;
    std::vector<uint8_t> bytes{};
    std::vector<expected> packets{};
    bool clean;  ///< reserved bits are 0

    random_trace(uint64_t seed, size_t count) : random{seed}, clean{seed % 2 == 0} {
        bool const even = seed % 4 < 2;
        packet::block items = packet::block::none;
        uint64_t ip = 0;
        while (packets.size() < count) {
            byte_array<16> const draft = to_le(draft_of(pick(even)));
            // The packet is decoded on its own: the bytes after it cannot influence it.
            auto const got = packet::decode(draft, {items, false});
            if (!got) { continue; }
            auto const& one = got.packet;
            ip = packet::last_ip_after(one, ip);
            packets.push_back({one, bytes.size(), ip, items});
            items = packet::block_after(one, items);
            bytes.insert(bytes.end(), draft.data(), draft.data() + one.length());
        }
    }

private:
    auto pick(bool even) -> packet::kind {
        using packet::kind;
        constexpr kind usual[] = {kind::pad,       kind::pad, kind::pad, kind::tnt_short,
                                  kind::tnt_short, kind::cyc, kind::tip, kind::tip};
        bool const any = even || random() % 8 == 0;
        return any ? static_cast<kind>(random() % packet::kind_count) : usual[random() % 8];
    }
    auto draft_of(packet::kind which) -> wide_bits {
        wide_bits bits{};
        packet::for_kind(
            which,
            [&]<class Packet>() {
                wide_bits const fixed = to_wide(packet::fixed_mask<Packet>);
                wide_bits const reserved = to_wide(Packet::reserved_mask());
                wide_bits const noise{random(), random()};
                wide_bits const free = noise & ~fixed & (clean ? ~reserved : ~wide_bits{});
                bits = to_wide(Packet{}.raw) | free;
            },
            packet::all{});
        return bits;
    }
};

/// A visitor that compares packets with the expected ones.
struct comparer {
    std::vector<expected> const& all;
    size_t next = 0;
    bool same = true;

    template <packet::packet_type Packet>
    void operator()(Packet const& which, trace::packet_place where) {
        see(packet::any_packet{which, where.length}, where.offset, where.ip);
    }
    void operator()(trace::item const& other) {
        same = same && other.what == trace::item_type::end;
    }
    void pads(unsigned count, trace::packet_place where) {
        for (unsigned i = 0; i < count; ++i) { see(packet::pad{}, where.offset + i, where.ip); }
    }
    void see(packet::any_packet const& which, uint64_t offset, uint64_t ip) {
        same = same && next < all.size() && all[next].is(which, offset, ip);
        ++next;
    }
    auto saw_all() const -> bool { return same && next == all.size(); }
};

/// The name of the function that disagrees, or null.
auto difference(random_trace const& trace) -> char const* {
    byte_view const bytes{trace.bytes.data(), trace.bytes.size()};
    trace::reader_options const how{.sync = false};

    trace::reader one_by_one{bytes, how};
    comparer by_next{trace.packets};
    auto got = one_by_one.next();
    for (; got.what == trace::item_type::packet; got = one_by_one.next()) {
        by_next.see(got.packet, got.offset, got.ip);
    }
    if (!by_next.saw_all() || got.what != trace::item_type::end) { return "next"; }

    comparer by_visitor{trace.packets};
    trace::reader visited{bytes, how};
    (void)visited.for_each(by_visitor);
    if (!by_visitor.saw_all()) { return "for_each"; }

    trace::packet_counts counts;
    for (auto const& one : trace.packets) { counts.add(one.packet.kind(), one.packet.length()); }
    if (trace::reader{bytes, how}.scan() != counts) { return "scan"; }

    std::vector<uint8_t> wanted;
    std::vector<uint8_t> room(bytes.size() + 16);
    byte_buffer out{room.data(), room.size()};
    trace::writer to{out};
    for (auto const& one : trace.packets) {
        auto const code = packet::encode(one.packet, one.items);
        wanted.insert(wanted.end(), code.data(), code.data() + code.size());
        if (to.put(one.packet) != code.broken) { return "what a writer refuses"; }
    }
    return out.written() == byte_view{wanted} ? nullptr : "writer";
}

}  // namespace

TEST_CASE("every fast path agrees with packet::decode and packet::encode (PKT-010,340)") {
    constexpr size_t at_once = 20'000;
    uint64_t const first = test::number_from("PTSPEC_AGREEMENT_FIRST", 0);
    uint64_t const count = test::number_from("PTSPEC_AGREEMENT", test::usual_count);
    uint64_t seen[packet::kind_count] = {};
    for (uint64_t seed = first; (seed - first) * at_once < count; ++seed) {
        random_trace const trace{seed, at_once};
        for (auto const& one : trace.packets) { ++seen[underlying(one.packet.kind())]; }
        char const* const what = difference(trace);
        INFO("seed " << seed << ": " << std::string{what == nullptr ? "" : what});
        REQUIRE(what == nullptr);
    }
    for (uint8_t i = 0; i < packet::kind_count; ++i) {
        CAPTURE(int{i});
        CHECK(seen[i] > count / 1000);
    }
}
