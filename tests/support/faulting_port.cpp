// SPDX-License-Identifier: BSL-1.0
#include <ptspec/simulate/ports.hpp>

#include <support/check_twice.hpp>
#include <support/faulting_port.hpp>

using namespace ptspec;

TEST_CASE("the access with a number faults, and the other port is not accessed") {
    CHECK_TWICE([](auto value) {
        simulate::msr_model<1> msrs{{{0x570, 1}}};
        test::faulting_port port{msrs, value(1U)};
        bool const first = port.write(0x570, 2);
        bool const second = port.write(0x570, 3);
        bool const third = port.read(0x570).value == 2;
        return first && !second && third && port.count() == 3 &&
               port.fault() == driver::msr_fault{true, true, 0x570, 0, 1};
    });
}

TEST_CASE("a persistent fault stays with its MSR and its direction") {
    CHECK_TWICE([](auto value) {
        simulate::msr_model<2> msrs{{{0x570, 1}, {0x571, 1}}};
        test::faulting_port port{msrs, value(0U), true};
        return !port.write(0x570, 2) && !port.write(0x570, 2) && port.write(0x571, 2) &&
               port.read(0x570).value == 1;
    });
}

TEST_CASE("a fault is not persistent unless it is asked to be") {
    CHECK_TWICE([](auto value) {
        simulate::msr_model<1> msrs{{{0x570, 1}}};
        test::faulting_port port{msrs, value(0U)};
        return !port.write(0x570, 2) && port.write(0x570, 2) && port.count() == 2;
    });
}
