// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/psb_plus.hpp>

#include <support/check_twice.hpp>
#include <support/made_stream.hpp>

using namespace ptspec;
using packet::kind;
using test::made_stream;

namespace {

/// What the first PSB+ of a stream reports.
constexpr auto first_in(made_stream const& stream) -> trace::psb_plus {
    trace::psb_plus reported;
    trace::reader from{stream.view()};
    while (auto const got = from.next()) {
        if (got.what != trace::item_type::packet) { continue; }
        if (got.packet.is<packet::psb>()) { reported.begin(got.offset); }
        if (got.packet.is<packet::psbend>()) { break; }
        reported.add(got.packet, got.place());
    }
    return reported;
}

}  // namespace

static_assert(packet::psb_plus_kinds ==
                  packet::kinds_of(kind::fup, kind::tsc, kind::tma, kind::cbr, kind::pip,
                                   kind::vmcs, kind::mode_exec, kind::mode_tsx, kind::mnt,
                                   kind::pad, kind::mtc, kind::cyc, kind::ovf, kind::psbend),
              "psb_plus::add must keep each of these that reports a state");

TEST_CASE("a PSB+ has the values of its status packets (PKT-134,136)") {
    CHECK_TWICE([](auto value) {
        trace::psb_plus const got = first_in(
            value(made_stream{"PSB 1933221100000000 02731000003200 CBR 0243010A00000000 "
                              "02c80500000000 9921 9902 5933 7d001000000000 0223",
                              engine::model_kind::manual}));
        return got.has_ip && got.ip == 0x1000 && got.fup_offset == 16 + 40 &&
               got.tsc.get<packet::tsc::TSC>() == 0x112233 &&
               got.tma.get<packet::tma::CTC>() == 0x10 &&
               got.cbr.get<packet::cbr::CoreBusRatio>() == 0x18 && got.pip.get<packet::pip::NR>() &&
               got.vmcs.get<packet::vmcs::base>() == 0x5000 &&
               got.mode_tsx.get<packet::mode_tsx::InTX>() && got.mode_exec.code_bits() == 32 &&
               got.kinds == packet::kinds_of(kind::tsc, kind::tma, kind::cbr, kind::pip, kind::vmcs,
                                             kind::mode_tsx, kind::mode_exec, kind::fup);
    });
}

TEST_CASE("another PSB+ begins without the packets of the last (GEN-170)") {
    CHECK_TWICE([](auto value) {
        auto got = first_in(value(made_stream{"ON", engine::model_kind::manual}));
        bool const had = got.has_ip && got.has(kind::cbr);
        got.begin(value(uint64_t{0x40}));
        return had && !got.has_ip && got.offset == 0x40 && got.kinds == packet::kind_set{};
    });
}

TEST_CASE("a FUP without an IP counts as none (PKT-140)") {
    CHECK_TWICE([](auto value) {
        trace::psb_plus const got = first_in(
            value(made_stream{"PSB CBR 1d 0223", engine::model_kind::manual}));
        return !got.has_ip && !got.has(kind::fup) && got.has(kind::cbr) && !got.has(kind::tsc);
    });
}
