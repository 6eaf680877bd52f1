// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/pebs.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("SZ 1 means items of 4 bytes, SZ 0 items of 8 bytes (PKT-200)") {
    CHECK_TWICE([](auto value) {
        return bbp{}.with(bbp::SZ{value(true)}).opens() == block::items_of_4 &&
               bbp{}.with(bbp::SZ{value(false)}).opens() == block::items_of_8;
    });
}
