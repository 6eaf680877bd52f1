// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/write/writer.hpp>

#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <random>

using namespace ptspec;
using test::bytes;
using test::join;
using trace::ip_choice;
using trace::psb_status;
using trace::writer;
using trace::writer_options;

namespace {

constexpr unsigned all_thresholds = 16;

/// The bytes that `body` writes, and whether every call succeeded.
struct outcome {
    byte_array<512> room{};
    size_t size = 0;
    bool right = true;

    template <class Bytes>
    [[nodiscard]] constexpr auto is(Bytes const& wanted) const -> bool {
        return right && byte_view{room}.first(size) == byte_view{wanted};
    }
};

/// A writer whose calls are expected to succeed.
template <class Sink>
struct checked_writer {
    writer<Sink> of;
    bool right = true;

    constexpr void branches(char const* letters) {
        for (; *letters != 0; ++letters) { note(of.branch(*letters == 'T')); }
    }
    constexpr void indirect(uint64_t ip) { note(of.indirect(ip)); }
    template <class Packet>
    constexpr void ip(uint64_t where) {
        note(of.template put_ip<Packet>(where));
    }
    template <class Packet>
    constexpr void put(Packet const& which) {
        note(of.put(which));
    }
    constexpr void note(rule broken) { right = right && broken == rule::none; }
};

template <class Body>
constexpr auto written(writer_options how, Body const& body) -> outcome {
    outcome got;
    byte_buffer out{got.room.bytes};
    checked_writer<byte_buffer> to{writer{out, how}};
    body(to);
    got.right = to.right;
    got.size = out.size();
    return got;
}

/// The result and the visible state of a writer after `put`.
struct result {
    rule broken;
    byte_array<64> room;
    size_t size;
    uint64_t last_ip;
    bool has_last_ip;
    packet::block items;
    uint64_t bytes;
    packet::branches tnt;

    friend constexpr auto operator==(result const&, result const&) -> bool = default;
};

/// Writes a packet after a few others, as `any_packet` or as its own type.
template <bool AsItsType>
constexpr auto put_after(packet::any_packet const& which, unsigned history, size_t room) -> result {
    result out{};
    byte_buffer to{out.room.bytes, room};
    writer_options const how{.pads = history % 8 == 5 ? trace::pad_policy::within_words
                                                      : trace::pad_policy::none,
                             .cyc = history % 8 == 6};
    writer of{to, how};
    if (history % 2 != 0) { (void)of.put(packet::tip::of(packet::ip_bytes::full, ~uint64_t{7})); }
    if (history % 8 == 3) { (void)of.branch(true); }
    if (history % 8 == 4) { (void)of.put(packet::bbp{}); }
    of.advance(history);
    if constexpr (AsItsType) {
        out.broken = packet::visit([&](auto const& one) { return of.put(one); }, which);
    } else {
        out.broken = of.put(which);
    }
    auto const& now = of.state();
    out.size = to.size();
    out.last_ip = now.last_ip;
    out.has_last_ip = now.has_last_ip;
    out.items = now.items;
    out.bytes = now.bytes;
    out.tnt = now.tnt;
    for (size_t i = to.size(); i < 64; ++i) { out.room.bytes[i] = 0; }  // unspecified contents
    return out;
}

/// True when both ways give the same result.
constexpr auto same_either_way(packet::any_packet const& which, unsigned history, size_t room)
    -> bool {
    return put_after<false>(which, history, room) == put_after<true>(which, history, room);
}

/// Makes random packets: any bits, and any length.
struct packet_maker {
    std::mt19937_64 random{3};

    template <class Packet>
    auto make() -> packet::any_packet {
        wide_bits bits = to_wide(Packet{}.raw);
        auto const with = [&](wide_bits some) {
            bits = {bits.low ^ some.low, bits.high ^ some.high};
        };
        wide_bits const noise{random(), random()};
        wide_bits const free = ~to_wide(packet::fixed_mask<Packet>);
        wide_bits const allowed = free & ~to_wide(Packet::reserved_mask());
        unsigned const how = static_cast<unsigned>(random() % 8);
        with(noise & (how == 0 || (how == 3 && random() % 2 == 0) ? ~wide_bits{}
                      : how == 1                                  ? free
                                                                  : allowed));
        auto const raw = from_wide<typename Packet::raw_type>(bits);
        unsigned length = Packet::length_of(raw, packet::block::none) % 17;
        if (how != 2) { bits = first_bytes(bits, length); }
        if (how == 3) { length = static_cast<unsigned>(random() % 17); }
        return packet::any_packet{Packet::about.id, bits, length};
    }
};

constexpr packet::mtc mtc_5 = packet::mtc{}.with(packet::mtc::CTC{5});

}  // namespace

TEST_CASE("a short TNT is written at six branches, the oldest on top (GEN-120,121,PKT-031,032)") {
    CHECK_TWICE([](auto value) {
        return written({}, [&](auto& to) { to.branches("TNNTN"); }).is(byte_view{}) &&
               // The stop bit, then T N N T N T from bit 6 down.
               written({},
                       [&](auto& to) {
                           to.branches("TNNT");
                           to.note(to.of.branch(value(false)));
                           to.note(to.of.branch(value(true)));
                       })
                   .is(bytes(0xCA)) &&
               written({}, [](auto& to) { to.branches("TTTTTTNNNNNNT"); }).is(bytes(0xFE, 0x80));
    });
}

TEST_CASE("a long TNT has up to 47 branches; up to six are a short TNT (GEN-120,122,PKT-034,035)") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.tnt_capacity = value(uint8_t{47})};
        constexpr auto forty_six = "TNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN";
        return written(how, [&](auto& to) { to.branches(forty_six); }).is(byte_view{}) &&
               written(how,
                       [&](auto& to) {
                           to.branches(forty_six);
                           to.branches("TTN");
                           to.note(to.of.flush());
                       })
                   .is(bytes(0x02, 0xA3, 0x01, 0, 0, 0, 0, 0xC0, 0x0C)) &&
               written(how,
                       [&](auto& to) {
                           to.branches("NNNNNNT");
                           to.note(to.of.flush());
                       })
                   .is(bytes(0x02, 0xA3, 0x81, 0, 0, 0, 0, 0)) &&
               written(how, [&](auto& to) {
                   to.branches("NNNNNT");
                   to.note(to.of.flush());
               }).is(bytes(0x82));
    });
}

TEST_CASE(
    "any packet flushes the TNT buffer first, and an empty TNT is never written (GEN-122,123)") {
    CHECK_TWICE([](auto value) {
        return written({},
                       [&](auto& to) {
                           to.branches("T");
                           to.put(value(mtc_5));
                           to.put(mtc_5);
                           to.note(to.of.flush());
                           to.branches("N");
                           to.put(packet::any_packet{packet::ovf{}});
                           to.branches("TT");
                           to.template ip<packet::tip>(0x1234);
                           to.branches("NN");
                           to.indirect(0x1235);
                           to.branches("NT");
                           to.put(psb_status{});
                           to.note(to.of.flush());
                       })
            .is(join(bytes(0x06, 0x59, 0x05, 0x59, 0x05, 0x04, 0x02, 0xF3),
                     bytes(0x0E, 0x6D, 0x34, 0x12, 0, 0, 0, 0), bytes(0x08, 0x2D, 0x35, 0x12, 0x0A),
                     test::psb, bytes(0x02, 0x23)));
    });
}

TEST_CASE("the first IP after a PSB or OVF does not use the last IP, others are compressed "
          "(GEN-174,229,PKT-064)") {
    CHECK_TWICE([](auto value) {
        return written({},
                       [&](auto& to) {
                           to.template ip<packet::fup>(value(uint64_t{0x1234}));
                           to.template ip<packet::tip>(0x5678);
                           to.template ip<packet::tip>(0x12345678);
                           to.template ip<packet::tip_pgd>(0xFFFF'8000'1234'5678);
                           to.put(packet::psb{});
                           to.template ip<packet::tip_pge>(0x0001'0000'0000'0000);
                           to.template ip<packet::tip>(0x0001'1234'0000'0000);
                           to.put(packet::tip{});  // suppressed: carries no IP
                           to.put(packet::ovf{});
                           to.put(packet::tip{});
                           to.template ip<packet::fup>(0x0000'1234'0000'0004);
                           to.put(packet::tip::of(packet::ip_bytes::update_16, 8));
                           to.template ip<packet::fup>(0x0000'1234'0000'0008);
                       })
            .is(join(bytes(0x7D, 0x34, 0x12, 0, 0, 0, 0), bytes(0x2D, 0x78, 0x56),
                     bytes(0x4D, 0x78, 0x56, 0x34, 0x12),
                     bytes(0x61, 0x78, 0x56, 0x34, 0x12, 0x00, 0x80), test::psb,
                     bytes(0xD1, 0, 0, 0, 0, 0, 0, 1, 0), bytes(0x8D, 0, 0, 0, 0, 0x34, 0x12),
                     bytes(0x0D, 0x02, 0xF3, 0x0D), bytes(0x7D, 4, 0, 0, 0, 0x34, 0x12),
                     bytes(0x2D, 8, 0), bytes(0x3D, 8, 0)));
    });
}

TEST_CASE("with ip_choice::shortest every IP has its shortest form (PKT-060..062,064)") {
    CHECK_TWICE([](auto value) {
        return written({.ips = value(ip_choice::shortest)},
                       [](auto& to) {
                           to.template ip<packet::fup>(0x1234);
                           to.put(packet::ovf{});
                           to.template ip<packet::fup>(0x5678);
                           to.put(packet::psb{});
                           to.template ip<packet::fup>(0x12345678);
                       })
            .is(join(bytes(0x3D, 0x34, 0x12, 0x02, 0xF3, 0x3D, 0x78, 0x56), test::psb,
                     bytes(0x5D, 0x78, 0x56, 0x34, 0x12)));
    });
}

TEST_CASE("a PSB+ has its status packets in a fixed order (PKT-134,135,GEN-170,171)") {
    CHECK_TWICE([](auto value) {
        psb_status all;
        all.fup = value(uint64_t{0x401000});
        all.mode_exec = packet::mode_exec{}.with(packet::mode_exec::CS_L{true});
        all.mode_tsx = packet::mode_tsx{}.with(packet::mode_tsx::InTX{true});
        all.vmcs = packet::vmcs{};
        all.pip = packet::pip{};
        all.cbr = packet::cbr{}.with(packet::cbr::CoreBusRatio{24});
        all.tma = packet::tma{};
        all.tsc = packet::tsc{};
        psb_status const some{.cbr = packet::cbr{}};
        return written({}, [&](auto& to) { to.put(all); })
                   .is(join(test::psb, bytes(0x19, 0, 0, 0, 0, 0, 0, 0),
                            bytes(0x02, 0x73, 0, 0, 0, 0, 0), bytes(0x02, 0x03, 24, 0),
                            bytes(0x02, 0x43, 0, 0, 0, 0, 0, 0), bytes(0x02, 0xC8, 0, 0, 0, 0, 0),
                            bytes(0x99, 0x21), bytes(0x99, 0x01),
                            bytes(0x7D, 0x00, 0x10, 0x40, 0, 0, 0), bytes(0x02, 0x23))) &&
               written({}, [&](auto& to) {
                   to.put(some);
               }).is(join(test::psb, bytes(0x02, 0x03, 0, 0), bytes(0x02, 0x23)));
    });
    CHECK_TWICE([](auto value) {  // a TMA without TSC
        outcome got;
        byte_buffer out{got.room.bytes};
        writer to{out};
        (void)to.branch(true);
        bool const refused = to.put(psb_status{.tma = value(packet::tma{})}) == rule::PKT_135;
        return refused && out.size() == 0 && to.state().tnt == packet::branches{1, 1};
    });
}

TEST_CASE("TIPs are deferred until after the current TNT (PKT-275,GEN-145,147)") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.defers_tips = value(true)};
        return written(how,
                       [](auto& to) {
                           to.indirect(0x1000);  // the TNT buffer is empty
                           to.branches("TN");
                           to.indirect(0x2000);
                           to.branches("T");
                           to.indirect(0x1'0000'0000);
                           to.branches("TTN");
                       })
                   .is(join(bytes(0x6D, 0x00, 0x10, 0, 0, 0, 0), bytes(0xDC, 0x2D, 0x00, 0x20),
                            bytes(0x6D, 0, 0, 0, 0, 1, 0))) &&
               // An uncompressed return is not deferred; deferred TIPs precede it (GEN-146).
               written(how,
                       [](auto& to) {
                           to.branches("T");
                           to.indirect(0x1000);
                           to.indirect(0x2000);
                           to.template ip<packet::tip>(0x3000);
                       })
                   .is(join(bytes(0x06, 0x6D, 0x00, 0x10, 0, 0, 0, 0),
                            bytes(0x2D, 0x00, 0x20, 0x2D, 0x00, 0x30))) &&
               written({}, [](auto& to) {
                   to.branches("T");
                   to.indirect(0x1000);
               }).is(bytes(0x06, 0x6D, 0x00, 0x10, 0, 0, 0, 0));
    });
    CHECK_TWICE([](auto value) {  // at most eight are deferred
        auto const got = written({.defers_tips = true}, [&](auto& to) {
            to.template ip<packet::tip>(value(uint64_t{0x1000}));
            to.branches("N");
            for (uint64_t i = 0; i < 8; ++i) { to.indirect(0x1100 + i); }
            to.right = to.right && to.of.state().bytes == 7;
            to.indirect(0x1108);
        });
        bool right = got.right && got.size == 7 + 1 + 9 * 3 && got.room[7] == 0x04;
        for (unsigned i = 0; i < 9; ++i) {
            right = right && got.room[8 + 3 * i] == 0x2D && got.room[9 + 3 * i] == i &&
                    got.room[10 + 3 * i] == 0x11;
        }
        return right;
    });
}

TEST_CASE("a CYC precedes the first CYC-eligible packet of a cycle (GEN-211,213,214,215)") {
    CHECK_TWICE([](auto value) {
        return written({.cyc = value(true)},
                       [](auto& to) {
                           to.put(mtc_5);  // no cycle has passed
                           to.of.advance(3);
                           to.template ip<packet::fup>(0);  // not CYC-eligible
                           to.put(mtc_5);
                           to.put(mtc_5);  // the same cycle
                           to.of.advance(30);
                           to.of.advance(2);
                           to.put(packet::ovf{});
                       })
                   .is(join(bytes(0x59, 0x05), bytes(0x7D, 0, 0, 0, 0, 0, 0),
                            bytes(0x1B, 0x59, 0x05, 0x59, 0x05, 0x07, 0x02, 0x02, 0xF3))) &&
               written({}, [](auto& to) {
                   to.of.advance(3);
                   to.put(mtc_5);
               }).is(bytes(0x59, 0x05));
    });
}

TEST_CASE("the CYC of a TNT times its first branch (GEN-216,219)") {
    CHECK_TWICE([](auto value) {
        return written({.cyc = value(true)},
                       [](auto& to) {
                           to.of.advance(2);
                           to.branches("T");
                           to.of.advance(4);
                           to.branches("N");
                           to.of.advance(5);
                           to.put(mtc_5);
                       })
                   .is(bytes(0x13, 0x0C, 0x4B, 0x59, 0x05)) &&
               written({.cyc = true, .cyc_threshold = 0}, [](auto& to) {
                   to.of.advance(2);
                   to.put(mtc_5);
                   to.branches("T");  // in the same cycle
                   to.note(to.of.flush());
               }).is(bytes(0x13, 0x59, 0x05, 0x06));
    });
    CHECK_TWICE([](auto value) {  // a TIP with a CYC is not deferred
        return written({.defers_tips = true, .cyc = value(true)},
                       [](auto& to) {
                           to.branches("T");
                           to.indirect(0x1000);
                           to.of.advance(1);
                           to.indirect(0x1001);
                       })
            .is(bytes(0x06, 0x6D, 0x00, 0x10, 0, 0, 0, 0, 0x0B, 0x2D, 0x01, 0x10));
    });
}

TEST_CASE("below the threshold a packet has no CYC, and the cycle count continues (GEN-212)") {
    CHECK_TWICE([](auto value) {
        for (unsigned thresh = 0; thresh < all_thresholds; ++thresh) {
            writer_options const how{.cyc = true, .cyc_threshold = value(uint8_t(thresh))};
            uint64_t const least = thresh == 0 ? 1 : uint64_t{1} << (thresh - 1);
            auto const got = written(how, [&](auto& to) {
                to.of.advance(least - 1);
                to.put(mtc_5);
                to.of.advance(1);
                to.put(mtc_5);
                to.put(mtc_5);
            });
            auto const cyc = packet::encode(packet::cyc::of(least));
            bool const right = got.right && got.size == 6 + cyc.length && got.room[1] == 5 &&
                               got.room[2] == cyc.bytes[0] && got.room[2 + cyc.length] == 0x59;
            if (!right) { return false; }
        }
        return true;
    });
    CHECK_TWICE([](auto value) {  // the largest threshold of a byte
        writer_options const how{.cyc = true, .cyc_threshold = value(uint8_t{255})};
        return written(how,
                       [](auto& to) {
                           to.of.advance(~uint64_t{0} >> 1);
                           to.put(mtc_5);
                           to.of.advance(1);
                           to.put(mtc_5);
                       })
            .is(bytes(0x59, 5, 0x07, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x08, 0x59,
                      5));
    });
}

TEST_CASE("PADs keep packets from crossing a multiple of 8 bytes (PKT-166)") {
    CHECK_TWICE([](auto value) {
        return written({.pads = value(trace::pad_policy::within_words), .cyc = true},
                       [](auto& to) {
                           to.template ip<packet::tip>(1);  // 0 to 6
                           to.put(packet::tip{});           // 7
                           to.put(packet::cbr{});           // 8 to 11
                           to.put(packet::cbr{});           // 12 to 15
                           to.put(packet::cbr{});           // 16 to 19
                           to.of.advance(1);
                           to.put(packet::tip::of(packet::ip_bytes::update_32, 2));  // after a CYC
                           to.branches("T");
                           to.put(packet::psb{});
                           to.put(packet::pad{});
                       })
            .is(join(bytes(0x6D, 1, 0, 0, 0, 0, 0, 0x0D), bytes(0x02, 0x03, 0, 0, 0x02, 0x03, 0, 0),
                     bytes(0x02, 0x03, 0, 0, 0, 0, 0, 0), bytes(0x0B, 0x4D, 2, 0, 0, 0, 0x06, 0),
                     test::psb, bytes(0)));
    });
    CHECK_TWICE([](auto value) {
        return written({.pads = value(trace::pad_policy::within_words)},
                       [](auto& to) {
                           to.template ip<packet::tip>(1);             // 0 to 6
                           to.put(packet::cbr{});                      // after a PAD: 8 to 11
                           to.put(packet::any_packet{packet::tsc{}});  // after four: 16 to 23
                       })
            .is(bytes(0x6D, 1, 0, 0, 0, 0, 0, 0, 0x02, 0x03, 0, 0, 0, 0, 0, 0, 0x19, 0, 0, 0, 0, 0,
                      0, 0));
    });
}

TEST_CASE("a packet that a reader would reject is refused, and the state is unchanged "
          "(PKT-015,340,344,346)") {
    CHECK_TWICE([](auto value) {
        outcome got;
        byte_buffer out{got.room.bytes};
        writer to{out};
        bool const empty = to.put(value(packet::tnt_short{})) == rule::PKT_033 &&
                           to.put(packet::bip{}) == rule::PKT_344 &&
                           to.put(packet::any_packet{}) == rule::PKT_015 && out.size() == 0;
        (void)to.branch(true);
        bool const gathering = to.put(value(packet::tnt_short{})) == rule::PKT_033 &&
                               to.put(packet::any_packet{packet::bip{}, 5}) == rule::PKT_344 &&
                               to.put(packet::any_packet{}) == rule::PKT_015 && out.size() == 0 &&
                               to.state().tnt == packet::branches{1, 1};
        return empty && gathering && to.flush() == rule::none && out.written() == bytes(0x06);
    });
}

TEST_CASE("inside a block of BIPs branches are written as a long TNT (PKT-203,344)") {
    CHECK_TWICE([](auto value) {
        return written({},
                       [&](auto& to) {
                           to.put(packet::bbp{});
                           to.branches("N");
                           to.note(to.of.branch(value(false)));
                           to.note(to.of.flush());
                           to.branches("N");
                           to.note(to.of.flush());
                       })
            .is(bytes(0x02, 0x63, 0x00, 0x02, 0xA3, 0x04, 0, 0, 0, 0, 0, 0x04));
    });
}

TEST_CASE("a call that does not fit into the sink writes nothing and changes nothing (PKT-347)") {
    CHECK_TWICE([](auto value) {
        byte_array<64> room{};
        bool right = true;
        for (size_t size = 0; size <= 31; ++size) {
            byte_buffer few{room.bytes, value(size)};
            writer to{few, {.cyc = true}};
            (void)to.branch(true);
            to.advance(7);
            auto const got = to.put(psb_status{.tsc = packet::tsc{}, .fup = 0x1000});
            bool const fits = size >= 1 + 16 + 1 + 8 + 7 + 2;
            right = right && got == (fits ? rule::none : rule::PKT_347) && !fits &&
                    few.size() == 0 && to.state().cycles == 7 &&
                    to.state().tnt == packet::branches{1, 1} && to.state().bytes == 0;
            // Smaller packets are written if there is room.
            right = right && to.flush() == (size >= 1 ? rule::none : rule::PKT_347) &&
                    to.put(packet::cbr{}) == (size >= 5 ? rule::none : rule::PKT_347) &&
                    few.size() == (size >= 5   ? 5
                                   : size >= 1 ? 1
                                               : 0);
        }
        return right;
    });
}

TEST_CASE("a sink with append(byte_view) only gets the same bytes as a byte_buffer (PKT-347)") {
    struct own_sink {
        byte_buffer to;
        constexpr auto append(byte_view bytes) -> bool { return to.append(bytes); }
    };
    CHECK_TWICE([](auto value) {
        packet::any_packet const packets[] = {
            packet::tip_pgd{}, packet::pad{}, value(packet::any_packet{packet::tnt_short{6}}),
            packet::cbr{},     packet::pad{}, packet::psb{}};
        byte_array<64> one{};
        byte_array<64> two{};
        byte_buffer plain{one.bytes};
        own_sink own{byte_buffer{two.bytes}};
        writer to{plain};
        writer to_own{own};
        for (auto const& which : packets) {
            if (to.put(which) != rule::none || to_own.put(which) != rule::none) { return false; }
        }
        return plain.size() == 1 + 1 + 1 + 4 + 1 + 16 && one == two &&
               own.to.size() == plain.size();
    });
}

TEST_CASE("put of many packets stops at a broken rule and returns the count (PKT-340,347)") {
    struct own_sink {
        byte_buffer to;
        constexpr auto append(byte_view bytes) -> bool { return to.append(bytes); }
    };
    CHECK_TWICE([](auto value) {
        using packet::any_packet;
        any_packet const packets[] = {
            packet::psb{},
            packet::tip::of(packet::ip_bytes::sign_48, value(uint64_t{0x8000'1234'5678})),
            packet::pad{},
            packet::tnt_short{6},
            packet::cyc::of(12345),
            packet::tnt_long{},  // without a branch
            packet::pad{},
        };
        constexpr uint8_t expected[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                        0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x6D, 0x78, 0x56, 0x34,
                                        0x12, 0x00, 0x80, 0x00, 0x06, 0xCF, 0x03, 0x06};
        bool right = true;
        for (size_t room : {size_t{64}, size_t{28}, size_t{27}, size_t{16}, size_t{15}}) {
            byte_array<64> all{};
            byte_buffer out{all.data(), value(room)};
            writer to{out};
            auto const got = to.put(packets, 7);
            bool const fits = room >= sizeof expected;
            size_t const count = fits ? 5 : room >= 25 ? 4 : room >= 16 ? 1 : 0;
            size_t const size = fits ? 28 : room >= 25 ? 25 : room >= 16 ? 16 : 0;
            right = right && got.broken == (fits ? rule::PKT_036 : rule::PKT_347) &&
                    got.count == count && out.size() == size && to.state().bytes == size &&
                    out.written() == byte_view{expected}.first(size) &&
                    to.state().has_last_ip == (count > 1) &&
                    to.state().last_ip == (count > 1 ? 0xFFFF'8000'1234'5678 : 0);
            for (size_t i = room; i < 64; ++i) { right = right && all[i] == 0; }
        }
        byte_array<64> all{};
        own_sink sink{byte_buffer{all.bytes}};
        writer to{sink};
        auto const got = to.put(packets, 7);
        auto const none = to.put(nullptr, 0);
        return right && got.count == 5 && got.broken == rule::PKT_036 && none.count == 0 &&
               none.broken == rule::none && sink.to.written() == byte_view{expected};
    });
}

TEST_CASE("put of many random packets agrees with put of each (PKT-112,275,340..347)") {
    packet_maker maker;
    unsigned long written = 0;
    unsigned long refused = 0;
    for (unsigned round = 0; round < 20000; ++round) {
        constexpr size_t most = 12;
        packet::any_packet packets[most];
        size_t const count = static_cast<size_t>(maker.random() % (most + 1));
        for (size_t i = 0; i < count; ++i) {
            auto const which = static_cast<packet::kind>(maker.random() % packet::kind_count);
            packet::for_kind(
                which, [&]<class Packet>() { packets[i] = maker.template make<Packet>(); },
                packet::all{});
        }
        size_t const room = static_cast<size_t>(maker.random() % 160);
        uint64_t const history = maker.random();
        writer_options const how{.pads = history % 8 == 5 ? trace::pad_policy::within_words
                                                          : trace::pad_policy::none,
                                 .cyc = history % 8 == 6};
        byte_array<160> at_once{};
        byte_array<160> singly{};
        byte_buffer some{at_once.data(), room};
        byte_buffer others{singly.data(), room};
        writer to_some{some, how};
        writer to_others{others, how};
        for (auto* to : {&to_some, &to_others}) {
            if (history % 16 < 8) { (void)to->put(packet::pad{}); }
            if (history % 8 == 3) { (void)to->branch(true); }
            to->advance(history % 5);
        }
        auto const got = to_some.put(packets, count);
        size_t done = 0;
        rule broken = rule::none;
        while (done < count && (broken = to_others.put(packets[done])) == rule::none) { ++done; }
        INFO("round " << round);
        REQUIRE(got.count == done);
        REQUIRE(got.broken == broken);
        REQUIRE(some.written() == others.written());
        auto const& one = to_some.state();
        auto const& two = to_others.state();
        REQUIRE(one.last_ip == two.last_ip);
        REQUIRE(one.has_last_ip == two.has_last_ip);
        REQUIRE(one.items == two.items);
        REQUIRE(one.bytes == two.bytes);
        REQUIRE(one.cycles == two.cycles);
        REQUIRE(one.tnt.count == two.tnt.count);
        written += done;
        refused += broken != rule::none ? 1U : 0U;
    }
    CHECK(written > 40000);
    CHECK(refused > 5000);
}

TEST_CASE("put of an any_packet flushes the TNT buffer first (PKT-275)") {
    CHECK_TWICE([](auto value) {
        byte_array<8> room{};
        byte_buffer bytes{room.bytes};
        writer to{bytes};
        packet::any_packet const pad = value(packet::any_packet{packet::pad{}});
        bool const right = to.put(pad) == rule::none && to.branch(true) == rule::none &&
                           to.put(pad) == rule::none && to.put(pad) == rule::none;
        return right && room == byte_array<8>{{0x00, 0x06, 0x00, 0x00}} && bytes.size() == 4;
    });
}

TEST_CASE("put of an any_packet writes the CYC that is due (PKT-112,113)") {
    CHECK_TWICE([](auto value) {
        byte_array<8> room{};
        byte_buffer to{room.bytes};
        writer out{to, {.cyc = true}};
        packet::any_packet const tip{packet::tip::of(packet::ip_bytes::update_16, 0x1234)};
        bool const right = out.put(packet::any_packet{packet::pad{}}) == rule::none &&
                           out.put(packet::any_packet{packet::pad{}}) == rule::none;
        out.advance(value(uint64_t{7}));
        return right && out.put(tip) == rule::none && to.size() == 6 &&
               room == byte_array<8>{{0x00, 0x00, 0x3B, 0x2D, 0x34, 0x12}};
    });
}

TEST_CASE("put of a random any_packet agrees with put of its type (PKT-340..347)") {
    packet_maker maker;
    unsigned long written = 0;
    unsigned long refused = 0;
    for (unsigned round = 0; round < 4000; ++round) {
        for (uint8_t i = 0; i < packet::kind_count; ++i) {
            packet::any_packet which;
            packet::for_kind(
                static_cast<packet::kind>(i),
                [&]<class Packet>() { which = maker.template make<Packet>(); }, packet::all{});
            size_t const room = round % 16 == 0 ? static_cast<size_t>(maker.random() % 40) : 64;
            unsigned const history = static_cast<unsigned>(maker.random() % 64);
            INFO("kind " << int{i} << " low " << which.raw().low << " high " << which.raw().high
                         << " length " << which.length() << " history " << history);
            REQUIRE(same_either_way(which, history, room));
            (put_after<false>(which, history, room).broken == rule::none ? written : refused) += 1;
        }
    }
    CHECK(written > 60000);
    CHECK(refused > 10000);
}

TEST_CASE(
    "put of an any_packet agrees with put of its type in a constant expression (PKT-340,346)") {
    CHECK_TWICE([](auto value) {
        using packet::any_packet;
        using packet::ip_bytes;
        any_packet const some[] = {
            packet::pad{},
            packet::tnt_short::of({3, 5}),
            packet::tip::of(ip_bytes::sign_48, 0x8000'1234'5678),
            packet::tip::of(ip_bytes::update_16, 0x5678),
            packet::cyc::of(12345),
            packet::psb{},
            packet::ovf{},
            packet::tsc{0x0123'4567'89AB'CD19},
            packet::mode_exec{0x199},
            any_packet{packet::mode_exec{0xFF99}},
            any_packet{packet::bip{}, 5},
            any_packet{packet::bbp{}, 0},
        };
        bool right = true;
        for (any_packet const& one : some) {
            for (unsigned history = 0; history < 8; ++history) {
                right = right && same_either_way(value(one), history, 64);
            }
        }
        return right;
    });
}
