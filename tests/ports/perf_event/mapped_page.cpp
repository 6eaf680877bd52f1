// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/mapped_page.hpp>

#include <doctest/doctest.h>

#include <thread>

using namespace ptspec;
using namespace ptspec::ports::perf_event;

TEST_CASE("the conversion of times is that of the page, where the kernel has one") {
    perf_event_mmap_page page{};
    page.time_shift = 31;
    page.time_mult = 715'827'882;
    page.time_zero = 12345;
    CHECK(time_conversion_of(page) == time_conversion{});
    page.cap_user_time = 1;
    CHECK(time_conversion_of(page) == time_conversion{});
    page.cap_user_time_zero = 1;
    CHECK(time_conversion_of(page) ==
          time_conversion{.shift = 31, .mult = 715'827'882, .zero = 12345});
    page.time_shift = 64;
    CHECK(time_conversion_of(page) == time_conversion{});
}

TEST_CASE("a page that the kernel does not finish has no conversion") {
    perf_event_mmap_page page{};
    page.cap_user_time_zero = 1;
    page.time_mult = 1;
    page.lock = 1;
    CHECK(time_conversion_of(page) == time_conversion{});
}

TEST_CASE("a conversion that changes is never read in parts") {
    perf_event_mmap_page page{};
    page.cap_user_time_zero = 1;
    // Each turn gives the same number in its members.
    bool has_ended = false;
    std::thread kernel{[&] {
        for (uint32_t turn = 0; turn < 200'000; ++turn) {
            __atomic_store_n(&page.lock, 2 * turn + 1, __ATOMIC_SEQ_CST);
            __atomic_store_n(&page.time_shift, static_cast<uint16_t>(turn % 60), __ATOMIC_SEQ_CST);
            __atomic_store_n(&page.time_mult, turn % 60, __ATOMIC_SEQ_CST);
            __atomic_store_n(&page.time_zero, uint64_t{turn % 60}, __ATOMIC_SEQ_CST);
            __atomic_store_n(&page.lock, 2 * turn + 2, __ATOMIC_SEQ_CST);
        }
        __atomic_store_n(&has_ended, true, __ATOMIC_SEQ_CST);
    }};
    unsigned torn = 0;
    while (!__atomic_load_n(&has_ended, __ATOMIC_SEQ_CST)) {
        auto const got = time_conversion_of(page);
        torn += got.shift != got.mult || got.mult != got.zero ? 1 : 0;
    }
    kernel.join();
    CHECK(torn == 0);
}
