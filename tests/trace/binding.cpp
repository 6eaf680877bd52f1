// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/binding.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using trace::execution_state;

TEST_CASE("a packet changes the state that it carries (PKT-080,081,086,088,162)") {
    CHECK_TWICE([](auto value) {
        execution_state now;
        now.take(packet::pip{value(uint64_t{0x0000'0000'000A'4302} | uint64_t{1} << 16)});
        now.take(packet::vmcs{value(uint64_t{0x0000'0000'0005'C802})});
        now.take(packet::mode_exec{value(uint16_t{0x0599})});
        now.take(packet::mode_tsx{value(uint16_t{0x2199})});
        return now == execution_state{.code_bits = 64,
                                      .has_cr3 = true,
                                      .has_vmcs = true,
                                      .non_root = true,
                                      .interrupts = true,
                                      .transaction = true,
                                      .cr3 = 0xA0,
                                      .vmcs = 0x5000};
    });
}

TEST_CASE("violations are compared with all members") {
    trace::violation const one{7, rule::GEN_006, packet::kind::psb};
    CHECK(one == trace::violation{7, rule::GEN_006, packet::kind::psb, false});
    CHECK(one != trace::violation{8, rule::GEN_006, packet::kind::psb});
    CHECK(one != trace::violation{7, rule::GEN_020, packet::kind::psb});
    CHECK(one != trace::violation{7, rule::GEN_006, packet::kind::pad});
    CHECK(one != trace::violation{7, rule::GEN_006, packet::kind::psb, true});
}
