// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/ip_payload.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("CPUID.14H.0:ECX[31] is 1 for linear IPs (REG-079)") {
    CHECK_TWICE([](auto value) {
        return static_cast<unsigned>(value(cpu::ip_payload::effective)) == 0 &&
               static_cast<unsigned>(value(cpu::ip_payload::linear)) == 1;
    });
}
