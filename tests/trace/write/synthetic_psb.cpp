// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/write/synthetic_psb.hpp>

#include <support/check_twice.hpp>
#include <support/streams.hpp>

using namespace ptspec;
using test::bytes;
using test::join;
using trace::prefix_state;
using trace::synthetic_psb;

namespace {

constexpr auto psb = bytes(0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                           0x02, 0x82, 0x02, 0x82);
constexpr auto psbend = bytes(0x02, 0x23);

}  // namespace

TEST_CASE("a synthetic PSB+ has the packets of the state, between PSB and PSBEND "
          "(PKT-134, GEN-170)") {
    CHECK_TWICE([](auto value) {
        auto const bare = synthetic_psb({});
        prefix_state with;
        with.status.tsc = packet::tsc{}.with(packet::tsc::TSC{wrapped{value(uint64_t{0x0102})}});
        with.status.cbr = packet::cbr{}.with(packet::cbr::CoreBusRatio{24});
        with.status.mode_exec = packet::mode_exec{}.with(packet::mode_exec::CS_L{true});
        with.status.fup = 0x40'1000;
        auto const full = synthetic_psb(with);
        return bare && bare.view() == byte_view{join(psb, psbend)} && full &&
               full.view() ==
                   byte_view{join(psb, bytes(0x19, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00),
                                  bytes(0x02, 0x03, 0x18, 0x00), bytes(0x99, 0x01),
                                  bytes(0x7D, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00), psbend)};
    });
}

TEST_CASE("with a LastIP an empty trace at that IP follows, and compressed IPs are right "
          "(GEN-107, PKT-060)") {
    CHECK_TWICE([](auto value) {
        // TIP.PGE of two bytes against FFFFFFFF81001234.
        auto const later = bytes(0x31, 0x78, 0x56);
        prefix_state from;
        from.last_ip = value(uint64_t{0xFFFF'FFFF'8100'1234});
        auto const made = synthetic_psb(from);
        auto const all = join(
            psb, psbend, bytes(0xD1, 0x34, 0x12, 0x00, 0x81, 0xFF, 0xFF, 0xFF, 0xFF),
            bytes(0xDD, 0x34, 0x12, 0x00, 0x81, 0xFF, 0xFF, 0xFF, 0xFF), bytes(0x01));
        if (made.view() != byte_view{all}) { return false; }
        auto const whole = join(all, later);
        trace::reader reader{whole};
        uint64_t last = 0;
        for (auto item = reader.next(); item; item = reader.next()) { last = item.ip; }
        return last == 0xFFFF'FFFF'8100'5678;
    });
}

TEST_CASE("FUP makes LastIP unnecessary; TMA without TSC is refused (PKT-135)") {
    CHECK_TWICE([](auto value) {
        prefix_state both;
        both.status.fup = value(uint64_t{0x1000});
        both.last_ip = 0x2000;
        prefix_state wrong;
        wrong.status.tma = packet::tma{};
        auto const refused = synthetic_psb(wrong);
        return synthetic_psb(both).size == 16 + 7 + 2 && !refused && refused.size == 0 &&
               refused.broken == rule::PKT_135;
    });
}

TEST_CASE("the longest prefix fits") {
    CHECK_TWICE([](auto value) {
        prefix_state all;
        all.status.tsc = packet::tsc{};
        all.status.tma = packet::tma{};
        all.status.cbr = packet::cbr{};
        all.status.pip = packet::pip{};
        all.status.vmcs = packet::vmcs{};
        all.status.mode_tsx = packet::mode_tsx{};
        all.status.mode_exec = packet::mode_exec{};
        all.last_ip = value(~uint64_t{0});
        auto const made = synthetic_psb(all);
        return made && made.size == 16 + 8 + 7 + 4 + 8 + 7 + 2 + 2 + 2 + 9 + 9 + 1;
    });
}

TEST_CASE("a trace needs LastIP if its first IP is compressed (PKT-051)") {
    CHECK_TWICE([](auto value) {
        (void)value;
        auto const needs = [](auto const& trace) { return trace::needs_last_ip(trace); };
        return needs(bytes(0x99, 0x01, 0x31, 0x78, 0x56)) &&
               needs(bytes(0x01, 0x51, 0x00, 0x00, 0x00, 0x81)) &&
               needs(bytes(0x91, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00)) &&
               !needs(bytes(0x71, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00)) &&
               !needs(
                   bytes(0xD1, 0x34, 0x12, 0x00, 0x81, 0xFF, 0xFF, 0xFF, 0xFF, 0x2D, 0x00, 0x00)) &&
               !needs(join(psb, psbend, bytes(0x31, 0x78, 0x56))) &&
               !needs(bytes(0x00, 0x01, 0x00));
    });
}
