// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/branch_packets.hpp>

#include <support/check_twice.hpp>
#include <support/dice.hpp>
#include <support/how_many.hpp>
#include <support/reference_decoder.hpp>
#include <support/streams.hpp>

#include <string>
#include <vector>

using namespace ptspec;
using packet::kind;
using test::bytes;

namespace {

/// What `read_branches` finds, by the reference decoder.
struct expected {
    std::size_t at = 0;
    std::string outcomes{};  ///< a letter each
    std::size_t first_tnt = ~std::size_t{0};
    kind what = kind::pad;
    std::uint64_t ip = 0;
    std::size_t length = 0;
    bool has_times = false;
};

/// The IP of a packet with a payload of `size` bytes: IPBytes 1 to 3 and 6 of 2, 4, 6 and 8 bytes,
/// and 4 of 6 bytes without sign. Source: PKT-061, PKT-062, PKT-064.
auto ip_after(std::uint64_t last, unsigned form, std::uint8_t const* payload) -> std::uint64_t {
    unsigned const sizes[] = {0, 2, 4, 6, 6, 0, 8, 0};
    std::uint64_t low = 0;
    for (unsigned i = sizes[form]; i-- > 0;) { low = low << 8 | payload[i]; }
    if (form == 3) { return low >> 47 == 0 ? low : low | 0xFFFFULL << 48; }
    unsigned const bits = 8 * sizes[form];
    return bits == 64 ? low : (last >> bits << bits) | low;
}

/// `outcomes` has those of before; it is empty also where tracing is off.
auto read_by_reference(std::vector<std::uint8_t> const& in, std::size_t end, std::string outcomes,
                       bool is_off, std::uint64_t last_ip) -> expected {
    expected made;
    made.outcomes = std::move(outcomes);
    while (made.at < end) {
        auto const* const here = in.data() + made.at;
        auto const got = reference::decode(here, in.size() - made.at, 0, false, last_ip);
        if (got.error != text{}) { return made; }
        text const name = got.name();
        if (name == "TNT.short" || name == "TNT.long") {
            if (is_off) { return made; }
            std::uint64_t left = 0;
            for (unsigned i = got.length; i-- > (name == "TNT.short" ? 0U : 2U);) {
                left = left << 8 | here[i];
            }
            left >>= name == "TNT.short" ? 1 : 0;
            std::string more;
            for (; left != 1; left >>= 1) { more.insert(0, (left & 1) != 0 ? "T" : "N"); }
            if (made.outcomes.size() + more.size() > 62) {
                made.what = kind::tnt_short;
                return made;
            }
            if (made.outcomes.empty()) { made.first_tnt = made.at; }
            made.outcomes += more;
        } else if (name == "TIP" || name == "TIP.PGE" || name == "TIP.PGD") {
            if (got.length == 1 || (name == "TIP.PGE") != is_off) { return made; }
            made.what = name == "TIP"       ? kind::tip
                        : name == "TIP.PGE" ? kind::tip_pge
                                            : kind::tip_pgd;
            made.ip = ip_after(last_ip, here[0] >> 5, here + 1);
            made.length = got.length;
            return made;
        } else if (name == "CYC" || name == "MTC" || (name == "TSC" && !is_off)) {
            if (name == "CYC" && got.length > 7) { return made; }  // too rare to be read here
            made.has_times = true;
        } else if (name != "PAD") {
            return made;
        }
        made.at += got.length;
    }
    return made;
}

/// Bytes of packets, most of them of the kinds that are read.
auto random_packets(test::dice const& from, bool is_off) -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> made;
    auto const add = [&](unsigned count, std::uint64_t value) {
        for (unsigned i = 0; i < count; ++i) {
            made.push_back(static_cast<std::uint8_t>(i < 8 ? value >> 8 * i : 0));
        }
    };
    auto const any = [&] { return from.roll(~std::uint64_t{0}); };
    bool const has_long = from.chance(30);
    bool const has_times = from.chance(40);
    while (made.size() < 200) {
        switch (from.roll(has_times ? 10 : 6)) {
            case 0: add(static_cast<unsigned>(from.roll(12)), 0); break;
            case 1:
            case 2:
            case 3:
                if (!is_off || from.chance(10)) { add(1, from.roll(126) * 2 + 4); }
                break;
            case 4:
                if (has_long && !is_off) {
                    unsigned const count = 1 + static_cast<unsigned>(from.roll(47));
                    add(8, 0xA302 | (std::uint64_t{1} << count | any() % (1ULL << count)) << 16);
                }
                break;
            case 5: {
                std::uint64_t const opcodes[] = {0x0D, 0x0D, 0x0D, 0x11, 0x01};
                std::uint64_t const forms[] = {0, 1, 1, 2, 2, 3, 4, 5, 6, 7};
                if (!from.chance(is_off ? 90 : 50)) { break; }
                add(1, from.one_of(opcodes) | from.one_of(forms) << 5);
                add(8, any());  // some of it is the next packets
                break;
            }
            case 6: add(1, from.roll(32) << 3 | 3); break;
            case 7:
                add(1, from.roll(32) << 3 | 7);
                for (auto i = from.roll(8); i-- > 0;) { add(1, from.roll(128) << 1 | 1); }
                add(1, from.roll(128) << 1);
                break;
            case 8: add(2, 0x59 | from.roll(256) << 8); break;
            case 9: add(8, from.chance(50) ? 0x19 | any() << 8 : any()); break;
        }
    }
    return made;
}

}  // namespace

TEST_CASE("branches up to a packet with an IP, or to one that has no room") {
    CHECK_TWICE([](auto value) {
        // PAD, TNT of T N, CYC, TNT of N, TIP 1122H; PADs.
        auto const in = value(bytes(0x00, 0x0C, 0x2B, 0x04, 0x2D, 0x22, 0x11, 0, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0, 0, 0, 0, 0, 0, 0));
        uint8_t const* at = in.bytes;
        uint8_t const* first = nullptr;
        uint64_t branches = packet::marked_branches::none;
        auto const got = trace::read_branches(in.bytes, at, in.bytes + 7, branches, first,
                                              0xABCD'0000'0000);
        bool good = got.what == kind::tip && got.ip == 0xABCD'0000'1122 && got.length == 3 &&
                    got.has_times && at == in.bytes + 4 && first == in.bytes + 1 &&
                    branches == 0b1100;
        branches = packet::marked_branches::of({61, 0});
        auto const before_full = branches;
        at = in.bytes;
        auto const full = trace::read_branches(in.bytes, at, in.bytes + 7, branches, first, 0);
        good = good && full.what == kind::tnt_short && at == in.bytes + 1 &&
               branches == before_full;
        branches = packet::marked_branches::off;
        at = in.bytes;
        auto const off = trace::read_branches(in.bytes, at, in.bytes + 7, branches, first, 0);
        return good && off.what == kind::pad && at == in.bytes + 1;
    });
}

TEST_CASE("random packets: the same as the reference decoder") {
    test::dice const from{1};
    auto const count = test::usual_count / 20;
    unsigned whole = 0;
    unsigned full = 0;
    unsigned starts = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        bool const is_off = from.chance(30);
        auto in = random_packets(from, is_off);
        std::size_t const end = in.size();
        in.resize(end + 16);
        std::string before;
        if (!is_off && from.chance(50)) {
            unsigned const taken = from.chance(30) ? 100 : 50;
            for (auto some = from.roll(63); some-- > 0;) {
                before += from.chance(taken) ? 'T' : 'N';
            }
        }
        std::uint64_t const last_ip = from.roll(~std::uint64_t{0});
        auto const wanted = read_by_reference(in, end, before, is_off, last_ip);

        std::uint64_t branches = 1;
        for (char const one : before) { branches = branches << 1 | (one == 'T' ? 1 : 0); }
        if (is_off) { branches = packet::marked_branches::off; }
        std::uint8_t const* at = in.data();
        std::uint8_t const* first = nullptr;
        auto const got = trace::read_branches(in.data(), at, in.data() + end, branches, first,
                                              last_ip);
        std::string found;
        if (!is_off) {
            for (auto left = branches; left != 1; left >>= 1) {
                found.insert(0, (left & 1) != 0 ? "T" : "N");
            }
        }
        CAPTURE(i);
        REQUIRE(found == wanted.outcomes);
        REQUIRE(static_cast<std::size_t>(at - in.data()) == wanted.at);
        REQUIRE(
            (first == nullptr ? ~std::size_t{0} : static_cast<std::size_t>(first - in.data())) ==
            wanted.first_tnt);
        REQUIRE(got.what == wanted.what);
        if (wanted.what != kind::pad) { REQUIRE(got.has_times == wanted.has_times); }
        REQUIRE(got.length == wanted.length);
        if (wanted.length != 0) { REQUIRE(got.ip == wanted.ip); }
        whole += wanted.length != 0 ? 1 : 0;
        full += wanted.what == kind::tnt_short ? 1 : 0;
        starts += wanted.what == kind::tip_pge ? 1 : 0;
    }
    CHECK(whole > count / 5);
    CHECK(full > count / 20);
    CHECK(starts > count / 50);
}
