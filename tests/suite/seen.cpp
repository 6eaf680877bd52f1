// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/seen.hpp>

#include <support/check_twice.hpp>

namespace {

using namespace ptspec;
namespace expected = suite::expected;

// PSB, CBR, PSBEND, MODE.Exec(64), TIP.PGE(401000), TNT(TN), TIP(2000 in the low bits), FUP(402000)
// and TIP.PGD(): bytes by packets.md.
constexpr uint8_t example[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                               0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x03, 0x18, 0x00,
                               0x02, 0x23, 0x99, 0x01, 0x71, 0x00, 0x10, 0x40, 0x00, 0x00,
                               0x00, 0x0C, 0x2D, 0x00, 0x20, 0x1D, 0x01};
constexpr uint64_t base = 0x40'1000;

template <size_t Count>
constexpr auto differs(suite::seen_trace const& seen, suite::wanted const (&all)[Count]) {
    unsigned uncompressed = 0;
    return suite::compare(seen, base, 0, all, Count, uncompressed);
}

}  // namespace

TEST_CASE("a trace is read as branches and other packets, without PSB+ and PADs") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[sizeof example - 2] = {};
        for (size_t i = 0; i < sizeof bytes; ++i) { bytes[i] = value(example[i]); }
        auto const seen = suite::read_trace(bytes);
        using packet::kind;
        return seen.broken == rule::none && seen.begins_with_psb_plus && seen.psb_count == 1 &&
               seen.times.cbr_count == 1 && seen.count == 5 &&
               seen.packets[0].kind == kind::mode_exec && seen.packets[1].value == base &&
               seen.packets[2].value == 1 && seen.packets[3].value == 0 &&
               seen.packets[4] == suite::seen_packet{kind::tip, true, 0x40'2000};
    });
}

TEST_CASE("a packet that breaks a rule is found, and a packet that is cut off is not broken") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[sizeof example - 3] = {};
        for (size_t i = 0; i < sizeof bytes; ++i) { bytes[i] = value(example[i]); }
        auto const cut = suite::read_trace(bytes);
        // A TNT after TIP.PGD: GEN-105.
        uint8_t off[sizeof example - 1] = {};
        for (size_t i = 0; i < sizeof off; ++i) { off[i] = value(example[i]); }
        off[31] = 0x01;
        off[32] = 0x0C;
        off[33] = off[34] = off[35] = 0;
        auto const broken = suite::read_trace(off);
        return cut.is_cut && cut.broken == rule::none && broken.broken == rule::GEN_105;
    });
}

TEST_CASE("compare() finds the first packet that differs, a missing one, and one too many") {
    CHECK_TWICE([](auto value) {
        auto const seen = suite::read_trace({example, sizeof example - 2});
        using namespace expected;
        suite::wanted const right[] = {pge_to(0), taken, not_taken, tip_to(value(0x1000U))};
        suite::wanted const wrong[] = {pge_to(0), taken, taken, tip_to(0x1000)};
        suite::wanted const fewer[] = {pge_to(0), taken, not_taken};
        suite::wanted const more[] = {pge_to(0), taken, not_taken, tip_to(0x1000), pgd()};
        suite::wanted const elsewhere[] = {pge_to(0), taken, not_taken, tip_to(0x1001)};
        return differs(seen, right).is_equal && differs(seen, wrong).at == 3 &&
               !differs(seen, wrong).is_equal && !differs(seen, fewer).is_equal &&
               !differs(seen, more).is_equal && !differs(seen, elsewhere).is_equal;
    });
}

TEST_CASE("a RET that is expected to be compressed may have a TIP to the same place") {
    CHECK_TWICE([](auto value) {
        suite::seen_trace seen;
        seen.packets[0] = {packet::kind::tip, true, base + value(5U)};
        seen.count = 1;
        unsigned uncompressed = 0;
        suite::wanted const here[] = {expected::ret(5)};
        suite::wanted const there[] = {expected::ret(6)};
        bool const is_same = suite::compare(seen, base, 0, here, 1, uncompressed).is_equal;
        bool const is_other = suite::compare(seen, base, 0, there, 1, uncompressed).is_equal;
        return is_same && !is_other && uncompressed == 1;
    });
}

TEST_CASE("a CFE is compared by its type and its IP bit") {
    CHECK_TWICE([](auto value) {
        // CFE(IRET) with IP, then CFE(IRET) without, by packets.md.
        uint8_t const bytes[] = {0x02, 0x13, value(uint8_t{0x82}), 0x00, 0x02, 0x13, 0x02, 0x00};
        auto const seen = suite::read_trace(bytes);
        return seen.count == 2 &&
               seen.packets[0] == suite::seen_packet{packet::kind::cfe, true, 2} &&
               seen.packets[1] == suite::seen_packet{packet::kind::cfe, false, 2};
    });
}

TEST_CASE("a packet that no processor may send is a broken rule") {
    CHECK_TWICE([](auto value) {
        // After PSB, CBR and PSBEND: packets with one wrong field, by packets.md.
        constexpr size_t head = 22;
        struct wrong {
            uint8_t bytes[16];
            rule broken;
        };
        constexpr wrong all[] = {
            {{0x02, 0xFF}, rule::PKT_012},
            {{0x05}, rule::PKT_015},
            {{0x02, 0xA3, 0, 0, 0, 0, 0, 0}, rule::PKT_036},
            {{0x02, 0xA3, 1, 0, 0, 0, 0, 0}, rule::PKT_037},
            {{0xAD, 0, 0, 0, 0, 0, 0, 0, 0}, rule::PKT_052},
            {{0x99, 0x40}, rule::PKT_089},
            {{0x99, 0x03}, rule::PKT_090},
            {{0x07, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, rule::PKT_110},
            {{0x02, 0x82, 0x02, 0x82}, rule::PKT_131},
            {{0x02, 0x52}, rule::PKT_173},
        };
        bool is_right = true;
        for (auto const& one : all) {
            uint8_t bytes[head + sizeof one.bytes] = {};
            for (size_t i = 0; i < head; ++i) { bytes[i] = value(example[i]); }
            for (size_t i = 0; i < sizeof one.bytes; ++i) { bytes[head + i] = one.bytes[i]; }
            auto const seen = suite::read_trace(bytes);
            is_right = is_right && seen.broken == one.broken;
        }
        return is_right;
    });
}
