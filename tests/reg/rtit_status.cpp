// SPDX-License-Identifier: BSL-1.0
#include <ptspec/reg/rtit_status.hpp>

#include <ptspec/reg/rtit_ctl.hpp>

#include <support/check_twice.hpp>
#include <support/has_field_at.hpp>

using st = ptspec::reg::ia32_rtit_status;
using ptspec::wrapped;

namespace {

template <class Field>
constexpr auto has_field_at(auto value, unsigned msb, unsigned lsb) -> bool {
    return ptspec::test::has_field_at<st, Field>(value, msb, lsb);
}

}  // namespace

TEST_CASE("IA32_RTIT_STATUS is MSR 571H") { CHECK(st::address == 0x571); }

TEST_CASE("every field of IA32_RTIT_STATUS is at the position in the manual's table") {
    CHECK_TWICE([](auto value) { return has_field_at<st::FilterEn>(value, 0, 0); });
    CHECK_TWICE([](auto value) { return has_field_at<st::ContextEn>(value, 1, 1); });
    CHECK_TWICE([](auto value) { return has_field_at<st::TriggerEn>(value, 2, 2); });
    CHECK_TWICE([](auto value) { return has_field_at<st::Error>(value, 4, 4); });
    CHECK_TWICE([](auto value) { return has_field_at<st::Stopped>(value, 5, 5); });
    CHECK_TWICE([](auto value) { return has_field_at<st::PendPSB>(value, 6, 6); });
    CHECK_TWICE([](auto value) { return has_field_at<st::PendToPAPMI>(value, 7, 7); });
    CHECK_TWICE([](auto value) { return has_field_at<st::PacketByteCnt>(value, 48, 32); });
}

TEST_CASE("bits 3, 31:8 and 63:49 are reserved, and no others") {
    CHECK_TWICE([](auto value) {
        return st::reserved_mask(value(64U)) == 0xFFFE'0000'FFFF'FF08 &&
               st::reserved_mask(value(36U)) == 0xFFFE'0000'FFFF'FF08;
    });
}

TEST_CASE("writes of FilterEn, ContextEn and TriggerEn are ignored, and no bit reads as ones") {
    CHECK_TWICE([](auto) { return st::write_ignored_mask() == 7 && st::forced_1_mask() == 0; });
}

TEST_CASE("clearing Error does not change the byte count") {
    CHECK_TWICE([](auto value) {
        auto const before = st{value(uint64_t{0x0000'0123'0000'0010})};
        return before.get<st::Error>() && before.get<st::PacketByteCnt>() == 0x123 &&
               before.with(st::Error{false}).raw == 0x0000'0123'0000'0000;
    });
}

TEST_CASE("PacketByteCnt has 17 bits, fewer than the longer PSB periods need (REG-064)") {
    using ptspec::reg::ia32_rtit_ctl;
    CHECK_TWICE([](auto value) {
        uint64_t const most = 1 + st{~value(uint64_t{0})}.template get<st::PacketByteCnt>();
        return most == 0x2'0000 && ia32_rtit_ctl::PSBFreq::amount(6).count == most &&
               ia32_rtit_ctl::PSBFreq::amount(7).count > most;
    });
}
