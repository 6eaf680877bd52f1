// SPDX-License-Identifier: BSL-1.0
#include <ptspec/flow/run_cache.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using flow::code_width;
using flow::run;
using flow::run_cache;

TEST_CASE("the key of a run has its branches, their number and the code size") {
    CHECK_TWICE([](auto value) {
        auto const path = [&](unsigned count, uint64_t bits, code_width width) {
            return run_cache::path_of({value(count), bits}, width);
        };
        auto const one = path(3, 5, code_width::bits_64);
        return one != path(4, 5, code_width::bits_64) && one != path(3, 4, code_width::bits_64) &&
               one != path(3, 5, code_width::bits_32) && path(1, 0, code_width::bits_16) != 0 &&
               path(32, 0xFFFF'FFFF, code_width::bits_16) !=
                   path(31, 0xFFFF'FFFF, code_width::bits_16);
    });
}

TEST_CASE("a run is found by all of its key, in a cache of any size") {
    CHECK_TWICE([](auto value) {
        run storage[5] = {};
        auto const path = run_cache::path_of({2, 1}, code_width::bits_64);
        for (size_t size = 1; size <= 5; ++size) {
            run_cache cache{storage, value(size)};
            cache.clear();
            for (uint64_t ip = 0x1000; ip < 0x1020; ++ip) {
                run& kept = cache.at(ip, path, 7);
                kept = {.ip = ip, .path = path, .place = 7};
                if (&cache.at(ip, path, 7) != &kept) { return false; }
                if (&cache.at(ip, path, 8) == &kept && kept.place == 8) { return false; }
            }
        }
        return true;
    });
}
