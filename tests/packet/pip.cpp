// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/pip.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("a CR3 with bits 4:0 or 63:52 does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bit = 0; bit < 64; ++bit) {
            bool const fits = checked<pip::CR3>(value(uint64_t{1}) << bit).has_value;
            good = good && fits == (bit >= 5 && bit <= 51);
        }
        return good;
    });
}
