// SPDX-License-Identifier: BSL-1.0
#include <ptspec/conformance/words.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;
using pointers = reg::ia32_rtit_output_mask_ptrs;
using topa::entry;

namespace {

// A difference stops the build in a constant expression (tests/fail/conformance.cpp), so here it
// is tested at run time only.
constexpr test::unknown at_run_time;

}  // namespace

TEST_CASE("conforms_all takes every field once, in any order and in any form") {
    CHECK_TWICE([](auto value) {
        return conforms_all<pointers>(
                   field_is<pointers::OutputOffset>(unshifted{value(0xFFFF'FFFFU)}, value(32)),
                   field_is<pointers::LowerMask>(value(0x7F)),
                   field_is<pointers::MaskOrTableOffset>(at_bits{value(31), value(7)})) &&
               conforms_all<status>(
                   field_is<status::FilterEn>(value(1)), field_is<status::ContextEn>(value(2)),
                   field_is<status::TriggerEn>(value(4)), field_is<status::Error>(value(0x10)),
                   field_is<status::Stopped>(value(0x20)),
                   left_out<status::PendPSB, status::PendToPAPMI>(),
                   field_is<status::PacketByteCnt>(value(0x0001'FFFF'0000'0000), value(32)));
    });
    CHECK(!conforms_all<pointers>(field_is<pointers::LowerMask>(at_run_time(0xFF)),
                                  left_out<pointers::MaskOrTableOffset, pointers::OutputOffset>()));
    CHECK(!conforms_all<pointers>(left_out<pointers::MaskOrTableOffset, pointers::OutputOffset>(),
                                  field_is<pointers::LowerMask>(at_run_time(0xFF))));
}

TEST_CASE("conforms_all takes the fields of ToPA entries and of packets") {
    CHECK_TWICE([](auto value) {
        return conforms_all<entry>(
                   field_is<entry::END>(value(1)), field_is<entry::INT>(value(4)),
                   field_is<entry::STOP>(value(0x10)), field_is<entry::Size>(value(0x3C0)),
                   field_is<entry::Base>(value(0x000F'FFFF'FFFF'F000), max_phys_addr{})) &&
               conforms_all<packet::ptw>(
                   field_is<packet::ptw::PayloadBytes>(at_bits{value(14), value(13)}),
                   field_is<packet::ptw::IP>(value(0x8000)));
    });
}
