// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/vmcs.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("a VMCS address with bits 11:0 or 63:52 does not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned bit = 0; bit < 64; ++bit) {
            bool const fits = checked<vmcs::base>(value(uint64_t{1}) << bit).has_value;
            good = good && fits == (bit >= 12 && bit <= 51);
        }
        return good;
    });
}
