// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/output/options.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using engine::output_options;
using engine::restricted_access;

TEST_CASE("by default nothing is restricted, and restricted bytes are dropped (OUT-111)") {
    CHECK_TWICE([](auto value) {
        auto const how = value(output_options{});
        return how.when_restricted == restricted_access::drop && how.restricted.extra_count == 0 &&
               !how.restricted.touches(0, ~uint64_t{0}) && !how.restricted.touches(~uint64_t{0}, 1);
    });
}

TEST_CASE("by default the interrupt of a single region comes 512 bytes early (OUT-101)") {
    CHECK_TWICE([](auto value) { return value(output_options{}).pmi_lead_bytes == 512; });
}
