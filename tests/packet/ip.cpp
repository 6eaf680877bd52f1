// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/ip.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

namespace {

constexpr uint64_t last = 0xFFFF'FFFF'8123'4567;

/// PKT-051 byte by byte: bytes that are not in the payload come from the last IP or the sign.
constexpr auto reference_ip(unsigned ip_bytes_field, uint64_t payload, uint64_t last_ip)
    -> uint64_t {
    unsigned const sizes[] = {0, 2, 4, 6, 6, 0, 8, 0};
    unsigned const size = sizes[ip_bytes_field];
    uint64_t ip = 0;
    for (unsigned i = 8; i-- != 0;) {
        unsigned byte = static_cast<unsigned>(last_ip >> (8 * i) & 0xFF);
        if (i < size) {
            byte = static_cast<unsigned>(payload >> (8 * i) & 0xFF);
        } else if (ip_bytes_field == 3) {
            byte = payload / 0x8000'0000'0000 % 2 == 1 ? 0xFF : 0;
        }
        ip = ip * 256 + byte;
    }
    return ip;
}

/// The four IP packets.
template <class Check>
constexpr auto for_all_four(Check check) -> bool {
    return check(tip{}) && check(tip_pge{}) && check(tip_pgd{}) && check(fup{});
}

}  // namespace

TEST_CASE("the encodings of IPBytes (PKT-051)") {
    static_assert(underlying(ip_bytes::suppressed) == 0 && underlying(ip_bytes::update_16) == 1 &&
                  underlying(ip_bytes::update_32) == 2 && underlying(ip_bytes::sign_48) == 3 &&
                  underlying(ip_bytes::update_48) == 4 && underlying(ip_bytes::full) == 6);
}

TEST_CASE("a non-canonical IP can be compressed against a non-canonical last IP (PKT-065)") {
    CHECK_TWICE([](auto value) {
        uint64_t const non_canonical = value(uint64_t{0x0001'8000'1234'5678});
        return fup::of(ip_bytes::update_16, 0xABCD).ip(non_canonical) == 0x0001'8000'1234'ABCD &&
               fup::of(ip_bytes::update_32, 0xABCD).ip(non_canonical) == 0x0001'8000'0000'ABCD &&
               fup::of(ip_bytes::update_48, 0xABCD).ip(non_canonical) == 0x0001'0000'0000'ABCD &&
               shortest_form(non_canonical, 0) == ip_bytes::full &&
               shortest_form(non_canonical, 0xFFFF'FFFF'8123'4567) == ip_bytes::full;
    });
}

TEST_CASE("IPBytes 0 carries no IP and keeps the last IP (PKT-058)") {
    CHECK_TWICE([](auto value) {
        return for_all_four([&]<class Packet>(Packet packet) {
            auto const other = Packet::of(ip_bytes::update_16, 0x1000);
            return !value(packet).has_ip() && value(packet).ip(last) == last &&
                   last_ip_after(value(packet), last) == last && value(other).has_ip() &&
                   rebuilt_ip(value(ip_bytes::suppressed), 0x1234, last) == last;
        });
    });
}

TEST_CASE("ip() without an argument is the IP after a PSB, where the last IP is 0 (PKT-060)") {
    CHECK_TWICE([](auto value) {
        return decode_as<tip>(value(hex("2D 34 12"))).packet.ip() == 0x1234 &&
               decode_as<fup>(value(hex("7D 00 00 00 00 FF FF"))).packet.ip() ==
                   0xFFFF'FFFF'0000'0000 &&
               decode_as<tip>(value(hex("0D"))).packet.ip() == 0;
    });
}

TEST_CASE("rebuilt_ip matches a byte-by-byte model for random values (PKT-051, PKT-053..059)") {
    CHECK_TWICE([](auto value) {
        test::random_numbers random{value(uint64_t{51})};
        bool good = true;
        for (unsigned i = 0; i < 160; ++i) {
            auto const how = i % 8;
            if (how == 5 || how == 7) { continue; }
            uint64_t const payload_bits = how == 6 ? 64 : how == 0 ? 0 : how >= 3 ? 48 : how * 16;
            uint64_t const payload = random() & low_bits(static_cast<unsigned>(payload_bits));
            uint64_t const before = random();
            good = good && rebuilt_ip(static_cast<ip_bytes>(how), payload, before) ==
                               reference_ip(how, payload, before);
        }
        return good;
    });
}

TEST_CASE("payload bits above the form's size do not affect the IP (PKT-051)") {
    CHECK_TWICE([](auto value) {
        auto const ones = value(~uint64_t{0});
        return rebuilt_ip(ip_bytes::update_16, ones, 0) == 0xFFFF &&
               rebuilt_ip(ip_bytes::update_32, ones, 0) == 0xFFFF'FFFF &&
               rebuilt_ip(ip_bytes::update_48, ones, 0) == 0xFFFF'FFFF'FFFF &&
               rebuilt_ip(ip_bytes::sign_48, ones << 48, 0) == 0;
    });
}

TEST_CASE("reserved values of IPBytes keep the last IP (PKT-052)") {
    CHECK_TWICE([](auto value) {
        return rebuilt_ip(static_cast<ip_bytes>(value(5)), 1, last) == last &&
               rebuilt_ip(static_cast<ip_bytes>(value(7)), 1, last) == last;
    });
}

TEST_CASE(
    "the shortest form is the first of 1, 2, 3, 4, 6 that rebuilds the IP (PKT-064, PKT-343)") {
    CHECK_TWICE([](auto value) {
        uint64_t const addresses[] = {0,
                                      1,
                                      0xFFFF,
                                      0x1'0000,
                                      0xFFFF'FFFF,
                                      0x1'0000'0000,
                                      0x7FFF'FFFF'FFFF,
                                      0x8000'0000'0000,
                                      0xFFFF'7FFF'FFFF'FFFF,
                                      0xFFFF'8000'0000'0000,
                                      0xFFFF'FFFF'FFFF'FFFF,
                                      0x0001'0000'0000'0000,
                                      0x0001'0000'0000'0001,
                                      0x0001'0000'0001'0000,
                                      0x0001'8000'0000'0000};
        unsigned const order[] = {1, 2, 3, 4, 6};
        uint64_t const mask[] = {0, 0xFFFF,      0xFFFF'FFFF, 0xFFFF'FFFF'FFFF, 0xFFFF'FFFF'FFFF,
                                 0, ~uint64_t{0}};
        bool good = true;
        for (uint64_t const ip : addresses) {
            for (uint64_t const before : addresses) {
                unsigned first = 0;
                for (unsigned const how : order) {
                    if (first == 0 && reference_ip(how, ip & mask[how], before) == ip) {
                        first = how;
                    }
                }
                auto const packet = tip::compressed(value(ip), before);
                good = good && underlying(shortest_form(value(ip), before)) == first &&
                       underlying(packet.template get<tip::IPBytes>()) == first &&
                       packet.payload() == (ip & mask[first]) && packet.ip(before) == ip;
            }
        }
        return good;
    });
}

TEST_CASE("the caller may choose the form, which drops the IP bits that it does not carry "
          "(PKT-064)") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](ip_bytes how) { return encode(tip::of(how, value(last))); };
        return of(ip_bytes::suppressed) == hex("0D") &&
               of(ip_bytes::update_16) == hex("2D 67 45") &&
               of(ip_bytes::update_32) == hex("4D 67 45 23 81") &&
               of(ip_bytes::sign_48) == hex("6D 67 45 23 81 FF FF") &&
               of(ip_bytes::update_48) == hex("8D 67 45 23 81 FF FF") &&
               of(ip_bytes::full) == hex("CD 67 45 23 81 FF FF FF FF");
    });
}

TEST_CASE("IPBytes 5 and 7 are not encoded (PKT-052)") {
    CHECK_TWICE([](auto value) {
        return for_all_four([&]<class Packet>(Packet) {
            return encode(Packet::of(static_cast<ip_bytes>(value(5)), 0)).broken == rule::PKT_052 &&
                   encode(Packet::of(static_cast<ip_bytes>(value(7)), 0)).broken == rule::PKT_052 &&
                   Packet::of(static_cast<ip_bytes>(value(5)), 0x1234).payload() == 0;
        });
    });
}

TEST_CASE("an IP payload longer than IPBytes says is not encoded (PKT-340, PKT-343)") {
    CHECK_TWICE([](auto value) {
        unsigned const sizes[] = {0, 2, 4, 6, 6, 0, 8};
        bool good = true;
        for (unsigned how = 0; how < 5; ++how) {
            auto const form = tip{}.with(tip::IPBytes{static_cast<ip_bytes>(value(how))});
            uint64_t const too_much = uint64_t{1} << (8 * sizes[how]);
            good = good && encode(form.with_payload(too_much)).broken == rule::PKT_340 &&
                   encode(form.with_payload(too_much - 1)).length == 1 + sizes[how];
        }
        return good;
    });
}
