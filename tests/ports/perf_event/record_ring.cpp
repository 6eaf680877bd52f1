// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/record_ring.hpp>

#include <support/kernel_areas.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using test::kernel_areas;
using bytes = std::vector<uint8_t>;

TEST_CASE("only a record that the end of the area cuts is copied") {
    kernel_areas kernel{4096, 4096};
    record_ring ring{kernel.areas()};
    auto const record = kernel_areas::record_of(PERF_RECORD_SWITCH, {});
    unsigned copied = 0;
    for (unsigned i = 0; i < 4096 / 8 * 2; ++i) {
        REQUIRE(kernel.store(record));
        auto const got = ring.next();
        REQUIRE(bytes(got.begin(), got.end()) == record);
        bool const is_inside = got.data() >= kernel.data() && got.data() < kernel.data() + 4096;
        bool const is_cut = i * record.size() % 4096 + record.size() > 4096;
        CHECK(is_inside == !is_cut);
        copied += is_inside ? 0 : 1;
        ring.release();
    }
    CHECK(copied > 5);
}
