// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/psb_plus.hpp>

#include <support/check_twice.hpp>
#include <support/made_stream.hpp>

using namespace ptspec;
using packet::kind;
using test::made_stream;

namespace {

/// Reads the packets after the first PSB, up to PSBEND. Returns how many are no status packets.
constexpr auto read(made_stream const& stream, trace::psb_plus& to) -> unsigned {
    trace::reader from{stream.view()};
    unsigned others = 0;
    while (auto const got = from.next()) {
        if (got.what != trace::item_type::packet || got.packet.is<packet::psb>()) { continue; }
        if (got.packet.is<packet::psbend>()) { break; }
        others += to.add(got.packet, {got.offset, got.ip, got.length}) ? 0 : 1;
    }
    return others;
}

}  // namespace

TEST_CASE("a PSB+ has the values of its status packets (PKT-134,136)") {
    CHECK_TWICE([](auto value) {
        trace::psb_plus got;
        auto const others = read(
            value(made_stream{"PSB 1933221100000000 02731000003200 CBR 0243010A00000000 "
                              "02c80500000000 9921 9902 5933 7d001000000000 0223",
                              engine::kind::manual}),
            got);
        return others == 1 && got.has_ip && got.ip == 0x1000 && got.fup_offset == 16 + 40 &&
               got.tsc.get<packet::tsc::TSC>() == 0x112233 &&
               got.tma.get<packet::tma::CTC>() == 0x10 &&
               got.cbr.get<packet::cbr::CoreBusRatio>() == 0x18 && got.pip.get<packet::pip::NR>() &&
               got.vmcs.get<packet::vmcs::base>() == 0x5000 &&
               got.mode_tsx.get<packet::mode_tsx::InTX>() && got.mode_exec.code_bits() == 32 &&
               got.kinds == packet::kinds_of(kind::tsc, kind::tma, kind::cbr, kind::pip, kind::vmcs,
                                             kind::mode_tsx, kind::mode_exec, kind::fup);
    });
}

TEST_CASE("a FUP without an IP counts as none (PKT-140)") {
    CHECK_TWICE([](auto value) {
        trace::psb_plus got;
        auto const others = read(value(made_stream{"PSB CBR 1d 0223", engine::kind::manual}), got);
        return others == 0 && !got.has_ip && !got.has(kind::fup) && got.has(kind::cbr) &&
               !got.has(kind::tsc);
    });
}
