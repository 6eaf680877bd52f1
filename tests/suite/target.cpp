// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/target.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

TEST_CASE("given memory has the bytes from its base on, and no others") {
    CHECK_TWICE([](auto value) {
        suite::given_memory const given{{value(uint64_t{0x10'0000})}, nullptr, 4};
        return given.size() == 0x4000 && given.page(3) == 0x10'3000 &&
               given.has(0x10'0000, 0x4000) && given.has(0x10'3FFF, 1) &&
               !given.has(0x10'3FFF, 2) && !given.has(0xF'FFFF, 2) && !given.has(0x10'4000, 1) &&
               !given.has(0x10'0000, ~uint64_t{0}) && !given.has(0, 1);
    });
}

TEST_CASE("an access that was not asked has not faulted") {
    CHECK_TWICE([](auto value) {
        suite::msr_result const none{.is_asked = value(false)};
        suite::msr_result const fault{.vector = value(uint8_t{13})};
        suite::msr_result const done{.is_done = value(true)};
        return !none.faulted() && fault.faulted() && !done.faulted();
    });
}
